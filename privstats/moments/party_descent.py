"""The direction of one party: where a softmax descends to over all of its whole-numbered rows, from zero or from W.

A gradient is an exact sum of whole numbers at whole-numbered weights, and what is done to the weights is one IEEE
operation per entry at a time. So the direction is the same bits in any order, batch, container and BLAS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.moments.exact_sum import ExactSum
from privstats.moments.gradient_map import PROBABILITY_BITS, probabilities
from privstats.schema.gradients import ROW_BITS
from privstats.schema.public_values import Values

__all__ = ["Block", "direction"]

Block: TypeAlias = tuple[NDArray[np.floating], NDArray[np.intp]]
"""Some thousand rows of whole numbers, ``(m, d)``, of norm at most 2**16, and their labels."""

_STEPS = 30  # for every data set (docs/papers_and_peers.md)
_WEIGHT_BITS = 18
_MOST = float(1 << 28)


def direction(blocks: Sequence[Block], classes: int, features: int, start: Values | None = None) -> NDArray[np.float64]:
    """By how much thirty accelerated steps move the weights of a softmax, at length 1, ``(C, d)``; or zeros.

    With e = sum |x|^2 / n a step is ``W += (C / e) (Y - P)'X / n``: at zero the curvature is that of the rows over C,
    so neither their length nor the number of classes decides how far a step goes. Steps are Nesterov's (1983),
    without an intercept or a penalty: their number is the penalty.

    Guarantee:
        The same bits for the same records in any order and blocks, on any machine: entries of weights are whole numbers
        of at most 2**28, so a logit of at most 65,536 features is a sum of whole numbers below 2**53.

    Args:
        blocks: all rows of the party, in steps of 2**-16.
        classes: C.
        features: d.
        start: the weights that it starts from, ``(C, d)``, cut to some 2**10 beside rows of norm 1; None: zero.

    Raises:
        DataError: more than 2**27 records.
    """
    began = np.zeros((classes, features))
    energy = sum(int(np.vdot(rows, rows)) for rows, _ in _wide(blocks))
    if not energy:
        return began
    records = sum(len(labels) for _, labels in blocks)
    exponent = _WEIGHT_BITS + (energy // records).bit_length() // 2
    if start is not None:
        began = np.clip(np.rint(np.ldexp(start.real, exponent - ROW_BITS)), -_MOST, _MOST)
    pace, weights, ahead = math.ldexp(float(classes), exponent - PROBABILITY_BITS), began, began
    for step in range(_STEPS):
        before, weights = weights, ahead - np.rint(_gradient(blocks, ahead, exponent) / energy * pace)
        ahead = np.clip(weights + np.rint((weights - before) * (step / (step + 3))), -_MOST, _MOST)
    moved = classes * (weights - began) - (weights - began).sum(axis=0)  # all classes share rounding of probabilities
    length = math.sqrt(sum(entry**2 for entry in moved.astype(np.int64).ravel().tolist()))
    return np.asarray(moved / (length or 1.0))


def _gradient(blocks: Sequence[Block], weights: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    """``(P - Y)'X`` in steps of 2**-20, exact."""
    total = ExactSum(weights.shape, 1 << (ROW_BITS + PROBABILITY_BITS))
    for rows, labels in _wide(blocks):
        p = probabilities(rows @ weights.T, exponent)
        p[np.arange(len(p)), labels] -= 1 << PROBABILITY_BITS
        total.admit(len(rows))
        total.partial += p.T @ rows
    return total.result()


def _wide(blocks: Sequence[Block]) -> Iterator[tuple[NDArray[np.float64], NDArray[np.intp]]]:
    return ((rows.astype(np.float64), labels) for rows, labels in blocks)
