"""Check messages: each function prevents one kind of lie, or raises ``Refusal``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, NamedTuple

from privstats.errors import LocalProtocolError
from privstats.files.signing import verify
from privstats.secagg import body_cipher, xwing
from privstats.secagg.body_cipher import UnopenedError
from privstats.secagg.statements import Claim, Words
from privstats.secagg.upload import messages
from privstats.secagg.upload import signed_statements as statements
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import (
    HASH_BYTES,
    HEADER_BYTES,
    SIGNATURE_BYTES,
    Refusal,
    members,
    session_of,
    size_of_bytes,
    size_of_index,
)

LEADER = 0
_WORD = 8


def check_report(
    message: messages.Report | messages.ProvedReport,
    public: bytes,
    parameters: UploadParameters,
    private: Any,
    body: bytearray,
) -> bytes:
    """Require the client's signature over the boxes, one of which has the body's key; open the body into ``body``.

    A body that does not open proves nothing against the client: any party on the way can flip a bit under a valid
    signature.

    Returns:
        The hash of the signed statement.
    """
    statement = stated(message, parameters)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    try:
        body_cipher.open_into(body, _body_key(message, private), message.body)
    except UnopenedError:
        raise Refusal("bad_body", "it does not open", proven=False) from None
    if isinstance(message, messages.ProvedReport) and parameters.claim is not None:
        check_body(parameters.claim, body, message)
    return sha256(statement).digest()


def _body_key(message: messages.Report | messages.ProvedReport, private: Any) -> bytes:
    info = statements.box_info(message.context, message.sender, LEADER)
    return xwing.open_box(private, message.boxes[:BOX_BYTES], info)


def sealed_body(
    message: messages.Report | messages.ProvedReport, sender: int, private: Any
) -> tuple[bytes, memoryview]:
    """Return a stored report's sealed body and its key; ``LocalProtocolError`` for another report."""
    try:
        if message.sender != sender:
            raise UnopenedError
        return _body_key(message, private), message.body
    except UnopenedError:
        raise LocalProtocolError(f"the journal has another report of client {sender}: restore its files") from None


def reopen(message: messages.Report | messages.ProvedReport, sender: int, private: Any, body: bytearray) -> None:
    """Open a stored report's body; ``LocalProtocolError`` for another report."""
    try:
        body_cipher.open_into(body, *sealed_body(message, sender, private))
    except UnopenedError:
        raise LocalProtocolError(f"the journal has another report of client {sender}: restore its files") from None


def check_body(claim: Claim, body: bytearray, message: messages.ProvedReport) -> None:
    """Require that the client signed the hashes of this body's two parts.

    A mismatch is the client's fault, because no other party can seal another body under its signed key. The fault is
    unproven, because only the leader has opened the body.
    """
    try:
        is_signed = claim.is_signed(body, message.context, message.sender, message.commits, message.parts)
    except ValueError:
        raise Refusal("malformed", "a word of its body is no element of the field", proven=False) from None
    if not is_signed:
        raise Refusal("bad_parts", "its body is not the one that its client signed", proven=False)


def stated(message: messages.Report | messages.ProvedReport, parameters: UploadParameters) -> bytes:
    """Return a report's signed statement: it names the boxes by their root; one of them has the body's key."""
    if len(message.boxes) != parameters.members * BOX_BYTES:
        raise Refusal("wrong_length", "one box per member", proven=False)
    if len(message.body) != parameters.body_bytes:
        raise Refusal("wrong_length", "the body is not as long as the ring's vectors", proven=False)
    root = statements.boxes_root(rows(message.boxes, BOX_BYTES))
    if not isinstance(message, messages.ProvedReport):
        return statements.report_statement(message.context, message.sender, root)
    if len(message.commits) != parameters.helpers * HASH_BYTES:
        raise Refusal("wrong_length", "one commitment per helper", proven=False)
    return statements.proved_statement(message.context, message.sender, root, message.commits, message.parts)


def check_checked(
    message: messages.Checked | messages.ProvedChecked, public: bytes, place: int, batch: bytes, count: int
) -> frozenset[int]:
    """Require the helper's signature on this batch and a bitmap of its length; return the accepted rows.

    Raises:
        Refusal: ``proven`` only if the helper itself signed the invalid content.
    """
    fields = message.context, place, batch, message.bitmap
    if isinstance(message, messages.ProvedChecked):
        statement = statements.proved_checked_statement(*fields, message.answers)
    else:
        statement = statements.checked_statement(*fields)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    try:
        return members(message.bitmap, count)
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the batch") from None


