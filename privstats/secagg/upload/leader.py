"""The leader machine: it takes reports, asks the helpers, and uncovers the one sum.

No clock, socket, global or randomness; it keeps one running sum and the bodies of the parts that the helpers have not
answered. It relies on no client and no helper for the sum's being a sum; either can shift it, as a client can.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.encoding import RingVector
from privstats.errors import AggregationError, LocalProtocolError, RemoteProtocolError
from privstats.secagg import hpke, wire
from privstats.secagg.bitmap import to_bitmap
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.keys import Entropy, Identity
from privstats.secagg.machines import Outlook
from privstats.secagg.outbox import Outbox
from privstats.secagg.panel import Offer, Panel
from privstats.secagg.roster import Roster
from privstats.secagg.sealing import seal_state, unseal_state
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload.intake import Parts, accepted_by, accepted_by_all
from privstats.secagg.upload.keys import HelperKeys
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.state import Head, LeaderState, Part
from privstats.secagg.upload.statements import roll_of, survivors_statement
from privstats.secagg.upload.steps import ENDS, StepName
from privstats.secagg.upload.streams import Streams
from privstats.secagg.wire import SIGNATURE_BYTES, Refusal

__all__ = ["Leader"]

_NO_FAULT = ("busy", "already_here")


class Leader(Exclusive):
    """The aggregator of one run. Peers 0 to n - 1 are the clients, n to n + h - 1 the helpers 1 to h.

    Args:
        parameters: what all parties agreed on.
        keys: the keys of place 0 of the panel, for this run.
        roster: everybody's public identities and the run's name.
        panel: leader and helpers, by the identities that the plan names.
        threads: processors to use.
        noise_due: the sum must have noise added before it is published; ``engines.journal`` keeps it to one draw.

    Raises:
        LocalProtocolError: keys, roster and panel do not fit together, or the keys were used.

    Guarantee: with honest helpers :attr:`result` is the exact sum over its survivors, or there is none, whatever
    clients and network do. A helper, like this leader, can add any vector to the sum unseen.
    """

    steps: ClassVar[tuple[str, ...]] = UploadParameters.steps

    def __init__(
        self,
        parameters: UploadParameters,
        *,
        keys: HelperKeys,
        roster: Roster,
        panel: Panel,
        threads: int = 1,
        noise_due: bool = False,
    ) -> None:
        self._bind(parameters, keys.identity, roster, panel, threads)
        if keys.offer != panel.offers[checks.LEADER]:
            raise LocalProtocolError("these keys are not the leader's of this panel")
        offers = tuple(offer.encode() for offer in panel.offers)
        self._enter(LeaderState(private=keys.take(), offers=offers, noise_due=noise_due))

    def _bind(
        self, parameters: UploadParameters, identity: Identity, roster: Roster, panel: Panel, threads: int
    ) -> None:
        if not isinstance(roster, Roster):
            raise LocalProtocolError("a leader needs the whole roster: it verifies every report")
        if identity.public != panel.identities[0]:
            raise LocalProtocolError("the identity is not the leader's on the panel")
        self.parameters, self.roster, self.panel, self._identity = parameters, roster, panel, identity
        self._context = panel.context(parameters, roster)
        self._cover = Streams(parameters.ring, parameters.helpers, self._context, threads=threads)
        self._sum: Any = None

    def _enter(self, state: LeaderState) -> None:
        self._state = state
        self._book = Parts(state, self._identity, self.parameters.helpers, self._context)
        self._sum = self.parameters.ring.unpack(state.total) if state.total else None
        self._private = X25519PrivateKey.from_private_bytes(state.private) if state.private else None
        state.total = b""

    @property
    def step(self) -> StepName:
        """``"report"``, ``"check"``, ``"reveal"``; ``"done"`` or ``"failed"`` at the end."""
        return self._state.step

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients that have not reported, or the helpers whose answer has not arrived."""
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
        """What the helpers are to be asked: of each part that is due, or for their answer; the same bytes every time."""
        state, places = self._state, range(1, self.parameters.helpers + 1)
        if state.step == "reveal":
            return self._outbox({place: None for place in places})
        due = {place: self._book.due(place) for place in places}
        return self._outbox({place: number for place, number in due.items() if number is not None})

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What a helper signed that was wrong; and, unproven, whose boxes did not open by which helper's word.

        Bytes that anybody could have sent, repeats and late reports are refused without being held against anyone.
        """
        return tuple(
            RemoteProtocolError(
                self._name(peer), step, code, detail, proven=peer >= self.parameters.clients
            )
            for peer, step, code, detail in sorted(self._state.faults)
        )

    @property
    def refused(self) -> dict[str, int]:
        """How many messages were refused, by code, without being held against anybody."""
        return dict(self._state.refused)

    @property
    def abandoned(self) -> dict[int, bytes]:
        """The ``Abandoned`` messages by the helper's place: from all of them, they make a repeat harmless."""
        return dict(self._state.abandoned)

    @property
    def noise_due(self) -> bool:
        """Whether the sum must not be published before noise is added to it: the plan's noise is central."""
        return self._state.noise_due

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients it is over, in increasing order.

        Raises:
            LocalProtocolError: the run has not finished, or failed.
        """
        if self._state.step != "done":
            raise LocalProtocolError(f"there is no result: the run is at step '{self._state.step}'")
        return self._sum, tuple(sorted(self._state.listed))

    def awaits(self, peer: int) -> bool:
        """Whether a message of this peer could still be accepted."""
        state, n = self._state, self.parameters.clients
        if state.step in ENDS or not 0 <= peer < n + self.parameters.helpers:
            return False
        return state.step == "report" and peer not in state.reported if peer < n else peer - n + 1 not in state.answers

    @exclusive
    def start(self) -> Outbox:
        """What is to be sent now: nothing before the first part is closed."""
        return self.outbox

    @exclusive
    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Take one message that the engine got from ``sender``.

        Returns:
            What to send to helpers now: a part that this report closed, or the next one that this helper is to answer.

        Raises:
            RemoteProtocolError: the message is refused and nothing changed. ``busy`` and ``already_here`` are no faults:
                a client may send again, or has been heard.
            LocalProtocolError: another call has not ended.
        """
        view, name = wire.view_of(data), bytes(data[-SIGNATURE_BYTES:])
        if name == self._state.heard.get(sender):
            return Outbox()
        try:
            return self._heard(sender, view, name)
        except Refusal as refusal:
            raise self._refusal(sender, refusal) from None
        except BaseException:  # half of it may be in the sum
            self._end("failed")
            raise

    def _refusal(self, sender: int, refusal: Refusal) -> RemoteProtocolError:
        state, n = self._state, self.parameters.clients
        if refusal.proven and n <= sender < n + self.parameters.helpers and refusal.code in _BY_HELPER:
            state.faults.add((sender, state.step, refusal.code, ""))
        elif refusal.code not in _NO_FAULT:
            state.refused[refusal.code] = state.refused.get(refusal.code, 0) + 1
        proven = refusal.proven and refusal.code in _BY_HELPER
        return RemoteProtocolError(self._name(sender), state.step, refusal.code, refusal.detail, proven=proven)

    def _heard(self, sender: int, view: memoryview, name: bytes) -> Outbox:
        n = self.parameters.clients
        if not 0 <= sender < n + self.parameters.helpers:
            raise Refusal("stranger", proven=False)
        if self._state.step in ENDS:
            raise Refusal("not_expected", "the run has ended", proven=False)
        if sender < n:
            following = self._take_report(sender, view, name)
        elif messages.is_kind(view, messages.Abandoned):
            following = self._take_abandoned(sender - n + 1, view)
        elif messages.is_kind(view, messages.Reveal):
            following = self._take_reveal(sender - n + 1, view)
        else:
            following = self._take_checked(sender - n + 1, view)
        self._state.heard[sender] = name
        return following

    def _decode(self, view: memoryview, kind: type[Any]) -> Any:
        return messages.decode(view, kind, self.parameters, self._context)

    def _take_report(self, sender: int, view: memoryview, name: bytes) -> Outbox:
        state = self._state
        if state.step != "report":
            raise Refusal("not_expected", "the step for reports has been closed", proven=False)
        if sender in state.reported:
            raise Refusal("already_here", "another report of this client was taken", proven=False)
        if self._book.busy:
            raise Refusal("busy", "the helpers are behind: send it again later", proven=False)
        message = self._decode(view, messages.Report)
        if message.sender != sender:
            raise Refusal("wrong_sender", proven=False)
        assert self._private is not None
        digest, body = checks.check_report(message, self.roster.publics[sender], self.parameters, self._private)
        head = Head(bytes(message.body[: hpke.ENC_BYTES]), message.boxes, message.signature, digest)
        state.reported[sender] = digest
        closed = self._book.add(sender, head, body)
        if closed is None:
            return Outbox()
        places = range(1, self.parameters.helpers + 1)
        return self._outbox({place: closed for place in places if self._book.due(place) == closed})
