"""Wire messages of an upload: strict types, with sizes checked before parsing.

A message is ``01 || msgpack array`` and begins with type and context: a replay from another run, plan, roster or panel
is refused unread.
"""

from __future__ import annotations

import io
from typing import Annotated, NamedTuple, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from privstats.secagg import wire
from privstats.secagg.upload.parameters import MAX_PART, UploadParameters
from privstats.secagg.upload.suite import BOX_BYTES
from privstats.secagg.wire import HASH_BYTES, HEADER_BYTES, SIGNATURE_BYTES, Bytes32, Bytes64, Index
from privstats.secagg.wire import size_of_array as _array
from privstats.secagg.wire import size_of_bytes as _bytes
from privstats.secagg.wire import size_of_index as _index

VERSION = 1
PARTS_BYTES = 2 * HASH_BYTES
"""The two hashes of a proof's parts."""

_EMPTY = b"\xc4\x00"
_SEAL = b"\xc4\x40"  # how a last element of 64 bytes begins


class _Message(wire.HiddenRepr, Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    context: Bytes32


class Report(_Message, frozen=True, tag=0):
    """Client to leader: the boxes, lowest place first, and the sealed masked vector."""

    sender: Index
    boxes: bytes
    body: memoryview
    signature: Bytes64


class Batch(_Message, frozen=True, tag=1):
    """Leader to helper: reports without bodies, and only this helper's boxes.

    ``encs`` is empty: a body's key is in the leader's box.
    """

    part: Index
    senders: Annotated[tuple[Index, ...], Meta(min_length=1, max_length=MAX_PART)]
    encs: bytes
    proofs: bytes
    boxes: bytes
    signatures: bytes
    signature: Bytes64


class Checked(_Message, frozen=True, tag=2):
    """Helper to leader: a batch's accepted reports, as a bitmap over its rows."""

    part: Index
    bitmap: bytes
    signature: Bytes64


class Survivors(_Message, frozen=True, tag=3):
    """Leader to helper: the clients in the sum, as a bitmap, and their reports' hash, the roll."""

    bitmap: bytes
    roll: Bytes32
    signature: Bytes64


class Reveal(_Message, frozen=True, tag=6):
    """Helper to leader: the one answer, over the list with this roll."""

    roll: Bytes32
    answer: memoryview
    signature: Bytes64


class Abandoned(_Message, frozen=True, tag=7):
    """Helper to leader: its box key is destroyed, and it never sent an answer."""

    signature: Bytes64


class Listed(_Message, frozen=True, tag=8):
    """A helper's one answered list with its signature, for clients outside the sum.

    ``digests`` are the listed statements' hashes, in the order of ``bitmap``; ``answer`` is the answer's SHA-256.
    """

    bitmap: bytes
    digests: bytes
    answer: Bytes32
    signature: Bytes64


class ProvedReport(_Message, frozen=True, tag=9):
    """A :class:`Report` with a proof: ``commits`` to the helpers' seeds, and the two ``parts``' hashes.

    The body holds the blind, then the leader's share, in words of 8 bytes.
    """

    sender: Index
    boxes: bytes
    commits: bytes
    parts: Bytes64
    body: memoryview
    signature: Bytes64


class ProvedBatch(_Message, frozen=True, tag=10):
    """A :class:`Batch` of proved reports, with ``rho``, the leader's coins."""

    part: Index
    senders: Annotated[tuple[Index, ...], Meta(min_length=1, max_length=MAX_PART)]
    encs: bytes
    proofs: bytes
    boxes: bytes
    signatures: bytes
    commits: bytes
    parts: bytes
    rho: Bytes32
    signature: Bytes64


class ProvedChecked(_Message, frozen=True, tag=11):
    """A :class:`Checked` with ``answers`` to the accepted reports' proofs, in order."""

    part: Index
    bitmap: bytes
    answers: bytes
    signature: Bytes64


class Kinds(NamedTuple):
    """A session's message types for reports, batches and their answers."""

    report: type[Report] | type[ProvedReport]
    batch: type[Batch] | type[ProvedBatch]
    checked: type[Checked] | type[ProvedChecked]


_PLAIN, _PROVED = Kinds(Report, Batch, Checked), Kinds(ProvedReport, ProvedBatch, ProvedChecked)


def kinds_of(parameters: UploadParameters) -> Kinds:
    """Return a session's message types; others are refused as ``wrong_type``."""
    return _PLAIN if parameters.claim is None else _PROVED


Proved: TypeAlias = ProvedReport | ProvedBatch | ProvedChecked
Wire: TypeAlias = Report | Batch | Checked | Survivors | Reveal | Abandoned | Listed | Proved

# The large element of each type, the last before the signature.
_LARGE: dict[type, str] = {
    Report: "body",
    ProvedReport: "body",
    Reveal: "answer",
}

T = TypeVar("T", bound=_Message)


def encode(message: Wire) -> bytes:
    """Encode a message."""
    name = _LARGE.get(type(message))
    if name is None:
        return bytes(_CODEC.encode(message))
    large: memoryview = getattr(message, name)
    frame = Frame(message, len(large))  # type: ignore[arg-type]  # a type in _LARGE
    frame.large[:] = large
    return frame.signed(message.signature)


class Frame:
    """A message signed last; its large element is written in place.

    Args:
        message: without its large element and signature.
        size: bytes of the large element.

    Attributes:
        large: its buffer; initially zeros.
    """

    def __init__(self, message: Report | ProvedReport | Reveal, size: int) -> None:
        empty = msgspec.structs.replace(message, **{_LARGE[type(message)]: memoryview(b"")})
        frame = bytes(_CODEC.encode(empty))
        end = len(frame) - SIGNATURE_BYTES - len(_SEAL)
        start = frame[: end - len(_EMPTY)] + _bin_header(size)
        self._file = io.BytesIO()  # returns its bytes without a copy
        self._file.seek(len(start) + size)
        self._file.write(frame[end:])
        self._file.seek(0)
        self._file.write(start)
        self.large = self._file.getbuffer()[len(start) : len(start) + size]

    def signed(self, signature: bytes) -> bytes:
        """Add the signature and return the message, once; the large element is then final."""
        self.large.release()
        self._file.seek(-SIGNATURE_BYTES, io.SEEK_END)
        self._file.write(signature)
        return self._file.getvalue()


def _bin_header(size: int) -> bytes:
    width = 1 if size < 1 << 8 else 2 if size < 1 << 16 else 4
    return {1: b"\xc4", 2: b"\xc5", 4: b"\xc6"}[width] + size.to_bytes(width, "big")


def decode(data: memoryview, kind: type[T], parameters: UploadParameters, context: bytes) -> T:
    """Parse a message, after checking version, type, size and context.

    Raises:
        Refusal: any of these differs, or the fields do; always unproven, because the signature is inside.
    """
    try:
        _CODEC.check_header(data, kind, parameters)
        if wire.session_of(data) != context:
            raise wire.Refusal("wrong_session", "it is of another run, plan, roster or panel")
        return _CODEC.decode(data, kind)
    except wire.Refusal as refusal:
        raise refusal.unproven() from None


def signed_part(data: memoryview) -> memoryview:
    """Return a message's signed bytes: everything before its signature.

    Raises:
        Refusal: another encoding of 64 bytes would make the signed bytes ambiguous.
    """
    end = len(data) - SIGNATURE_BYTES - len(_SEAL)
    if data[end : end + len(_SEAL)] != _SEAL:
        raise wire.Refusal("malformed", "its signature is not in the shortest encoding", proven=False)
    return data[:end]


def proof_bytes(parameters: UploadParameters) -> int:
    """Return the length of a box's Merkle proof."""
    return HASH_BYTES * (parameters.members - 1).bit_length()


# Each type's largest size on the wire: every field at its longest, in msgpack's encoding.
def _limits(parameters: UploadParameters) -> dict[type[Struct], int]:
    n, h, size = parameters.clients, parameters.helpers, parameters.ring.wire_bytes
    sender, part, count = _index(n - 1), _index(n - 1), min(n, parameters.max_in_part)
    seal, bitmap = _bytes(SIGNATURE_BYTES), _bytes((n + 7) // 8)
    columns = (0, proof_bytes(parameters), BOX_BYTES, SIGNATURE_BYTES)
    kinds, commits = kinds_of(parameters), h * HASH_BYTES
    report = sender + _bytes(parameters.members * BOX_BYTES) + _bytes(parameters.body_bytes) + seal
    batch = part + _array(count) + count * sender + sum(_bytes(count * each) for each in columns) + seal
    checked = part + _bytes((count + 7) // 8) + seal
    if kinds is _PROVED:
        report += _bytes(commits) + _bytes(PARTS_BYTES)
        batch += _bytes(count * commits) + _bytes(count * PARTS_BYTES) + _bytes(HASH_BYTES)
        checked += _bytes(count * parameters.answer_bytes)
    content: dict[type[Struct], int] = {
        kinds.report: report,
        kinds.batch: batch,
        kinds.checked: checked,
        Survivors: bitmap + _bytes(HASH_BYTES) + seal,
        Reveal: _bytes(HASH_BYTES) + _bytes(size) + seal,
        Abandoned: seal,
        Listed: bitmap + _bytes(n * HASH_BYTES) + _bytes(HASH_BYTES) + seal,
    }
    return {kind: HEADER_BYTES + size for kind, size in content.items()}


_CODEC = wire.Codec(VERSION, _limits)
is_kind, size_limit = _CODEC.is_kind, _CODEC.size_limit


def largest_answer(parameters: UploadParameters) -> int:
    """Return the maximum bytes of a client's or helper's message, and of a panel member's shorter offer."""
    return _CODEC.largest((kinds_of(parameters).report, kinds_of(parameters).checked, Reveal, Abandoned), parameters)


def largest_request(parameters: UploadParameters) -> int:
    """Return the maximum bytes of a leader's message."""
    return _CODEC.largest((kinds_of(parameters).batch, Survivors), parameters)
