"""Plan a regression in two sessions: narrower ranges first, because noise grows with their width."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from privstats.course.phases import Past, Phase, Phases
from privstats.course.planned import Phased, require_plan
from privstats.course.promise import Promise, part_of, promised
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.denoise import Array
from privstats.kinds import RidgeSchema
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema import narrowed
from privstats.transforms import Centre, ConstantFeature, Scale

_SHARE = 0.04
_SHARES = {"G": 0.45, "h": 0.1, "q": 0.45}  # the first release's shares: ranges depend on squares most

CONSTANT = 0.5
"""Value of the constant column after the ranges: near the size of a column there."""

_COLUMN = 3.0  # deviations that become 1
# A target is clipped at .8 of the largest of n normal deviations, or 3 if that is more, times its root mean square.
_LEAST, _PART = 3.0, 0.8
_ROW = 1.5  # the clip norm admits this many times as many deviations of a row's squared norm
_CLEAR = 2.0  # a mean below this many noise deviations counts as 0


@dataclass(frozen=True)
class Standardised(Phased):
    """Means and squares of columns and target, then the plan's sums of rows in ranges that follow from them.

    A column is centred by its mean and divided by three deviations. The target is clipped at three or more root mean
    squares, and the clip norm fits such rows. These public maps keep coefficients per unit of the original columns
    (:func:`~privstats.inference.ols`). No range is wider than the plan's. Where noise hides a spread, its range is too
    wide: intervals widen, and stay valid.

    Args:
        plan: the second plan in public ranges: of a ``RidgeSchema`` of numbers with a last ``ConstantFeature``.
        share: the first session's part of mu^2, from .01 to .5.

    Guarantee:
        Both sessions together are mu-GDP with :attr:`mu`, for the unit and adjacency of the plan: the second is sized
        for its own mu at any ranges, because noise follows from its own clip norm and target bound; ranges are a
        function of the first release and public numbers; and sessions compose (:class:`Course`).

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=9.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 9_000), privacy=privacy)
        >>> course = ps.Standardised.within(plan)
        >>> X = np.linspace(-0.5, 0.5, 4_000)[:, None]
        >>> releases = ps.simulate(course, [(X[::2], X[::2, 0] / 2), (X[1::2], X[1::2, 0] / 2)])
        >>> releases[1].plan.schema.target_bound < 2, ps.inference.ols(releases).params.round(1).tolist()[1]
        (True, 0.5)
    """

    label = "standardised"
    plan: Plan
    share: float = field(default=_SHARE, metadata={"usual": _SHARE})
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        require_plan("plan", self.plan)
        _require_ranges(self.plan)
        promised(self.plan)
        _check_share(self.share)
        _ = self.first  # forces its noise

    @classmethod
    def within(cls, whole: Plan, share: float = _SHARE) -> Standardised:
        """Divide a plan's total promise over the sessions.

        Args:
            whole: the plan, with the total promise.
        """
        require_plan("whole", whole)
        _check_share(share)
        part = part_of(whole, 1 - share, getattr(whole.privacy, "shares", None))
        return cls(replace(whole, privacy=part), share, Promise.of(whole))

    @property
    def schema(self) -> RidgeSchema:
        """The second plan's schema, in public ranges."""
        return _require_ranges(self.plan)

    @cached_property
    def first(self) -> Plan:
        """The plan of means and squares."""
        privacy = part_of(self.plan, self.share / (1 - self.share), _SHARES)
        return replace(self.plan, schema=replace(self.schema, folds=1), privacy=privacy)

    @cached_property
    def phases(self) -> Phases:
        """The ranges, then the sums within them; in public ranges if the first session has no sum."""
        return Phases(
            (Phase("ranges", self.first, tries=1), Phase("sums", self.plan, tries=1, form=self._within_ranges))
        )

    def _within_ranges(self, past: Past) -> Plan:
        ranges = past.first("ranges")
        return self.plan if ranges is None else replace(self.plan, schema=behind_ranges(self.schema, ranges))


