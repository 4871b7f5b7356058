"""The checks of leader and helpers on each message: each function prevents one kind of lie.

Pure functions; they return what they read or raise ``Refusal``. They implement the tables of ``docs/one_upload.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.secagg import hpke
from privstats.secagg.keys import verify
from privstats.secagg.upload import messages
from privstats.secagg.upload import signed_statements as said
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.wire import HASH_BYTES, SIGNATURE_BYTES, Refusal, members

__all__ = ["Entry", "check_abandoned", "check_batch", "check_checked", "check_listed", "check_report", "check_reveal"]
__all__ += ["check_survivors", "entries_of", "opened", "rows", "signed_by", "stated"]

LEADER = 0


def check_report(
    message: messages.Report, public: bytes, parameters: UploadParameters, private: X25519PrivateKey
) -> tuple[bytes, bytes]:
    """Require that the client on the roster signed these boxes and the key of this body, and that the body opens.

    Returns:
        The hash of the signed statement, and the body. A body that does not open proves nothing against the client: any
        party on the way can flip a bit of it under a valid signature.
    """
    statement = stated(message, parameters)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    try:
        body = hpke.open_box(private, message.body, said.box_info(message.context, message.sender, LEADER))
    except hpke.UnopenedError:
        raise Refusal("bad_body", "it does not open", proven=False) from None
    return sha256(statement).digest(), body


def stated(message: messages.Report, parameters: UploadParameters) -> bytes:
    """The statement that a report's client signs: it names the body by its key and the boxes by their root."""
    if len(message.boxes) != parameters.helpers * messages.BOX_BYTES:
        raise Refusal("wrong_length", "one box per helper", proven=False)
    if len(message.body) != parameters.ring.wire_bytes + hpke.OVERHEAD:
        raise Refusal("wrong_length", "the body is not as long as the ring's vectors", proven=False)
    root = said.boxes_root(rows(message.boxes, messages.BOX_BYTES))
    return said.report_statement(message.context, message.sender, bytes(message.body[: hpke.ENC_BYTES]), root)


def check_checked(message: messages.Checked, public: bytes, place: int, batch: bytes, count: int) -> None:
    """Require the helper's signature on this batch, and a bitmap of its length.

    Raises:
        Refusal: ``proven`` only if the helper itself signed the invalid content.
    """
    statement = said.checked_statement(message.context, place, batch, message.bitmap)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    try:
        members(message.bitmap, count)
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the batch") from None


def check_reveal(message: messages.Reveal, public: bytes, place: int, roll: bytes, size: int) -> None:
    """Require the helper's signed answer to this list, of the right length."""
    statement = said.reveal_statement(message.context, place, message.roll, message.answer)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    if message.roll != roll:
        raise Refusal("wrong_reply", "it answers another list")
    if len(message.answer) != size:
        raise Refusal("wrong_length")


def check_abandoned(message: messages.Abandoned, public: bytes, place: int) -> None:
    """Require the helper's signed statement that its box key is destroyed."""
    if not verify(public, message.signature, said.abandoned_statement(message.context, place)):
        raise Refusal("bad_signature", proven=False)


def check_listed(message: messages.Listed, public: bytes, place: int, parameters: UploadParameters) -> list[bytes]:
    """Require the helper's signature that this is the one list that it answered.

    Returns:
        The hashes of the signed statements of the clients on it.
    """
    try:
        senders = sorted(members(message.bitmap, parameters.clients))
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the roster") from None
    if len(message.digests) != HASH_BYTES * len(senders):
        raise Refusal("wrong_length", "a list has one hash per sender")
    digests = rows(message.digests, HASH_BYTES)
    roll = said.roll_of(zip(senders, digests, strict=True))
    statement = said.revealed_statement(message.context, place, roll, message.answer)
    if not verify(public, message.signature, statement):
        raise Refusal("bad_signature", proven=False)
    return digests


