"""Handle the server's messages and saved states.

Boxes of shares dominate the state: 1,168 n k bytes with n clients, k neighbours and ML-KEM-768. Above ``SHELVED_ABOVE``
clients only a journal's log has them; a resumed server reads all back before it sends a box.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from msgspec.structs import replace

from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.blame import Failed, accused, accusers, both_sides
from privstats.secagg.interactive.client_secrets import Channel
from privstats.secagg.interactive.dealing import part
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters, StepName
from privstats.secagg.interactive.state import STEPS, ServerState, answers_of
from privstats.secagg.keys import Entropy, seal_state
from privstats.secagg.machines import ENDS, Opening, Outbox, StepStatus, layer_seeds, opened_layers
from privstats.secagg.roster import Roster
from privstats.secagg.wire import Refusal

SHELVED_ABOVE = 2_000
"""The largest number of clients whose boxes are in every snapshot of a journal: up to 0.6 GB at 254 neighbours."""

# A wrong reply is no proof: this server may have been restored to a state before the message that it sent.
_UNPROVEN = ("wrong_reply",)


@dataclass(frozen=True)
class StepActions:
    """The server's functions for one step of ``STEPS``.

    Attributes:
        opens: builds the message that opens the step.
        accepts: accepts or refuses a client's answer.
        checks: raises if closing now would yield no sum.
        closes: closes the step; returns the next step's clients.
    """

    opens: Callable[[Any, int], messages.ServerMessage]
    accepts: Callable[[Any, int, Any], None]
    checks: Callable[[Any], object]
    closes: Callable[[Any], set[int]]


class ServerSteps(Exclusive):
    """The server interface for engines."""

    steps: ClassVar[tuple[str, ...]] = tuple(STEPS)
    accepted: int = 0
    """Messages accepted so far by this object: a journal stores each of them."""

    parameters: Parameters
    _state: ServerState
    _graph: Graph
    _sum: RingVector | None
    _failure: str
    fetch: Callable[[bytes], bytes]
    _absent: dict[int, bytes]
    """Places of the ``Share`` messages whose boxes are in a journal and not in memory, by sender."""
    _rows: ClassVar[dict[StepName, StepActions]]

    @abstractmethod
    def _opened(self, sender: int, data: memoryview, kind: type[Any]) -> memoryview:
        """Return an answer's opened bytes; a refusal here proves nothing against the sender."""

    @abstractmethod
    def _read(self, sender: int, data: memoryview, kind: type[Any]) -> Any: ...

    @abstractmethod
    def _message(self, client: int) -> bytes:
        """Return the client's opening message: identical bytes each time."""

    @abstractmethod
    def _forget(self) -> None: ...

    @abstractmethod
    def _receivers(self, owner: int) -> tuple[int, ...]:
        """Return clients that ``owner`` seals boxes for, in order."""

    @abstractmethod
    def _channel(self, client: int) -> Channel: ...

    @property
    def roster(self) -> Roster:
        """All parties' public identities."""
        return self._graph.roster

    @property
    def step(self) -> StepName:
        """The step that collects answers; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """Clients without an answer in this step."""
        return frozenset(self._state.expected)

    @property
    def outbox(self) -> Outbox:
        """The step's opening messages; after an interruption send them again to :attr:`waiting_for`."""
        return Outbox(sorted(self._state.requested), partial(self._make, self._state.step))

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Proven faults, once per client, step and code; and unproven disputes.

        A dispute lists its accused owner, and its reporters if all of these may lie.

        Repeats, late answers and messages that any sender could have made do not count.
        """
        state = self._state
        proven = (RemoteProtocolError(*fault) for fault in sorted(state.faults))
        return (*proven, *accused(state.failed), *accusers(state.failed, self.parameters))

    @property
    def noise_due(self) -> bool:
        """Whether central noise must be added before publication."""
        return self._state.noise_due

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and its survivors; ``LocalProtocolError`` before the end."""
        state, total = self._state, self._sum
        if state.step != "done" or total is None:
            raise LocalProtocolError(f"there is no result: the session is at step '{state.step}'")
        return total, tuple(sorted(state.survivors))

    @property
    def openings(self) -> dict[int, Opening]:
        """Opened noise layers by client; empty without levels."""
        return {client: self._opened_by(client, value) for client, value in self._state.openings.items()}

    def _opened_by(self, client: int, value: bytes) -> Opening:
        opened = self._opened_layers(client)
        return Opening(self.parameters.levels[opened], layer_seeds(value, opened))

    def _opened_layers(self, client: int) -> int:
        """Return how many layers a client opens; it counts only survivors with usable shares."""
        proven = self._state.survivors.difference(self._unproven.get(client, ()))
        return opened_layers(self.parameters.levels, len(proven))

    @property
    def _unproven(self) -> Failed:
        """Maps a client to those in dispute with it, which proved nothing to it or share no mask with it."""
        return both_sides(self._state.failed)

    @property
    def agreement(self) -> dict[int, bytes]:
        """The survivor list with its signature, by client; empty before a quorum.

        An unlisted client can prove with the list, even after a failed session, that its upload is in no sum.
        """
        return dict(self._state.agreement)

    def awaits(self, client: int) -> bool:
        """Return whether the client's answer is due."""
        return client in self._state.expected

    @exclusive
    def start(self) -> Outbox:
        """Return the messages that open the session; ``LocalProtocolError`` if called twice."""
        state = self._state
        if state.step != "advertise" or state.requested:
            raise LocalProtocolError("the session has already started: a server serves one session")
        state.requested, state.expected = set(range(self.parameters.clients)), set(range(self.parameters.clients))
        return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Record one message and return an empty outbox; :meth:`end_step` closes the step.

        A repeat of an accepted message changes nothing.

        Raises:
            RemoteProtocolError: the message is refused. The error is proven, and then among the :attr:`faults`, only if
                the sender certainly made the message; nothing else changes.
        """
        state, view = self._state, wire.view_of(data)
        wire.require_sender(sender)
        name = (sender, bytes(view[-wire.TAG_BYTES :]))
        if name in state.heard:
            return Outbox()
        if state.step in ENDS:
            raise self._refused(sender, Refusal("not_expected", "the session has ended"), proven=False)
        kind = answers_of(state.step, self.parameters)
        try:
            opened = self._opened(sender, view, kind)
        except Refusal as refusal:
            raise self._refused(sender, refusal, proven=False) from None
        try:
            self._rows[state.step].accepts(self, sender, self._read(sender, opened, kind))
            state.heard.add(name)
            state.expected.discard(sender)
            self.accepted += 1
        except Refusal as refusal:
            proven = _is_proven(kind, refusal)
            if proven:
                state.faults.add((sender, state.step, refusal.code))
            raise self._refused(sender, refusal, proven=proven) from None
        except BaseException:  # the sum may hold some or all of the vector, unrecorded
            self._failure = "abandoned"
            self._end("failed")
            raise
        return Outbox()

    @exclusive
    def step_status(self) -> StepStatus:
        """Return the step's status."""
        state, abort = self._running(), None
        try:
            self._rows[state.step].checks(self)
        except AggregationError as error:
            abort = error
        answered = tuple(sorted(state.requested - state.expected))
        return StepStatus(state.step, answered, tuple(sorted(state.expected)), abort)

    @exclusive
    def end_step(self) -> Outbox:
        """Close the step for good and return the next opening messages, if any.

        Raises:
            AggregationError: too few answered, or shares do not fit; the session has ended.
        """
        state = self._running()
        try:
            row = self._rows[state.step]
            row.checks(self)
            receivers = row.closes(self)
            self._forget()
            state.requested, state.expected = receivers, set(receivers)
            state.step = STEPS[state.step].then
        # An interruption may leave the sum partly unmasked, so it ends the session like an abort.
        except BaseException as error:
            self._failure = error.code if isinstance(error, AggregationError) else "abandoned"
            self._end("failed")
            raise
        if state.step in ENDS:
            self._end(state.step)
        return self.outbox

    def shelve(self, places: Mapping[int, bytes]) -> None:
        """Note where a journal stores a large session's shares."""
        if self.parameters.clients > SHELVED_ABOVE and self._state.step == "share":
            self._state.places.update(places)

    @property
    def shelved(self) -> Iterable[bytes]:
        """The journal places of messages with boxes that are still needed."""
        return self._state.places.values()

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """Return the server's state, sealed under 32 bytes of ``key``.

        Save it before sending its messages, and resume only the newest: an older one could seal two different messages
        under one nonce.
        """
        self._unfinished()
        self._read_back()
        return self._sealed(replace(self._state, places={}), key, entropy)

    @exclusive
    def export_shelved(self, key: bytes) -> bytes:
        """Return the sealed state, without boxes that a journal has."""
        self._unfinished()
        in_log = self._state.places.keys() == self._state.dealings.keys()
        return self._sealed(replace(self._state, **{"inboxes" if in_log else "places": {}}), key, os.urandom)

    def _sealed(self, state: ServerState, key: bytes, entropy: Entropy) -> bytes:
        state.total = self._sum.pack() if self._sum is not None else b""
        return seal_state(state, key, role="server", place=self._graph.place, entropy=entropy)

    def _load(self, state: ServerState) -> Self:
        self._sum = self.parameters.ring.unpack(state.total) if state.total else None
        state.total = b""
        self._state = state
        return self

    def _put(self, sender: int, boxes: bytes) -> None:
        size = messages.BOX_BYTES
        for place, receiver in enumerate(self._receivers(sender)):
            start = size * bisect_left(self._receivers(receiver), sender)
            self._inbox(receiver)[start : start + size] = part(boxes, place, size)

    def _inbox(self, receiver: int) -> bytearray:
        if receiver not in self._state.inboxes:
            size = messages.BOX_BYTES
            self._state.inboxes[receiver] = bytearray(size * len(self._receivers(receiver)))
        return self._state.inboxes[receiver]

    def _read_back(self) -> None:
        while self._absent:
            sender, place = next(iter(self._absent.items()))
            self._put(sender, self._stored_boxes(sender, memoryview(self.fetch(place))))
            del self._absent[sender]

    def _stored_boxes(self, sender: int, message: memoryview) -> bytes:
        try:
            messages.check_header(message, messages.Share, self.parameters)
            return bytes(messages.decode(self._channel(sender).open(message), messages.Share).boxes)
        except Refusal as refusal:
            raise LocalProtocolError(
                f"the journal has another message in place of the share of client {sender} ({refusal.code}): "
                "restore the journal's own files"
            ) from None

    def _make(self, step: StepName, client: int) -> bytes:
        with self._alone():
            if self._state.step != step:
                raise LocalProtocolError(f"these messages opened step '{step}', which has ended: send the newest ones")
            return self._message(client)

    def _refused(self, sender: int, refusal: Refusal, *, proven: bool) -> RemoteProtocolError:
        return RemoteProtocolError(sender, self._state.step, refusal.code, refusal.detail, proven=proven)

    def _unfinished(self) -> None:
        if self._state.step in ENDS:
            raise LocalProtocolError(f"the session is {self._state.step}: build a new server for a new one")

    def _running(self) -> ServerState:
        self._unfinished()
        if not self._state.requested:
            raise LocalProtocolError("the session has not started: call start and send its messages")
        return self._state

    def _end(self, end: StepName) -> None:
        old = self._state
        old.secret[:] = bytes(len(old.secret))
        self._state = ServerState(
            bytearray(),
            old.session,
            step=end,
            survivors=old.survivors if end == "done" else set(),
            failed=old.failed,
            faults=old.faults,
            heard=old.heard,
            noise_due=old.noise_due,
            agreement=old.agreement,
            openings=old.openings if end == "done" else {},
        )
        self._forget()
        if end == "failed":
            self._sum = None


def _is_proven(kind: type[messages.ClientMessage], refusal: Refusal) -> bool:
    """Return whether refused content is certainly the sender's: sealed, or validly signed."""
    if kind is messages.Advertise:
        # Keys are checked only after the signature, so a bad key is certainly the sender's.
        return refusal.code == "bad_key"
    return refusal.code not in _UNPROVEN
