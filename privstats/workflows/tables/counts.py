"""Read tables of counts and of means: survival, shares, averages, gaps and a paper's first table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from privstats import inference
from privstats.errors import ReleaseError
from privstats.inference import SurvivalCurve, SurvivalCurves, plot_survival
from privstats.inference.counts.averages import average_rows, averages_summary
from privstats.inference.counts.table import count_table
from privstats.inference.groups.shares import proportion_row
from privstats.inference.paragraph import proportions_summary
from privstats.release import Release
from privstats.workflows.tables.options import Grouped, OfAverages, OfShares, OfSurvival, OfTableOne
from privstats.workflows.tables.result import TableResult


def survival(releases: Sequence[Release], options: OfSurvival) -> TableResult:
    """Read survival by group and time, or risks, mean times or the follow-up of groups."""
    if sum(each not in (None, False) for each in (options.at, options.tau, options.follow_up)) > 1:
        raise ReleaseError("--at, --tau and --follow-up print a table each: pass one of them")
    if options.time is None or options.event is None or options.times is None:
        raise ReleaseError(
            "--reader km needs --time and --event, and --times discrete or continuous: name the variables of the "
            "plan; for table-one pass --by alone, for shares --reader proportions --column"
        )
    release = releases[0]
    how: Any = {name: getattr(options, name) for name in ("time", "event", "by", "times", "alpha")}
    late = {name: getattr(options, name) for name in ("entry", "start")}
    several = _causes(release, options.event) > 1
    if late["entry"] is not None and (several or options.follow_up or options.tau is not None):
        raise ReleaseError(
            "--entry is for curves and risks of one event: omit it, or --follow-up or --tau, and declare one cause"
        )
    if several:
        incidence = inference.cumulative_incidence(release, **how)
        return TableResult(incidence.summary(), incidence.to_rows(), incidence.reported)
    if options.follow_up:
        followed = inference.follow_up(release, **how)
        return TableResult(
            followed.summary(), followed.to_rows(), any(each.reported for each in followed.medians.values())
        )
    if options.tau is not None:
        means = inference.restricted_means(inference.kaplan_meier(release, **how), options.tau)
        return TableResult(means.summary(), means.to_rows(), means.difference.reported)
    if options.at is not None:
        risks = inference.risks_at(inference.kaplan_meier(release, **how, **late), options.at)
        return TableResult(risks.summary(), risks.to_rows(), reported=True)
    return _curves(inference.kaplan_meier(release, **how, **late), options.time)


def _causes(release: Release, event: str) -> int:
    variables = getattr(release.plan.schema, "variables", ())
    return max((len(each.cells) - 1 for each in variables if each.name == event), default=1)


def _curves(curves: SurvivalCurve | SurvivalCurves, time: str) -> TableResult:
    groups = curves if isinstance(curves, SurvivalCurves) else SurvivalCurves({"": curves})
    reported = any(len(curve.timeline) for curve in groups.values())
    return TableResult(groups.summary(), groups.to_rows(), reported, partial(plot_survival, curves, xlabel=time))


def shares(releases: Sequence[Release], options: OfShares) -> TableResult:
    """Read a variable's shares by cell."""
    if options.columns is None or len(options.columns) != 1:
        raise ReleaseError("--reader proportions needs one --column: name a variable of the plan")
    (name,), release = options.columns, releases[0]
    cells = inference.proportions(release, name, alpha=options.alpha)
    table = count_table(release, name)
    rows = [
        {"variable": name, "level": cell, "n": float(n), "n_std_error": table.sigma, **proportion_row(share)}
        for (cell, share), n in zip(cells.items(), table.counts, strict=True)
    ]
    reported = any(share.reported for share in cells.values())
    return TableResult(proportions_summary(cells, release, options.alpha, name), rows, reported)


def averages(releases: Sequence[Release], options: OfAverages) -> TableResult:
    """Read means of numbers."""
    release = releases[0]
    numbers = [number.name for number in getattr(release.plan.schema, "numbers", None) or ()]
    averages = {name: inference.averages(release, name, alpha=options.alpha) for name in options.columns or numbers}
    if not averages:
        raise ReleaseError("--reader averages needs numbers, and this plan has none: add [[schema.numbers]]")
    rows = average_rows(averages)
    summary = averages_summary(rows, release, options.alpha)
    return TableResult(summary, rows, any(bool(row["reported"]) for row in rows))


def missing(releases: Sequence[Release], options: Grouped) -> TableResult:
    """Read how many values are missing."""
    table = inference.missing_values(releases[0], by=options.by, alpha=options.alpha)
    return TableResult(table.summary(), table.to_rows(), table.reported)


def table_one(releases: Sequence[Release], options: OfTableOne) -> TableResult:
    """Read columns by group: means and deviations, or numbers and shares."""
    how: Any = {name: getattr(options, name) for name in ("by", "columns", "alpha")}
    groups = inference.table_one(releases[0], **how, binary=options.binary or (), tests=options.tests)
    return TableResult(groups.summary(), groups.to_rows(), bool(np.any(groups.reported)))
