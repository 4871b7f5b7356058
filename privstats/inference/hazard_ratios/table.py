"""Hazard ratios from the sessions of a ``Hazard`` course: the last round, solved without damping, and the counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from privstats.course.hazard import hazard_weights
from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.counts.logrank import LogRank, logrank_test
from privstats.inference.counts.survival import SurvivalCurve, SurvivalCurves, event_tables, kaplan_meier, told_bins
from privstats.inference.counts.survival_figure import plot_survival
from privstats.inference.evidence import map_columns, require_gaussian, require_records
from privstats.inference.forest import forest_rows
from privstats.inference.hazard_ratios.proportionality import Proportionality, proportionality_test
from privstats.inference.hazard_ratios.summary import HazardFacts, hazard_summary
from privstats.inference.inversion import condition
from privstats.inference.last_step import last_step, notes_on
from privstats.inference.regression.table import Regression
from privstats.inference.summary import Summary
from privstats.release import Release
from privstats.schema import CountSchema, HazardSchema, narrowed

__all__ = ["HazardRatios", "hazards"]

_ALPHA = 0.05


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardRatios(Regression):
    """Hazard ratios of columns, with what the counts of the same course tell; ``params`` are their logarithms.

    A hazard ratio is not a causal effect, even in a trial: it compares those still at risk, and changes with the
    columns. :meth:`kaplan_meier` gives risks.

    Attributes:
        counted: the release of the counts; None where that session ended without a sum.
        by: the column that is crossed with bins and events in the counts; None where there is none.
        cap_bin: the bin in which the cumulative hazard passes the cap at the mean of the columns; None where none does.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 18)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ... )
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
        >>> course = ps.Hazard.start(schema, ps.Cohort(2, 2, 8_000), privacy, by="arm")
        >>> rng, arm = np.random.default_rng(0), np.arange(8_000) % 2
        >>> died = rng.exponential(30 / np.exp(0.7 * arm))
        >>> seen = np.minimum(died, 20.0)
        >>> part = lambda k: {"arm": arm[k::2], "months": seen[k::2], "died": (died <= 20.0)[k::2] * 1}
        >>> releases = ps.simulate(course, [(part(0), None), (part(1), None)], rng=randomness.seeded(0))
        >>> table = ps.inference.hazards(releases)
        >>> table.hazard_ratios.round(1).tolist(), table.proportionality().p_value > 0.001
        ([2.0], True)
    """

    counted: Release | None
    by: str | None
    cap_bin: str | None

    @property
    def hazard_ratios(self) -> Array:
        """exp of ``params``, per unit of the columns as they came in; NaN where one is not told at alpha = .05."""
        return np.exp(self.params)

    def ratio_int(self, alpha: float = _ALPHA) -> Array:
        """Intervals of the ratios, shape ``(m, 2)``; (0, inf) where one is not told at this level."""
        with np.errstate(over="ignore"):
            return np.exp(self.conf_int(alpha))

    def proportionality(self, by: str | None = None) -> Proportionality:
        """Test "the ratio of ``by`` is the same at all times", from the counts alone.

        Args:
            by: the column that was crossed in the counts, which is the one for which there is a test.

        Raises:
            ReleaseError: the counts have no such column, or there are none.
        """
        counts, known = self._crossed(by)
        schema = self._schema
        bins = schema.periods
        return proportionality_test(counts, time=schema.bins.name, event=schema.event, by=known, bins=bins)

    def kaplan_meier(self, alpha: float = _ALPHA) -> SurvivalCurves:
        """Survival curves up to the last edge, by the values of ``by``; one without a name where there is none.

        Raises:
            ReleaseError: the counts ended without a sum, or another level.
        """
        schema = self._schema
        words: dict[str, Any] = {"time": schema.bins.name, "event": schema.event, "times": "continuous"}
        found = kaplan_meier(self._counts, by=self.by, alpha=alpha, **words)
        curves = found if isinstance(found, SurvivalCurves) else {"": found}
        return SurvivalCurves({name: _up_to(curve, schema) for name, curve in curves.items()})

    def plot(self, path: str | Path | None = None, *, alpha: float = _ALPHA) -> Any:
        """Draw survival by the values of ``by`` with its bands, and in a corner the hazard ratio with its interval.

        Args:
            path: where to save the picture, as svg, png or pdf; nowhere if omitted.
            alpha: level of bands and interval.

        Returns:
            The matplotlib figure.

        Raises:
            MissingExtraError: matplotlib is not installed.
            ReleaseError: as for :meth:`kaplan_meier`, no column was crossed, noise hides all, or another file format.
        """
        _, by = self._crossed(None)
        curves = {f"{by} {value}": curve for value, curve in self.kaplan_meier(alpha).items()}
        return plot_survival(curves, path, xlabel=self._schema.bins.name, note=self._said(by, alpha))

    def _said(self, by: str, alpha: float) -> str:
        """The ratio of a column with its interval, in words."""
        (row,) = (each for each in forest_rows(self, alpha) if each.name == by)
        return f"hazard ratio of {by}\n{row.said}"

    def logrank(self) -> LogRank:
        """The log-rank test of the two values of ``by``: the score test of the same model with this column alone.

        Raises:
            ReleaseError: the counts have no such column, or there are none.
        """
        counts, by = self._crossed(None)
        return logrank_test(counts, time=self._schema.bins.name, event=self._schema.event, by=by)

    def summary(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> Summary:
        """The table for publication, with the check of proportionality where the counts give one.

        It shows ratios beside their logarithms, whatever ``exponentiate`` says.
        """
        del exponentiate
        test = self.proportionality() if self.counted is not None and self.by is not None else None
        return hazard_summary(self, alpha, HazardFacts(self.by, self.cap_bin, self.ratio_int(alpha), test))

    def to_frame(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> Any:
        """The table as a pandas DataFrame, one row per column, with ratios beside their logarithms in either case.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        del exponentiate
        return super().to_frame(alpha, exponentiate=True)

    def to_rows(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> list[dict[str, object]]:
        """The rows of :meth:`to_frame`, as plain values."""
        del exponentiate
        return super().to_rows(alpha, exponentiate=True)

    @property
    def _schema(self) -> HazardSchema:
        return _schema_of(self.release)

    @property
    def _counts(self) -> Release:
        if self.counted is None:
            raise ReleaseError("the counts ended without a sum, so there is no curve and no test; the ratios need none")
        return self.counted

    def _crossed(self, by: str | None) -> tuple[Release, str]:
        counts = self._counts
        if self.by is None or by not in (None, self.by):
            said = "no column was" if self.by is None else f"only {self.by!r} was"
            raise ReleaseError(f"{said} crossed with bins and events; run the course with by= the column to compare")
        return counts, self.by


def hazards(releases: Sequence[Release | None]) -> HazardRatios:
    """Hazard ratios from all releases of a :class:`~privstats.Hazard` course, in order.

    Coefficients are log hazard ratios per unit of the columns as they came in. Intervals and p-values include what the
    next Newton step could change. A coefficient is told only where that is at most two standard errors, and where the
    information along it has settled.

    Args:
        releases: of every session, the counts first; None for one that ended without a sum.

    Assumes:
        Hazards are proportional given the columns, censoring says nothing of the event given the columns, time starts
        alike for everybody, there is one row per person, persons are independent, clipping is negligible, clients are
        honest. Noise is no assumption: it is in the interval.

    Raises:
        ReleaseError: no release, releases of another course, or out of order.

    Example:
        >>> try:
        ...     ps.inference.hazards([])
        ... except ps.errors.ReleaseError as refusal:
        ...     print(refusal)
        no round has a release, so there is nothing to read; run the course again
    """
    counts, rounds = _apart(releases)
    last = rounds[-1]
    schema = _schema_of(last)
    weights = [each.real for each in hazard_weights(schema, counts, rounds)[: len(rounds)]]
    columns = schema.features - 1
    scale, _ = map_columns(schema.transform, columns)
    rows = np.concatenate([np.diag(scale), np.zeros((columns, schema.periods))], axis=1)
    errors = last_step(rounds, weights, schema.clip_norm, rows)
    return HazardRatios(
        names=schema.feature_names,
        nobs=None,
        df_resid=math.inf,
        scale=1.0,
        rsquared=None,
        condition_number=condition(errors.inversion.equations.determined),
        saturation_=None,
        cov_type="nonrobust",
        cov_reason=f"one step after {len(rounds) - 1} rounds",
        notes=(*_notes(notes_on(errors)), *_early_end(counts, schema)),
        release=last,
        columns=columns,
        errors=errors,
        model="Hazard ratios",
        assumed="proportional hazards given the columns, censoring that says nothing of the event given the columns, "
        "one time zero for all, one row per person",
        rounds=len(rounds),
        counts=() if counts is None else (counts.plan,),
        counted=counts,
        by=_crossed_by(counts),
        cap_bin=_cap_bin(schema, weights[-1], np.asarray(last.moments.H)),
    )


def _apart(releases: Sequence[Release | None]) -> tuple[Release | None, list[Release]]:
    """The counts, and the rounds that ended with a sum."""
    if isinstance(releases, Release) or not isinstance(releases, Sequence):
        raise ReleaseError("give the list of all releases of the course, in order")
    present = [require_records(release) for release in releases if release is not None]
    counted = bool(present) and isinstance(present[0].plan.schema, CountSchema)
    counts, rounds = (present[0], present[1:]) if counted else (None, present)
    if not rounds:
        raise ReleaseError("no round has a release, so there is nothing to read; run the course again")
    for release in rounds:
        _schema_of(release)
        require_gaussian(release)
    return counts, rounds


def _schema_of(release: Release) -> HazardSchema:
    schema = release.plan.schema
    said = "this reader takes the counts and then the rounds of hazards, and a release measures a "
    return narrowed(schema, HazardSchema, ReleaseError(f"{said}{type(schema).__name__}; give them in order"))


def _crossed_by(counts: Release | None) -> str | None:
    if counts is None:
        return None
    *_, last = narrowed(counts.plan.schema, CountSchema, ReleaseError("")).variables
    return last.name if len(counts.plan.schema.variables) == 3 else None  # type: ignore[attr-defined]


def _notes(found: list[str]) -> list[str]:
    """What those of a regression say, with the remedies of this course."""
    early = "the rounds ended before they arrived: give rate=, or more rounds"
    late = "the rounds ended before they arrived: take six rounds where a ratio above 2 or below .5 is expected"
    return [late if note == early else note for note in found]


def _early_end(counts: Release | None, schema: HazardSchema) -> tuple[str, ...]:
    """A warning where the bins go on after nearly everybody has left."""
    if counts is None:
        return ()
    (table,) = event_tables(counts, schema.bins.name, schema.event, None, "discrete").values()
    told = told_bins(table)
    if told >= schema.periods:
        return ()
    return (
        f"too few are at risk from bin {schema.bins.cells[told]} on: let the last edge be the end of "
        "the follow-up that people reach",
    )


def _cap_bin(schema: HazardSchema, w: Array, H: Array) -> str | None:
    """The bin in which the cumulative hazard at the mean of the columns passes the cap.

    The mean is that of who is at risk, weighted as in the information: H of a column and the bins over that of the
    bins.
    """
    columns = schema.features - 1
    among = float(np.diag(H)[columns:].sum())
    mean = H[:columns, columns:].sum(axis=1) / among * schema.constant if among > 0 else np.zeros(columns)
    hazard = np.exp(np.minimum(mean @ w[:columns] + schema.constant * w[columns:], 0.0))
    passed = np.flatnonzero(np.cumsum(hazard) > schema.cap)
    return schema.bins.cells[int(passed[0])] if len(passed) else None


def _up_to(curve: SurvivalCurve, schema: HazardSchema) -> SurvivalCurve:
    """The curve without the bin of those who are seen beyond the last edge."""
    kept, end = min(len(curve.timeline), schema.periods), schema.bins.edges[-1]
    return replace(
        curve,
        timeline=curve.timeline[:kept],
        survival_function_=curve.survival_function_[:kept],
        confidence_interval_=curve.confidence_interval_[:kept],
        at_risk=curve.at_risk[:kept],
        events=curve.events[:kept],
        told_to=min(curve.told_to, end),
    )
