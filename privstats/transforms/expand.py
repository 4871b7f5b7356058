"""Public randomness: from a seed to whole-numbered matrices, the same on every machine.

SHAKE-256 (FIPS 202) gives the bits; Gaussian entries are drawn by comparing them with a table of whole numbers that is
computed in decimal arithmetic, so no floating-point library enters. Public by design: never a source of privacy noise.
"""

from __future__ import annotations

import hashlib
from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["GAUSSIAN_BITS", "GAUSSIAN_SCALE", "expand_words", "gaussian_matrix", "sign_matrix", "signs"]

GAUSSIAN_SCALE = 256
"""Grid steps per standard deviation in :func:`gaussian_matrix`."""
GAUSSIAN_BITS = 12
"""Entries of :func:`gaussian_matrix` are below 2**12 in absolute value (16 standard deviations; 10 are reached)."""

_TAIL = 10 * GAUSSIAN_SCALE


def expand_words(seed: int, purpose: str, count: int) -> NDArray[np.uint64]:
    """``count`` uniform 64-bit words: SHAKE-256 of ``privstats|purpose|seed``, read little-endian."""
    message = f"privstats|{purpose}|{seed}".encode()
    return np.frombuffer(hashlib.shake_256(message).digest(8 * count), "<u8").astype(np.uint64, copy=False)


def gaussian_matrix(seed: int, purpose: str, rows: int, columns: int) -> NDArray[np.float64]:
    """Whole numbers of the discrete Gaussian of standard deviation ``GAUSSIAN_SCALE``, shape ``(rows, columns)``.

    One word per entry, row by row: its top bit is the sign, the other 63 are looked up in the cumulative table.
    """
    words = expand_words(seed, purpose, rows * columns)
    sizes = np.searchsorted(_half_gaussian_table(), words & np.uint64(2**63 - 1), side="right").astype(np.float64)
    return np.where(words >> np.uint64(63), -sizes, sizes).reshape(rows, columns)


def sign_matrix(seed: int, purpose: str, rows: int, columns: int, sparsity: int) -> NDArray[np.int8]:
    """Entries -1, 0, 1 with probabilities 1/(2s), 1 - 1/s, 1/(2s) for s = ``sparsity``, shape ``(rows, columns)``."""
    words = expand_words(seed, purpose, rows * columns)
    hit = (words >> np.uint64(1)) < np.uint64(2**63 // sparsity)
    sign = np.where(words & np.uint64(1), np.int8(-1), np.int8(1))
    return np.where(hit, sign, np.int8(0)).reshape(rows, columns)


def signs(seed: int, purpose: str, count: int) -> NDArray[np.float64]:
    """Fair signs, shape ``(count,)``."""
    return np.where(expand_words(seed, purpose, count) & np.uint64(1), -1.0, 1.0)


@lru_cache(maxsize=1)
def _half_gaussian_table() -> NDArray[np.uint64]:
    """floor(2**63 P(|Z| <= k)) for k = 0, 1, ...: the number of thresholds at or below a 63-bit word is |Z|."""
    with localcontext() as context:
        context.prec = 40  # decimal exp is correctly rounded, so these digits are the same everywhere
        variance = Decimal(2 * GAUSSIAN_SCALE**2)
        weights = [(-Decimal(k * k) / variance).exp() * (2 if k else 1) for k in range(_TAIL)]
        total, reached, table = sum(weights), Decimal(0), []
        for weight in weights:
            reached += weight
            table.append(int(2**63 * (reached / total)))
    return np.array([min(entry, 2**63 - 1) for entry in table], np.uint64)
