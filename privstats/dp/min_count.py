"""The minimum count of a class, applied to the noisy counts only.

A class below it is suppressed in the release. The exact counts are never read, so the decision costs no privacy; how
often noise makes it err is known in advance. The step runs after the noise and before the release.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from privstats.dp.arguments import check_number
from privstats.encoding import Layout
from privstats.schema import COUNT_SCALE

__all__ = ["destinations", "doubtful_counts", "drop_probability", "noise_copies", "suppressed", "without_rare"]


def without_rare(
    layout: Layout, vector: NDArray[np.int64], min_count: float, parents: Mapping[int, int]
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """A noisy class vector without the sums of rare classes, and which classes these are.

    The sums of a rare class move to its declared parent (:func:`destinations`) or are dropped; pooled statistics stay.

    Args:
        layout: of a class schema: its first segment holds the counts, one per class.
        vector: lifted, with all its noise; int64, flat, grid steps. It is not changed.
        min_count: the fewest records, at least 0; 0 keeps every class, also one whose noisy count is negative.
        parents: for a class, the class that takes in its sums.

    Example:
        >>> schema = ps.ClassSchema(3, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, np.array([[0.6, 0.8]] * 5), np.array([0, 0, 1, 1, 2]))
        >>> vector, rare = ps.dp.without_rare(ps.encoding.layout_of(schema), ps.encoding.flatten(moments), 2, {})
        >>> rare, ps.encoding.to_real(schema, vector).N.tolist()
        ((2,), [2.0, 2.0, 0.0])
    """
    rare = suppressed(vector[layout.slices[0]] / COUNT_SCALE, min_count) if min_count else ()
    out = vector.copy()
    for segment, place in zip(layout.segments, layout.slices, strict=True):
        if segment.statistic == "B":
            continue
        table = out[place].reshape(layout.segments[0].size, -1)
        for child, parent in destinations(rare, parents).items():
            if parent is not None:
                table[parent] += table[child]
            table[child] = 0
    return out, rare


def suppressed(noisy_counts: NDArray[np.floating[Any]], min_count: float) -> tuple[int, ...]:
    """Classes whose noisy count (records, shape ``(C,)``) is below ``min_count``.

    Guarantee:
        Post-processing of the noisy counts: it adds nothing to their cost, under any unit and adjacency.

    Example:
        >>> ps.dp.suppressed(np.array([103.2, 7.9, 55.0]), min_count=50)
        (1,)
    """
    return tuple(int(label) for label in np.flatnonzero(np.asarray(noisy_counts) < min_count))


def drop_probability(count: float, min_count: float, sigma: float, *, laplace: bool = False) -> float:
    """P(a class of ``count`` records is suppressed) = Phi((min_count - count) / sigma).

    A false drop for count >= min_count; one minus it is a false keep below. ``sigma`` is the noise *in the release* on
    a count, in records: ``release.sigma["N"]`` or, before there is one, ``noise.released_sigma(survivors)["N"]``. In
    the distributed and the local model it grows with the survivors; the guaranteed ``noise.sigma["N"]`` counts the
    fewest and understates the errors. 0 means no noise. ``laplace``: the noise of a plan with delta = 0, whose law
    function takes the place of Phi.

    Raises:
        PlanError: an argument is out of range.

    Example:
        >>> ps.dp.drop_probability(count=50, min_count=50, sigma=4.0)
        0.5
        >>> round(ps.dp.drop_probability(count=60, min_count=50, sigma=4.0), 4)
        0.0062
    """
    check_number("count", count, "a finite number", -math.inf, math.inf, ends="()")
    _check(min_count, sigma)
    if sigma == 0:
        return float(count < min_count)
    place = (min_count - count) / sigma
    return _laplace(place) if laplace else float(ndtr(place))


def doubtful_counts(
    min_count: float, sigma: float, probability: float = 0.01, *, laplace: bool = False
) -> tuple[float, float]:
    """The range of counts in which noise decides whether a class is kept or dropped.

    A class with fewer records than the first is kept with less than ``probability``, one with more than the second is
    dropped with less: min_count -+ sigma Phi^-1(1 - probability), with ``sigma`` and ``laplace`` as in
    :func:`drop_probability`.

    Raises:
        PlanError: an argument is out of range.

    Example:
        >>> low, high = ps.dp.doubtful_counts(min_count=50, sigma=4.0)
        >>> round(low, 1), round(high, 1)
        (40.7, 59.3)
    """
    _check(min_count, sigma)
    check_number("probability", probability, "between 0 and 1/2", 0, 0.5, ends="()")
    reach = -sigma * (math.log(2 * probability) / math.sqrt(2) if laplace else float(ndtri(probability)))
    return min_count - reach, min_count + reach


def _laplace(place: float) -> float:
    """P(L <= place) for Laplace noise of deviation 1."""
    tail = math.exp(-math.sqrt(2) * abs(place)) / 2
    return tail if place < 0 else 1 - tail


def _check(min_count: float, sigma: float) -> None:
    check_number("min_count", min_count, "a finite number", -math.inf, math.inf, ends="()")
    check_number("sigma", sigma, "at least 0", 0)


def destinations(rare: Collection[int], parents: Mapping[int, int]) -> dict[int, int | None]:
    """The class that receives the sums of each suppressed class: its declared parent, or None.

    A parent that is itself suppressed receives nothing, because its own sums are dropped too.

    Example:
        >>> ps.dp.destinations(rare=[2, 3], parents={2: 0})
        {2: 0, 3: None}
    """
    return {
        child: parent if (parent := parents.get(child)) is not None and parent not in rare else None
        for child in sorted(rare)
    }


def noise_copies(classes: int, rare: Collection[int], parents: Mapping[int, int]) -> NDArray[np.int64]:
    """How many classes' noise each class carries after the merge, shape ``(classes,)``.

    1 for an untouched class, 1 + its merged children for a parent, 0 for a suppressed class: the noise variance of a
    class's N, A, S and D is this many times the statistic's.

    Example:
        >>> ps.dp.noise_copies(4, rare=[2, 3], parents={2: 0}).tolist()
        [2, 1, 0, 0]
    """
    copies = np.ones(classes, np.int64)
    for child, parent in destinations(rare, parents).items():
        copies[child] = 0
        if parent is not None:
            copies[parent] += 1
    return copies
