"""A whole-numbered factor of an honest client's moments: L with T = L L' + E and E small.

Float arithmetic finds L, and integers verify it against T, so the last bits of a machine's LAPACK do not matter:
another L is another witness of the same statement. A client computes it in the clear, before anything is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from privstats.secagg.upload.proof.field import Field, Integers

__all__ = ["candidates", "completed"]

Whole = NDArray[np.float64]
"""Whole numbers below 2**53 in doubles, so that products of matrices are exact and go through BLAS."""

_TRIES = 80  # each fails with about one half where the expected error is within its bound: see docs
_SMALLEST = 1e-11  # of the largest eigenvalue: below, a direction of whole-numbered sums is rounding
_RELATIVE, _ABSOLUTE = 2.0**-46, 2.0**-20
_FRACTION = 1.0 / (1 << 61)


def candidates(
    blocks: Whole, places: NDArray[np.bool_], coins: Callable[[int, int], Field]
) -> Iterator[tuple[Integers, Integers]]:
    """Factors and what they leave: L rounded to the nearest first, then up or down at random, without bias.

    Args:
        blocks: symmetric blocks of whole numbers, ``(blocks, width, width)``; all partial sums of their factors'
            products must be below 2**53.
        places: where a factor may be other than zero, ``(width, width)``: the nearest positive blocks need not keep it.
        coins: uniform elements for the k-th rounding at random.

    Yields:
        L and E = T - L L', int64, ``(blocks, width, width)``, at most 81 times.
    """
    factor = np.where(places, _factor(blocks), 0.0)
    yield _held(blocks, np.rint(factor))
    down = np.floor(factor)
    for number in range(_TRIES):
        drawn = coins(number, factor.size).reshape(factor.shape) * _FRACTION
        yield _held(blocks, down + (drawn < factor - down))


def completed(known: Whole, across: Whole) -> Whole:
    """The least H with which [[known, across'], [across, H]] is positive: across known^-1 across', by its spectrum."""
    values, vectors = np.linalg.eigh(known)
    kept = values > _SMALLEST * max(values.max(), 1.0)
    half = across @ vectors[:, kept] / np.sqrt(values[kept])
    product: Whole = half @ half.T
    return product


def _held(blocks: Whole, lower: Whole) -> tuple[Integers, Integers]:
    left = blocks - lower @ lower.transpose(0, 2, 1)
    return lower.astype(np.int64), left.astype(np.int64)


def _factor(blocks: Whole) -> Whole:
    """Cholesky of the blocks, lifted a little; where that fails, a triangle of the nearest positive ones."""
    width = blocks.shape[-1]
    traces = np.trace(blocks, axis1=1, axis2=2)[:, None, None]
    try:
        return np.linalg.cholesky(blocks + (_RELATIVE * traces + _ABSOLUTE) * np.eye(width))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(blocks)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        upper: Whole = np.linalg.qr(roots.transpose(0, 2, 1)).R
        return np.tril(upper.transpose(0, 2, 1))
