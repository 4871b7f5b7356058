"""Which fold a ridge record lies in: a public hash of its own grid vectors.

Not its position: removing one record would then move all later ones to other folds, and no noise for one record hides
that. Identical records share a fold. Inside ``measure``, between the grid and the sums; host and device agree.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["fold_of_key", "key_weights"]

_MASK_64 = (1 << 64) - 1
_POSITIVE = (1 << 63) - 1
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@lru_cache(maxsize=64)
def key_weights(entries: int) -> NDArray[np.int64]:
    """Odd 64-bit weights of shape ``(entries,)``: a record's key is their product with its integers, modulo 2**64."""
    weights = np.array([_splitmix(i) | 1 for i in range(entries)], np.uint64).view(np.int64)
    weights.setflags(write=False)
    return weights


def fold_of_key(key: Any, folds: int) -> Any:
    """Fold numbers 0..folds-1 of int64 keys, numpy or torch; mixed first, because a weighted sum keeps low bits low."""
    for shift in (32, 29):
        key = (key ^ ((key >> shift) & (_POSITIVE >> (shift - 1)))) * _MIX
    return ((key >> 16) & _POSITIVE >> 16) % folds


def _splitmix(i: int) -> int:
    """The i-th output of splitmix64 (Steele, Lea and Flood 2014)."""
    z = ((i + 1) * 0x9E3779B97F4A7C15) & _MASK_64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK_64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK_64
    return z ^ (z >> 31)
