"""How far each released number may be off by the plan alone: by the noise, and by what the averages of persons lose."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from privstats.dp import Privacy
from privstats.release import Release

__all__ = ["reckoned_sigma"]

_SURE = 3.0


def reckoned_sigma(release: Release) -> Mapping[str, float]:
    """Standard deviation by letter, in real units, that an interval reckons with beside chance.

    Of records it is the noise. The average of a person is cut toward zero to a whole step, so n persons lose up to n
    steps of every entry, all in one direction: that does not average out, and grows faster than the error. Here it
    counts as a deviation of n steps. An interval of a normal estimate with variance s^2, off by at most b, misses no
    more often with s^2 + b^2 than with s^2 where b is 0, for a level of 5 % or less.

    Args:
        release: of records, or of averages of persons.

    Example:
        >>> schema, cohort = ps.ClassSchema(2, 2, "NA", 1.0), ps.Cohort(2, 2, 100)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=cohort, privacy=privacy)
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> ps.inference.reckoned_sigma.reckoned_sigma(release) == release.sigma
        True
    """
    privacy = release.plan.privacy
    if not isinstance(privacy, Privacy) or not privacy.averaged:
        return release.sigma
    schema, persons = release.plan.schema, _persons(release)
    return {letter: math.hypot(sigma, persons / schema.scale_of(letter)) for letter, sigma in release.sigma.items()}


def _persons(release: Release) -> float:
    """No fewer than the persons in the sums: the counts beyond their noise, where there are any, or the plan's most."""
    most = float(release.plan.cohort.max_records)
    counts = next((letter for letter in ("N", "T") if letter in release.sigma), None)
    if counts is None:
        return most
    cells = np.asarray(getattr(release.moments, counts), np.float64).reshape(-1)
    return min(most, max(float(cells.sum()), 0.0) + _SURE * release.sigma[counts] * math.sqrt(cells.size))
