"""Plan a noisy mean, then sums of rows centred by it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, require_plan
from privstats.course.promise import CALIBRATION_SHARE, Promise, part_of, record_mu, rounded_down
from privstats.errors import PlanError
from privstats.estimates import denoise
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.discriminant import Discriminant, log_priors, published_weights
from privstats.intake.accepted import RecordsLike, TargetsLike
from privstats.kinds import CalibrationSchema, ClassSchema, MeanSchema
from privstats.moments import Moments, exact_moments
from privstats.plan import Plan
from privstats.python_values import python_value
from privstats.records.reading import Unreadable
from privstats.schema import narrowed
from privstats.schema.public_values import Published, Values
from privstats.transforms import Centre, UnitNorm

_MEAN_SHARE = 0.01
_MOST_FEATURES = 40_000
_MOST_PUBLISHED = 1 << 26  # entries of M and W together
_PLACES = 1 << 16  # the centre in the second plan is a multiple of 1 / this, on every machine


@dataclass(frozen=True)
class Centred(Phased):
    """The noisy mean m of all rows, then the plan's class sums of rows ``(x - m) / |x - m|``.

    Centred rows spend their length on differences between classes. Where noise hides the mean, or the first session has
    no sum, the second plan is ``plan`` unchanged.

    Args:
        plan: the second plan without the mean: of a ``ClassSchema`` of rows of norm 1.
        expected_records: n, stated publicly, never counted from the records. None: ``cohort.max_records``. Too large an
            n shortens the mean by the same factor.
        calibrated: whether a masked sum of eleven numbers sets ``LDA.temperature_``, at 1 % of mu^2; the plan must have
            N, A and B, no min_count, and a transform that ends in ``UnitNorm()`` or ``Cells``.

    Guarantee:
        All sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan: each one's noise is
        sized for its own mu at any centre and published scores, because rows are clipped after centring and no scores
        make a record count for more (:class:`~privstats.CalibrationSchema`), and they compose (:class:`Course`). The
        mean takes 1 % of mu^2.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> course = ps.Centred.within(plan)
        >>> course.most, round(course.epsilon(1e-5), 3), course.first.schema.task
        (2, 3.0, 'mean')
    """

    label = "centred"
    plan: Plan
    expected_records: int | None = None
    promise: Promise | None = field(default=None, compare=False)
    calibrated: bool = field(default=False, metadata={"usual": False})

    def _require(self) -> None:
        require_plan("plan", self.plan)
        n = self.expected_records
        if n is not None and (type(n) is not int or not 1 <= n <= 1 << 40):
            raise PlanError(f"expected_records must be an integer from 1 to {1 << 40}, got {n!r}; choose one")
        if type(self.calibrated) is not bool:
            raise PlanError(f"calibrated must be True or False, got {self.calibrated!r}")
        require_centrable(self.plan)
        _ = self.first  # forces the noise of the mean
        _ = self.calibration

    @classmethod
    def within(cls, whole: Plan, *, expected_records: int | None = None, calibrated: bool = False) -> Centred:
        """Divide a plan's total promise over the sessions.

        Args:
            whole: the plan, with the total promise.
        """
        record_mu(whole)  # refuses a plan without DP
        shares = getattr(whole.privacy, "shares", None)
        rest = replace(whole, privacy=part_of(whole, _rest(calibrated), shares))
        return cls(rest, python_value(expected_records), Promise.of(whole), calibrated)

    @staticmethod
    def exactly(plan: Plan, rows: NDArray[np.float64]) -> Plan:
        """Return the second plan behind the exact mean of rows, which protects none: for experiments without noise.

        Args:
            plan: as ``Centred.plan``.
            rows: all records after the plan's transform, ``(n, d)``.

        Raises:
            PlanError: rows of this plan cannot be centred.
        """
        require_centrable(plan)
        return centred_by(plan, shrunk_mean(rows.sum(axis=0), 0.0, len(rows)))

    @property
    def records(self) -> int:
        """n, public."""
        return self.expected_records or self.plan.cohort.max_records

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
        privacy = part_of(self.plan, _MEAN_SHARE / _rest(self.calibrated), None)
        return replace(self.plan, schema=mean, privacy=privacy, min_count=0, merge={})

    @cached_property
    def calibration(self) -> Plan | None:
        """The plan of the calibration at placeholder values, if any."""
        if not self.calibrated:
            return None
        schema: Any = self.plan.schema
        if (obstacle := _obstacle(self.plan)) is not None:
            raise PlanError(obstacle)
        scores = CalibrationSchema(
            schema.features,
            schema.classes,
            expected_records=self.records,
            course_mu=rounded_down(record_mu(self.plan) / math.sqrt(_rest(calibrated=True))),
            transform=schema.transform,
            class_names=schema.class_names,
            feature_names=schema.feature_names,
        )
        privacy = part_of(self.plan, CALIBRATION_SHARE / _rest(calibrated=True), None)
        return replace(self.plan, schema=scores, privacy=privacy, published=Published.placeholder())

    @cached_property
    def phases(self) -> Phases:
        """The mean, the sums around it, and any calibration, which needs the sums."""
        mean = Phase("mean", self.first, tries=1)
        sums = Phase("sums", self.plan, tries=1, needed=self.calibrated, form=self._centred)
        if self.calibration is None:
            return Phases((mean, sums))
        calibration = Phase("calibration", self.calibration, tries=1, form=self._calibrated, published=_scores)
        return Phases((mean, sums, calibration))

    def _centred(self, past: Past) -> Plan:
        mean = past.first("mean")
        if mean is None:
            return self.plan
        return centred_by(self.plan, shrunk_mean(np.asarray(mean.moments.x), float(mean.sigma["x"]), self.records))

    def _calibrated(self, past: Past) -> Plan:
        assert self.calibration is not None  # noqa: S101  a course without a calibration has no such phase
        (sums,) = past.of("sums")
        return _calibration_after(self.calibration, sums.plan, self.calibration.published)

    @classmethod
    def of(cls, mean: Plan | None, sums: Plan, calibration: Plan | None = None) -> Centred:
        """Return the course of these plans, at any centre; None means no sum."""
        maps = sums.schema.transform if mean is None else mean.schema.transform
        original, added = sums.schema.transform[: len(maps)], sums.schema.transform[len(maps) :]
        if original == maps and [type(map_) for map_ in added] in ([], [Centre, UnitNorm]):
            plan = replace(sums, schema=replace(sums.schema, transform=maps))  # type: ignore[type-var]
            records = getattr(calibration and calibration.schema, "expected_records", None)
            kinds = ((False,) if calibration is None else ()) + ((True,) if _obstacle(plan) is None else ())
            for calibrated in kinds:
                course = cls(plan, records, calibrated=calibrated)
                if mean in (None, course.first) and course._ends_in(calibration, sums):
                    return course
        raise PlanError("these are not the plans of a mean and of what follows it: no Centred course has all of them")

    def _ends_in(self, calibration: Plan | None, sums: Plan) -> bool:
        own = self.calibration
        return calibration is None or (
            own is not None and _calibration_after(own, sums, calibration.published) == calibration
        )

    def admits(
        self,
        X: RecordsLike,
        y: TargetsLike | None,
        unreadable: Unreadable = "refuse",
        measured: Callable[..., Moments] = exact_moments,
    ) -> None:
        """Refuse records early that the second session would refuse: the mean reads no labels."""
        read: Any = replace(self.plan.schema, statistics="NA")  # type: ignore[type-var]
        measured(read, X, y, unreadable=unreadable)


def _rest(calibrated: bool) -> float:
    return 1 - _MEAN_SHARE - (CALIBRATION_SHARE if calibrated else 0)


def _obstacle(plan: Plan) -> str | None:
    schema: Any = plan.schema
    if schema.statistics != "NAB":
        return (
            f"a calibrated course has N, A and B, not {', '.join(schema.statistics)}: choose statistics NAB, or leave "
            "calibrated out"
        )
    if plan.min_count:
        return "a calibrated course has no min_count: set it to 0, or leave calibrated out"
    last = schema.transform[-1] if schema.transform else None
    if last is None or not (last.unit or isinstance(last, UnitNorm)):
        return (
            "a calibrated course has rows of norm 1 with its mean and without: end the transform in UnitNorm(), or "
            "leave calibrated out"
        )
    if schema.features**2 + schema.classes * (schema.features + 1) > _MOST_PUBLISHED:
        return (
            f"a calibrated course publishes d^2 + C (d + 1) numbers, at most {_MOST_PUBLISHED:,}, which "
            f"{schema.features:,} features and {schema.classes} classes exceed: reduce the features, or leave "
            "calibrated out"
        )
    return None


def _calibration_after(calibration: Plan, sums: Plan, values: Published | None) -> Plan:
    schema = replace(calibration.schema, transform=sums.schema.transform)  # type: ignore[type-var]
    return replace(calibration, schema=schema, published=values)


def _scores(past: Past) -> Published:
    """Return M and W of ``LDA()``'s scores; M is the identity, since rows have norm 1."""
    (sums,) = past.of("sums")
    real = sums.moments
    N, A, B = (np.asarray(getattr(real, letter), np.float64) for letter in "NAB")
    noisy = NoisyClassSums(N, A, B, dict(sums.sigma))
    n = denoise.counts(N, noisy.noise("N"))
    W = published_weights(*Discriminant.of(noisy, n).scores(log_priors("counts", n)))
    return past.publish({"M": Values.rounded(np.eye(len(B))), "W": Values.rounded(W)})


