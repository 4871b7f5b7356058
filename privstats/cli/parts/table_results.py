"""Results of ``privstats table``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privstats import heads, inference
from privstats.course import read as read_course
from privstats.errors import ReleaseError
from privstats.inference import (
    CellTable,
    EffectRows,
    EffectTable,
    GroupMeans,
    GroupShares,
    HazardRatios,
    HeadScore,
    Interval,
    Regression,
    Scorecard,
    Summary,
    SurvivalCurve,
    SurvivalCurves,
    plot_balance,
    plot_forest,
    plot_survival,
)
from privstats.inference.counts.averages import average_rows, averages_summary
from privstats.inference.groups.shares import proportion_row
from privstats.inference.paragraph import proportions_summary
from privstats.kinds import CountSchema, GradientSchema
from privstats.plug_ins import of_contrib
from privstats.printable import csv_text
from privstats.release import Release

if TYPE_CHECKING:
    from privstats.cli.table import TableOptions


class TableResult(NamedTuple):
    """A table, its rows of numbers, whether noise leaves any readable, and its drawing.

    Attributes:
        tests: rows of the tests that the table prints besides its estimates: interactions and declared margins.
        hides: whether noise hides a row that is not reported; a scorecard shows all its points, which are the model's.
    """

    summary: Summary
    rows: list[dict[str, object]]
    reported: bool
    draw: Callable[[Path], Any] | None = None
    hides: bool = True
    tests: tuple[Mapping[str, object], ...] = ()

    @property
    def data(self) -> list[dict[str, object]]:
        """The rows, without any number of one that noise hides."""
        return [_without_numbers(row) if self.hides and not row.get("told", True) else row for row in self.rows]

    @property
    def csv(self) -> str:
        """The rows as data: numbers in full, one in each cell; NA for none, TRUE and FALSE, as R reads them."""
        names = list(dict.fromkeys(name for row in (*self.rows, *self.tests) for name in row))
        return csv_text([names, *([_cell(row.get(name)) for name in names] for row in (*self.data, *self.tests))])


def _without_numbers(row: Mapping[str, object]) -> dict[str, object]:
    return {
        name: None if isinstance(value, Number) and not isinstance(value, bool) else value
        for name, value in row.items()
    }


def _cell(value: object) -> object:
    """A bool as R and others read it; a number in the fewest digits that give it back."""
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "NA"
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else "Inf" if value > 0 else "-Inf"
    return value


def regression(
    table: Regression, alpha: float, reference: Mapping[str, str], *, exponentiate: bool = False
) -> TableResult:
    """Return coefficients by name, without estimates that noise hides; for declared columns, contrasts of cells."""
    if table.column_cells or reference:
        return _cells(table.cells(reference=reference, alpha=alpha), exponentiate=exponentiate)
    summary, rows = table.summary(alpha, exponentiate=exponentiate), table.to_rows(alpha, exponentiate=exponentiate)
    tests = tuple(test.to_row() for test in table.interactions())
    return TableResult(summary, rows, bool(table.errors.reported(alpha).any()), _forest(table, alpha), tests=tests)


def _forest(table: Regression | EffectTable | Mapping[str, EffectTable], alpha: float) -> Callable[[Path], Any]:
    tables: Any = table
    return lambda path: plot_forest(tables, path, alpha=alpha)


def _cells(table: CellTable, *, exponentiate: bool) -> TableResult:
    level = {"variable": "", "level": "all references", "reference": False, "told": table.level.reported}
    level |= {"estimate": table.level.value, "p_value": table.level.pvalue}
    level |= {"conf_low": table.level.low, "conf_high": table.level.high}
    rows = [*([] if exponentiate else [level]), *table.to_rows(exponentiate=exponentiate)]
    return TableResult(table.summary(exponentiate=exponentiate), rows, bool(table.reported[~table.reference].any()))


def card(points: Scorecard) -> TableResult:
    """Return points by outcome, column and step; reported where a cell's band excludes 0."""
    rows: list[dict[str, object]] = [
        {"class": outcome, "variable": "", "level": "base", "points": float(base)}
        for outcome, base in zip(points.outcomes, points.base, strict=True)
    ]
    rows += points.to_rows()
    return TableResult(
        points.summary(),
        rows,
        any(bool(column.reported.any()) for column in points.columns),
        points.plot,
        hides=False,
    )


def hazard_ratios(table: HazardRatios, alpha: float, *, forest: bool) -> TableResult:
    """Return ratios with their logarithms, drawn as survival by arm if there are arms and one cause."""
    by_arm = not forest and table.by is not None and table.counted is not None and len(table.causes) == 1
    draw = partial(table.plot, alpha=alpha) if by_arm else _forest(table, alpha)
    return regression(table, alpha, {}, exponentiate=True)._replace(draw=draw)


