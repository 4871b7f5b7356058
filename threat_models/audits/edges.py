"""The corners of the path from a sum to a release where a single record could decide: minimum count and centre lift.

Each case is a pair of worlds that differ in one record and lie exactly on an edge. Where the decision is taken after
the noise, nobody can tell them apart beyond the promise. Outcomes only; ``canary`` turns them into bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import RingVector
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.audits.target import Moments, Target, moments_of

__all__ = ["Edge", "edge_cases"]

_MOST_TRIALS = 1000
_PILOT = 0.1
_ABORTED = 2

Outcomes: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Edge:
    """Scores of an attacker in the two worlds of one case, higher meaning that the record is present."""

    name: str
    out: NDArray[np.float64]
    present: NDArray[np.float64]


Look: TypeAlias = Callable[[Release], int]


def edge_cases(target: Target, shift: NDArray[np.int64], rng: Generator, trials: int) -> list[Edge]:
    """The cases that this plan has.

    Args:
        shift: what one unit moves in the flat vector.
        trials: releases in either world; at most 1000 are made.
    """
    count = min(trials, _MOST_TRIALS)
    cases = [_case(target, "wrap", *_at_the_wrap(target, shift), rng, count)]
    if target.plan.min_count:
        cases.append(_case(target, "min count", *_at_the_minimum(target), rng, count))
    return cases


def _at_the_wrap(target: Target, shift: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], Look]:
    """A malicious client holds one entry at the largest number of the ring; the unit pushes it over, or not."""
    first = next(place for place in target.layout.slices if place.start > 0)
    at = first.start + int(np.argmax(shift[first]))
    bits = np.repeat([b for _, b in target.plan.ring.segments], [n for n, _ in target.plan.ring.segments])
    absent = np.zeros(target.layout.size, np.int64)
    absent[at] = 2 ** (int(bits[at]) - 1) - 1
    return absent, absent + shift, lambda release: int(release.vector[at] < 0)


def _at_the_minimum(target: Target) -> tuple[NDArray[np.int64], NDArray[np.int64], Look]:
    """Class 0 holds one record less than the minimum count, or exactly it."""
    least = target.plan.min_count
    worlds = [_with_counts(target, count) for count in (least - 1, least)]
    return worlds[0], worlds[1], lambda release: int(0 in release.suppressed)


def _with_counts(target: Target, count: int) -> NDArray[np.int64]:
    """The exact sum of a cohort that holds so many records of class 0, all of them zero vectors."""
    parts = np.full(target.min_survivors, count // target.min_survivors)
    parts[: count % target.min_survivors] += 1
    return np.asarray(np.sum([target.exact(_zeros(target, int(part))) for part in parts], axis=0))


def _zeros(target: Target, count: int) -> Moments:
    return moments_of(target.schema, np.zeros((count, target.schema.features)), np.zeros(count, np.int64))


def _case(
    target: Target,
    name: str,
    absent: NDArray[np.int64],
    present: NDArray[np.int64],
    look: Look,
    rng: Generator,
    trials: int,
) -> Edge:
    seen = [
        np.array([_outcome(target, total, world, look, rng) for total in target.sums(trials, rng)])
        for world in (target.plan.ring.encode(absent), target.plan.ring.encode(present))
    ]
    telling = _telling(*seen)
    return Edge(name, *(np.isin(outcomes, telling).astype(np.float64) for outcomes in seen))


def _outcome(target: Target, total: RingVector, world: RingVector, look: Look, rng: Generator) -> int:
    total.add(world)
    release = target.seen(total, rng, threshold=True)
    return _ABORTED if release is None else look(release)


def _telling(out: Outcomes, present: Outcomes) -> list[int]:
    """The outcomes that are more frequent with the record, on the trials that choose the threshold."""
    pilot = max(1, int(_PILOT * len(out)))
    kinds = (0, 1, _ABORTED)
    return [kind for kind in kinds if (present[:pilot] == kind).sum() > (out[:pilot] == kind).sum()]
