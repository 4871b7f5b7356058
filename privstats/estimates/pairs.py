"""Choose pairs of columns by their released sums, and filter their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from privstats.estimates.denoise import Array
from privstats.estimates.filter_bank import Filter, advanced
from privstats.estimates.recipes import CAUTION
from privstats.estimates.softmax import MOMENTUM

MOST_PAIRS = 10
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


def passing(sums: PairSums, sizes: Array) -> NDArray[np.intp]:
    """Return the pairs with an effect beyond noise and chance, the surest first, at most ten.

    A pair passes if its sum of squares over their variances, at the first code of both columns, the first two, or all,
    has a probability below .01 over three times the number of pairs (chi-squared).

    Args:
        sizes: of each pair's codes, w_a w_b, ``(m, 3, 3)``; 0 for a code that a column lacks.

    Example:
        >>> from privstats.estimates.pairs import PairSums, passing
        >>> gradient = np.zeros((2, 3, 3))
        >>> gradient[1, 0, 0] = 0.1
        >>> passing(PairSums(gradient, noise=0.01, sampled=1e-5, scale=0.3), np.ones((2, 3, 3))).tolist()
        [1]
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


def started(sums: PairSums, sizes: Array, ridge: float) -> Filter:
    """Return the filter of chosen pairs after the sums that chose them, ``(2, 9 m)``.

    Example:
        >>> from privstats.estimates.pairs import PairSums, started
        >>> sums = PairSums(np.full((1, 3, 3), 0.1), noise=0.01, sampled=1e-5, scale=0.3)
        >>> state = started(sums, np.ones((1, 3, 3)), ridge=0.0)
        >>> state.weights.shape, bool((state.weights[1] < 0).all())  # against the gradient
        ((2, 9), True)
    """
    empty = np.zeros((2, sizes.size))
    return refined(Filter(empty, np.full(sizes.size, _PRIOR_VARIANCE), empty), sums, sizes, ridge)


def refined(state: Filter, sums: PairSums, sizes: Array, ridge: float) -> Filter:
    """Return the filter of chosen pairs after another round, like those of a softmax."""
    shape = np.maximum(np.square(sizes.ravel()), _LEAST_WEIGHT**2)
    gradient = np.stack([-sums.gradient.ravel(), sums.gradient.ravel()]) * (sizes.ravel() > 0)
    return advanced(
        state,
        gradient + ridge * shape * state.weights,
        2 * sums.noise**2,
        (sums.scale + ridge) * shape,
        caution=CAUTION,
        momentum=MOMENTUM,
        centred=True,
    )


def chosen(sums: PairSums, places: Any) -> PairSums:
    """Return the sums of some pairs."""
    return replace(sums, gradient=sums.gradient[places])