def check_answers(message: messages.ProvedChecked, accepted: int, claim: Claim) -> Words:
    """Require one answer of field elements per accepted proof; return one row each."""
    if len(message.answers) != accepted * claim.answer_bytes:
        raise Refusal("wrong_length", "one answer per accepted report")
    return _words(message.answers, claim).reshape(accepted, claim.answer_bytes // _WORD)


def check_reveal(
    message: messages.Reveal, public: bytes, place: int, roll: bytes, parameters: UploadParameters
) -> None:
    """Require the helper's signed answer to this list, of the right length; with proofs, of field elements."""
    statement = statements.reveal_statement(message.context, place, message.roll, message.answer)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    if message.roll != roll:
        raise Refusal("wrong_reply", "it answers another list")
    if len(message.answer) != parameters.ring.wire_bytes:
        raise Refusal("wrong_length")
    if parameters.claim is not None:
        _words(message.answer, parameters.claim)


def _words(column: bytes | memoryview, claim: Claim) -> Words:
    try:
        return claim.words(column)
    except ValueError:
        raise Refusal("malformed", "a word of its answer is no element of the field") from None


def check_abandoned(message: messages.Abandoned, public: bytes, place: int) -> None:
    """Require the helper's signed statement that its box key is destroyed."""
    if not verify(public, message.signature, statements.abandoned_statement(message.context, place)):
        raise Refusal("bad_signature", proven=False)


def check_listed(message: messages.Listed, public: bytes, place: int, parameters: UploadParameters) -> dict[int, bytes]:
    """Require the helper's signed answered list; return its statement hashes."""
    try:
        senders = sorted(members(message.bitmap, parameters.clients))
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the roster") from None
    if len(message.digests) != HASH_BYTES * len(senders):
        raise Refusal("wrong_length", "a list has one hash per sender")
    digests = rows(message.digests, HASH_BYTES)
    listed = dict(zip(senders, digests, strict=True))
    roll = statements.roll_of(listed.items())
    statement = statements.revealed_statement(message.context, place, roll, message.answer)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    return listed


def signed_by(leader: bytes, signature: bytes, statement: bytes) -> None:
    """Require the panel leader's signature: no other party may query a helper."""
    if not verify(leader, signature, statement):
        raise Refusal("bad_signature", proven=False)


class Entry(NamedTuple):
    """One report as a helper sees it; without a proof, commitments and parts are empty."""

    sender: int
    proof: bytes
    box: bytes
    signature: bytes
    commits: bytes = b""
    parts: bytes = b""


def check_batch(
    message: messages.Batch | messages.ProvedBatch, named: Callable[[int], bool], parameters: UploadParameters
) -> None:
    """Require columns of equal height, and increasing senders that no earlier part named."""
    count = len(message.senders)
    if message.encs or any(len(column) != width * count for column, width in _columns(message, parameters)):
        raise Refusal("wrong_length", "the columns of a batch have one row per sender")
    increasing = all(first < second for first, second in zip(message.senders, message.senders[1:], strict=False))
    if not increasing or any(named(sender) for sender in message.senders if sender < parameters.clients):
        raise Refusal("out_of_order", "senders must increase, and none may be in an earlier part")


def _columns(message: messages.Batch | messages.ProvedBatch, parameters: UploadParameters) -> list[tuple[bytes, int]]:
    columns = [
        (message.proofs, messages.proof_bytes(parameters)),
        (message.boxes, BOX_BYTES),
        (message.signatures, SIGNATURE_BYTES),
    ]
    if isinstance(message, messages.ProvedBatch):
        columns += [(message.commits, parameters.helpers * HASH_BYTES), (message.parts, messages.PARTS_BYTES)]
    return columns


def entries_of(message: messages.Batch | messages.ProvedBatch, parameters: UploadParameters) -> list[Entry]:
    """Return the rows of a checked batch."""
    columns = [rows(column, width) for column, width in _columns(message, parameters)]
    return [Entry(sender, *row) for sender, *row in zip(message.senders, *columns, strict=True)]


def opened(
    entry: Entry, publics: Sequence[bytes], place: int, context: bytes, parameters: UploadParameters, private: Any
) -> tuple[bytes, bytes]:
    """Return a report's piece for this helper, and its statement's hash.

    Raises:
        Refusal: ``stranger`` or ``bad_signature`` if the leader invented it. ``bad_box`` if its client sealed garbage
            or an uncommitted piece, or copied a box: ``info`` names sender, receiver and run.
    """
    if entry.sender >= len(publics):
        raise Refusal("stranger")
    root = statements.root_from(place, entry.box, entry.proof, parameters.members)
    fields = context, entry.sender, root
    proved = bool(entry.parts)
    statement = (
        statements.proved_statement(*fields, entry.commits, entry.parts)
        if proved
        else statements.report_statement(*fields)
    )
    if not verify(publics[entry.sender], entry.signature, statement):
        raise Refusal("bad_signature")
    try:
        piece = xwing.open_box(private, entry.box, statements.box_info(context, entry.sender, place))
    except UnopenedError:
        raise Refusal("bad_box") from None
    if proved:
        committed = rows(entry.commits, HASH_BYTES)[place - 1]
        if statements.seed_commitment(context, entry.sender, place, piece) != committed:
            raise Refusal("bad_box")
    return piece, sha256(statement).digest()


def check_survivors(
    message: messages.Survivors,
    parameters: UploadParameters,
    accepted: Callable[[int], bool],
    digest: Callable[[int], bytes],
) -> list[int]:
    """Require enough listed reports that this helper accepted, unchanged; return the senders."""
    try:
        listed = sorted(members(message.bitmap, parameters.clients))
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the roster") from None
    if not all(accepted(sender) for sender in listed):
        raise Refusal("strangers", "the list names reports that this helper did not accept")
    if statements.roll_of((sender, digest(sender)) for sender in listed) != message.roll:
        raise Refusal("other_reports", "the roll is not of the reports that this helper accepted")
    if len(listed) < parameters.min_survivors:
        raise Refusal("too_few_survivors", f"{len(listed)} of at least {parameters.min_survivors}")
    return listed


def rows(column: bytes, width: int) -> list[bytes]:
    """Split a column into rows of ``width`` bytes."""
    return [column[start : start + width] for start in range(0, len(column), width)]


@dataclass(frozen=True)
class EarlyCheck:
    """A check of a report's first bytes by public facts, before a carrier reads the body.

    A client signs the boxes, one of which has the body's key; the signature is the last 64 bytes. Only the machine's
    later complete check counts.
    """

    parameters: UploadParameters
    context: bytes
    publics: Sequence[bytes]

    def report_bytes(self, sender: int) -> int:
        """Return a report's exact length."""
        return self._fixed + size_of_index(sender)

    def head_bytes(self, sender: int) -> int:
        """Return the length up to the body."""
        return self.report_bytes(sender) - self.parameters.body_bytes - SIGNATURE_BYTES - 2

    def check(self, sender: int, head: bytes | bytearray | memoryview, signature: bytes) -> None:
        """Require that this client signed the report with this ``head``; raises ``Refusal``."""
        view = memoryview(head)[: self.head_bytes(sender)]
        kind = messages.kinds_of(self.parameters).report
        if view[:1] != bytes((messages.VERSION,)):
            raise Refusal("wrong_version", proven=False)
        if not messages.is_kind(view, kind):
            raise Refusal("wrong_type", proven=False)
        if session_of(view) != self.context:
            raise Refusal("wrong_session", proven=False)
        message = self._completed(view, kind)
        if message.sender != sender:
            raise Refusal("wrong_sender", proven=False)
        if sender >= len(self.publics):
            raise Refusal("stranger", proven=False)
        if not verify(self.publics[sender], signature, stated(message, self.parameters)):
            raise Refusal("bad_signature", proven=False)

    def _completed(
        self, view: memoryview, kind: type[messages.Report] | type[messages.ProvedReport]
    ) -> messages.Report | messages.ProvedReport:
        seal = b"\xc4" + bytes((SIGNATURE_BYTES,)) + bytes(SIGNATURE_BYTES)
        message = memoryview(b"".join((view, bytes(self.parameters.body_bytes), seal)))
        return messages.decode(message, kind, self.parameters, self.context)

    @cached_property
    def _fixed(self) -> int:
        parameters = self.parameters
        boxes = size_of_bytes(parameters.members * BOX_BYTES)
        fixed = HEADER_BYTES + boxes + size_of_bytes(parameters.body_bytes)
        if messages.kinds_of(parameters).report is messages.ProvedReport:
            fixed += size_of_bytes(parameters.helpers * HASH_BYTES) + size_of_bytes(messages.PARTS_BYTES)
        return fixed + size_of_bytes(SIGNATURE_BYTES)
