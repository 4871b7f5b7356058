"""Coefficients of logarithms as ratios: odds, rates and hazards, with the ends of their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.spectrum import Array
from privstats.inference.regression.summary import fitted_words, head_of, source_of
from privstats.inference.reporting import HIDDEN
from privstats.inference.summary import Summary, chance_of, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.regression.cell_table import CellTable
    from privstats.inference.regression.table import Regression

__all__ = ["cells_as_ratios", "ratio_of", "ratios_summary", "with_ratios"]

_RATIOS = {"Hazard ratios": "hazard ratio", "Logistic regression": "odds ratio", "Poisson regression": "rate ratio"}


def ratio_of(model: str) -> str | None:
    """What ``exp`` of a coefficient is called; None of a model whose coefficients are no logarithms."""
    return _RATIOS.get(model)


def _named(model: str) -> str:
    """The same, or a refusal.

    Raises:
        ReleaseError: coefficients of this model are no logarithms.
    """
    found = ratio_of(model)
    if found is None:
        raise ReleaseError(
            f"exponentiate serves logistic and Poisson regressions and hazards, whose coefficients are logarithms of "
            f"ratios; a {model.lower()} has none: leave it out"
        )
    return found


def _exp(numbers: Any) -> Array:
    """``exp``, infinite where that passes every float."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(numbers))


def ratios_summary(table: Regression, alpha: float) -> Summary:
    """The table of a regression's ratios at one level; errors are of their logarithms, and the constant has none."""
    name, told = _named(table.model), table.errors.told(alpha)
    columns = (table.errors.estimate, *table.conf_int(alpha).T, table.bse, table.noise_bse, table.pvalues)
    rows = tuple(
        (column, *_cells(bool(seen), *map(float, values)))
        for column, seen, *values in zip(table.names, told, *columns, strict=True)
        if column != "const"
    )
    source = source_of(table, alpha)
    return Summary(
        title=source.title(f"{table.model}: {name}s"),
        promise=source.promise,
        head=(*head_of(table)[:-1], ("standard errors", f"of log {name}s, {table.cov_type} ({table.cov_reason})")),
        columns=("", name, *ends_of(alpha), f"log {name}", "std err", "of it noise", "P>|t|"),
        rows=rows,
        foot=(
            *source.foot,
            f"Each {name} is per unit of its column; the constant is no ratio and is left out.",
            *(f"Warning: {note}." for note in table.notes),
        ),
        methods=source.methods(f"{fitted_words(table)} Coefficients are exponentiated: {name}s."),
    )


def _cells(told: bool, log: float, low: float, high: float, error: float, noise: float, p: float) -> list[str]:
    if not told:
        return [HIDDEN, "0", "inf", HIDDEN, HIDDEN, HIDDEN, chance_of(p)]
    shown = (*map(float, _exp([log, low, high])), log, error, noise)
    return [*map(number_of, shown), chance_of(p)]


def cells_as_ratios(table: CellTable) -> Summary:
    """Ratios of each column's cells to its reference cell, one row per cell."""
    fit, name, rows, before = table.regression, _named(table.regression.model), list[tuple[str, ...]](), ""
    errors = (table.estimate, table.low, table.high, table.error, table.noise_error, table.pvalue)
    for place, (column, cell, told) in enumerate(zip(table.columns, table.cells, table.told, strict=True)):
        said = ["1 (reference)", "", "", "", "", "", ""]
        if not table.reference[place]:
            said = _cells(bool(told), *(float(values[place]) for values in errors))
        if column != before:
            rows.append((column, *[""] * 7))
        rows.append((f"  {cell}", *said))
        before = column
    source = source_of(fit, table.alpha, " effects of columns add up,")
    against = f"{name} of a cell against its column's reference cell, other columns equal"
    return Summary(
        title=source.title(f"{fit.model}: {name}s of cells"),
        promise=source.promise,
        head=head_of(fit),
        columns=("", name, *ends_of(table.alpha), f"log {name}", "std err", "of it noise", "P>|t|"),
        rows=tuple(rows),
        foot=(
            *source.foot,
            f"Each is the {against}; standard errors are of its logarithm.",
            *(f"Warning: {note}." for note in fit.notes),
        ),
        methods=source.methods(f"{fitted_words(fit)} Shown is the {against}."),
    )


def with_ratios(rows: Sequence[Mapping[str, object]], model: str) -> list[dict[str, object]]:
    """Rows of coefficients with their ratios, ``ratio_low`` and ``ratio_high`` beside them; without the constant.

    A row that is not told has NaN, from 0 to infinity.
    """
    ratios = {_named(model).replace(" ", "_"): "estimate", "ratio_low": "conf_low", "ratio_high": "conf_high"}
    return [
        {**row, **{name: float(_exp(row[log])) for name, log in ratios.items()}}
        for row in rows
        if row.get("term") != "const"
    ]
