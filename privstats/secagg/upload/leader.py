"""The leader machine of an upload.

It has no clock, socket, global or randomness. Clients and helpers can shift the result, which is always a sum over at
least ``min_survivors`` reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, ClassVar, Self

from privstats.errors import LocalProtocolError
from privstats.secagg import xwing
from privstats.secagg.body_cipher import NONCE
from privstats.secagg.keys import Identity, require_identity, unseal_state
from privstats.secagg.machines import Outbox, unshelved
from privstats.secagg.roster import Roster
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload.batching import ReportBatches, accepted_by, accepted_by_all, answers_to
from privstats.secagg.upload.deferred import DeferredSums, SealedBody
from privstats.secagg.upload.helper_keys import HelperKeys
from privstats.secagg.upload.leader_steps import BAD_PROOF, place_of
from privstats.secagg.upload.masking_scheme import MaskingScheme, proving, scheme_of
from privstats.secagg.upload.panel import Panel
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.signed_statements import roll_of, survivors_statement
from privstats.secagg.upload.state import Head, LeaderState, Part, StepName
from privstats.secagg.wire import Refusal, to_bitmap

_ADDED_BYTES = 16 << 20
"""The bytes of bodies that are added at a time."""


class Leader(DeferredSums):
    """The aggregator of one run. Peers 0 to n - 1 are the clients, n to n + h - 1 the helpers 1 to h.

    Args:
        keys: the panel's place 0, for this run.
        noise_due: the sum needs noise before publication; ``engines.journal`` allows only one sample.
        allow_reproducible: in tests, accept reproducible keys, which otherwise raise ``RandomnessError``.

    Raises:
        LocalProtocolError: keys, roster and panel do not fit together, or the keys were used.

    Guarantee: with honest helpers, :attr:`result` is absent or the exact sum over its survivors, plus any helpers'
    noise. This holds for any behaviour of clients and network. A helper, like this leader, can add any vector to the
    sum undetected.

    Example:
        >>> from privstats.engines import loopback
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> protocol = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 9), **protocol)
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 3)
        >>> outcome = loopback.run(parties.server, parties.clients, helpers=parties.helpers)
        >>> type(parties.server).__name__, outcome.survivors
        ('Leader', (0, 1, 2))
    """

    def __init__(
        self,
        parameters: UploadParameters,
        *,
        keys: HelperKeys,
        roster: Roster,
        panel: Panel,
        threads: int = 1,
        noise_due: bool = False,
        allow_reproducible: bool = False,
    ) -> None:
        self._bind(parameters, keys.identity, roster, panel, threads)
        if keys.offer != panel.offers[checks.LEADER]:
            raise LocalProtocolError("these keys are not the leader's of this panel")
        offers = tuple(offer.encode() for offer in panel.offers)
        private = keys.take(allow_reproducible=allow_reproducible)
        self._enter(LeaderState(private=private, offers=offers, noise_due=noise_due))

    def _bind(
        self, parameters: UploadParameters, identity: Identity, roster: Roster, panel: Panel, threads: int
    ) -> None:
        if not isinstance(roster, Roster):
            raise LocalProtocolError("a leader needs the complete roster, to verify every report")
        if require_identity(identity).public != panel.identities[0]:
            raise LocalProtocolError("the identity is not the leader's on the panel")
        self.parameters, self.roster, self.panel, self._identity = parameters, roster, panel, identity
        self._context = panel.context(parameters, roster)
        self._scheme: MaskingScheme = scheme_of(parameters, self._context, threads=threads)
        self._sum: Any = None
        self.fetch: Callable[[bytes], bytes] = unshelved
        self._spare: list[bytearray] = []  # reused buffers: fresh memory costs as much as opening a report

    def _enter(self, state: LeaderState) -> None:
        self._state = state
        self._book = ReportBatches(state, self._identity, self.parameters, self._context, self._boxes)
        self._sum = self.parameters.ring.unpack(state.total) if state.total else None
        self._private = xwing.private_of(state.private)
        state.total = b""

    def _receive_message(self, sender: int, view: memoryview) -> Outbox:
        place = sender - self.parameters.clients + 1
        if place < 1:
            return self._take_report(sender, view)
        if messages.is_kind(view, messages.Abandoned):
            return self._take_abandoned(place, view)
        if messages.is_kind(view, messages.Reveal):
            return self._take_reveal(place, view)
        return self._take_checked(place, view)

    def _decode(self, view: memoryview, kind: type[Any]) -> Any:
        return messages.decode(view, kind, self.parameters, self._context)

    def _take_report(self, sender: int, view: memoryview) -> Outbox:
        state = self._state
        if state.step != "report":
            raise Refusal("not_expected", "the step for reports has been closed", proven=False)
        if sender in state.reported:
            raise Refusal("already_here", "another report of this client was accepted", proven=False)
        if self._book.busy:
            raise Refusal("busy", "the helpers are behind: send it again later", proven=False)
        message = self._decode(view, messages.kinds_of(self.parameters).report)
        if message.sender != sender:
            raise Refusal("wrong_sender", proven=False)
        body = self._spare.pop() if self._spare else bytearray(self.parameters.upload_bytes)
        try:
            digest = checks.check_report(message, self.roster.publics[sender], self.parameters, self._private, body)
        except Refusal:
            self._spare.append(body)
            raise
        proof = (message.commits, message.parts) if isinstance(message, messages.ProvedReport) else ()
        head = Head(message.boxes, message.signature, digest, *proof)
        state.reported[sender] = digest
        closed = self._book.add(sender, head, body)
        if closed is None:
            return Outbox()
        places = range(1, self.parameters.helpers + 1)
        return self._outbox({place: closed for place in places if self._book.due(place) == closed})

    def _take_checked(self, place: int, view: memoryview) -> Outbox:
        state, number = self._state, self._book.due(place)
        if number is None:
            raise Refusal("not_expected", "it has answered every part that is closed", proven=False)
        message = self._decode(view, messages.kinds_of(self.parameters).checked)
        if message.part != number:
            raise Refusal("wrong_reply", f"it answers part {message.part}, not part {number}", proven=False)
        digest, count = self._book.batch_digest(number, place), len(state.parts[number].heads)
        accepted = checks.check_checked(message, self.panel.identities[place], place, digest, count)
        answers = None
        if isinstance(message, messages.ProvedChecked) and self.parameters.claim is not None:
            answers = checks.check_answers(message, len(accepted), self.parameters.claim)
        settled = self._book.answered(number, place, message.bitmap, answers)
        if settled is not None:
            self._settle(number, settled)
        following = self._book.due(place)
        return Outbox() if following is None else self._outbox({place: following})

    def _settle(self, number: int, part: Part) -> None:
        state = self._state
        for place in sorted(part.bitmaps):
            for sender in part.heads.keys() - accepted_by(part, place):
                state.faults.add((sender, "check", "bad_box", f"according to helper {place}"))
        accepted = accepted_by_all(part)
        if self._defer(number, part, accepted):
            return
        size = max(1, _ADDED_BYTES // self.parameters.upload_bytes)
        for first in range(0, len(accepted), size):
            self._add(part, accepted[first : first + size])

    def _add(self, part: Part, accepted: list[int]) -> None:
        bodies = {sender: self._body(part, sender) for sender in accepted}
        summed = self._proved(part, bodies)
        self._scheme.add(self._total, [memoryview(bodies[sender]) for sender in summed])
        self._state.listed.update((sender, part.heads[sender].digest) for sender in summed)
        if self._state.step == "report":
            self._spare += bodies.values()

    def _body(self, part: Part, sender: int) -> bytearray:
        if sender in part.bodies:
            return part.bodies.pop(sender)
        message = self._read_back(part, sender)
        body = self._spare.pop() if self._spare else bytearray(self.parameters.upload_bytes)
        checks.reopen(message, sender, self._private, body)
        return body

    def _read_back(self, part: Part, sender: int) -> Any:
        return self._decode(memoryview(self.fetch(part.places[sender])), messages.kinds_of(self.parameters).report)

    def _boxes(self, part: Part, sender: int) -> bytes:
        return part.heads[sender].boxes or bytes(self._read_back(part, sender).boxes)

    def _sealed_body(self, part: Part, sender: int) -> SealedBody:
        message = self._read_back(part, sender)
        key, content = checks.sealed_body(message, sender, self._private)
        return SealedBody(key, NONCE, content)

    def _proved(self, part: Part, bodies: dict[int, bytearray]) -> list[int]:
        """Return the senders of valid proofs; others get an unproven fault."""
        if self.parameters.claim is None:
            return list(bodies)
        scheme, answers, proved = proving(self._scheme), answers_to(part), []
        for sender, body in bodies.items():
            head = part.heads[sender]
            if scheme.refused(body, sender, head.commits, head.parts, part.rho, answers[sender]):
                self._state.faults.add((sender, "check", BAD_PROOF, "according to the leader and all helpers"))
            else:
                proved.append(sender)
        return proved

    def shelve(self, places: Mapping[int, bytes]) -> None:
        """Drop reports from memory; :attr:`fetch` reads them back from a journal."""
        freed = self._book.shelve(places)
        if self._state.step == "report":
            self._spare += freed

    def _take_reveal(self, place: int, view: memoryview) -> Outbox:
        state = self._state
        if state.step != "reveal" or place in state.answers:
            raise Refusal("not_expected", "no answer is awaited", proven=False)
        message = self._decode(view, messages.Reveal)
        checks.check_reveal(message, self.panel.identities[place], place, self._roll(), self.parameters)
        state.answers[place] = bytes(message.answer)
        state.revealed[place] = sha256(message.answer).digest(), message.signature
        return Outbox()

    def _take_abandoned(self, place: int, view: memoryview) -> Outbox:
        checks.check_abandoned(self._decode(view, messages.Abandoned), self.panel.identities[place], place)
        self._state.abandoned[place] = bytes(view)
        return Outbox()

    def _roll(self) -> bytes:
        return roll_of(sorted(self._state.listed.items()))

    def _listed(self, place: int) -> bytes:
        listed = sorted(self._state.listed.items())
        bitmap, digests = to_bitmap(self._state.listed, self.parameters.clients), b"".join(each for _, each in listed)
        return messages.encode(messages.Listed(self._context, bitmap, digests, *self._state.revealed[place]))

    def _survivors(self) -> bytes:
        bitmap, roll = to_bitmap(self._state.listed, self.parameters.clients), self._roll()
        signature = self._identity.sign(survivors_statement(self._context, roll, bitmap))
        return messages.encode(messages.Survivors(self._context, bitmap, roll, signature))

    def _close_reports(self) -> None:
        self._book.close()
        self._spare.clear()
        self._state.step = "check"

    def _close_check(self) -> None:
        self._sum_all_here()
        self._forget_key()
        self._state.step = "reveal"

    def _close_reveal(self) -> None:
        state = self._state
        self._sum = self._scheme.uncover(self._sum, state.answers, len(state.listed))
        self._end("done")

    @classmethod
    def resume(
        cls,
        sealed: bytes,
        key: bytes,
        *,
        parameters: UploadParameters,
        roster: Roster,
        identity: Identity,
        threads: int = 1,
    ) -> Self:
        """Return the leader that :meth:`export` sealed, with its panel.

        Raises:
            LocalProtocolError: another key, plan, roster or identity, or damage.
        """
        state = unseal_state(sealed, key, LeaderState, role="leader", place=place_of(parameters, roster))
        leader = cls.__new__(cls)
        leader._bind(parameters, identity, roster, Panel.of(state.offers), threads)
        leader._enter(state)
        return leader

    def _forget_key(self) -> None:
        """Wipe the box key: a stolen machine then opens no recorded report."""
        self._state.private[:] = bytes(len(self._state.private))
        self._private = xwing.private_of(bytes(32))
        self._spare.clear()

    _closers: ClassVar[dict[StepName, Callable[[Leader], None]]] = {
        "report": _close_reports,
        "check": _close_check,
        "reveal": _close_reveal,
    }
