"""Read a treatment effect, one ratio of noisy sums, from an ``Effect`` course's releases.

A record's influence values have the effect as their mean, whatever the published lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums
from privstats.inference.description import Count, numbers_of
from privstats.inference.releases import all_sessions, require_level
from privstats.inference.reporting import listed
from privstats.inference.summary import RowTable, count_of, framed
from privstats.inference.treatment_effects.arms import Total, arm_outcomes, is_binary, split_of
from privstats.inference.treatment_effects.balance import Balance, balance_of, weighted_balance
from privstats.inference.treatment_effects.heterogeneity import GroupSums, Heterogeneity, heterogeneity_of
from privstats.inference.treatment_effects.influence_sums import (
    CourseSums,
    InfluenceSums,
    course_sums,
    difference_of,
    groups_of,
    is_look,
    ratio_of,
    weighted_sums,
)
from privstats.inference.treatment_effects.nuisances import Nuisances
from privstats.inference.treatment_effects.ratios import RatioOfMeans, RatioOfSums
from privstats.kinds import EffectSchema
from privstats.plan import Plan
from privstats.release import Release

if TYPE_CHECKING:
    from privstats.inference.summary import Summary

_HEAVY = (
    "one record could weigh more than .4 of a standard error, and means of a few heavy records are skewed: plan more "
    "records, or a narrower range of outcomes"
)
_ALPHA = 0.05
_CHANCE = 6.0  # standard deviations by which the arms of a trial may miss its probability


@dataclass(frozen=True, eq=False)
class EffectTable(RowTable):
    """A treatment effect with its interval.

    Attributes:
        subgroup: such as ``"age: under 50"``; empty for all records.
        declared: ``"primary"``, ``"secondary"`` or ``"exploratory"``.
        outcome: public range of outcomes.
        estimand: ``"ate"``, ``"att"`` or ``"overlap"``.
        probability: of treatment; None where not randomised.
        trim: the population's limit of the propensity, or of being observed where outcomes may be missing; None in a
            complete trial.
        as_ratio: the ratio, where the plan requests both.
        hidden: why no level reports the effect, or empty.
        widened: why the interval is wider than sampling and noise alone make it, with what would help.
        arms: noisy records by arm, over all subgroups, including missing outcomes, or None.
        r_: standard error that nuisances may add, relative to the rest, or None.
        plans: of every session; None for one without a sum.
        missing: whether outcomes may be missing; records then weigh by their probability of being observed.
        nobs_sigma: standard error of the noise in ``nobs``.
        numbers: records by arm with their noise, as ``arms``, or None.
        events: of a 0/1 outcome in all records, by arm, or None.

    Example:
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> rng = np.random.default_rng(0)
        >>> arm = rng.integers(0, 2, 4_000)
        >>> X, y = np.column_stack([rng.uniform(20, 90, 4_000), arm]), rng.random(4_000) < 0.3 + 0.2 * arm
        >>> releases = ps.simulate(course, [(X[::2], y[::2]), (X[1::2], y[1::2])])
        >>> table = ps.inference.effect(releases)
        >>> table.reported, table.pvalue < 0.001
        (True, True)
    """

    name: str
    subgroup: str
    declared: str
    outcome: tuple[float, float]
    estimand: str
    probability: float | tuple[float, ...] | None
    trim: float | None
    ratio: RatioOfSums | RatioOfMeans
    hidden: str
    widened: tuple[str, ...]
    nobs: float
    arms: tuple[float, float] | None
    r_: float | None
    release: Release
    plans: tuple[Plan | None, ...]
    _sums: ArmSums | None
    _groups: GroupSums | None = None
    measure: str = "difference"
    missing: bool = False
    as_ratio: EffectTable | None = None
    nobs_sigma: float = 0.0
    numbers: tuple[Total, Total] | None = None
    events: tuple[Total, Total] | None = None

    @property
    def design(self) -> str:
        """``"trial"``, or ``"observational"``."""
        return "observational" if self.probability is None else "trial"

    @property
    def estimate(self) -> float:
        """The effect in outcome units (0/1: a risk difference), or a ratio."""
        return self.ratio.estimate

    @property
    def bse(self) -> float:
        """Standard error, noise included."""
        return self.ratio.error

    @property
    def noise_bse(self) -> float:
        """Standard error from noise alone."""
        return self.ratio.noise_error

    @property
    def df(self) -> float:
        """Degrees of freedom of Student's law of P value and interval."""
        return self.ratio.degrees

    @property
    def reported(self) -> bool:
        """Whether the effect is reported at .05."""
        return not self.why_not_reported

    @property
    def why_not_reported(self) -> str:
        """Why the effect is hidden at .05, or empty."""
        return self.why_at(0.05)

    @property
    def pvalue(self) -> float:
        """Two-sided p-value of a difference of 0 or a ratio of 1; 1 where no level reports the effect."""
        return 1.0 if self.hidden else self.ratio.pvalue()

    def conf_int(self, alpha: float = 0.05) -> Array:
        """Return the interval's ends, ``(2,)``, within what the range of outcomes allows; infinite where hidden."""
        require_level(alpha)
        if self.why_at(alpha):
            return np.array((-math.inf, math.inf))
        return np.asarray(np.clip(self.ratio.interval(alpha), *self._possible))

    @property
    def _possible(self) -> tuple[float, float]:
        """The smallest and largest effect that the range of outcomes allows."""
        width = self.outcome[1] - self.outcome[0]
        return (-math.inf, math.inf) if self.measure == "ratio" else (-width, width)

    @property
    def mean_weight(self) -> float | None:
        """W over the records; None without a propensity.

        For ``"ate"`` the population's share, for ``"att"`` its treated share, for ``"overlap"`` the mean weight.
        """
        return None if self.trim is None else self.ratio.W / self.nobs

    @property
    def measures(self) -> list[tuple[str, EffectTable]]:
        """Difference, ratio, or both, by name."""
        return [(each.measure, each) for each in (self, self.as_ratio) if each is not None]

    @property
    def in_groups(self) -> bool:
        """Whether sums are by groups of sites."""
        return self._groups is not None

    @property
    def released_balance(self) -> bool:
        """Whether the weighted balance was released."""
        return self._sums is not None and self.release.sigma.get("b") is not None

    def balance(self, alpha: float = 0.05) -> Balance:
        """Compare the arms' columns before weighting, and after it where released.

        Raises:
            ReleaseError: the course omitted the outcome lines.
        """
        require_level(alpha)
        if self._sums is None:
            raise ReleaseError("balance is read from the outcome session, which share=0 omits; set share above 0")
        before = balance_of(self._sums, self.release.plan.schema, alpha)
        weighted = weighted_sums(self.release)
        if weighted is None:
            return before
        return replace(before, weighted=weighted_balance(self._sums, weighted, alpha))

    def balance_summary(self, alpha: float = 0.05) -> Summary:
        """Return the balance as a table."""
        from privstats.inference.treatment_effects.summary import balance_summary

        return balance_summary(self, alpha)

    def heterogeneity(self) -> Heterogeneity:
        """Return whether effects differ between groups of sites, and the mean effect.

        Raises:
            ReleaseError: no groups of sites, or noise hides a group's records.
        """
        if self._groups is None:
            raise ReleaseError(
                "one sum holds no spread between sites, and no estimate of a single site is released: to see whether "
                "effects differ, run a course whose schema has groups of sites, such as groups=8"
            )
        return heterogeneity_of(self._groups, len(self.release.survivors))

    def summary(self, alpha: float = 0.05) -> Summary:
        """Return the table, assumptions first."""
        from privstats.inference.treatment_effects.summary import effect_summary

        return effect_summary(self, alpha)

    def to_frame(self, alpha: float = 0.05) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        return framed(self.to_rows(alpha))

    def to_rows(self, alpha: float = 0.05) -> list[dict[str, object]]:
        """Return the numbers by name: of the difference, of the ratio, or a row of each."""
        return [each.to_row(alpha) for _, each in self.measures]

    def to_row(self, alpha: float = 0.05) -> dict[str, object]:
        """Return the numbers of this measure by name."""
        why, (low, high) = self.why_at(alpha), self.conf_int(alpha)
        shown = {"estimate": self.estimate, "std_error": self.bse, "noise_std_error": self.noise_bse}
        row: dict[str, object] = {"estimand": self.estimand, "measure": self.measure}
        row |= {name: math.nan if why else value for name, value in shown.items()}
        row |= numbers_of((Count("records", self.nobs, self.nobs_sigma),)) | {"df": math.nan if why else self.df}
        return {**row, "p_value": self.pvalue, "conf_low": float(low), "conf_high": float(high), "reported": not why}

    def why_at(self, alpha: float) -> str:
        """Return why this level hides the effect, or empty."""
        if self.hidden:
            return self.hidden
        (low, high), (least, most) = self.ratio.interval(alpha), self._possible
        if not self.ratio.reported(alpha):
            return "noise hides how many records there are: plan more records, or a larger epsilon"
        if low > least or high < most:
            return ""
        return self.widened[-1] if self.widened else "noise hides the effect: plan more records, or a larger epsilon"


