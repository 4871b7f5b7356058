"""Masks of 48 bits for entries of 33 to 48, beside today's lanes of 64: what a narrower keystream would save.

    OMP_NUM_THREADS=1 python -m benchmarks.secagg.lanes --save

Not in the library: its bytes would need another version of the protocol. The candidates draw six bytes of keystream an
entry and add them to a lane of uint64. Either they lie side by side, read as overlapping words of which the upper two
bytes, above the entry's width, count for nothing; or as an array of uint32 and one of uint16. All take turns.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from numpy.typing import NDArray

from benchmarks.measuring import Row, Tables, command, seconds_of
from privstats.secagg.prg import TILE

Words: TypeAlias = NDArray[np.uint64]
_TAG_BYTES = 16
_KEPT = np.uint64((1 << 48) - 1)


def whole_words(part: Words, stream: memoryview, scratch: Words) -> None:
    """Today: eight bytes an entry."""
    del scratch
    np.add(part, np.frombuffer(stream, "<u8", len(part)), out=part)


def overlapping_words(part: Words, stream: memoryview, scratch: Words) -> None:
    """Six bytes an entry, side by side; the last word's upper bytes are the cipher's tag."""
    del scratch
    words: Any = np.ndarray(len(part), "<u8", stream, 0, (6,))
    np.add(part, words, out=part)


def two_arrays(part: Words, stream: memoryview, scratch: Words) -> None:
    """Four bytes of every entry, then two of every one."""
    count = len(part)
    wide = scratch[:count]
    np.copyto(wide, np.frombuffer(stream, "<u2", count, 4 * count))
    np.left_shift(wide, np.uint64(32), out=wide)
    np.bitwise_or(wide, np.frombuffer(stream, "<u4", count), out=wide)
    np.add(part, wide, out=part)


WAYS: dict[str, tuple[int, Callable[[Words, memoryview, Words], None]]] = {
    "64-bit lanes, as they are": (8, whole_words),
    "48 bits, overlapping words": (6, overlapping_words),
    "48 bits, 32 and 16": (6, two_arrays),
}
"""Bytes of keystream an entry, and how a tile of them is added."""


def masked(name: str, lane: Words, keys: list[AESGCM]) -> Words:
    """The lane with one mask of each key added, in place, tile by tile."""
    width, add = WAYS[name]
    zeros, buffer = memoryview(bytes(width * TILE)), memoryview(bytearray(width * TILE + _TAG_BYTES))
    scratch = np.empty(TILE, np.uint64)
    for tile, start in enumerate(range(0, len(lane), TILE)):
        part = lane[start : start + TILE]
        size = width * len(part)
        for key in keys:
            key.encrypt_into(tile.to_bytes(12, "big"), zeros[:size], None, buffer[: size + _TAG_BYTES])
            add(part, buffer, scratch)
    return lane


def _check(stream: bytes) -> None:
    """Compare what both ways of six bytes add with the integers that they stand for."""
    sides = [int.from_bytes(stream[6 * i : 6 * i + 6], "little") for i in range(TILE)]
    low, high = np.frombuffer(stream, "<u4", TILE).tolist(), np.frombuffer(stream, "<u2", TILE, 4 * TILE).tolist()
    truths = (sides, [upper << 32 | lower for lower, upper in zip(low, high, strict=True)])
    for (name, (_, add)), truth in zip(list(WAYS.items())[1:], truths, strict=True):
        lane = np.zeros(TILE, np.uint64)
        add(lane, memoryview(stream), np.empty(TILE, np.uint64))
        if (lane & _KEPT).tolist() != truth:
            raise SystemExit(f"{name}: not the masks that the keystream says")


def tables(chosen: argparse.Namespace) -> Tables:
    """Nanoseconds of one mask of one entry, and beside today's."""
    size, masks, repeats = (20_000, 2, 1) if chosen.quick else (1_000_000, 20, 15)
    keys, lane = [AESGCM(os.urandom(32)) for _ in range(masks)], np.zeros(size, np.uint64)
    _check(os.urandom(6 * TILE + _TAG_BYTES))
    tasks = {name: lambda name=name: masked(name, lane, keys) for name in WAYS}
    found = seconds_of(tasks, repeats, time.process_time)
    least = {name: min(seconds) / size / masks * 1e9 for name, seconds in found.items()}
    today = least[next(iter(WAYS))]
    rows: list[Row] = [{"masks": name, "ns": ns, "today / it": today / ns} for name, ns in least.items()]
    yield "one mask of one entry of 33 to 48 bits, nanoseconds", rows


if __name__ == "__main__":
    command("secagg.lanes", __doc__, tables)
