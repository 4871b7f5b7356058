"""Measure rounds of pairs of columns: the modules ``pairs/J-m``, which :class:`~privstats.course.Rounds` sets.

A table's row of :class:`~privstats.Cells` arrives as the whitened u of a linear round. The published map is invertible,
so each cell follows from u by published linear functionals.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.errors import SchemaError
from privstats.moments.gradient_map import PROBABILITY_BITS, SHY, residuals_of
from privstats.schema.modules import Ints, Module
from privstats.schema.public_values import Values

CODES, GROUPS = 3, 4
"""Numbers of a column's code, and the most groups of its cells."""
ENTRIES = CODES * CODES
"""Numbers of a pair."""
SEARCH_SHARE = 0.25
"""Part of the mu^2 behind the first release that the session for all pairs gets."""

_KIND, _CLASSES = "pairs", 2
_BLOCK_ROWS = 32
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

    @property
    def word(self) -> str:
        """The module's name in plans."""
        return f"{_KIND}/{self.columns}-{self.pairs}"

    @property
    def searches(self) -> bool:
        """Whether it is that of the session for all pairs."""
        return self.pairs == math.comb(self.columns, 2)

    def weights(self, features: int, classes: int) -> int:
        """Return the entries of u, and nine per pair."""
        if classes != _CLASSES:
            raise SchemaError(f"module {self.word} reads two classes, got {classes}; leave module out")
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
        self, units: Ints, labels: NDArray[np.intp], weights: Values, *, classes: int, norm: float, grid_bits: int
    ) -> tuple[Ints, Ints]:
        """Return each record's row and kappa."""
        d = units.shape[1] - 1
        parts = _parts(self, d, _Keyed(weights.digest, weights), grid_bits)
        places = parts.places_of(units[:, :d])
        scores = np.zeros((len(units), 2))
        scores[:, 1] = units @ parts.scores[: d + 1] + parts.scored[places].sum(axis=1)
        r, square = residuals_of(scores, weights.exponent + grid_bits, labels)
        step = np.ldexp(r[:, 1] * (math.sqrt(2) / norm), -(PROBABILITY_BITS + weights.exponent + grid_bits))
        codes = parts.squares[places].sum(axis=1)
        length = np.abs(step) * np.sqrt(parts.alpha**2 * np.vecdot(units, units) + parts.beta**2 * codes)
        shorter = 1 / np.maximum(length, 1.0)
        step *= shorter * (4**grid_bits * SHY)
        rows = np.empty((len(units), self.weights(d, classes)))
        for start in range(0, len(rows), _BLOCK_ROWS):  # a block stays in the second-level cache throughout
            part = slice(start, start + _BLOCK_ROWS)
            own, block = step[part, None], rows[part]
            np.multiply(units[part], own * parts.alpha, out=block[:, : d + 1])
            taken = parts.products.take(places[part], axis=0).reshape(len(block), -1)
            np.multiply(taken, own * parts.beta, out=block[:, d + 1 :])
            np.trunc(block, out=block)
        remaining = 1 - np.minimum(np.ldexp(square, -2 * PROBABILITY_BITS), 1.0)
        return rows, np.floor(remaining * shorter * ((1 << grid_bits) * SHY))

    def _of_rounds(self, *_: Any, **__: Any) -> Any:
        raise SchemaError(f"{self.word} is a part of Rounds(pairs=True), and no module of its own: leave module out")

    started = refined = published = exact = rule = _of_rounds


@dataclass(frozen=True, eq=False)
class _Parts:
    """Published values, as integers in float64.

    Attributes:
        scores: of u and of the pairs' codes.
        pairs: columns of each pair, ``(m, 2)``.
        products: codes of every pair's 25 pairs of groups, in steps of 2**-f, ``(25 m, 9)``.
        functionals: E, ``(5 J, d)``.
    """

    alpha: float
    beta: float
    scores: Ints
    pairs: NDArray[np.intp]
    products: Ints
    functionals: Ints

    @classmethod
    def of(cls, module: PairCodes, features: int, values: Values, bits: int) -> _Parts:
        J, m = module.columns, module.pairs
        sizes = (2, module.weights(features, 2), 2 * m, J * GROUPS * CODES)
        scales, scores, places, codes, functionals = np.split(values.floats, np.cumsum(sizes))
        columns = np.clip(np.rint(np.ldexp(places * _MOST_COLUMNS, -values.exponent)), 0, J - 1).astype(np.intp)
        tables = np.zeros((J, GROUPS + 1, CODES))
        wide = np.ldexp(codes, bits - values.exponent).reshape(J, GROUPS, CODES)
        tables[:, :GROUPS] = np.trunc(np.clip(wide, -float(1 << bits), float(1 << bits)))
        left, right = columns.reshape(m, 2).T
        products = tables[left][:, :, None, :, None] * tables[right][:, None, :, None, :]
        products *= (left != right)[:, None, None, None, None] * 2.0**-bits
        np.trunc(products, out=products)
        whole = products.reshape(-1, ENTRIES)
        return cls(scales[0], scales[1], scores, columns.reshape(m, 2), whole, functionals.reshape(-1, features))

    def places_of(self, rows: Ints) -> NDArray[np.intp]:
        """Return each record's row of ``products`` for every pair, ``(n, m)``."""
        n, m, several = len(rows), len(self.pairs), GROUPS + 1
        groups = (rows @ self.functionals.T).reshape(n, -1, several).argmax(axis=2)
        left, right = self.pairs.T
        return np.asarray(groups[:, left] * several + groups[:, right] + np.arange(m) * several**2)

    @cached_property
    def scored(self) -> Ints:
        """Scores of every row of ``products``, ``(25 m,)``."""
        own = self.scores[self.functionals.shape[1] + 1 :].reshape(-1, ENTRIES)
        return np.asarray((self.products * np.repeat(own, (GROUPS + 1) ** 2, axis=0)).sum(axis=1))

    @cached_property
    def squares(self) -> Ints:
        """Squared length of every row of ``products``, ``(25 m,)``."""
        return np.asarray(np.square(self.products).sum(axis=1))


class _Keyed(NamedTuple):
    """Published values, equal by digest."""

    digest: bytes
    values: Values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@lru_cache(2)  # every tile of a round reads the same published values
def _parts(module: PairCodes, features: int, keyed: _Keyed, bits: int) -> _Parts:
    return _Parts.of(module, features, keyed.values, bits)


def codes_in(schema: Any) -> PairCodes | None:
    """Return the module of pairs that a round's schema names, if any."""
    word = str(getattr(schema, "module", None))
    return pairs(word.partition("/")[2]) if word.startswith(f"{_KIND}/") else None


def pairs(size: str) -> PairCodes:
    """Return the module that ``pairs/J-m`` names."""
    match = _SIZE.fullmatch(size)
    if match is None:
        raise SchemaError(f"module pairs/J-m takes numbers of columns and of pairs, such as 19-10, got {size!r:.40}")
    return PairCodes(*map(int, match.groups()))
