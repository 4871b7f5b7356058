"""Compute ratios of sums from an ``Effect`` course's releases.

Disjoint subgroups' sums and noise variances add up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from privstats.course.effect import LOOK, arm_sums, assigned_sums, published_values
from privstats.errors import ReleaseError
from privstats.estimates.effect import ArmSums
from privstats.inference.releases import present_releases, reckoned_sigma, require_gaussian
from privstats.inference.treatment_effects.balance import WeightedSums
from privstats.inference.treatment_effects.heterogeneity import GroupSums
from privstats.inference.treatment_effects.nuisances import Nuisances, nuisances_of, nuisances_of_missing
from privstats.inference.treatment_effects.ratios import RatioOfMeans, RatioOfSums
from privstats.kinds import EffectSchema, RidgeSchema
from privstats.kinds.effect.checks import ratio_cap
from privstats.release import Release
from privstats.schema import narrowed
from privstats.schema.base import INFLUENCES
from privstats.schema.public_values import Published, Values

_LIGHT = 0.4  # standard errors that one record may weigh, where noise does not hide the skew of rare outcomes
_QUIET = 0.6  # standard deviations of the noise, in influences of one record, below which it does not
_RARE = 0.2  # probability of an arm below which it does not either

Ratio = TypeVar("Ratio", RatioOfSums, RatioOfMeans)


@dataclass(frozen=True)
class InfluenceSums:
    """Noisy sums of one outcome over some blocks of records.

    Attributes:
        W: weights, relative to the largest; n in a trial.
        t, s: influences and 1 minus their squares, relative to the largest possible.
        sigma_n, sigma_W, sigma_e: noise standard deviations.
        w: for a ratio, 1 minus the squared weights.
    """

    n: float
    W: float
    t: float
    s: float
    sigma_n: float
    sigma_W: float
    sigma_e: float
    w: float = math.nan

    @classmethod
    def of(cls, release: Release, place: int = 0, blocks: Sequence[int] | None = None) -> InfluenceSums:
        """Build sums over blocks; None: all."""
        moments, letter = release.moments, INFLUENCES[place]
        chosen = slice(None) if blocks is None else list(blocks)
        n = np.reshape(moments.N, -1)[chosen]
        weights = n if moments.W is None else np.reshape(moments.W, (len(np.reshape(moments.N, -1)), -1))[chosen]
        t, s = np.reshape(getattr(moments, letter), (-1, 2))[chosen].sum(axis=0)
        noise = {name: float(reckoned_sigma(release).get(name, 0.0)) * math.sqrt(len(n)) for name in ("N", "W", letter)}
        sigma_W = noise["N"] if moments.W is None else noise["W"]
        below = float(weights[:, 1].sum()) if weights.ndim == 2 and weights.shape[1] == 2 else math.nan
        first = float((weights if weights.ndim == 1 else weights[:, 0]).sum())
        return cls(float(n.sum()), first, float(t), float(s), noise["N"], sigma_W, noise[letter], below)


@dataclass(frozen=True, eq=False)
class CourseSums:
    """One course's releases, checked to belong together, with published lines."""

    schema: EffectSchema
    present: tuple[Release, ...]
    lines: tuple[Values, ...]

    @property
    def last(self) -> Release:
        """Release of the last session."""
        return self.present[-1]

    @cached_property
    def arms(self) -> tuple[ArmSums, ...] | None:
        """Outcome session's sums by arm, per outcome, or None."""
        if len(self.present) < 2:
            return None
        return tuple(arm_sums(self.schema, self.present[-2], place) for place in range(self.schema.outcomes))

    @cached_property
    def assigned(self) -> ArmSums | None:
        """All records' sums by arm, those without an outcome included."""
        if self.schema.missing:
            return assigned_sums(self.schema, self.present[0])
        return None if self.arms is None else self.arms[0]

    def nuisances(self, place: int) -> Nuisances | None:
        """Return the variance that nuisances may add, or None."""
        if not self.schema.fits_propensity or self.arms is None or self.assigned is None:
            return None
        rounds, outcome = self.present[:-2], self.present[-2]
        if self.schema.missing:
            records = sum(self.assigned.records)
            return nuisances_of_missing(self.schema, rounds, outcome, self.arms[0], self.lines[0], records)
        return nuisances_of(self.schema, self.present[:-2], self.present[-2], self.arms, self.lines, place)


