"""Read hazard ratios from a ``Hazard`` course's last round, without damping, and counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.course.hazard import check_values, early_schema, hazard_weights
from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.column_proportionality import ColumnProportionality, column_proportionality
from privstats.inference.counts.survival import (
    EVEN,
    SurvivalCurves,
    Times,
    event_tables,
    kaplan_meier,
    reported_bins,
)
from privstats.inference.counts.table import CountTable
from privstats.inference.counts.two_groups import (
    LogRank,
    Proportionality,
    logrank_test,
    proportionality_test,
    without,
)
from privstats.inference.declared_levels import declared_levels
from privstats.inference.description import Count, Law
from privstats.inference.figures import plot_survival
from privstats.inference.forest import forest_rows
from privstats.inference.hidden_levels import HiddenLevels
from privstats.inference.last_step import EARLY, HIDDEN_STEP, LastStep, is_robust, last_step, notes_on
from privstats.inference.regression.interactions import interaction_lines, interaction_notes
from privstats.inference.regression.score import fields_of_rounds
from privstats.inference.regression.summary import description_of, law_of, ratio_columns, ratio_rows
from privstats.inference.regression.table import Regression
from privstats.inference.releases import (
    all_sessions,
    column_names,
    map_columns,
    present_releases,
    raw_slopes,
    require_gaussian,
)
from privstats.inference.reporting import HIDDEN, Source, listed, texts_of
from privstats.inference.summary import Summary, chance_of
from privstats.kinds import CountSchema, HazardSchema
from privstats.release import Release
from privstats.schema import narrowed
from privstats.schema.public_values import Published

if TYPE_CHECKING:
    from privstats.inference.regression.table import Regression


_ALPHA = 0.05
_SIX = 6  # rounds that suit a large ratio
_NOT_CAUSAL = (
    "A hazard ratio is not a causal effect, even in a trial: it compares persons still at risk, and depends on the "
    "columns"
)
_NO_EFFECT = f"{_NOT_CAUSAL}; kaplan_meier of the same releases gives risks."
_SURE = 8.0  # events are reported beyond this many standard deviations of noise
_MOST_OF_ALL, _PART = 0.9, 0.75
_BY_CAUSE = (
    "The ratios compare rates of {event} among persons with neither {event} nor {others} so far; a person with "
    "{others} counts as censored then. How often each happens is read from the counts (cumulative_incidence)."
)
_BY_SUBDISTRIBUTION = (
    "The ratios are Fine and Gray's: they compare rates of {event} among persons without {event} so far, whatever else "
    "happened to them; a person with {others} stays among them, with the weight of who would not have left. A ratio "
    "above 1 means that {event} happens more often. Such rates are of no real group, so read cause-specific ratios "
    "beside them for why."
)
_FIRST_PART = (
    "{:.0%} of the events count: the ratios cover the first part of the follow-up, to a cumulative hazard of 1; "
    "Cox's ratio over all of it differs where ratios change with time"
)
_IN_FULL = (
    "A record that left inside a bin counts as at risk for all of it: biased where groups leave at different rates. "
)
_CHECKED = (
    "The check of proportionality covers {by} alone, from the counts. Not rejecting is no evidence that hazards are "
    "proportional, and a rejection does not make the ratio wrong: it is then an average over time."
)
_CHECKED_UNADJUSTED = (
    "The check of proportionality compares the curves of {by} in the counts, unadjusted for {others}. It rejects also "
    "where hazards are proportional given the columns, as this table assumes, if other columns act on {event} or on "
    "who leaves. So a rejection is no finding about this table's ratios. Not rejecting is no evidence that hazards are "
    "proportional."
)
_ADJUSTED = " A course with early_bins tests each column given the others."
_CHECKED_BY_COLUMN = (
    "The check before and after one time compares each column's ratio given the others, and each P value is for "
    "one test alone. A test assumes that the other columns' ratios are constant. Where one changes, the test of a "
    "column that is correlated with it rejects too, however constant that column's own ratio is. So of several columns "
    "that are rejected and correlated, perhaps one changes. Where many persons pass a cumulative hazard of 1, the "
    "same can happen to columns that are not correlated. Not rejecting is no evidence that hazards are proportional, "
    "and a rejection does not make the ratio wrong: it is then an average over time."
)


@dataclass(frozen=True, eq=False, kw_only=True)
class HazardRatios(Regression):
    """Hazard ratios of columns, with results from the counts; ``params`` are their logarithms.

    A hazard ratio is not a causal effect, even in a trial: it compares those still at risk, and changes with the
    columns. :meth:`kaplan_meier` estimates survival.

    Attributes:
        by: column crossed in the counts, or None.
        cap_bin: bin where the cumulative hazard passes the cap at the columns' mean, or None.
        events_within: share of events before the cap; NaN where not reported.
        checked: release over the early bins, or None.
        lost: sessions without a sum, which the guarantee counts too.

    Example:
        >>> from privstats import randomness
        >>> schema = ps.HazardSchema(
        ...     2,
        ...     clip_norm=2.0,
        ...     bins=ps.Bins("months", (0, 6, 12, 18)),
        ...     event="died",
        ...     feature_names=("arm",),
        ...     transform=(ps.transforms.ConstantFeature(1.0),),
        ...     times="continuous",
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
    events_within: float
    checked: Release | None = None
    lost: int = 0

    @property
    def causes(self) -> tuple[str, ...]:
        """Causes ending the time, these ratios' first."""
        return self._schema.causes

    @property
    def tally(self) -> tuple[Count, ...]:
        """Numbers of records, and of events by cause, in the counts of the first session."""
        if self.counted is None:
            lost = "not in these sums: the counts ended without a sum"
            return Count("records", None, absent=lost), Count("events", None, absent=lost)
        (table,) = _event_table(self.counted, self._schema, "discrete")
        bins, cells = table.counts.shape[0], table.variables[-1].cells[1:]
        events = table.counts[:, 1:].sum(axis=0)
        named = {f"events, {self._schema.event}: {cell}": float(n) for cell, n in zip(cells, events, strict=True)}
        return (
            Count("records", table.total, table.sigma * math.sqrt(table.counts.size)),
            *(Count(name, number, table.sigma * math.sqrt(bins)) for name, number in named.items()),
        )

    @property
    def remark(self) -> str:
        """Note where under 90 % of events count."""
        return _FIRST_PART.format(self.events_within) if self.events_within < _MOST_OF_ALL else ""

    @property
    def hazard_ratios(self) -> Array:
        """exp of ``params``; NaN where not reported at alpha = .05."""
        return np.exp(self.params)

    def ratio_int(self, alpha: float = _ALPHA) -> Array:
        """Return the ratios' intervals, ``(m, 2)``; (0, inf) where hidden."""
        with np.errstate(over="ignore"):
            return np.exp(self.conf_int(alpha))

    def proportionality(self, by: str | None = None) -> Proportionality:
        """Test "the ratio of ``by`` is the same at all times", from the counts.

        Raises:
            ReleaseError: no counts, another column than the crossed one, or late entry.
        """
        counts, known = self._crossed(by)
        self._require_from_start()
        return proportionality_test(counts, by=known, strata=self._strata, **self._words)

    def proportionality_by_column(self) -> ColumnProportionality:
        """Test "the ratio is the same in the early and the late bins" for every column.

        Raises:
            ReleaseError: no sums over early bins.
        """
        if self.checked is None:
            raise ReleaseError(
                "no session summed the early bins, so there is no test by column; run the course with early_bins= the "
                "number of bins before the time to test, or use proportionality()"
            )
        scale, _ = map_columns(self._schema.transform, self.columns)
        assert isinstance(self.errors, LastStep)  # noqa: S101  hazards() computes no other errors
        return column_proportionality(self.release, self.checked, self.errors, self.names, scale)

    def kaplan_meier(self, alpha: float = _ALPHA, *, start: float | None = None) -> SurvivalCurves:
        """Return survival curves by ``by``, or one without a name.

        Args:
            start: with late entry, the edge of the counts' cells from which the curves begin.

        Raises:
            ReleaseError: the counts ended without a sum.
        """
        result = kaplan_meier(self._counts, by=self.by, alpha=alpha, start=start, **self._words, **self._entry)
        return result if isinstance(result, SurvivalCurves) else SurvivalCurves({"": result})

    def plot(self, path: str | Path | None = None, *, alpha: float = _ALPHA) -> Any:
        """Draw survival by ``by`` and the hazard ratio, as :func:`~privstats.inference.plot_survival`."""
        _, by = self._crossed(None)
        curves = {f"{by} {value}": curve for value, curve in self.kaplan_meier(alpha).items()}
        return plot_survival(curves, path, xlabel=self._schema.bins.name, note=self._note(by, alpha))

    def _note(self, by: str, alpha: float) -> str:
        (row,) = (each for each in forest_rows(self, alpha) if each.name == by)
        return f"hazard ratio of {by}\n{row.text}"

    def logrank(self, *, start: float | None = None) -> LogRank:
        """Return the log-rank test of ``by`` within strata, unadjusted for other columns; ``start`` as for curves.

        It is this column's score test where no other column is in the model.

        Raises:
            ReleaseError: no counts, or no crossed column.
        """
        counts, by = self._crossed(None)
        return logrank_test(counts, by=by, strata=self._strata, start=start, **self._words, **self._entry)

    def summary(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> Summary:
        """Return the table, always with ratios."""
        del exponentiate
        return _summary_of(self, alpha)

    def to_frame(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> Any:
        """Return a ``DataFrame`` of :meth:`to_rows`."""
        del exponentiate
        return super().to_frame(alpha, exponentiate=True)

    def to_rows(self, alpha: float = _ALPHA, *, exponentiate: bool = True) -> list[dict[str, object]]:
        """Return one row per column; ``counted`` is :attr:`events_within`."""
        del exponentiate
        return [{**row, "counted": self.events_within} for row in super().to_rows(alpha, exponentiate=True)]

    @property
    def _schema(self) -> HazardSchema:
        return _schema_of(self.release)

    @property
    def _strata(self) -> str | None:
        strata = self._schema.strata
        return None if strata is None else strata.name

    @property
    def _words(self) -> dict[str, Any]:
        schema = self._schema
        return {"time": schema.bins.name, "event": schema.event, "times": schema.times or "continuous"}

    @property
    def _entry(self) -> dict[str, Any]:
        return {} if self._schema.entry is None else {"entry": self._schema.entry}

    def _require_from_start(self) -> None:
        if self._schema.entry is not None:
            raise ReleaseError("the check of proportional curves needs everyone at risk from 0, and records enter late")

    @property
    def _counts(self) -> Release:
        if self.counted is None:
            raise ReleaseError("the counts ended without a sum, so there is no curve and no test; ratios need none")
        return self.counted

    def _crossed(self, by: str | None) -> tuple[Release, str]:
        counts = self._counts
        if self.by is None or by not in (None, self.by):
            text = "no column was" if self.by is None else f"only {self.by!r} was"
            raise ReleaseError(f"{text} crossed with bins and events; run the course with by= the column to compare")
        return counts, self.by


def hazards(releases: Sequence[Release | None]) -> HazardRatios:
    """Return hazard ratios from all releases of a :class:`~privstats.Hazard` course.

    Coefficients are log hazard ratios per original unit. Intervals, p-values and reporting are as for
    :func:`~privstats.inference.logit`.

    Args:
        releases: of every session in order, the counts first; None for one without a sum.

    Assumes:
        Given the columns, hazards are proportional and censoring is independent of the event. Hazards are even inside a
        cell of the counts or no one leaves inside it (or bins are visits). Time starts alike for everyone, each person
        has one row, persons are independent, clipping is negligible, clients are honest.

    Raises:
        ReleaseError: no release, releases of another course, or out of order.

    Example:
        >>> try:
        ...     ps.inference.hazards([])
        ... except ps.errors.ReleaseError as refusal:
        ...     print(refusal)
        no round has a release, so there is nothing to read; run the course again
    """
    releases = all_sessions(releases)
    counts, rounds, check = _apart(releases)
    last = rounds[-1]
    schema = _schema_of(last)
    if check is not None:
        _require_check(schema, counts, rounds, check)
    if schema.ratios and counts is None:
        raise ReleaseError(
            "the counts ended without a sum, so nothing shows who leaves: subdistribution ratios need them; run the "
            "course again"
        )
    weights = [each.real for each in hazard_weights(schema, counts, rounds)[: len(rounds)]]
    columns, within = schema.features - 1, "" if schema.strata is None else f" and {schema.strata.name}"
    names, lost = column_names(schema, columns), sum(each is None for each in releases[1:])
    slopes, _ = raw_slopes(schema.transform, columns)
    rows = np.concatenate([slopes, np.zeros((columns, schema.sizes["feature"] - columns))], axis=1)
    errors = last_step(rounds, weights, schema.clip_norm, rows, levels=declared_levels(schema))
    H = np.asarray(last.moments.H)
    at_mean = _mean_hazard(schema, weights[-1], H, errors.hidden)
    return HazardRatios(
        **fields_of_rounds(rounds, errors),
        names=names,
        notes=(*notes_on(errors, names=names, words=_words(len(rounds) + lost)), *_early_end(counts, schema)),
        columns=columns,
        model="Hazard ratios",
        assumed=f"{_proportional_in(schema, within)}, {_times_of(schema, counts)}, one time zero for all, one row per "
        "person",
        rounds=len(rounds),
        counts=() if counts is None else (counts.plan,),
        counted=counts,
        by=_crossed_by(schema, counts),
        cap_bin=_cap_bin(schema, at_mean),
        events_within=_events_within(schema, at_mean, H, counts),
        checked=check,
        lost=sum(each is None for each in releases),
    )


def _proportional_in(schema: HazardSchema, within: str) -> str:
    if schema.ratios:
        among = "" if schema.strata is None else f" within {schema.strata.name}"
        return (
            f"proportional subdistribution hazards given the columns{within}, censoring independent of events, causes "
            f"and columns{among}"
        )
    return (
        f"proportional hazards given the columns{within}, censoring {_entering(schema)}independent of the event given "
        f"the columns{within}"
    )


def _entering(schema: HazardSchema) -> str:
    return "" if schema.entry is None else "and entry "


def _apart(releases: Sequence[Release | None]) -> tuple[Release | None, list[Release], Release | None]:
    present = present_releases(releases)
    counted = bool(present) and isinstance(present[0].plan.schema, CountSchema)
    counts, rounds = (present[0], present[1:]) if counted else (None, present)
    if not rounds:
        raise ReleaseError("no round has a release, so there is nothing to read; run the course again")
    for release in rounds:
        _schema_of(release)
        require_gaussian(release)
    checked = len(rounds) > 1 and _schema_of(rounds[-1]).periods < _schema_of(rounds[0]).periods
    return counts, rounds[:-1] if checked else rounds, rounds[-1] if checked else None


def _require_check(schema: HazardSchema, counts: Release | None, rounds: Sequence[Release], check: Release) -> None:
    own, early = _schema_of(check), _schema_of(check).periods
    values, held = check_values(schema, early, counts, rounds), check.plan.published
    same = own == early_schema(schema, early) and held is not None and held.sha256 == Published.of(values).sha256
    if not same:
        raise ReleaseError(
            "the sums over the early bins are not at the weights of the last round: pass all releases of one course, "
            "in order"
        )


def _schema_of(release: Release) -> HazardSchema:
    schema = release.plan.schema
    text = "this reader reads the counts and then the rounds of hazards, and a release measures a "
    return narrowed(schema, HazardSchema, ReleaseError(f"{text}{type(schema).__name__}; pass them in order"))


def _crossed_by(schema: HazardSchema, counts: Release | None) -> str | None:
    if counts is None:
        return None
    variables = narrowed(counts.plan.schema, CountSchema, ReleaseError("")).variables
    return variables[-1].name if len(variables) > len(schema.counted().variables) else None


def _times_of(schema: HazardSchema, counts: Release | None) -> str:
    if schema.times is None:
        return "nobody leaves inside a bin, or all groups leave alike"
    if schema.times == "discrete":
        return "times that are visits"
    return EVEN if counts is None else EVEN.replace("a bin", "a cell of the counts")


def _words(rounds: int) -> dict[str, str]:
    """Return the notes on rounds in the words of hazards."""
    remedy = "plan six rounds where a ratio above 2 or below .5 is expected" if rounds < _SIX else "plan more rounds"
    return {
        EARLY: f"the rounds ended before they converged: {remedy}",
        HIDDEN_STEP: "noise hides the last step, and more rounds would not mend that: plan for more events, fewer bins "
        "or columns, or a larger epsilon",
    }


def _early_end(counts: Release | None, schema: HazardSchema) -> tuple[str, ...]:
    if counts is None or schema.entry is not None:  # those who enter late are missing at first, not at the end
        return ()
    (table,) = _event_table(counts, schema, "discrete")
    n_bins, of = reported_bins(table), schema.in_bin
    if n_bins >= len(of):
        return ()
    return (
        f"too few are at risk from bin {schema.bins.cells[of[n_bins]]} on: end the bins where people's follow-up ends",
    )


def _event_table(counts: Release, schema: HazardSchema, times: Times) -> list[CountTable]:
    """Return the counts of time against events, over all groups."""
    return list(event_tables(counts, schema.bins.name, schema.event, None, times, causes=True).values())


def _cap_bin(schema: HazardSchema, at_mean: Array) -> str | None:
    """Return the bin where a stratum's cumulative hazard, at the mean, passes the cap.

    The mean is of those at risk.
    """
    passed = np.flatnonzero((np.cumsum(np.nan_to_num(at_mean), axis=1) > schema.cap).any(axis=0))
    return schema.bins.cells[int(passed[0])] if len(passed) else None


def _mean_hazard(schema: HazardSchema, w: Array, H: Array, hidden: HiddenLevels | None) -> Array:
    """Return hazards at the columns' mean by stratum and bin; NaN in hidden bins."""
    columns = schema.features - 1
    among = float(np.diag(H)[columns:].sum())
    mean = H[:columns, columns:].sum(axis=1) / among * schema.constant if among > 0 else np.zeros(columns)
    hazards = np.exp(np.minimum(mean @ w[:columns] + schema.constant * w[columns:], 0.0))
    shown = hazards if hidden is None else np.where(hidden.constants, math.nan, hazards)
    return np.asarray(shown.reshape(schema.baselines, -1))


def _events_within(schema: HazardSchema, at_mean: Array, H: Array, counts: Release | None) -> float:
    """Return sum_j H_jj / a^2 (e^mu - 1) (1 - e^-mu) / mu^2 over the observed events."""
    if counts is None:
        return math.nan
    (table,) = _event_table(counts, schema, "continuous")
    first = int(schema.entry is not None and schema.times == "discrete")  # nobody is at risk in that bin
    events = float(table.counts[first:-1, 1].sum())
    if events <= _SURE * table.sigma * math.sqrt(len(table.counts)):
        return math.nan
    seen = (np.diag(H)[schema.features - 1 :] / schema.constant**2).reshape(at_mean.shape)
    each = seen * np.expm1(at_mean) * -np.expm1(-at_mean) / at_mean**2
    expected = float(np.nansum(each[:, first:]))
    return min(max(expected / events, 0.0), 1.0)


def _summary_of(table: HazardRatios, alpha: float) -> Summary:
    assumed = f"{table.assumed}, independent persons, negligible clipping, honest clients"
    checks = () if table.checked is None else (table.checked.plan,)
    counts = table.counts or (None,)
    # A lost round, or check, costs what any other round does; lost counts have a price of their own.
    rounds = (table.release.plan,) * (table.rounds + table.lost - (not table.counts))
    plans = (*counts, *rounds, *checks)
    source = Source(table.release, alpha, assumed, plans, table.checked, converged=table.converged)
    schema = _schema_of(table.release)
    checkable = table.counted is not None and table.by is not None and schema.entry is None and not schema.ratios
    test = table.proportionality() if checkable else None
    by_column = None if table.checked is None else table.proportionality_by_column()
    event, *others = schema.causes
    law, about = law_of(table), description_of(table, "ratio")
    estimated = f"hazard ratio of {event} per unit of a column, other columns equal"
    kind = "Subdistribution" if schema.ratios else "Cause-specific"
    title, causes = (
        f"{kind} hazard ratios" if others else "Hazard ratios",
        (_BY_SUBDISTRIBUTION if schema.ratios else _BY_CAUSE),
    )
    return source.summary(
        f"{title} up to a cumulative hazard of 1" if table.events_within < _PART else title,
        (*ratio_columns("ratio", alpha, law), *(["counted"] if table.remark else [])),
        _starred(table, alpha, law) if table.remark else ratio_rows(table, alpha, law),
        head=_head(table, schema, test, by_column),
        notes=(
            "A person counts up to a cumulative hazard of 1; where hazards are not proportional, the ratio covers "
            "that time.",
            *interaction_notes(table),
            *((causes.format(event=event, others=listed(others)),) if others else ()),
            *(() if test is None else _checked(table, event, by_column is not None)),
            *(() if by_column is None else (_CHECKED_BY_COLUMN,)),
        ),
        warnings=table.notes,
        remark=table.remark,
        methods=f"{_estimated(table)} {table.remark}." if table.remark else _estimated(table),
        about=replace(about, estimand=("ratio", estimated), facts=(("time", schema.bins.name),)),
        caution=_NO_EFFECT if schema.times is not None else f"{_IN_FULL}{_NO_EFFECT}",
    )


def _head(
    table: HazardRatios, schema: HazardSchema, test: Proportionality | None, by_column: ColumnProportionality | None
) -> tuple[tuple[str, str], ...]:
    reached = f"the cap is reached in bin {table.cap_bin}" if table.cap_bin is not None else "not reached"
    counted, strata = not math.isnan(table.events_within), schema.strata
    return (
        *(() if test is None else ((f"proportional, {table.by}{_unadjusted(table)}", _proportional(test)),)),
        *(() if by_column is None else _before_and_after(by_column)),
        *interaction_lines(table),
        *((("baseline", f"one for each {strata.name}: {listed(strata.cells)}"),) if strata is not None else ()),
        *((("entry", f"at {schema.entry}: a person is at risk from then on"),) if schema.entry is not None else ()),
        ("cap of 1", f"{reached} at the mean of the columns"),
        *((("events that count", f"{table.events_within:.0%} of those up to the last edge"),) if counted else ()),
        ("standard errors", f"of log ratios, {'robust, ' if is_robust(table.release) else ''}{table.cov_reason}"),
        *texts_of(table.release),
    )


def _starred(table: HazardRatios, alpha: float, law: Law) -> list[tuple[str, ...]]:
    counted = f"{table.events_within:.0%}"
    return [
        (name, ratio if ratio == HIDDEN else f"{ratio}*", *rest, counted)
        for name, ratio, *rest in ratio_rows(table, alpha, law)
    ]


def _estimated(table: HazardRatios) -> str:
    schema = _schema_of(table.release)
    bins = f"{schema.periods} bins of {schema.bins.name} up to {schema.bins.edges[-1]:g}"
    counted = "counts of bins and events and " if table.counts else ""
    event, *others = schema.causes
    stratified = "" if schema.strata is None else f", stratified by {schema.strata.name} (a baseline for each)"
    kept = "subdistribution, Fine and Gray 1999: {} kept at risk, weighted by the Kaplan-Meier estimate of staying"
    treated = (kept if schema.ratios else "cause-specific: {} counted as censored").format(listed(others))
    specific = f" ({treated})" if others else ""
    return (
        f"Hazard ratios of {event}{specific} on {listed(table.names)} were estimated by proportional hazards in {bins}"
        f"{stratified} "
        f"(Prentice and Gloeckler 1978), from {counted}{table.rounds} rounds of score and information. {_NOT_CAUSAL}."
    )


def _others(table: HazardRatios) -> list[str]:
    """Return the columns for which the check of ``by``'s curves is not adjusted."""
    return [name for name in table.names if name != table.by]


def _unadjusted(table: HazardRatios) -> str:
    return " (curves, unadjusted)" if _others(table) else ""


def _checked(table: HazardRatios, event: str, by_column: bool) -> tuple[str, ...]:
    """Return the note on the check of curves, which a check by column needs only next to other columns."""
    others = _others(table)
    if others:
        note = _CHECKED_UNADJUSTED.format(by=table.by, others=listed(others), event=event)
        offered = not by_column and not interaction_notes(table)  # early_bins refuses products
        return (note + _ADJUSTED if offered else note,)
    return () if by_column else (_CHECKED.format(by=table.by),)


def _proportional(test: Proportionality) -> str:
    law = "chi-squared, 1 degree of freedom"
    chance = f"P = {chance_of(test.p_value)} ({law})" if test.reported else "not reported"
    return f"{chance}, over {test.bins} bins{without(test)}"


def _before_and_after(test: ColumnProportionality) -> tuple[tuple[str, str], ...]:
    words = [
        f"P = {chance_of(chance)} (normal law)" if known else "not reported"
        for chance, known in zip(test.p_value, test.reported, strict=True)
    ]
    at = f"before and after {test.split:g}"
    return tuple((f"proportional, {name}", f"{word}, {at}") for name, word in zip(test.names, words, strict=True))