def signed_by(leader: bytes, signature: bytes, statement: bytes) -> None:
    """Require the signature of the panel's leader, the only party that may query a helper."""
    if not verify(leader, signature, statement):
        raise Refusal("bad_signature", proven=False)


class Entry:
    """The part of one report that a helper receives."""

    __slots__ = ("box", "enc", "proof", "sender", "signature")

    def __init__(self, sender: int, enc: bytes, proof: bytes, box: bytes, signature: bytes) -> None:
        self.sender, self.enc, self.proof, self.box, self.signature = sender, enc, proof, box, signature


def check_batch(message: messages.Batch, named: Callable[[int], bool], parameters: UploadParameters) -> None:
    """Require columns of equal height, and increasing senders that no earlier part named, accepted there or not."""
    widths = (32, messages.proof_bytes(parameters), messages.BOX_BYTES, SIGNATURE_BYTES)
    columns = (message.encs, message.proofs, message.boxes, message.signatures)
    count = len(message.senders)
    if any(len(column) != width * count for column, width in zip(columns, widths, strict=True)):
        raise Refusal("wrong_length", "the columns of a batch have one row per sender")
    increasing = all(first < second for first, second in zip(message.senders, message.senders[1:], strict=False))
    if not increasing or any(named(sender) for sender in message.senders if sender < parameters.clients):
        raise Refusal("out_of_order", "a sender twice, in this part or in an earlier one")


def entries_of(message: messages.Batch, parameters: UploadParameters) -> list[Entry]:
    """The rows of a batch that :func:`check_batch` has passed."""
    proof, count = messages.proof_bytes(parameters), len(message.senders)
    columns = (
        rows(message.encs, 32),
        rows(message.proofs, proof) if proof else [b""] * count,
        rows(message.boxes, messages.BOX_BYTES),
        rows(message.signatures, SIGNATURE_BYTES),
    )
    return [Entry(sender, *row) for sender, *row in zip(message.senders, *columns, strict=True)]


def opened(
    entry: Entry, publics: Sequence[bytes], place: int, context: bytes, helpers: int, private: X25519PrivateKey
) -> tuple[bytes, bytes]:
    """A report's piece for this helper, and the hash of its client's signed statement.

    Raises:
        Refusal: ``stranger`` or ``bad_signature`` (the leader invented it); ``bad_box`` (its client sealed garbage, or
            copied a box: ``info`` names sender, receiver and run).
    """
    if entry.sender >= len(publics):
        raise Refusal("stranger")
    root = said.root_from(place, entry.box, entry.proof, helpers)
    statement = said.report_statement(context, entry.sender, entry.enc, root)
    if not verify(publics[entry.sender], entry.signature, statement):
        raise Refusal("bad_signature")
    try:
        piece = hpke.open_box(private, entry.box, said.box_info(context, entry.sender, place))
    except hpke.UnopenedError:
        raise Refusal("bad_box") from None
    return piece, sha256(statement).digest()


def check_survivors(
    message: messages.Survivors,
    parameters: UploadParameters,
    accepted: Callable[[int], bool],
    digest: Callable[[int], bytes],
) -> list[int]:
    """Require that the list holds only reports that this helper accepted, with the same contents, and enough of them.

    Returns:
        The survivors, in increasing order.
    """
    try:
        listed = sorted(members(message.bitmap, parameters.clients))
    except ValueError:
        raise Refusal("malformed", "the bitmap does not fit the roster") from None
    if not all(accepted(sender) for sender in listed):
        raise Refusal("strangers", "the list names reports that this helper did not accept")
    if said.roll_of((sender, digest(sender)) for sender in listed) != message.roll:
        raise Refusal("other_reports", "the roll is not of the reports that this helper accepted")
    if len(listed) < parameters.min_survivors:
        raise Refusal("too_few_survivors", f"{len(listed)} of at least {parameters.min_survivors}")
    return listed


def rows(column: bytes, width: int) -> list[bytes]:
    """A column cut into rows of ``width`` bytes."""
    return [column[start : start + width] for start in range(0, len(column), width)]