def shrunk_mean(total: NDArray[np.float64], sigma: float, records: int) -> NDArray[np.float64]:
    """Return a noisy sum divided by n, times the part that noise does not explain, at norm 1 or less.

    The factor is ``max(0, 1 - d sigma^2 / |total|^2)``, James and Stein's positive part (1961) with d for d - 2, and at
    most ``n^2 / (n^2 + d sigma^2)``. Entries are multiples of 2**-16 with equal bits on every machine.

    Args:
        total: the noisy sum of rows of norm at most 1, ``(d,)``.
        sigma: noise SD of each entry.
        records: n, public.

    Example:
        >>> from privstats.course.centred import shrunk_mean
        >>> [shrunk_mean(np.array([30.0, 40.0]), sigma, records=100).round(3).tolist() for sigma in (0.0, 10.0, 50.0)]
        [[0.3, 0.4], [0.276, 0.368], [0.0, 0.0]]
    """
    square, noise, most = math.fsum(total * total), len(total) * sigma**2, float(records) ** 2
    factor = max(0.0, min(1.0 - noise / square, most / (most + noise))) if square else 0.0
    centre = total * (factor / records)
    rounded: NDArray[np.float64] = np.rint(centre / max(1.0, math.sqrt(math.fsum(centre * centre))) * _PLACES) / _PLACES
    return rounded


def centred_by(plan: Plan, centre: NDArray[np.float64]) -> Plan:
    """Return the plan of rows ``(x - m) / |x - m|`` after its transform; unchanged for m = 0."""
    if not centre.any():
        return plan
    schema = plan.schema
    maps = (*schema.transform, Centre(tuple(centre.tolist())), UnitNorm())
    return replace(plan, schema=replace(schema, transform=maps))  # type: ignore[type-var]


def require_centrable(plan: Plan) -> None:
    """Refuse a plan with rows that cannot be centred."""
    kind = type(plan.schema).__name__
    refusal = PlanError(f"a mean is taken out of class sums: give a plan of a ClassSchema, got {kind}")
    schema = narrowed(plan.schema, ClassSchema, refusal)
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