def effect(releases: Sequence[Release | None]) -> EffectTable:
    """Return the effect of a treatment from all releases of an ``Effect`` course.

    In a trial it is the effect of *assignment*: non-compliers count where assigned. The outcome lines only shorten the
    interval, which holds whether they are right or wrong. Without randomisation it is an adjusted difference in
    records weighted by the *published* propensity. That is the effect only without unmeasured confounding, which no sum
    can test, and if the propensity or the outcome lines are right within the trim.

    Where noise is small or an arm is rare, and one record could weigh more than .4 of a standard error, the interval is
    widened, because means of a few rare outcomes are skewed.

    Args:
        releases: of every session, in order; None for one without a sum.

    Raises:
        ReleaseError: the last release is missing, or releases are of other courses or out of order.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Effect.start(schema, ps.Cohort(2, 2, 4_000), privacy)
        >>> arm = np.arange(4_000) % 2
        >>> X, y = np.column_stack([np.linspace(20, 90, 4_000), arm]), np.arange(4_000) // 2 % 10 < 3 + 2 * arm
        >>> shards = [(X[:2_000], y[:2_000]), (X[2_000:], y[2_000:])]
        >>> releases = ps.simulate(course, shards, rng=randomness.seeded(0))
        >>> low, high = ps.inference.effect(releases).conf_int()
        >>> bool(low < 0.2 < high)
        True
    """
    read = course_sums(releases := all_sessions(releases))
    if read.schema.outcomes > 1 or read.schema.subgroups is not None:
        raise ReleaseError("this course has several outcomes or subgroups: read all of them with inference.effects")
    return question(read, tuple(None if each is None else each.plan for each in releases))


