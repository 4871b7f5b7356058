"""Corners of the path from a sum to a release where one record could decide: wrap, plausibility, minimum count.

Each case is a pair of worlds that differ in one record and are exactly at an edge. If the decision is taken after the
noise, no attacker can distinguish them beyond the promise. The module gives outcomes; ``canary`` turns them into
bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import RingVector
from privstats.moments import Moments
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.audits.target import Target, moments_of

_MOST_TRIALS = 500
_PILOT = 0.1

Vector: TypeAlias = NDArray[np.int64]
Look: TypeAlias = Callable[[Release], bool]


@dataclass(frozen=True, eq=False)
class Edge:
    """Scores of an attacker in the two worlds of one case, higher meaning that the record is present."""

    name: str
    out: NDArray[np.float64]
    present: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Case:
    """Exact sums without and with the record, and what the attacker looks at in a release of them."""

    name: str
    absent: Vector
    present: Vector
    look: Look


def edge_cases(target: Target, shift: NDArray[np.int64], rng: Generator, trials: int) -> list[Edge]:
    """The cases that this plan has.

    An abort is an outcome like any other: it and its sentence are public, so its frequency is compared between the
    worlds. Both worlds of every case are laid over the same drawn contributions; central noise is drawn anew for each
    release.

    Args:
        shift: what one unit moves in the flat vector.
        trials: releases in either world; at most 500 are made.
    """
    cases = [*_at_the_bounds(target, shift), *_at_the_minimum(target)]
    worlds = [target.plan.ring.encode(world) for case in cases for world in (case.absent, case.present)]
    looks = [case.look for case in cases for _ in range(2)]
    seen = [_outcomes(target, worlds, looks, rng) for _ in track("releasing", range(min(trials, _MOST_TRIALS)))]
    columns = list(zip(*seen, strict=True))
    return [_scores(case.name, *columns[2 * place : 2 * place + 2]) for place, case in enumerate(cases)]


def _at_the_bounds(target: Target, shift: Vector) -> list[_Case]:
    """A malicious client holds one entry at a bound, and the unit pushes it over, or not.

    ``wrap``: the largest number of the ring; ``plausible``: the largest that is not refused.
    """
    segments = list(zip(target.layout.slices, target.plan.headroom, strict=True))
    place, room = next((each for each in segments if each[0].start > 0), segments[0])
    at = place.start + int(np.argmax(shift[place]))
    bounds = {"wrap": 2 ** (room.bits - 1) - 1, "plausible": room.plausible}
    cases = []
    for name, bound in bounds.items():
        absent = np.zeros(target.layout.size, np.int64)
        absent[at] = bound
        cases.append(_Case(name, absent, absent + shift, lambda release: bool(release.vector[at] < 0)))
    return cases


def _at_the_minimum(target: Target) -> list[_Case]:
    """Class 0 holds one record less than the minimum count, or exactly it."""
    least = target.plan.min_count
    if not least:
        return []
    absent, present = (_with_counts(target, count) for count in (least - 1, least))
    return [_Case("min count", absent, present, lambda release: 0 in release.suppressed)]


def _with_counts(target: Target, count: int) -> Vector:
    """The exact sum of a cohort that holds so many records of class 0, all of them zero vectors."""
    parts = np.full(target.min_survivors, count // target.min_survivors)
    parts[: count % target.min_survivors] += 1
    return np.asarray(np.sum([target.exact(_zeros(target, int(part))) for part in parts], axis=0))


def _zeros(target: Target, count: int) -> Moments:
    return moments_of(target.schema, np.zeros((count, target.schema.features)), np.zeros(count, np.int64))


def _outcomes(target: Target, worlds: Sequence[RingVector], looks: Sequence[Look], rng: Generator) -> list[Hashable]:
    """The attacker's view of every world under one draw of the contributions."""
    drawn = target.sum_of([target.empty] * target.worst_noise, rng)
    seen: list[Hashable] = []
    for world, look in zip(worlds, looks, strict=True):
        total = target.plan.ring.zeros()
        total.add(drawn)
        total.add(world)
        release = target.seen(total, rng, minimum=True)
        seen.append(look(release) if isinstance(release, Release) else release)
    return seen


def _scores(name: str, out: Sequence[Hashable], present: Sequence[Hashable]) -> Edge:
    """1 for the outcomes that are more frequent with the record on the trials that choose the threshold, else 0."""
    pilot = max(1, int(_PILOT * len(out)))
    kinds = set(out[:pilot]) | set(present[:pilot])
    telling = {kind for kind in kinds if present[:pilot].count(kind) > out[:pilot].count(kind)}
    return Edge(name, *(np.array([float(kind in telling) for kind in world]) for world in (out, present)))
