"""Handle the leader's messages and saved states."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from msgspec.structs import replace

from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy, Identity, seal_state
from privstats.secagg.machines import ENDS, Opening, Outbox, StepStatus
from privstats.secagg.roster import Roster
from privstats.secagg.upload import messages
from privstats.secagg.upload.batching import ReportBatches
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.state import STEPS, LeaderState, Part, StepName
from privstats.secagg.wire import SIGNATURE_BYTES, Refusal

BAD_PROOF = "bad_proof"
"""The fault of a report whose proof fails. Its client or one member of the panel lies; no party can decide which."""

_NO_FAULT = ("busy", "already_here")


class LeaderSteps(Exclusive):
    """The leader interface for engines."""

    steps: ClassVar[tuple[str, ...]] = STEPS
    accepted: int = 0
    """Messages accepted so far by this object: a journal stores each of them."""

    parameters: UploadParameters
    roster: Roster
    _identity: Identity
    _context: bytes
    _state: LeaderState
    _book: ReportBatches
    _sum: Any
    _closers: ClassVar[dict[StepName, Callable[[Any], None]]]

    @abstractmethod
    def _receive_message(self, sender: int, view: memoryview) -> Outbox: ...

    @abstractmethod
    def _listed(self, place: int) -> bytes:
        """Return the helper's signature over its answer, with the list."""

    @abstractmethod
    def _survivors(self) -> bytes:
        """Return the signed list, always identical bytes."""

    @abstractmethod
    def _body(self, part: Part, sender: int) -> bytearray:
        """Remove a report's body from the part, or read it back."""

    @abstractmethod
    def _boxes(self, part: Part, sender: int) -> bytes:
        """Return a report's boxes, read back if shelved."""

    @abstractmethod
    def _forget_key(self) -> None: ...

    @property
    def step(self) -> StepName:
        """``"report"``, ``"check"``, ``"reveal"``; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """Clients without a report, or helpers without an answer."""
        state, places = self._state, range(1, self.parameters.helpers + 1)
        if state.step == "report":
            return frozenset(range(self.parameters.clients)) - state.reported.keys()
        if state.step == "check":
            return frozenset(self._peer(place) for place in places if self._book.due(place) is not None)
        if state.step == "reveal":
            return frozenset(self._peer(place) for place in places if place not in state.answers)
        return frozenset()

    @property
    def outbox(self) -> Outbox:
        """The helpers' due part or list; identical bytes each time."""
        state, places = self._state, range(1, self.parameters.helpers + 1)
        if state.step == "reveal":
            return self._outbox(dict.fromkeys(places))
        due = {place: self._book.due(place) for place in places}
        return self._outbox({place: number for place, number in due.items() if number is not None})

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Helpers' proven faults, and clients' unproven ones: a box or proof failed.

        Repeats, late reports and messages that any sender could have made do not count. If more proofs fail than the
        plan has colluders, the panel is named too; that proves nothing.
        """
        named = tuple(
            RemoteProtocolError(self._name(peer), step, code, detail, proven=peer >= self.parameters.clients)
            for peer, step, code, detail in sorted(self._state.faults)
        )
        if self.unproved <= self.parameters.colluders:
            return named
        detail = f"{self.unproved} proofs fail and the plan has {self.parameters.colluders} colluders: a member lies, "
        return (*named, RemoteProtocolError("panel", "check", BAD_PROOF, detail + "or a version differs", proven=False))

    @property
    def unproved(self) -> int:
        """Number of reports excluded because their proof failed."""
        return sum(code == BAD_PROOF for _, _, code, _ in self._state.faults)

    @property
    def refused(self) -> dict[str, int]:
        """Number of refused messages that prove no party's fault, by code."""
        return dict(self._state.refused)

    @property
    def heard(self) -> Mapping[int, bytes]:
        """The last 64 bytes of each peer's last accepted message, to recognise repeats."""
        return MappingProxyType(self._state.heard)

    @property
    def abandoned(self) -> dict[int, bytes]:
        """The ``Abandoned`` messages by place; if all helpers sent one, another run is harmless."""
        return dict(self._state.abandoned)

    @property
    def statements(self) -> dict[int, bytes]:
        """Each helper's signed end of the run, by place: abandoned, or the one answered list.

        Together they prove to a client on no list that its report is in no sum.
        """
        return {place: self._listed(place) for place in self._state.revealed} | self.abandoned

    @property
    def noise_due(self) -> bool:
        """Whether central or a panel leader's noise must be added before publication."""
        return self._state.noise_due

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and its survivors; ``LocalProtocolError`` before the end."""
        if self._state.step != "done":
            raise LocalProtocolError(f"there is no result: the run is at step '{self._state.step}'")
        return self._sum, tuple(sorted(self._state.listed))

    @property
    def openings(self) -> dict[int, Opening]:
        """Empty: a client that is gone opens nothing."""
        return {}

    def awaits(self, peer: int) -> bool:
        """Return whether the run waits for this peer; a failed run still accepts ``Abandoned``."""
        state, n = self._state, self.parameters.clients
        if state.step in ENDS or not 0 <= peer < n + self.parameters.helpers:
            return False
        if peer < n:
            return state.step == "report" and peer not in state.reported
        return peer - n + 1 not in state.answers

    @exclusive
    def start(self) -> Outbox:
        """Return an empty outbox until the first part is closed."""
        return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Process one message from ``sender``; return any batches that are then due.

        Raises:
            RemoteProtocolError: the message is refused; only :attr:`faults` and :attr:`refused` may change. ``busy``
                and ``already_here`` are no faults: the client may send again later, or its report was accepted.
            LocalProtocolError: an argument of a wrong type.
        """
        view = wire.view_of(data)
        wire.require_sender(sender)
        name = bytes(view[-SIGNATURE_BYTES:])
        if name == self._state.heard.get(sender):
            return Outbox()
        try:
            if not 0 <= sender < self.parameters.clients + self.parameters.helpers:
                raise Refusal("stranger", proven=False)
            if self._state.step in ENDS and not self._gives_up(sender, view):
                raise Refusal("not_expected", "the run has ended", proven=False)
            following = self._receive_message(sender, view)
        except Refusal as refusal:
            raise self._refusal(sender, refusal) from None
        except BaseException:  # the sum may hold some of the message's vector
            self._end("failed")
            raise
        self._state.heard[sender] = name
        self.accepted += 1
        return following

    def _gives_up(self, sender: int, view: memoryview) -> bool:
        """Return whether this is a helper's ``Abandoned`` after a failed run: clients need even a late one."""
        of_a_helper = sender >= self.parameters.clients and messages.is_kind(view, messages.Abandoned)
        return of_a_helper and self._state.step == "failed"

    def _refusal(self, sender: int, refusal: Refusal) -> RemoteProtocolError:
        """Record a fault only for signed content."""
        state = self._state
        if refusal.proven:
            state.faults.add((sender, state.step, refusal.code, ""))
        elif refusal.code not in _NO_FAULT:
            state.refused[refusal.code] = state.refused.get(refusal.code, 0) + 1
        return RemoteProtocolError(self._name(sender), state.step, refusal.code, refusal.detail, proven=refusal.proven)

    @exclusive
    def step_status(self) -> StepStatus:
        """Return the step's status."""
        self._unfinished()
        step, waiting = self._state.step, self.waiting_for
        peers = range(self.parameters.clients)
        if step != "report":
            peers = range(self.parameters.clients, self.parameters.clients + self.parameters.helpers)
        answered = tuple(peer for peer in peers if peer not in waiting)
        return StepStatus(step, answered, tuple(sorted(waiting)), self._obstacle())

    @exclusive
    def end_step(self) -> Outbox:
        """Close the step for good and return the helpers' next messages.

        Raises:
            AggregationError: too few clients remain, or a helper has not answered; the run has ended.
        """
        self._unfinished()
        obstacle = self._obstacle()
        if obstacle is not None:
            self._end("failed")
            raise obstacle
        try:
            self._closers[self._state.step](self)
        except BaseException:
            self._end("failed")
            raise
        return self.outbox

    def _obstacle(self) -> AggregationError | None:
        state, needed = self._state, self.parameters.min_survivors
        if state.abandoned:
            return self._absent(sorted(state.abandoned), "have abandoned the run")
        if state.step != "report" and self.waiting_for:
            places = [peer - self.parameters.clients + 1 for peer in sorted(self.waiting_for)]
            return self._absent(places, "have not answered")
        clients = len(state.reported) if state.step == "report" else len(state.listed)
        if clients < needed:
            failed = f", {self.unproved} proofs failed" if self.unproved else ""
            return AggregationError(
                state.step, "too_few_clients", f"{clients} clients remain, the plan needs {needed}{failed}"
            )
        return None

    def _absent(self, places: list[int], what: str) -> AggregationError:
        named = ", ".join(f"helper {place}" for place in places)
        return AggregationError(
            self._state.step, "too_few_helpers", f"split needs every helper, and these {what}: {named}"
        )

    @exclusive
    def abandon(self, code: str = "abandoned") -> Outbox:
        """End the run without a message: no party waits for this leader."""
        wire.require_word(code, ("abandoned",))
        if self._state.step not in ENDS:
            self._end("failed")
        return Outbox()

    @exclusive
    def export(self, key: bytes, *, entropy: Entropy = os.urandom) -> bytes:
        """Return the leader's state, sealed under 32 bytes of ``key``.

        Save it before sending its messages.
        """
        self._unfinished()
        state = self._state
        parts, settled = (
            {number: self._complete(part) for number, part in each.items()} for each in (state.parts, state.settled)
        )
        sealed = replace(state, open=self._complete(state.open), parts=parts, settled=settled)
        return self._sealed(sealed, key, entropy)

    @exclusive
    def export_shelved(self, key: bytes) -> bytes:
        """Return the sealed state, with references to a journal's reports."""
        self._unfinished()
        return self._sealed(replace(self._state), key, os.urandom)

    def _sealed(self, state: LeaderState, key: bytes, entropy: Entropy) -> bytes:
        state.total = self._sum.pack() if self._sum is not None else b""
        return seal_state(state, key, role="leader", place=place_of(self.parameters, self.roster), entropy=entropy)

    def _complete(self, part: Part) -> Part:
        heads = {sender: replace(head, boxes=self._boxes(part, sender)) for sender, head in part.heads.items()}
        bodies = {sender: part.bodies.get(sender) or self._body(part, sender) for sender in part.heads}
        return replace(part, heads=heads, bodies=bodies, places={}, hashes={})

    def _unfinished(self) -> None:
        if self._state.step in ENDS:
            raise LocalProtocolError(f"the run is {self._state.step}: build a new leader, and new offers, for another")

    # Forget all but public facts of the end, and the statements that clients may still request.
    def _end(self, end: StepName) -> None:
        self._forget_key()
        old = self._state
        self._state = LeaderState(
            bytearray(32),
            old.offers,
            step=end,
            noise_due=old.noise_due,
            listed=old.listed if end == "done" or old.revealed else {},
            revealed=old.revealed,
            heard=old.heard,
            abandoned=old.abandoned,
            faults=old.faults,
            refused=old.refused,
        )
        self._book = ReportBatches(self._state, self._identity, self.parameters, self._context, self._boxes)
        if end == "failed":
            self._sum = None

    def _outbox(self, requested: dict[int, int | None]) -> Outbox:
        numbers = {self._peer(place): number for place, number in requested.items()}
        return Outbox(sorted(numbers), lambda peer: self._make(peer, numbers[peer]))

    def _make(self, peer: int, number: int | None) -> bytes:
        with self._alone():
            if number is None and self._state.step == "reveal":
                return self._survivors()
            if number is not None and number in self._state.parts:
                return self._book.batch(number, peer - self.parameters.clients + 1)
            raise LocalProtocolError("this message has been answered, or its step has ended: send the newest outbox")

    def _peer(self, place: int) -> int:
        return self.parameters.clients + place - 1

    def _name(self, peer: int) -> int | str:
        first = self.parameters.clients
        return f"helper {peer - first + 1}" if first <= peer < first + self.parameters.helpers else peer

    def __repr__(self) -> str:
        return f"Leader(step={self.step!r})"


def place_of(parameters: UploadParameters, roster: Roster) -> bytes:
    """Return digests that bind a leader's state."""
    return parameters.digest + roster.digest
