"""A regression, and contrasts of its columns' cells, as tables for publication.

Words and columns only; every number comes from the result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privstats.inference.reporting import HIDDEN, Source, listed
from privstats.inference.summary import Summary, chance_of, ends_of, number_of

if TYPE_CHECKING:  # a regression brings its own summary, so nothing of it is run here
    from privstats.inference.regression.cell_table import CellTable
    from privstats.inference.regression.table import Regression

__all__ = ["cells_summary", "fitted_words", "head_of", "source_of", "summarise"]


def summarise(table: Regression, alpha: float) -> Summary:
    """The table of a regression at one level."""
    told = table.errors.told(alpha)
    low, high = table.conf_int(alpha).T
    columns = (table.errors.estimate, table.bse, table.noise_bse, table.tvalues, table.pvalues, low, high)
    rows = tuple(
        (name, *_cells(seen, *(float(value) for value in values)))
        for name, seen, *values in zip(table.names, told, *columns, strict=True)
    )
    shown = len(table.names) - (table.names[0] == "const")
    source = source_of(table, alpha)
    return Summary(
        title=source.title(table.model),
        promise=source.promise,
        head=head_of(table),
        columns=("", "coef", "std err", "of it noise", "t", "P>|t|", *ends_of(alpha)),
        rows=rows,
        foot=(
            *source.foot,
            f"{shown} of {table.columns} released {'contrasts' if table.column_cells else 'columns'} shown.",
            *(f"Warning: {note}." for note in table.notes),
        ),
        methods=source.methods(fitted_words(table)),
    )


def source_of(table: Regression, alpha: float, more: str = "") -> Source:
    """What a regression's table rests on; ``more`` is assumed too."""
    assumed = f"{table.assumed},{more} independent records, negligible clipping, honest clients"
    return Source(table.release, alpha, assumed, (*table.counts, *(table.release.plan,) * table.rounds))


def fitted_words(table: Regression) -> str:
    """How a regression was fitted."""
    columns = [each.name for each in table.column_cells] or [name for name in table.names if name != "const"]
    rounds = f", in {table.rounds} rounds of score and information" if table.rounds > 1 else ""
    return f"{table.model} on {listed(columns)}{rounds}; standard errors are {table.cov_type} ({table.cov_reason})."


def cells_summary(table: CellTable) -> Summary:
    """Contrasts of each column's cells, one row per cell."""
    fit, level = table.regression, table.level
    shown = _cells(level.told, level.value, 0.0, 0.0, 0.0, level.pvalue, level.low, level.high)
    rows = [("all references", shown[0], "", "", *shown[4:])]
    errors = (table.estimate, table.error, table.noise_error, table.pvalue, table.low, table.high)
    before = ""
    for place, (column, cell, told) in enumerate(zip(table.columns, table.cells, table.told, strict=True)):
        estimate, error, noise, p, low, high = (float(values[place]) for values in errors)
        said = ["reference", "", "", "", "", ""]
        if not table.reference[place]:
            said = _cells(bool(told), estimate, error, noise, 0.0, p, low, high)
            del said[3]
        if column != before:
            rows.append((column, *[""] * 6))
        rows.append((f"  {cell}", *said))
        before = column
    source = source_of(fit, table.alpha, " effects of columns add up,")
    return Summary(
        title=source.title(f"{fit.model}: contrasts of cells"),
        promise=source.promise,
        head=head_of(fit),
        columns=("", "contrast", "std err", "of it noise", "P>|t|", *ends_of(table.alpha)),
        rows=tuple(rows),
        foot=(
            *source.foot,
            "A contrast is the difference to the column's reference cell, other columns equal.",
            *(f"Warning: {note}." for note in fit.notes),
        ),
        methods=source.methods(f"{fitted_words(fit)} A contrast is the difference to its column's reference cell."),
    )


def head_of(table: Regression) -> tuple[tuple[str, str], ...]:
    """Records and measures of a regression, the last of them the standard errors."""
    noisy = " (noisy)" if table.release.plan.noise is not None else ""
    records = () if table.nobs is None else (("records", f"{table.nobs:,.0f}{noisy}"),)
    linear = (
        ("degrees of freedom", f"{table.df_resid:,.0f}"),
        ("R-squared", HIDDEN if table.rsquared is None else f"{table.rsquared:.3f}"),
        ("residual std", f"{math.sqrt(table.scale):.4g}"),
    )
    return (
        *records,
        *(linear if math.isfinite(table.df_resid) else ()),
        ("condition number", HIDDEN if table.condition_number is None else f"{table.condition_number:.3g}"),
        ("standard errors", f"{table.cov_type} ({table.cov_reason})"),
    )


def _cells(
    told: bool, coef: float, error: float, noise: float, t: float, p: float, low: float, high: float
) -> list[str]:
    chance = chance_of(p)
    if not told:
        return [HIDDEN, HIDDEN, HIDDEN, HIDDEN, chance, "-inf", "inf"]
    return [number_of(coef), number_of(error), number_of(noise), f"{t:.2f}", chance, number_of(low), number_of(high)]
