"""Read regressions as tables of coefficients, or of contrasts of declared cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from privstats import inference
from privstats.inference import CellTable, EffectTable, HazardRatios, Regression, plot_forest
from privstats.release import Release
from privstats.workflows.tables.options import OfColumns, OfHazards, OfLogit, OfOls, OfPoisson
from privstats.workflows.tables.result import TableResult


def regression(
    table: Regression, alpha: float, reference: Mapping[str, str], *, exponentiate: bool = False
) -> TableResult:
    """Return coefficients by name, without estimates that noise hides; for declared columns, contrasts of cells."""
    if table.column_cells or reference:
        return _cells(table.cells(reference=reference, alpha=alpha), exponentiate=exponentiate)
    summary, rows = table.summary(alpha, exponentiate=exponentiate), table.to_rows(alpha, exponentiate=exponentiate)
    tests = tuple(test.to_row() for test in table.interactions())
    return TableResult(summary, rows, bool(table.errors.reported(alpha).any()), forest(table, alpha), tests=tests)


def forest(table: Regression | EffectTable | Mapping[str, EffectTable], alpha: float) -> Callable[[Path], Any]:
    """Return the drawing of a forest plot."""
    tables: Any = table
    return lambda path: plot_forest(tables, path, alpha=alpha)


def _cells(table: CellTable, *, exponentiate: bool) -> TableResult:
    level = {"variable": "", "level": "all references", "reference": False, "reported": table.level.reported}
    level |= {"estimate": table.level.value, "p_value": table.level.pvalue}
    level |= {"conf_low": table.level.low, "conf_high": table.level.high}
    rows = [*([] if exponentiate else [level]), *table.to_rows(exponentiate=exponentiate)]
    return TableResult(table.summary(exponentiate=exponentiate), rows, bool(table.reported[~table.reference].any()))


def ols(releases: Sequence[Release], options: OfOls) -> TableResult:
    """Read a linear regression."""
    sums: Any = releases if len(releases) > 1 else releases[0]
    how: Any = {name: getattr(options, name) for name in ("columns", "target", "records", "unclipped", "gaps_as_cells")}
    return regression(inference.ols(sums, **how), options.alpha, options.references)


def fixed_effects(releases: Sequence[Release], options: OfColumns) -> TableResult:
    """Read a regression within sites."""
    return regression(inference.fixed_effects(releases[0], columns=options.columns), options.alpha, {})


def mixed(releases: Sequence[Release], options: OfColumns) -> TableResult:
    """Read a regression with a random intercept."""
    return regression(inference.mixed(releases[0], columns=options.columns), options.alpha, {})


def logit(releases: Sequence[Release], options: OfLogit) -> TableResult:
    """Read a logistic regression."""
    table = inference.logit(releases, gaps_as_cells=options.gaps_as_cells)
    return regression(table, options.alpha, options.references, exponentiate=options.exponentiate)


def poisson(releases: Sequence[Release], options: OfPoisson) -> TableResult:
    """Read a Poisson regression."""
    quasi, gaps = options.quasi_poisson, options.gaps_as_cells
    table = inference.poisson(releases, gaps_as_cells=gaps, quasi_poisson=quasi)
    return regression(table, options.alpha, options.references, exponentiate=options.exponentiate)


def hazards(releases: Sequence[Release], options: OfHazards) -> TableResult:
    """Read hazard ratios."""
    return hazard_ratios(inference.hazards(releases), options.alpha, forest_plot=options.forest)


def hazard_ratios(table: HazardRatios, alpha: float, *, forest_plot: bool) -> TableResult:
    """Return ratios with their logarithms, drawn as survival by arm if there are arms and one cause."""
    by_arm = not forest_plot and table.by is not None and table.counted is not None and len(table.causes) == 1
    draw = partial(table.plot, alpha=alpha) if by_arm else forest(table, alpha)
    return regression(table, alpha, {}, exponentiate=True)._replace(draw=draw)
