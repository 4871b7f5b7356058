"""A release behind a noisy mean: the mean of all rows first, then the plan's own sums of rows centred by it.

Two sessions under one promise. Every head reads the second release as any other, and the mean is a public map in its
plan; how far it is trusted follows from its own noise (:func:`shrunk_mean`).
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats.course.base import Releases, course_html
from privstats.course.promise import Promise, part_of, record_mu
from privstats.dp import gaussian_epsilon
from privstats.errors import PlanError
from privstats.moments import measure
from privstats.plain import plain, plain_fields
from privstats.plan import Plan
from privstats.schema import ClassSchema, MeanSchema
from privstats.transforms import Centre, UnitNorm

__all__ = ["Centred", "centred_by", "require_centrable", "shrunk_mean"]

_MEAN_SHARE = 0.01
_MOST_FEATURES = 40_000
_PLACES = 1 << 16  # the centre in the second plan is a multiple of 1 / this, on every machine


@dataclass(frozen=True)
class Centred:
    """The noisy mean m of all rows, then the plan's class sums of rows ``(x - m) / |x - m|``.

    Rows of one length lie around their mean, and what all classes share takes most of that length. Centred rows spend
    it on what tells classes apart. Where noise hides the mean, m is 0 and the second plan is ``plan`` as it stands; a
    first session without a sum has the same effect. It serves heads of one release; a refined softmax gains nothing.

    Args:
        plan: the second plan but for the mean in its transform: of a ``ClassSchema`` of rows of norm 1. If the promise
            of both sessions is given, :meth:`within` divides it.
        expected_records: n, which its owners state; never counted from the records. None: ``cohort.max_records``. If it
            is too large by some factor, the mean is too short by the same.
        promise: the owners' promise for both sessions together, for files and audits.

    Raises:
        PlanError: another schema, rows of another norm, entries declared nonnegative, proofs, no DP, or a number out of
            range.

    Guarantee:
        Both sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan: the noise of each is
        sized for its own mu whatever the centre is, because rows are clipped behind it, and the two compose
        (:class:`Course`). The mean takes 1 % of mu^2.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> course = ps.Centred.within(plan)
        >>> course.most, round(course.epsilon(1e-5), 3), course.first.schema.task
        (2, 3.0, 'mean')
    """

    plan: Plan
    expected_records: int | None = None
    promise: Promise | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        plain_fields(self)
        if not isinstance(self.plan, Plan):
            raise PlanError(f"plan must be a Plan, got {type(self.plan).__name__}; build one with Plan(...)")
        n = self.expected_records
        if n is not None and (type(n) is not int or not 1 <= n <= 1 << 40):
            raise PlanError(f"expected_records must be a whole number from 1 to {1 << 40}, got {n!r}; choose one")
        require_centrable(self.plan)
        _ = self.first  # forces the noise of the mean

    @classmethod
    def within(cls, whole: Plan, *, expected_records: int | None = None) -> Centred:
        """The course that keeps a plan's promise as a whole.

        Args:
            whole: the plan but for its epsilon: its promise is what both sessions may spend together.
            expected_records: as for the class.

        Raises:
            PlanError: as for the class.
        """
        record_mu(whole)  # refuses a plan without DP
        shares = getattr(whole.privacy, "shares", None)
        rest = replace(whole, privacy=part_of(whole, 1 - _MEAN_SHARE, shares))
        return cls(rest, plain(expected_records), Promise.of(whole))

    @property
    def records(self) -> int:
        """n, public."""
        return self.expected_records or self.plan.cohort.max_records

    @property
    def most(self) -> int:
        """Two."""
        return 2

    @cached_property
    def first(self) -> Plan:
        """The plan of the mean."""
        schema = self.plan.schema
        mean = MeanSchema(
            schema.features,
            schema.clip_norm,
            schema.grid_bits,
            transform=schema.transform,
            feature_names=schema.feature_names,
        )
        privacy = part_of(self.plan, _MEAN_SHARE / (1 - _MEAN_SHARE), None)
        return replace(self.plan, schema=mean, privacy=privacy, min_count=0, merge={})

    @cached_property
    def mu(self) -> float:
        """mu of both releases together."""
        return math.hypot(*(each.noise.mu for each in self.priced if each.noise is not None))

    @property
    def priced(self) -> tuple[Plan, ...]:
        """Both plans; the second costs the same behind any centre."""
        return (self.first, self.plan)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the plan's digest and the number of records."""
        said = msgspec.json.encode((self.plan.digest, self.expected_records))
        return hashlib.sha256(b"privstats/course/centred\0" + said).hexdigest()

    def _repr_html_(self) -> str:
        return course_html(self)

    def next(self, releases: Releases) -> Plan | None:
        """The plan of the mean, the plan of the sums behind it, then None.

        Raises:
            PlanError: the release is of another plan than :attr:`first`.
        """
        if not releases:
            return self.first
        if len(releases) > 1:
            return None
        (first,) = releases
        if first is None:
            return self.plan
        if first.plan != self.first:
            raise PlanError("release 0 is not of this course; give the release of its mean")
        centre = shrunk_mean(np.asarray(first.moments.x), float(first.sigma["x"]), self.records)
        return centred_by(self.plan, centre)

    @classmethod
    def of(cls, mean: Plan, sums: Plan) -> Centred:
        """The course that has these two plans, whatever the centre is.

        Raises:
            PlanError: no course has both: their promises, cohorts, or transforms do not belong together.
        """
        steps = mean.schema.transform
        given, added = sums.schema.transform[: len(steps)], sums.schema.transform[len(steps) :]
        if given == steps and [type(step) for step in added] in ([], [Centre, UnitNorm]):
            found = cls(replace(sums, schema=replace(sums.schema, transform=steps)))  # type: ignore[type-var]
            if found.first == mean:
                return found
        raise PlanError("these are not the plans of a mean and of the sums behind it: no Centred course has both")

    def admits(self, X: Any, y: Any) -> None:
        """Refuse records before the first session that the second would refuse: the mean reads no labels.

        Raises:
            DataError: records that do not fit the plan's schema.
        """
        measure(replace(self.plan.schema, statistics="NA"), X, y)  # type: ignore[type-var]

    def epsilon(self, delta: float) -> float:
        """epsilon of both sessions at this delta."""
        return gaussian_epsilon(self.mu, delta)