def question(
    read: CourseSums,
    plans: tuple[Plan | None, ...],
    place: int = 0,
    *,
    subgroup: str = "",
    blocks: Sequence[int] | None = None,
    declared: str = "exploratory",
) -> EffectTable:
    """Return one outcome's effect, in all records or blocks."""
    schema, line, nuisances = read.schema, read.lines[place], read.nuisances(place)
    sums = InfluenceSums.of(read.last, place, blocks)
    arms = read.assigned if schema.missing or read.arms is None else read.arms[place]
    nuisance = _of_nuisances(nuisances, read, place, blocks)
    ratio = ratio_of(schema, sums, line, nuisance=nuisance, fitted=arms is not None)
    numbers = split_of(read)
    r = None if nuisances is None else _share_of(nuisance, ratio.variance)
    table = EffectTable(
        **_stated(schema, place),
        subgroup=subgroup,
        declared=declared,
        ratio=ratio,
        hidden=_misassigned(schema, arms),
        widened=_reasons(schema, ratio, nuisances),
        nobs=sums.n,
        nobs_sigma=sums.sigma_n,
        arms=None if numbers is None else (numbers[0].value, numbers[1].value),
        r_=r,
        release=read.last,
        plans=plans,
        _sums=arms,
        _groups=groups_of(read, place, nuisance) if schema.groups else None,
        numbers=numbers,
        events=None if blocks is not None or numbers is None else _events(read, place),
    )
    return _with_both(schema, table, sums) if schema.measure == "both" else table


