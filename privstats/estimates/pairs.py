"""Choose pairs of columns by their released sums, and filter their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privstats.estimates.denoise import Array
from privstats.estimates.filter_bank import Filter, advanced
from privstats.estimates.recipes import CAUTION
from privstats.estimates.softmax import MOMENTUM

MOST_PAIRS = 12
"""Pairs that may pass: no triangular number, so that later rounds never look like the session for all pairs."""
_FALSE_PAIRS = 0.01
"""Expected number of pairs that noise and chance alone let pass, at most."""
_PRIOR_VARIANCE = 0.3
_LEAST_WEIGHT = 1e-3  # a code that a column lacks has no curvature, and no gradient but noise


@dataclass(frozen=True, eq=False)
class PairSums:
    """Released gradient of a model by the codes of pairs, per record, ``(m, 3, 3)``.

    Attributes:
        gradient: the mean of ``(p - y) z_j (x) z_k``.
        noise: the noise's standard deviation in an entry.
        sampled: the variance that chance gives an entry of codes of size 1.
        scale: the mean of ``2 p (1 - p)``.
    """

    gradient: Array
    noise: float
    sampled: float
    scale: float

    @classmethod
    def of(cls, released: Array, sigma: float, beta: float, records: float, scale: float) -> PairSums:
        """Return the sums of a round.

        Args:
            released: the sum of ``sqrt(2) (p - y) beta codes``, ``(9 m,)``.
            sigma, records: its noise, and the noisy number of records.
            scale: ``2 p (1 - p)``, the released stand-in for the mean square of ``sqrt(2) (p - y)``.
        """
        real = released.reshape(-1, 3, 3) / (np.sqrt(2) * beta * records)
        return cls(real, sigma / (np.sqrt(2) * beta * records), scale / 2 / records, scale)

    def at(self, places: NDArray[np.intp]) -> PairSums:
        """Return the sums of some pairs."""
        return replace(self, gradient=self.gradient[places])


def passing(sums: PairSums, sizes: Array) -> NDArray[np.intp]:
    """Return the pairs with an effect beyond noise and chance, the surest first, at most twelve.

    A pair passes if its sum of squares over their variances, at the first code of both columns, the first two, or all,
    has a probability below .01 over three times the number of pairs (chi-squared).

    Args:
        sizes: of each pair's codes, w_a w_b, ``(m, 3, 3)``; 0 for a code that a column lacks.
    """
    variance = sums.noise**2 + sums.sampled * np.square(sizes)
    squares = np.where(sizes > 0, np.square(sums.gradient) / variance, 0.0)
    chances = []
    for reach in range(1, 4):
        part, codes = (each[:, :reach, :reach].sum(axis=(1, 2)) for each in (squares, sizes > 0))
        chances.append(np.where(codes > 0, chdtrc(np.maximum(codes, 1), part), 1.0))
    best = np.min(chances, axis=0)
    order = np.lexsort((-squares.sum(axis=(1, 2)), best))
    return np.asarray([place for place in order[:MOST_PAIRS] if best[place] < _FALSE_PAIRS / (3 * len(best))], np.intp)


@dataclass(frozen=True, eq=False)
class PairShape:
    """Public and released facts about chosen pairs.

    Attributes:
        sizes: of the codes, ``(m, 3, 3)``.
        crowd: how many of the pairs move together with each, itself included, ``(m,)``.
        ridge: the recipe's.
    """

    sizes: Array
    crowd: Array
    ridge: float

    @property
    def squares(self) -> Array:
        """Mean squares of the codes, ``(9 m,)``."""
        return np.asarray(np.maximum(np.square(self.sizes.ravel()), _LEAST_WEIGHT**2))

    @property
    def curvature(self) -> Array:
        """A diagonal matrix above the codes' second moments, ``(9 m,)``: steps of collinear pairs add up."""
        return np.asarray(self.squares * np.repeat(self.crowd, self.sizes[0].size))


def crowds(alignment: Array, pairs: NDArray[np.intp]) -> Array:
    """Return how many pairs move together with each: the sum over pairs of their columns' alignments' products."""
    one, other = pairs.T
    straight = alignment[np.ix_(one, one)] * alignment[np.ix_(other, other)]
    crossed = alignment[np.ix_(one, other)] * alignment[np.ix_(other, one)]
    return np.asarray(np.maximum(np.maximum(straight, crossed).sum(axis=1), 1.0))


def walked(sums: Sequence[PairSums], shape: PairShape) -> list[Filter]:
    """Return the filter of chosen pairs after each session, ``(2, 9 m)``, moved like that of a softmax.

    Args:
        sums: of the session that chose the pairs, then of each later round.
        shape: the pairs' codes.
    """
    sizes = shape.sizes
    here, empty = sizes.ravel() > 0, np.zeros((2, sizes.size))
    states = [Filter(empty, np.full(sizes.size, _PRIOR_VARIANCE), empty)]
    for round_ in sums:
        gradient = np.stack([-round_.gradient.ravel(), round_.gradient.ravel()]) * here
        states.append(
            advanced(
                states[-1],
                gradient + shape.ridge * shape.squares * states[-1].weights,
                2 * round_.noise**2,
                (round_.scale + shape.ridge) * shape.curvature,
                caution=CAUTION,
                momentum=MOMENTUM,
                centred=True,
            )
        )
    return states[1:]


def under_other_noise(sums: Sequence[PairSums], shape: PairShape, fresh: Callable[[], Array]) -> list[PairSums]:
    """Return the sums with fresh noise, each moved to the point that the earlier ones would have led to.

    Args:
        fresh: samples of standard normal noise, ``(m, 3, 3)``.
    """
    before, others = walked(sums, shape), list[PairSums]()
    for place, each in enumerate(sums):
        moved: Array | float = 0.0
        if place:
            there = walked(others, shape)[-1].weights[1] - before[place - 1].weights[1]
            moved = (each.scale * shape.squares * there).reshape(shape.sizes.shape)
        others.append(replace(each, gradient=each.gradient + moved + each.noise * fresh()))
    return others