def course_sums(releases: Sequence[Release | None], *, look: bool = False) -> CourseSums:
    """Return the sums of ordered releases of one course; those of a look only to a reader that counts looks."""
    present = _present(releases)
    if not look and any(map(is_look, present)):
        raise ReleaseError(
            "this course has interim looks, at which usual intervals miss too often: read all its releases with "
            "inference.looks(releases, course), or privstats table --course"
        )
    schema = _schema(present[-1])
    return CourseSums(schema, tuple(present), _lines(schema, present))


def is_look(release: Release) -> bool:
    """Return whether a release is of an interim look, or of the last look of such a course."""
    return release.position is not None and release.position.phase.startswith(LOOK)


def _present(releases: Sequence[Release | None]) -> list[Release]:
    present = present_releases(releases)
    if not present:
        raise ReleaseError("no session has a release, so there is nothing to read; run the course again")
    for release in present:
        require_gaussian(release)
    return present


def _schema(last: Release) -> EffectSchema:
    schema = last.plan.schema
    if isinstance(schema, RidgeSchema):
        raise ReleaseError("the last session of the course has no release, so there is no effect to read")
    text = f"this reader reads the releases of an Effect course, and the last measures a {type(schema).__name__}"
    return narrowed(schema, EffectSchema, ReleaseError(text))


def _lines(schema: EffectSchema, present: Sequence[Release]) -> tuple[Values, ...]:
    before, last = present[:-1], present[-1]
    if not schema.fits_propensity and len(before) > 1:
        raise ReleaseError(f"a trial's course has two sessions, got {len(present)} releases; pass those of one course")
    if schema.fits_propensity and len(before) < 2:
        raise ReleaseError("pass the releases of the propensity, of the outcome models, and the last, in order")
    own, held = published_values(schema, before), last.plan.published
    values = own
    if held is not None and held.values is not None and all(held.values[name].near(own[name]) for name in own):
        values = dict(held.values)
    elif held is None or held.values is not None or held.sha256 != Published.of(own).sha256:
        raise ReleaseError(
            "the last release used other outcome models, or another propensity, than follow from the earlier ones: "
            "the releases are out of order, of different courses, or some are missing"
        )
    return tuple(values[name] for name in schema.lines)


def weighted_sums(last: Release) -> WeightedSums | None:
    """Return arms' weighted columns, if released."""
    schema = narrowed(last.plan.schema, EffectSchema, ReleaseError("this release measures no effect"))
    if not schema.balance:
        return None
    every, blocks = InfluenceSums.of(last), math.sqrt(schema.blocks)
    unit = schema.arm_weight * schema.clip_norm
    in_population = schema.probability is None
    weight = schema.largest_weight if in_population else 1.0
    return WeightedSums(
        difference=unit * np.reshape(last.moments.b, (-1, schema.width)).sum(axis=0),
        total=weight * (every.W if in_population else every.n),
        sigma=unit * float(reckoned_sigma(last).get("b", 0.0)) * blocks,
        sigma_total=weight * (every.sigma_W if in_population else every.sigma_n),
    )


def groups_of(read: CourseSums, place: int = 0, nuisance: float = 0.0) -> GroupSums:
    """Return groups' sums; ``nuisance`` is their common variance."""
    schema, line = read.schema, read.lines[place]
    blocks = [InfluenceSums.of(read.last, place, [block]) for block in range(schema.blocks)]
    C, unit, one = schema.unit(line), schema.largest_weight, blocks[0]
    return GroupSums(
        offset=schema.guess(line) * schema.half,
        S=C * np.array([each.t for each in blocks]),
        W=unit * np.array([each.W for each in blocks]),
        second=C**2 * np.array([each.n - each.s for each in blocks]),
        records=np.array([each.n for each in blocks]),
        centred=schema.estimand != "overlap",
        noise=(C * one.sigma_e) ** 2,
        deviation=C**2 * math.hypot(one.sigma_e, one.sigma_n),
        sigma_W=unit * one.sigma_W,
        common=nuisance,
    )


def ratio_of(
    schema: EffectSchema, sums: InfluenceSums, line: Values, *, nuisance: float = 0.0, fitted: bool
) -> RatioOfSums | RatioOfMeans:
    """Return S / W of one outcome, with a variance that allows for few heavy records (:func:`_widened`)."""
    if schema.measure:
        return _widened(schema, sums, schema.unit(line), lambda each: _ratio_of_means(schema, each, line, fitted))
    return _widened(schema, sums, schema.unit(line), lambda each: _ratio_of_sums(schema, each, line, nuisance, fitted))