def effects(table: EffectRows, alpha: float) -> TableResult:
    """Return effects by outcome and subgroup, without estimates that noise hides."""
    rows = table.to_rows(alpha)
    reported = any(bool(row["told"]) for row in rows)
    if len(table) > 1 or table.analysis is not None:
        tests = (*(each.to_row() for each in table.interactions()), *(each.to_row() for each in table.verdicts()))
        return TableResult(table.summary(alpha), rows, reported, _forest(table.named, alpha), tests=tests)
    (only,) = table
    return TableResult(only.summary(alpha), only.to_rows(alpha), reported, _forest(only, alpha))


def balance(effects: EffectRows, alpha: float) -> TableResult:
    """Return both arms' columns and standardised differences."""
    table, *_ = effects
    balance = table.balance(alpha)
    draw = partial(plot_balance, balance)
    return TableResult(table.balance_summary(alpha), balance.to_rows(), bool(balance.reported.any()), draw)


def outcomes(effects: EffectRows, alpha: float) -> TableResult:
    """Return both arms by outcome, and the effects."""
    table = effects.by_arm(alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def curves(survival: SurvivalCurve | SurvivalCurves, time: str) -> TableResult:
    """Return survival by group and time."""
    groups = survival if isinstance(survival, SurvivalCurves) else SurvivalCurves({"": survival})
    reported = any(len(curve.timeline) for curve in groups.values())
    return TableResult(groups.summary(), groups.to_rows(), reported, partial(plot_survival, survival, xlabel=time))


def score(score: HeadScore) -> TableResult:
    """Return a head's measures, by name and class."""
    return TableResult(score.summary(), score.to_rows(), score.reported, score.plot)


def shares(name: str, cells: dict[str, Interval], release: Release, alpha: float) -> TableResult:
    """Return a variable's shares by cell."""
    rows = [{"variable": name, "level": cell, **proportion_row(share)} for cell, share in cells.items()]
    return TableResult(
        proportions_summary(cells, release, alpha), rows, any(share.reported for share in cells.values())
    )


def table_one(groups: GroupMeans | GroupShares) -> TableResult:
    """Return columns by group: means and deviations, or numbers and shares."""
    return TableResult(groups.summary(), groups.to_rows(), bool(np.any(groups.reported)))


def _logit(rounds: list[Release], options: TableOptions) -> TableResult:
    table = inference.logit(rounds, gaps_as_cells=options.gaps_as_cells)
    return regression(table, options.alpha, options.references, exponentiate=options.exponentiate)


def _poisson(rounds: list[Release], options: TableOptions) -> TableResult:
    quasi, gaps = options.quasi_poisson, options.gaps_as_cells
    table = inference.poisson(rounds, gaps_as_cells=gaps, quasi_poisson=quasi)
    return regression(table, options.alpha, options.references, exponentiate=options.exponentiate)


def _ols(rounds: list[Release], options: TableOptions) -> TableResult:
    sums: Any = rounds if len(rounds) > 1 else rounds[0]
    how: Any = {name: getattr(options, name) for name in ("columns", "target", "records", "unclipped", "gaps_as_cells")}
    return regression(inference.ols(sums, **how), options.alpha, options.references)


def _effect(rounds: list[Release], options: TableOptions) -> TableResult:
    declared: Any = None if options.course is None else read_course(options.course)
    if getattr(declared, "looks", 1) > 1:
        return _looks(rounds, declared, options)
    shown = balance if options.balance else outcomes if options.arms else effects
    return shown(inference.effects(rounds, declared), options.alpha)


def _looks(rounds: list[Release], course: Any, options: TableOptions) -> TableResult:
    """Return a trial's looks, or the balance of the records of the first one."""
    table = inference.looks(rounds, course)
    if options.balance or options.arms:  # outcomes by arm are refused
        return (balance if options.balance else outcomes)(table.at(table.rounds[0].number), options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def _scorecard(rounds: list[Release], options: TableOptions) -> TableResult:
    if any(isinstance(each.plan.schema, GradientSchema) for each in rounds):
        head: Any = heads.RefinedSoftmax().fit_releases(rounds)
    else:
        head = heads.LDA().fit_release(rounds if len(rounds) > 1 else rounds[0])
    return card(inference.scorecard(head, rounds, alpha=options.alpha))


def _causes(release: Release, event: str) -> int:
    variables = getattr(release.plan.schema, "variables", ())
    return max((len(each.cells) - 1 for each in variables if each.name == event), default=1)


def _kaplan_meier(rounds: list[Release], options: TableOptions) -> TableResult:
    if options.time is None or options.event is None or options.times is None:
        raise ReleaseError(
            "--reader km needs --time and --event, and --times discrete or continuous: name the variables of the "
            "plan; for table-one pass --by alone, for shares --reader proportions --column"
        )
    how: Any = {name: getattr(options, name) for name in ("time", "event", "by", "times", "alpha")}
    late = {name: getattr(options, name) for name in ("entry", "start")}
    several = _causes(rounds[0], options.event) > 1
    if late["entry"] is not None and (several or options.follow_up or options.tau is not None):
        raise ReleaseError(
            "--entry is for curves and risks of one event: omit it, or --follow-up or --tau, and declare one cause"
        )
    if several:
        incidence = inference.cumulative_incidence(rounds[0], **how)
        return TableResult(incidence.summary(), incidence.to_rows(), incidence.reported)
    if options.follow_up:
        followed = inference.follow_up(rounds[0], **how)
        return TableResult(
            followed.summary(), followed.to_rows(), any(each.reported for each in followed.medians.values())
        )
    if options.tau is not None:
        means = inference.restricted_means(inference.kaplan_meier(rounds[0], **how), options.tau)
        return TableResult(means.summary(), means.to_rows(), means.difference.reported)
    if options.at is not None:
        risks = inference.risks_at(inference.kaplan_meier(rounds[0], **how, **late), options.at)
        return TableResult(risks.summary(), risks.to_rows(), reported=True)
    return curves(inference.kaplan_meier(rounds[0], **how, **late), options.time)


def _proportions(rounds: list[Release], options: TableOptions) -> TableResult:
    if options.columns is None or len(options.columns) != 1:
        raise ReleaseError("--reader proportions needs one --column: name a variable of the plan")
    (name,) = options.columns
    return shares(name, inference.proportions(rounds[0], name, alpha=options.alpha), rounds[0], options.alpha)


def _missing(rounds: list[Release], options: TableOptions) -> TableResult:
    table = inference.missing_values(rounds[0], by=options.by, alpha=options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def _averages(rounds: list[Release], options: TableOptions) -> TableResult:
    numbers = [number.name for number in getattr(rounds[0].plan.schema, "numbers", None) or ()]
    averages = {name: inference.averages(rounds[0], name, alpha=options.alpha) for name in options.columns or numbers}
    if not averages:
        raise ReleaseError("--reader averages needs numbers, and this plan has none: add [[schema.numbers]]")
    rows = average_rows(averages)
    summary = averages_summary(rows, rounds[0], options.alpha)
    return TableResult(summary, rows, any(bool(row["told"]) for row in rows))


def _table_one(rounds: list[Release], options: TableOptions) -> TableResult:
    how: Any = {name: getattr(options, name) for name in ("by", "columns", "alpha")}
    return table_one(inference.table_one(rounds[0], **how, binary=options.binary or ()))


def _imputed(rounds: list[Release], options: TableOptions) -> TableResult:
    if options.outcome is None:
        raise ReleaseError("--reader imputed needs --outcome: name the outcome's column")
    if isinstance(rounds[0].plan.schema, CountSchema):
        return _imputed_counts(rounds[0], options)
    given = {"by": options.by, "reference": options.reference, "exponentiate": options.exponentiate}
    for name, value in {**given, "interaction": options.interactions}.items():
        if value:
            raise ReleaseError(f"--{name} is for imputed counts, and these are sums by gap pattern; omit it")
    fit = of_contrib("imputed", "--reader imputed", ReleaseError)
    return regression(fit(rounds[0], target=options.outcome, columns=options.columns), options.alpha, {})


def _imputed_counts(release: Release, options: TableOptions) -> TableResult:
    how: Any = {"outcome": options.outcome, "columns": options.columns}
    how |= {"reference": options.references, "interactions": options.pairs}
    if options.by is None:
        logit = of_contrib("imputed-odds", "--reader imputed", ReleaseError)
        return regression(logit(release, **how), options.alpha, {}, exponentiate=options.exponentiate)
    if options.exponentiate:
        raise ReleaseError("--exponentiate is for odds ratios, and --by prints risks, which are none; omit one")
    risks = of_contrib("imputed-risks", "--reader imputed --by", ReleaseError)
    table = risks(release, **how, by=options.by, alpha=options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def _site_levels(rounds: list[Release], options: TableOptions) -> TableResult:
    read = of_contrib("site-levels", "--reader site-levels", ReleaseError)
    table = read(rounds, options.columns, unclipped=options.unclipped)
    return regression(table, options.alpha, {}, exponentiate=options.exponentiate)


READERS: Mapping[str, Callable[[list[Release], TableOptions], TableResult]] = {
    "ols": _ols,
    "fixed-effects": lambda rounds, options: regression(
        inference.fixed_effects(rounds[0], columns=options.columns), options.alpha, {}
    ),
    "mixed": lambda rounds, options: regression(inference.mixed(rounds[0], columns=options.columns), options.alpha, {}),
    "km": _kaplan_meier,
    "proportions": _proportions,
    "averages": _averages,
    "missing": _missing,
    "table-one": _table_one,
    "scorecard": _scorecard,
    "effect": _effect,
    "logit": _logit,
    "poisson": _poisson,
    "hazards": lambda rounds, options: hazard_ratios(inference.hazards(rounds), options.alpha, forest=options.forest),
    "imputed": _imputed,
    "site-levels": _site_levels,
    "score": lambda rounds, options: score(inference.head_score(rounds[0], alpha=options.alpha)),
}
"""The function that builds each reader's table from the releases and its options, by the reader's name."""