def behind_ranges(schema: RidgeSchema, first: Release) -> RidgeSchema:
    """Return the schema in a release's ranges."""
    refusal = ReleaseError("ranges follow from a release of the same columns and target; give the first session's")
    declared = narrowed(first.plan.schema, RidgeSchema, refusal)
    if replace(declared, folds=schema.folds) != schema:
        raise refusal
    constant = schema.transform[-1]
    assert isinstance(constant, ConstantFeature)  # noqa: S101  the course has refused others
    moments, sigma = first.moments, first.sigma
    G = np.reshape(moments.G, (-1, schema.features, schema.features)).sum(axis=0)
    q = float(np.sum(moments.q))
    result = ranges((G + G.T) / 2, q, (sigma["G"], sigma["q"]), constant.value, (schema.clip_norm, schema.target_bound))
    maps = (Centre(result.centre), Scale(result.per), ConstantFeature(CONSTANT))
    return replace(
        schema,
        clip_norm=result.clip_norm,
        target_bound=result.target_bound,
        transform=(*schema.transform[:-1], *maps),
        nonnegative=False,
    )


def _require_ranges(plan: Plan) -> RidgeSchema:
    refusal = PlanError(
        "plan must be a Plan of a RidgeSchema of numbers whose transform ends in ConstantFeature: its ranges are found"
    )
    schema = narrowed(plan.schema, RidgeSchema, refusal)
    *before, last = schema.transform or (None,)
    if not isinstance(last, ConstantFeature) or not all(isinstance(map_, Centre | Scale) for map_ in before):
        raise refusal
    if not 0 < last.value < schema.clip_norm:
        raise PlanError("the ConstantFeature must be above 0 and below clip_norm, or no row has room for its columns")
    return schema


def _check_share(share: object) -> None:
    if type(share) is not float or not 0.01 <= share <= 0.5:
        raise PlanError(f"share must be a number from .01 to .5, got {share!r}; leave it out for .04")


class Ranges(NamedTuple):
    """Map of columns to ``(x - centre) / per`` with :data:`CONSTANT` appended, and the mapped rows' bounds.

    Attributes:
        centre, per: ``(p,)``.
        clip_norm: of a row with its constant.
        target_bound: of the target.
    """

    centre: tuple[float, ...]
    per: tuple[float, ...]
    clip_norm: float
    target_bound: float


def ranges(G: Array, q: float, sigmas: tuple[float, float], constant: float, bounds: tuple[float, float]) -> Ranges:
    """Return ranges from noisy sums, never wider than the public ones, to four digits.

    Spreads include one deviation of noise, so ranges err on the wide side.

    Args:
        G: products of the columns, the constant last, ``(p + 1, p + 1)``.
        q: sum of squared targets.
        sigmas: noise SDs of G's diagonal and of q.
        bounds: the public clip norm and target bound.
    """
    (sigma_G, sigma_q), (clip_norm, target_bound) = sigmas, bounds
    p = len(G) - 1
    records = max(float(G[-1, -1]) / constant**2, 1.0)
    beyond = max(_LEAST, _PART * math.sqrt(2 * math.log(records)))
    sums = G[:p, -1] / constant
    mean = np.where(np.abs(sums) > _CLEAR * sigma_G / (constant * math.sqrt(2)), sums / records, 0.0)
    spread = np.sqrt(np.maximum((np.diag(G)[:p] + sigma_G) / records - mean**2, max(sigma_G / records, 1e-12)))
    widest = math.sqrt(clip_norm**2 - constant**2) + np.abs(mean)
    per = np.minimum(_COLUMN * spread, widest)
    within = (G[:p, :p] / records - np.outer(mean, mean)) / np.outer(per, per)
    power = float(np.trace(within))
    loose = math.sqrt(2 * min(float(np.square(within).sum()), power**2)) if power > 0 else 0.0
    squared = min(max(power, p / _COLUMN**2) + _ROW * beyond * max(loose, math.sqrt(2 * p) / _COLUMN**2), float(p))
    energy = max(q + sigma_q, sigma_q, 1e-12 * target_bound**2)
    return Ranges(
        tuple(map(_rounded, mean.tolist())),
        tuple(map(_rounded, per.tolist())),
        _rounded(math.sqrt(squared + CONSTANT**2)),
        _rounded(min(beyond * math.sqrt(energy / records), target_bound)),
    )


def _rounded(value: float) -> float:
    """Round to digits on which all machines agree."""
    return float(f"{value:.4g}")
