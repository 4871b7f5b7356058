"""The helper machine of an upload, which answers one list, once.

It has no clock, socket, global or randomness. It refuses a leader's message by public data alone. A refusal changes
only the collected evidence: otherwise any sender could end the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import NoReturn, TypeVar

from privstats.encoding import RingVector
from privstats.errors import LocalProtocolError, RemoteProtocolError
from privstats.secagg import wire, xwing
from privstats.secagg.exclusive import Exclusive, exclusive
from privstats.secagg.machines import ENDS
from privstats.secagg.roster import Roster
from privstats.secagg.upload import checks, messages
from privstats.secagg.upload import signed_statements as statements
from privstats.secagg.upload.helper_keys import HelperKeys
from privstats.secagg.upload.masking_scheme import MaskingScheme, ProvingScheme, proving, scheme_of
from privstats.secagg.upload.panel import Panel
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.state import StepName
from privstats.secagg.upload.suite import PIECE_BYTES
from privstats.secagg.wire import Refusal, to_bitmap

_SERVER = "server"
_HASH, _PIECE = wire.HASH_BYTES, PIECE_BYTES
_NAMED, _ACCEPTED = 1, 2
_T = TypeVar("_T")


class Helper(Exclusive):
    """One helper in one run.

    Args:
        keys: identity and box key, which the helper uses up.
        roster: all parties' public identities, from the roster's owner and *not from the leader*, who could list
            clients that it controls.
        noise: where required, samples a ring vector from 32 secret bytes, derived from box key and answered list: one
            list has one sample.
        allow_reproducible: in tests, accept reproducible keys, which otherwise raise ``RandomnessError``.

    Raises:
        LocalProtocolError: keys, roster, panel or noise do not fit, or the keys were used.

    Guarantee: the helper adds up streams over one list, then destroys every key. The list has at least
    ``min_survivors`` reports, each signed by a key on the roster and accepted by this helper. Suppose that this helper
    alone is honest and no copy of its box key exists. Then every report outside that list stays uniform to all other
    parties together. If noise is required, one sample is in the answer, and no party sees that list's sum without that
    sample. A second machine with the same box key answers an equal list with an equal sample, so repeated answers do
    not average it away.

    Example:
        >>> from privstats.engines import loopback
        >>> panel = [ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(2)]
        >>> protocol = {"privacy": ps.NoPrivacy(), "protocol": "split", "panel": panel}
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(3, 3, 9), **protocol)
        >>> parties = ps.session.local_parties(plan, [ps.measure(plan.schema, [[0.1, 0.2]], [0])] * 3)
        >>> _ = loopback.run(parties.server, parties.clients, helpers=parties.helpers)
        >>> [(type(helper).__name__, helper.step) for helper in parties.helpers]
        [('Helper', 'done')]
    """

    def __init__(
        self,
        parameters: UploadParameters,
        *,
        keys: HelperKeys,
        roster: Roster,
        panel: Panel,
        noise: Callable[[bytes], RingVector] | None = None,
        threads: int = 1,
        allow_reproducible: bool = False,
    ) -> None:
        if not isinstance(roster, Roster):
            raise LocalProtocolError("a helper needs the complete roster, from its owner, to verify every report")
        self.check_noise(parameters, noise)
        self._context = panel.context(parameters, roster)
        if keys.place == checks.LEADER or keys.offer != panel.offers[keys.place]:
            raise LocalProtocolError("these keys are not a helper's of this panel")
        self.parameters, self.roster, self.panel, self.place = parameters, roster, panel, keys.place
        self._identity = keys.identity
        self._scheme: MaskingScheme = scheme_of(parameters, self._context, threads=threads)
        self._noise = noise
        self._step: StepName = "check"
        self._parts: list[tuple[bytes, bytes]] = []  # hash of each batch, and its bitmap
        self._pieces, self._digests = bytearray(_PIECE * parameters.clients), bytearray(_HASH * parameters.clients)
        self._seen = bytearray(parameters.clients)
        self._answered, self._answer, self._began_answer = b"", b"", False
        self._faults: list[RemoteProtocolError] = []
        self._evidence: dict[str, bytes] = {}
        self._secret = keys.take(allow_reproducible=allow_reproducible)
        self._private = xwing.private_of(self._secret)

    @staticmethod
    def check_noise(parameters: UploadParameters, noise: object) -> None:
        """Raise ``LocalProtocolError`` for missing or surplus noise."""
        if parameters.noisy_helpers and not callable(noise):
            raise LocalProtocolError(
                "every helper of this plan adds noise to its answer: give noise=session.helper_noise(plan), or the "
                "exact sum would leave with it"
            )
        if noise is not None and not parameters.noisy_helpers:
            raise LocalProtocolError("no helper of this plan adds noise: omit noise")

    @property
    def step(self) -> StepName:
        """``"check"`` until the one answer, then ``"done"``; ``"failed"`` if abandoned, discarded or interrupted."""
        return self._step

    @property
    def index(self) -> int:
        """The helper's peer number, after the clients'."""
        return self.parameters.clients + self.place - 1

    @property
    def ended(self) -> str:
        """Always empty: only its operator ends a helper."""
        return ""

    @property
    def answer(self) -> bytes:
        """The one answer, to be sent again; empty before it exists."""
        return self._answer

    @property
    def charged(self) -> bool:
        """Always False: a helper releases no data of its own."""
        return False

    @property
    def upload(self) -> bytes:
        """Always empty: a helper has no vector."""
        return b""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Signed boxes that do not open; invented reports in a signed batch."""
        return tuple(self._faults)

    @property
    def parts(self) -> int:
        """Number of answered parts."""
        return len(self._parts)

    @property
    def evidence(self) -> dict[str, bytes]:
        """The first refused message that the leader signed, by code: transferable evidence."""
        return dict(self._evidence)

    @exclusive
    def start(self) -> list[tuple[str, bytes]]:
        """Return an empty list: a helper only answers."""
        return []

    @exclusive
    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Answer one leader message; a repeat gets identical bytes. Once done, answer only the answered list.

        Raises:
            RemoteProtocolError: the message is refused; only :attr:`evidence` may change.
        """
        return [(_SERVER, self._refusing(self._receive_message, data))]

    def _refusing(self, act: Callable[[memoryview], _T], data: bytes | bytearray | memoryview) -> _T:
        view = wire.view_of(data)
        try:
            return act(view)
        except Refusal as refusal:
            raise RemoteProtocolError(
                _SERVER, self._step, refusal.code, refusal.detail, proven=refusal.proven
            ) from None

    @exclusive
    def take(self, data: bytes | bytearray | memoryview) -> None:
        """Process a batch without an answer, for a journal's replay."""
        self._refusing(self._take_message, data)

    @exclusive
    def abandon(self) -> list[tuple[str, bytes]]:
        """Destroy box key and pieces, and sign that no answer can exist.

        Raises:
            LocalProtocolError: an answer was begun, and may have been sent.
        """
        if self._began_answer:
            raise LocalProtocolError("this helper has answered: the run is over and counts as a release")
        self._wipe("failed")
        signature = self._identity.sign(statements.abandoned_statement(self._context, self.place))
        return [(_SERVER, messages.encode(messages.Abandoned(self._context, signature)))]

    @exclusive
    def discard(self) -> None:
        """Destroy box key, pieces and answer, without a statement."""
        self._answer = b""
        self._wipe("failed")

    @exclusive
    def export(self, key: bytes) -> NoReturn:  # noqa: ARG002
        """Raise ``LocalProtocolError``: a saved helper could answer a second list.

        ``engines.journal`` stores the helper's received messages instead.
        """
        raise LocalProtocolError("a helper cannot be exported: engines.journal.JournaledHelper stores its messages")

    def _receive_message(self, view: memoryview) -> bytes:
        self._check_size(view)
        if self._answer and sha256(view).digest() == self._answered:
            return self._answer
        self._require_running()
        if messages.is_kind(view, messages.Survivors):
            return self._guarded(self._reveal, view)
        return self._guarded(self._check, view)

    def _take_message(self, view: memoryview) -> None:
        self._check_size(view)
        self._require_running()
        self._guarded(self._accepted, view)

    def _check_size(self, view: memoryview) -> None:
        """Refuse oversize, unproven: the signature was not read."""
        try:
            wire.check_size(view, messages.largest_request(self.parameters))
        except Refusal as refusal:
            raise refusal.unproven() from None

    def _require_running(self) -> None:
        if self._step in ENDS:
            raise Refusal("session_over", f"this helper is {self._step}, and its box key is gone", proven=False)

    def _guarded(self, act: Callable[[memoryview], _T], view: memoryview) -> _T:
        """Run ``act``; an interruption ends this helper."""
        try:
            return act(view)
        except Refusal:
            raise
        except BaseException:
            self._wipe("failed")
            raise

    def _check(self, view: memoryview) -> bytes:
        return self._checked(self._accepted(view))

    def _accepted(self, view: memoryview) -> messages.Batch | messages.ProvedBatch:
        """Accept or refuse each report; a repeated batch changes nothing."""
        kind = messages.kinds_of(self.parameters).batch
        message = messages.decode(view, kind, self.parameters, self._context)
        name, number = sha256(view).digest(), message.part
        statement = statements.batch_statement(self._context, self.place, sha256(messages.signed_part(view)).digest())
        checks.signed_by(self.panel.identities[0], message.signature, statement)
        if number < len(self._parts) and self._parts[number][0] == name:
            return message
        with self._evidence_for(view):
            if number != len(self._parts):
                raise Refusal("wrong_part", f"this helper waits for part {len(self._parts)}")
            checks.check_batch(message, lambda sender: bool(self._seen[sender]), self.parameters)
        self._take_part(message, name)
        return message

    def _take_part(self, message: messages.Batch | messages.ProvedBatch, name: bytes) -> None:
        entries = checks.entries_of(message, self.parameters)
        accepted, faults = {}, []
        for place, entry in enumerate(entries):
            try:
                accepted[place] = checks.opened(
                    entry, self.roster.publics, self.place, self._context, self.parameters, self._private
                )
            except Refusal as refusal:
                peer = entry.sender if refusal.code == "bad_box" else _SERVER
                faults.append(RemoteProtocolError(peer, "check", refusal.code, f"report of client {entry.sender}"))
        for place, entry in enumerate(entries):
            if entry.sender < self.parameters.clients:
                self._seen[entry.sender] = _ACCEPTED if place in accepted else _NAMED
            if place in accepted:
                self._store(entry.sender, *accepted[place])
        self._faults += faults
        self._parts.append((name, to_bitmap(accepted, len(entries))))

    def _store(self, sender: int, piece: bytes, digest: bytes) -> None:
        self._pieces[_PIECE * sender : _PIECE * (sender + 1)] = piece
        self._digests[_HASH * sender : _HASH * (sender + 1)] = digest

    def _checked(self, message: messages.Batch | messages.ProvedBatch) -> bytes:
        batch, bitmap = self._parts[message.part]
        fields = self._context, self.place, batch, bitmap
        if isinstance(message, messages.Batch):  # without a claim: decoding refuses the other type
            signature = self._identity.sign(statements.checked_statement(*fields))
            return messages.encode(messages.Checked(self._context, message.part, bitmap, signature))
        answers = b"".join(self._answers(proving(self._scheme), message, bitmap))
        signature = self._identity.sign(statements.proved_checked_statement(*fields, answers))
        return messages.encode(messages.ProvedChecked(self._context, message.part, bitmap, answers, signature))

    def _answers(self, scheme: ProvingScheme, message: messages.ProvedBatch, bitmap: bytes) -> Iterator[bytes]:
        """Answer each accepted proof, from one batch only: one rho per report, ever."""
        entries = checks.entries_of(message, self.parameters)
        for place in sorted(wire.members(bitmap, len(entries))):
            entry = entries[place]
            signed = entry.sender, entry.commits, entry.parts
            yield scheme.helped(self._piece(entry.sender), *signed, message.rho).astype("<u8").tobytes()

    # The one answer: after the list is checked, streams and any noise are summed, and every key is destroyed.
    def _reveal(self, view: memoryview) -> bytes:
        message = messages.decode(view, messages.Survivors, self.parameters, self._context)
        statement = statements.survivors_statement(self._context, message.roll, message.bitmap)
        checks.signed_by(self.panel.identities[0], message.signature, statement)
        with self._evidence_for(view):
            listed = checks.check_survivors(
                message, self.parameters, lambda sender: self._seen[sender] == _ACCEPTED, self._digest
            )
        noise = self._sample_noise(message.roll)
        self._began_answer = True  # from here on an answer may exist, so this helper never signs that none exists
        empty = messages.Reveal(self._context, message.roll, memoryview(b""), bytes(wire.SIGNATURE_BYTES))
        frame = messages.Frame(empty, self._scheme.answer_bytes)
        self._scheme.answer(self._held(listed), frame.large)
        if noise is not None:
            self._scheme.uncover(noise, {self.place: frame.large}, len(listed)).pack_into(frame.large)
        statement = statements.reveal_statement(self._context, self.place, message.roll, frame.large)
        reveal = frame.signed(self._identity.sign(statement))
        self._wipe("done")
        self._answered, self._answer = sha256(view).digest(), reveal
        return reveal

    def _sample_noise(self, roll: bytes) -> RingVector | None:
        """Return the one answer's noise, derived from box key and roll, if any is due."""
        if self._noise is None:
            return None
        noise = self._noise(statements.derive(self._secret, f"noise/{roll.hex()}", self._context))
        if noise.ring != self.parameters.ring:
            raise LocalProtocolError("this helper's noise is of another ring than the plan's: sample it under the plan")
        return noise

    def _digest(self, sender: int) -> bytes:
        return bytes(self._digests[_HASH * sender : _HASH * (sender + 1)])

    def _piece(self, sender: int) -> bytes:
        return bytes(self._pieces[_PIECE * sender : _PIECE * (sender + 1)])

    def _held(self, listed: list[int]) -> Iterator[tuple[int, bytes]]:
        return ((sender, self._piece(sender)) for sender in listed)

    def _evidence_for(self, view: memoryview) -> _Evidence:
        return _Evidence(self._evidence, view)

    def _wipe(self, end: StepName) -> None:
        """Overwrite box key and pieces, as far as Python allows."""
        self._secret[:] = bytes(len(self._secret))
        self._pieces[:] = bytes(len(self._pieces))
        self._pieces, self._digests, self._seen, self._parts = bytearray(), bytearray(), bytearray(), []
        self._private = xwing.private_of(bytes(32))
        self._noise, self._step = None, end

    def __repr__(self) -> str:
        return f"Helper(place={self.place}, step={self._step!r})"


class _Evidence:
    """A context that stores the first refused message per code that the leader signed."""

    def __init__(self, stored: dict[str, bytes], view: memoryview) -> None:
        self._stored, self._view = stored, view

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Refusal):
            self._stored.setdefault(error.code, bytes(self._view))