def _widened(schema: EffectSchema, sums: InfluenceSums, unit: float, ratio: Callable[[InfluenceSums], Ratio]) -> Ratio:
    """Return the ratio, widened where one record could weigh more than .4 of a standard error.

    The mean of a few heavy records is skewed, and their estimated variance varies as much. Noise of .6 of the heaviest
    influence hides that, unless an arm is rare. With less noise the sums are read as if they had that much, or the
    standard error counts as 1 / .4 of the heaviest influence, whichever is narrower. So less noise never widens an
    interval beyond that of more.
    """
    own, heavy = ratio(sums), (unit / _LIGHT) ** 2
    rarest = 0.5 if schema.probability is None else min(schema.min_chances) * (schema.trim or 1.0)
    loud = rarest >= _RARE
    if own.variance >= heavy or (loud and sums.sigma_e >= _QUIET):
        return own
    wide = own.with_variance(heavy)
    if not loud:
        return wide
    louder = replace(sums, sigma_e=_QUIET, sigma_W=max(sums.sigma_W, _QUIET) if schema.measure else sums.sigma_W)
    return min(wide, own.as_wide_as(ratio(louder)), key=lambda each: each.variance)


def _ratio_of_sums(
    schema: EffectSchema, sums: InfluenceSums, line: Values, nuisance: float, fitted: bool
) -> RatioOfSums:
    """Return S / W of one outcome, with its variance.

    Second moments are at least their own noise, which counts by Satterthwaite's degrees of freedom.
    """
    C, parameters = schema.unit(line), (4 if schema.missing else 3) * schema.width if fitted else 1
    degrees, S = max(sums.W - parameters, 1.0), C * sums.t
    second = _second_moment(schema, sums, C)
    deviation, noise = C**2 * math.hypot(sums.sigma_e, sums.sigma_n), (C * sums.sigma_e) ** 2
    spread = max(second, deviation) * max(sums.W, 1.0) / degrees
    variance = spread + noise + nuisance
    inverse = 1 / degrees + (deviation**2 / (2 * variance**2) if variance else 0.0)
    unit, offset = schema.largest_weight, schema.guess(line) * schema.half
    return RatioOfSums(offset, S, sums.W * unit, variance, noise, sums.sigma_W * unit, 1 / inverse)


def _ratio_of_means(schema: EffectSchema, sums: InfluenceSums, line: Values, fitted: bool) -> RatioOfMeans:
    C, D, n = schema.unit(line), schema.largest_weight, max(sums.n, 1.0)
    degrees = max(n - (3 * schema.width if fitted else 1), 1.0)
    S, W = C * sums.t, D * sums.W
    deviation, below = (
        unit**2 * math.hypot(noise, sums.sigma_n) for unit, noise in ((C, sums.sigma_e), (D, sums.sigma_W))
    )
    spread = max(C**2 * (sums.n - sums.s) - S**2 / n, deviation) * n / degrees
    noise = (C * sums.sigma_e) ** 2
    inverse = 1 / degrees + (deviation**2 / (2 * (spread + noise) ** 2) if spread else 0.0)
    return RatioOfMeans(
        offset=schema.guess(line),
        S=S,
        W=W,
        spread=spread,
        below=max(D**2 * (sums.n - sums.w) - W**2 / n, below) * n / degrees,
        noise=noise,
        sigma_W=D * sums.sigma_W,
        degrees=1 / inverse,
    )


def difference_of(schema: EffectSchema, sums: InfluenceSums, *, fitted: bool) -> RatioOfSums:
    """Return the means' difference from a ratio's sums at a guess of 1."""
    C = 2 * schema.half * ratio_cap(*schema.min_chances, 1.0)
    return _widened(schema, sums, C, lambda each: _difference(each, C, 3 * schema.width if fitted else 1))


def _difference(sums: InfluenceSums, C: float, parameters: int) -> RatioOfSums:
    n = max(sums.n, 1.0)
    degrees, S = max(n - parameters, 1.0), C * sums.t
    deviation, noise = C**2 * math.hypot(sums.sigma_e, sums.sigma_n), (C * sums.sigma_e) ** 2
    spread = max(C**2 * (sums.n - sums.s) - S**2 / n, deviation) * n / degrees
    variance = spread + noise
    inverse = 1 / degrees + (deviation**2 / (2 * variance**2) if variance else 0.0)
    return RatioOfSums(0.0, S, sums.n, variance, noise, sums.sigma_n, 1 / inverse)


def _second_moment(schema: EffectSchema, sums: InfluenceSums, C: float) -> float:
    """Return the influences' second moment, about their mean where weights are 0 or 1."""
    second = C**2 * (sums.n - sums.s)
    return second if schema.estimand == "overlap" else second - (C * sums.t) ** 2 / max(sums.W, 1.0)
