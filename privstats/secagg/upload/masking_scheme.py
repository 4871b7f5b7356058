"""Mask a vector in the one upload: a body for the leader, a piece per helper, and the helpers' answers.

``Streams`` is the scheme of ``split``: ``body = x - sum_j mask_j``. Helper j holds the seed of mask_j, an AES
keystream. A helper's answer sums its masks over the survivors; bodies plus answers are the sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from privstats.encoding import RingVector
from privstats.encoding.ring import Group
from privstats.errors import LocalProtocolError
from privstats.files.packing import pack_into, packed_bytes, unpack
from privstats.secagg.prg import TILE, TileMasks, add_packed, reduce
from privstats.secagg.statements import Words
from privstats.secagg.upload.parameters import UploadParameters
from privstats.secagg.upload.signed_statements import derive
from privstats.secagg.wire import index as encoded_index


@dataclass(frozen=True)
class Hidden:
    """A client's vector, hidden for one report.

    Attributes:
        secret: 32 bytes that derive the rest.
        body: chunks for the leader, each valid until the next is requested.
        pieces: one per helper, place 1 first.
        commits, parts: signed parts of the proof; may be empty.
    """

    secret: bytes
    body: Iterable[memoryview]
    pieces: Sequence[bytes]
    commits: bytes = b""
    parts: bytes = b""

    def __repr__(self) -> str:
        return "Hidden(...)"


class MaskingScheme(Protocol):
    """A stateless scheme: leader and helpers together unmask a sum and nothing else."""

    @property
    def answer_bytes(self) -> int:
        """Length of a helper's answer."""

    def cover(self, vector: RingVector, root: bytes | bytearray, sender: int) -> Hidden:
        """Hide a vector under a secret of this run, sender, vector and root alone."""

    def zeros(self) -> Any:
        """Return a total over no client."""

    def add(self, total: Any, bodies: Sequence[memoryview]) -> None:
        """Add bodies to a total, in place."""

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """Write a helper's answer over these pieces to ``out``, which holds zeros."""

    def uncover(self, total: Any, answers: Mapping[int, bytes | memoryview], survivors: int) -> RingVector:
        """Unmask a total, which is consumed, with the answers by place.

        Raises:
            AggregationError: total and answers are not a sum.
        """


@runtime_checkable
class ProvingScheme(MaskingScheme, Protocol):
    """The masking scheme of reports with a signed proof."""

    def helped(self, seed: bytes, sender: int, commits: bytes, parts: bytes, rho: bytes) -> Words:
        """Return a helper's answer to one proof under the leader's coins."""

    def refused(
        self, body: bytearray, sender: int, commits: bytes, parts: bytes, rho: bytes, helped: Words
    ) -> tuple[str, ...]:
        """Return a report's failed checks, from the leader's body and the helpers' summed answers."""


def scheme_of(parameters: UploadParameters, context: bytes, *, threads: int = 1) -> MaskingScheme:
    """Return the masking scheme."""
    if parameters.claim is None:
        return Streams(parameters.ring, parameters.helpers, context, threads=threads)
    scheme: MaskingScheme = parameters.claim.scheme(parameters.ring, parameters.helpers, context)
    return scheme


def proving(scheme: MaskingScheme) -> ProvingScheme:
    """Return the scheme, or raise ``LocalProtocolError`` if it proves nothing."""
    if not isinstance(scheme, ProvingScheme):
        raise LocalProtocolError("reports of this session carry proofs, and the masking scheme verifies none")
    return scheme


# Maximum number of ciphers in memory at once.
_CIPHERS = 256


class Streams:
    """The masking scheme of one run of ``split``.

    Args:
        context: the run's digest; no stream of one run appears in another.
        threads: processors for keystreams.

    Guarantee: a body is uniform to any party that lacks a seed. The client derives a secret for this run, vector
    and sender. Each seed is derived from that secret, and each stream from its seed and sender.
    """

    def __init__(self, ring: Group, helpers: int, context: bytes, *, threads: int = 1) -> None:
        self._ring, self._helpers, self._context, self._threads = ring, helpers, context, threads

    @property
    def answer_bytes(self) -> int:
        """The ring's packed bytes."""
        return self._ring.wire_bytes

    def cover(self, vector: RingVector, root: bytes | bytearray, sender: int) -> Hidden:
        """Return body and seeds under the vector's :func:`secret_of`."""
        secret = secret_of(root, self._context, sender, vector)
        return Hidden(secret, *self.hide(vector, secret, sender))

    def hide(self, vector: RingVector, secret: bytes, sender: int) -> tuple[Iterator[memoryview], list[bytes]]:
        """Return body and seeds; the vector does not change."""
        seeds = [derive(secret, f"seed/{place}", self._context) for place in range(1, self._helpers + 1)]
        streams = [self._stream(seed, sender) for seed in seeds]
        return masked_tiles(vector, minus=streams, threads=self._threads), seeds

    def zeros(self) -> RingVector:
        """Return the sum over no client."""
        return self._ring.zeros()

    def add(self, total: RingVector, bodies: Sequence[memoryview]) -> None:
        """Add packed bodies, in place."""
        add_packed(total, *bodies)

    def answer(self, pieces: Iterable[tuple[int, bytes]], out: memoryview) -> None:
        """Sum these senders' streams in the message's buffer."""
        streams = (self._stream(seed, sender) for sender, seed in pieces)
        while chunk := list(islice(streams, _CIPHERS)):
            add_masks_packed(self._ring, out, plus=chunk, threads=self._threads)

    def uncover(self, total: RingVector, answers: Mapping[int, bytes | memoryview], survivors: int) -> RingVector:  # noqa: ARG002
        """Add the answers, which are arbitrary ring elements, to the total."""
        add_packed(total, *(memoryview(answer) for answer in answers.values()))
        reduce(total)
        return total

    def _stream(self, seed: bytes, sender: int) -> bytes:
        return derive(seed, f"stream/{sender}", self._context)