def _events(read: CourseSums, place: int) -> tuple[Total, Total] | None:
    """Return a 0/1 outcome's events by arm; None for a look, whose outcome session summed the first look's records."""
    if read.arms is None or is_look(read.last) or not is_binary(read.schema, place):
        return None
    treated, others = (each.events for each in arm_outcomes(read, place, _ALPHA))
    return None if treated is None or others is None else (treated, others)


def _with_both(schema: EffectSchema, table: EffectTable, sums: InfluenceSums) -> EffectTable:
    apart = difference_of(schema, sums, fitted=table._sums is not None)
    widened = _reasons(schema, apart, None)
    return replace(table, measure="difference", ratio=apart, widened=widened, as_ratio=replace(table, measure="ratio"))


def _stated(schema: EffectSchema, place: int) -> dict[str, Any]:
    return {
        "name": (schema.outcome_names or ("",))[place],
        "outcome": schema.outcome,
        "estimand": schema.estimand,
        "probability": schema.probability,
        "trim": schema.trim,
        "measure": schema.measure or "difference",
        "missing": schema.missing is not None,
    }


def _of_nuisances(nuisances: Nuisances | None, read: CourseSums, place: int, blocks: Sequence[int] | None) -> float:
    if nuisances is None:
        return 0.0
    every = InfluenceSums.of(read.last, place).n
    return nuisances.of(every) if blocks is None else nuisances.of_any_part(every)


def _misassigned(schema: EffectSchema, arms: ArmSums | None) -> str:
    if schema.probability is None or arms is None:
        return ""
    (treated, others), chances = arms.records, schema.probabilities
    # Where sites differ in probability, any probability between theirs is possible.
    pi = min(max(treated / max(treated + others, 1.0), chances[0]), chances[-1])
    spread = max(treated + others, 0.0) * pi * (1 - pi)
    noise = (arms.sigma_G / arms.constant**2) ** 2 * (pi**2 + (1 - pi) ** 2)
    if abs(treated * (1 - pi) - others * pi) <= _CHANCE * math.sqrt(spread + noise):
        return ""
    name = (schema.feature_names or ("the treatment",))[-1]
    first: Any = schema.transform[0] if schema.transform else None
    declared = first.of(name) if getattr(first, "kind", "") == "levels" else None
    values = "0 and 1" if declared is None else " and ".join(map(repr, declared.values))
    return (
        f"{count_of(treated)} records are treated and {count_of(others)} are not, which the plan's "
        f"probability of {pi:g} does not give: check that {name} holds {values} in every file, and how it was assigned"
    )


def _share_of(nuisance: float, variance: float) -> float:
    rest = variance - nuisance
    return math.sqrt(nuisance / rest) if rest > 0 else math.inf


def _reasons(schema: EffectSchema, ratio: RatioOfSums | RatioOfMeans, nuisances: Nuisances | None) -> tuple[str, ...]:
    reasons = [_HEAVY] if ratio.widened else []
    who = "whose outcome is missing" if schema.missing else "who is treated"
    if nuisances is not None and nuisances.levels:
        reasons.append(
            f"noise hides {who} in {listed(nuisances.levels)}: no record is there, or too few to show. The interval "
            "allows for whatever these records may hold"
        )
    if nuisances is not None and nuisances.hidden:
        reasons.append(
            f"noise hides along some column {who}; along it the interval allows for any propensity within the trim and "
            "relies on the outcome models: plan fewer columns, more records, a larger epsilon, or a larger trim"
        )
    return tuple(reasons)