def shrunk_mean(total: NDArray[np.float64], sigma: float, records: int) -> NDArray[np.float64]:
    """A noisy sum of rows of norm at most 1 over their number, times the part of it that noise does not explain.

    That is ``max(0, 1 - d sigma^2 / |total|^2)``, James and Stein's positive part (1961) with d for d - 2, and at most
    ``n^2 / (n^2 + d sigma^2)``, because the mean is no longer than the rows; the result is shortened to norm 1. So a
    mean that noise hides is 0 or short, and no threshold decides. Entries are multiples of 2**-16, and no sum depends
    on its order, so every machine gets the same bits.

    Args:
        total: the noisy sum, ``(d,)``.
        sigma: noise standard deviation of each entry.
        records: n, public.

    Example:
        >>> from privstats.course.centred import shrunk_mean
        >>> [shrunk_mean(np.array([30.0, 40.0]), sigma, records=100).round(3).tolist() for sigma in (0.0, 10.0, 50.0)]
        [[0.3, 0.4], [0.276, 0.368], [0.0, 0.0]]
    """
    square, noise, most = math.fsum(total * total), len(total) * sigma**2, float(records) ** 2
    kept = max(0.0, min(1.0 - noise / square, most / (most + noise))) if square else 0.0
    centre = total * (kept / records)
    found: NDArray[np.float64] = np.rint(centre / max(1.0, math.sqrt(math.fsum(centre * centre))) * _PLACES) / _PLACES
    return found


def centred_by(plan: Plan, centre: NDArray[np.float64]) -> Plan:
    """The plan of rows ``(x - m) / |x - m|`` behind its transform; as it stands where the centre m, ``(d,)``, is 0."""
    if not centre.any():
        return plan
    schema = plan.schema
    steps = (*schema.transform, Centre(tuple(centre.tolist())), UnitNorm())
    return replace(plan, schema=replace(schema, transform=steps))  # type: ignore[type-var]


def require_centrable(plan: Plan) -> None:
    """Refuse a plan whose rows no mean can be taken out of.

    Raises:
        PlanError: naming what the plan has instead, and the remedy.
    """
    schema = plan.schema
    if not isinstance(schema, ClassSchema):
        raise PlanError(f"a mean is taken out of class sums: give a plan of a ClassSchema, got {type(schema).__name__}")
    if schema.clip_norm != 1.0:
        raise PlanError(
            "centred rows have norm 1: give clip_norm=1.0 and, where rows do not have that norm already, a transform "
            "that ends in UnitNorm()"
        )
    if schema.features > _MOST_FEATURES:
        raise PlanError(
            f"features must be at most {_MOST_FEATURES:,}, not {schema.features:,}: the centre is written into the "
            "plan, which would be too long to be read"
        )
    if schema.nonnegative:
        raise PlanError("centred rows have negative entries: leave nonnegative out")
    if plan.validity is not None:
        raise PlanError("no statement reads the sum of a mean: leave validity out")
