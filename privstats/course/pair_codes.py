"""Measure rounds of pairs of columns: the modules ``pairs/J-m``, which :class:`~privstats.course.Rounds` sets.

A table's row of :class:`~privstats.Cells` arrives as the whitened u of a linear round. The published map is invertible,
so each cell follows from u by published linear functionals.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.moments.gradient_map import PROBABILITY_BITS, SHY, residuals_of, shortened
from privstats.schema.modules import Module, Whole
from privstats.schema.public_values import Values

CODES, GROUPS = 3, 4
"""Numbers of a column's code, and the most groups of its cells."""
ENTRIES = CODES * CODES
"""Numbers of a pair."""

_MOST_COLUMNS = 64
"""A power of two that scales the published places of columns to at most 1."""
_SIZE = re.compile("([1-9][0-9]{0,2})-([1-9][0-9]{0,4})")  # one word for one module


@dataclass(frozen=True)
class PairCodes(Module):
    """A linear softmax of two classes on u and on the codes of m pairs of columns.

    In integers: E u has five entries per column, and the largest is the record's group: four groups of cells, or a gap.
    A group has a published code z of three numbers, a gap 0, and a pair has ``z_j (x) z_k``, nine numbers. With p the
    probability at the published score weights, a record adds ``sqrt(2) (p - y) (alpha u, beta codes)``, clipped.

    Args:
        columns: J.
        pairs: m, places for pairs; a place with one column twice is empty.

    Guarantee:
        For all admitted values and any record, whatever else is in the batch, the row is at most 4**f long and kappa is
        in 0..2**f, in integers that are functions of the record and the values alone: sums of products stay below 2**53
        and are exact in any order, and every other operation is one IEEE operation per entry.

    Example:
        >>> from privstats.schema.modules import module_of
        >>> module_of("pairs/3-2").weights(features=10, classes=2)
        29
    """

    columns: int
    pairs: int

    def weights(self, features: int, classes: int) -> int:  # noqa: ARG002 - the signature of Module
        """Return the entries of u, and nine per pair."""
        return features + 1 + ENTRIES * self.pairs

    def values(self, features: int, classes: int) -> int:
        """Return the number of published values: alpha, beta, score weights, pairs, codes and E."""
        own = 2 * self.pairs + self.columns * (GROUPS * CODES + (GROUPS + 1) * features)
        return 2 + self.weights(features, classes) + own

    def published_of(
        self, scales: tuple[float, float], scores: Any, pairs: Any, codes: Any, functionals: Any
    ) -> NDArray[np.float64]:
        """Return the published values of one round.

        Args:
            scales: alpha and beta.
            scores: score weights of u and of the pairs' codes, at most P; the rest is 0.
            pairs: columns of each pair, at most ``(m, 2)``.
            codes, functionals: z ``(J, 4, 3)``, and E ``(J, 5, d)`` up to a common factor above 0.
        """
        d = functionals.shape[-1]
        weights, places = np.zeros(self.weights(d, 2)), np.zeros(2 * self.pairs)
        weights[: len(scores)], places[: np.size(pairs)] = scores, np.ravel(pairs) / _MOST_COLUMNS
        parts = (scales, weights, places, np.ravel(codes), np.ravel(functionals) / np.abs(functionals).max())
        return np.concatenate(parts)

    def gradients(
        self, units: Whole, labels: NDArray[np.intp], weights: Values, *, classes: int, norm: float, grid_bits: int
    ) -> tuple[Whole, Whole]:
        """Return each record's row and kappa."""
        d, parts = units.shape[1] - 1, _Parts.of(self, units.shape[1] - 1, weights, grid_bits)
        rows = np.empty((len(units), self.weights(d, classes)))
        rows[:, : d + 1], rows[:, d + 1 :] = units, parts.codes_of(units[:, :d], grid_bits)
        scores = np.zeros((len(rows), 2))
        scores[:, 1] = rows @ parts.scores
        r, square = residuals_of(scores, weights.exponent + grid_bits, labels)
        rows[:, : d + 1] *= parts.alpha
        rows[:, d + 1 :] *= parts.beta
        rows *= r[:, 1:]
        exponent = PROBABILITY_BITS + grid_bits + weights.exponent
        rows, shorter = shortened(rows, math.sqrt(2) / norm, exponent, 4**grid_bits)
        remaining = 1 - np.minimum(np.ldexp(square, -2 * PROBABILITY_BITS), 1.0)
        return rows, np.floor(remaining * shorter * ((1 << grid_bits) * SHY))

    def _of_rounds(self, *_: Any, **__: Any) -> Any:
        raise SchemaError("pairs/J-m is a part of Rounds(pairs=True), and no module of its own: leave module out")

    started = refined = published = exact = rule = _of_rounds


@dataclass(frozen=True, eq=False)
class _Parts:
    alpha: float
    beta: float
    scores: Whole
    places: NDArray[np.intp]
    tables: Whole
    functionals: Whole

    @classmethod
    def of(cls, module: PairCodes, features: int, values: Values, bits: int) -> _Parts:
        J, m = module.columns, module.pairs
        sizes = (2, module.weights(features, 2), 2 * m, J * GROUPS * CODES)
        scales, scores, places, codes, functionals = np.split(values.floats, np.cumsum(sizes))
        columns = np.clip(np.rint(np.ldexp(places * _MOST_COLUMNS, -values.exponent)), 0, J - 1).astype(np.intp)
        tables = np.zeros((J, GROUPS + 1, CODES))
        wide = np.ldexp(codes, bits - values.exponent).reshape(J, GROUPS, CODES)
        tables[:, :GROUPS] = np.trunc(np.clip(wide, -float(1 << bits), float(1 << bits)))
        return cls(scales[0], scales[1], scores, columns.reshape(m, 2), tables, functionals.reshape(-1, features))

    def codes_of(self, rows: Whole, bits: int) -> Whole:
        """Return the pairs' codes in steps of 2**-bits, ``(n, 9 m)``."""
        n, J = len(rows), len(self.tables)
        groups = (rows @ self.functionals.T).reshape(n, J, GROUPS + 1).argmax(axis=2)
        codes = self.tables[np.arange(J), groups]
        left, right = self.places.T
        left_codes, right_codes = codes[:, left], codes[:, right]
        left_codes[:, left == right] = 0.0
        products = left_codes[:, :, :, None] * right_codes[:, :, None, :]
        products *= 2.0**-bits
        np.trunc(products, out=products)
        return np.asarray(products.reshape(n, -1))


def pairs(size: str) -> PairCodes:
    """Return the module that ``pairs/J-m`` names.

    Example:
        >>> pairs("19-171")
        PairCodes(columns=19, pairs=171)
    """
    match = _SIZE.fullmatch(size)
    if match is None:
        raise SchemaError(f"module pairs/J-m takes numbers of columns and of pairs, such as 19-10, got {size!r:.40}")
    return PairCodes(*map(int, match.groups()))