def secret_of(root: bytes | bytearray, context: bytes, sender: int, vector: RingVector, witness: bytes = b"") -> bytes:
    """Derive a report's secret from root, run, sender, vector *and witness*.

    A cloned machine derives another secret for another vector, proof witness or sender. Otherwise the leader could read
    the difference of two vectors, and one AES-GCM key would encrypt two bodies.
    """
    encryptor = Cipher(algorithms.AES256(derive(root, "hedge", context)), modes.GCM(bytes(12))).encryptor()
    encryptor.authenticate_additional_data(encoded_index(sender))
    for lane in _lane_bytes(vector):
        encryptor.authenticate_additional_data(lane)
    encryptor.authenticate_additional_data(witness)
    encryptor.finalize()
    return derive(bytes(root) + encryptor.tag, f"secret/{sender}", context)


def _lane_bytes(vector: RingVector) -> Iterator[memoryview]:
    """Yield each lane's bytes without the bits above its width."""
    for lane, (_, bits) in zip(vector.lanes, vector.ring.segments, strict=True):
        fills_lane = bits == 8 * lane.itemsize
        reduced = lane if fills_lane else lane & lane.dtype.type((1 << bits) - 1)
        yield np.ascontiguousarray(reduced.astype(lane.dtype.newbyteorder("<"), copy=False)).view(np.uint8).data


class _Tile(NamedTuple):
    lane: int
    number: int
    entries: slice
    bits: int
    wire: slice

    @property
    def size(self) -> int:
        return int(self.entries.stop - self.entries.start)


def masked_tiles(vector: RingVector, *, minus: Sequence[bytes], threads: int = 1) -> Iterator[memoryview]:
    """Yield ``vector`` minus these seeds' masks, packed; a chunk is valid until the next."""
    ciphers = [AESGCM(seed) for seed in minus]
    tiles = list(_tiles(vector.ring))
    if threads <= 1 or len(tiles) == 1:
        masker = _Masker(vector, ciphers, _largest(tiles))
        yield from map(masker.masked, tiles)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(lambda tile: _Masker(vector, ciphers, _largest([tile])).masked(tile), tiles)


class _Masker:
    """Two reused buffers, to mask and to pack tiles: allocating memory costs as much as a mask."""

    def __init__(self, vector: RingVector, ciphers: Sequence[AESGCM], size: int) -> None:
        self._vector, self._masks = vector, TileMasks((), ciphers, size)
        self._entries, self._packed = np.empty(size, np.uint8), np.empty(size, np.uint8)

    def masked(self, tile: _Tile) -> memoryview:
        lane = self._vector.lanes[tile.lane][tile.entries]
        entries = self._entries[: lane.nbytes].view(lane.dtype)
        np.copyto(entries, lane)
        self._masks.apply(entries, tile.lane, tile.number)
        if tile.bits == 8 * lane.itemsize and lane.dtype == lane.dtype.newbyteorder("<"):
            return self._entries[: lane.nbytes].data  # these bytes are the wire form already
        packed = self._packed[: packed_bytes(tile.size, tile.bits)]
        pack_into(entries, tile.bits, packed)
        return packed.data


def add_masks_packed(ring: Group, packed: memoryview, *, plus: Sequence[bytes], threads: int = 1) -> None:
    """Add masks to a packed vector, in place."""
    ciphers, tiles = [AESGCM(seed) for seed in plus], list(_tiles(ring))
    if threads <= 1 or len(tiles) == 1:
        _add(packed, tiles, ciphers)
        return
    with ThreadPoolExecutor(threads) as pool:
        shares = [pool.submit(_add, packed, tiles[part::threads], ciphers) for part in range(threads)]
        for share in shares:
            share.result()


def _add(packed: memoryview, tiles: Sequence[_Tile], ciphers: Sequence[AESGCM]) -> None:
    masks = TileMasks(ciphers, (), _largest(tiles))
    for tile in tiles:
        there = packed[tile.wire]
        entries = unpack(there, tile.size, tile.bits)
        masks.apply(entries, tile.lane, tile.number)
        pack_into(entries, tile.bits, np.frombuffer(there, np.uint8))


def _largest(tiles: Sequence[_Tile]) -> int:
    return max((tile.size * (4 if tile.bits <= 32 else 8) for tile in tiles), default=0)


def _tiles(ring: Group) -> Iterator[_Tile]:
    start = 0
    for lane, (size, bits) in enumerate(ring.segments):
        for number, first in enumerate(range(0, size, TILE)):
            last = min(first + TILE, size)
            wire = slice(start + packed_bytes(first, bits), start + packed_bytes(last, bits))
            yield _Tile(lane, number, slice(first, last), bits, wire)
        start += packed_bytes(size, bits)
