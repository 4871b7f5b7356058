"""The direction of one party: a softmax that descends from zero over all of its whole-numbered rows.

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

__all__ = ["Block", "direction"]

Block: TypeAlias = tuple[NDArray[np.floating], NDArray[np.intp]]
"""Some thousand rows of whole numbers, ``(m, d)``, of norm at most 2**16, and their labels."""

_STEPS = 30  # for every data set (docs/papers_and_peers.md)
_WEIGHT_BITS = 18
_MOST = float(1 << 28)


def direction(blocks: Sequence[Block], classes: int, features: int) -> NDArray[np.float64]:
    """The weights of a softmax after thirty accelerated steps from zero, at length 1, ``(C, d)``; or zeros.

    With e = sum |x|^2 / n a step is ``W += (C / e) (Y - P)'X / n``: at zero the curvature is that of the rows over C,
    so neither their length nor the number of classes decides how far a step goes. Steps are Nesterov's (1983),
    without an intercept or a penalty: their number is the penalty.

    Guarantee:
        The same bits for the same records in any order and blocks, on any machine: entries of weights are whole numbers
        of at most 2**28, so a logit of at most 65,536 features is a sum of whole numbers below 2**53.

    Args:
        blocks: all rows of the party.
        classes: C.
        features: d.

    Raises:
        DataError: more than 2**27 records.
    """
    weights = np.zeros((classes, features))
    energy = sum(int(np.vdot(rows, rows)) for rows, _ in _wide(blocks))
    if not energy:
        return weights
    records = sum(len(labels) for _, labels in blocks)
    exponent = _WEIGHT_BITS + (energy // records).bit_length() // 2
    pace, ahead = math.ldexp(float(classes), exponent - PROBABILITY_BITS), weights
    for step in range(_STEPS):
        before, weights = weights, ahead - np.rint(_gradient(blocks, ahead, exponent) / energy * pace)
        ahead = np.clip(weights + np.rint((weights - before) * (step / (step + 3))), -_MOST, _MOST)
    weights = classes * weights - weights.sum(axis=0)  # all classes share the rounding of their probabilities
    length = math.sqrt(sum(entry**2 for entry in weights.astype(np.int64).ravel().tolist()))
    return np.asarray(weights / (length or 1.0))


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
