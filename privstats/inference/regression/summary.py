"""Format a regression, its contrasts or its ratios as tables for publication."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.regression.clipping import cut_caution
from privstats.inference.regression.interactions import interaction_lines, interaction_notes
from privstats.inference.reporting import HIDDEN, Source, listed, texts_of
from privstats.inference.summary import Summary, chance_of, count_of, ends_of, number_of

if TYPE_CHECKING:
    from privstats.inference.regression.cell_table import CellTable
    from privstats.inference.regression.table import Regression

_OVERDISPERSION = (
    "Overdispersion is alpha of a negative binomial model, in which counts of mean m vary by m + alpha m^2; the "
    "interval, of 95 %, assumes that, and those of coefficients do not. A cut of counts lowers alpha: the interval's "
    "high end allows for that, and the estimate does not."
)
_RATIOS = {
    "Hazard ratios": "hazard ratio",
    "Logistic regression": "odds ratio",
    "Logistic regression with imputed gaps": "odds ratio",
    "Logistic regression with a random intercept by site": "odds ratio",
    "Poisson regression": "rate ratio",
}
_COUNTS = "Poisson regression"


def summarise(table: Regression, alpha: float) -> Summary:
    """Return a regression's table."""
    low, high = table.conf_int(alpha).T
    columns = (table.errors.estimate, table.bse, table.noise_bse, table.tvalues, table.pvalues, low, high)
    shown = len(table.names) - (table.names[0] == "const")
    return source_of(table, alpha).summary(
        table.model,
        ("", "coef", "std err", "noise SE", "t", "P>|t|", *ends_of(alpha)),
        (
            (name, *_cells(reported, *map(float, values)))
            for name, reported, *values in zip(table.names, table.errors.reported(alpha), *columns, strict=True)
        ),
        head=head_of(table),
        notes=(
            f"{shown} of {table.columns} released {'contrasts' if table.column_cells else 'columns'} shown.",
            *interaction_notes(table),
            *_count_notes(table),
        ),
        warnings=table.notes,
        methods=fitted_words(table),
    )


def _count_notes(table: Regression) -> Iterator[str]:
    """Yield what a table of counts states about its cut, and about the dispersion where it has one."""
    if table.model == _COUNTS:
        yield cut_caution(getattr(table.release.plan.schema, "target_bound", math.inf))
    if table.overdispersion is not None:
        yield _OVERDISPERSION


def source_of(table: Regression, alpha: float, more: str = "") -> Source:
    """Return a regression table's basis."""
    assumed = f"{table.assumed},{more} independent records, negligible clipping, honest clients"
    plans = (*table.counts, *(table.release.plan,) * table.rounds)
    return Source(table.release, alpha, assumed, plans, converged=table.converged)


def fitted_words(table: Regression) -> str:
    """Describe how a regression was fitted."""
    columns = [each.name for each in table.column_cells] or [name for name in table.names if name != "const"]
    rounds = f", in {table.rounds} rounds of score and information" if table.rounds > 1 else ""
    return f"{table.model} on {listed(columns)}{rounds}; standard errors are {table.cov_type} ({table.cov_reason})."


def cells_summary(table: CellTable) -> Summary:
    """Return the table of contrasts."""
    fit, level = table.regression, table.level
    shown = _contrast(level.reported, level.value, 0.0, 0.0, level.pvalue, level.low, level.high)
    rows = [("all references", shown[0], "", "", *shown[3:])]
    values = (table.estimate, table.error, table.noise_error, table.pvalue, table.low, table.high)
    return _of_cells(table).summary(
        f"{fit.model}: contrasts of cells",
        ("", "contrast", "std err", "noise SE", "P>|t|", *ends_of(table.alpha)),
        [*rows, *_by_column(table, _contrast, values, "reference")],
        head=head_of(fit),
        notes=("A contrast is the difference to the column's reference cell, other columns equal.", *_count_notes(fit)),
        warnings=fit.notes,
        methods=f"{fitted_words(fit)} A contrast is the difference to its column's reference cell.",
    )


def _contrast(reported: bool, *numbers: float) -> list[str]:
    estimate, error, noise, p, low, high = numbers
    shown = _cells(reported, estimate, error, noise, 0.0, p, low, high)
    return shown[:3] + shown[4:]


def _of_cells(table: CellTable) -> Source:
    return source_of(table.regression, table.alpha, " effects of columns add up,")


def _by_column(
    table: CellTable, shown: Callable[..., list[str]], values: Sequence[Array], reference: str
) -> Iterator[tuple[str, ...]]:
    before = ""
    for place, (column, cell, reported) in enumerate(zip(table.columns, table.cells, table.reported, strict=True)):
        numbers = shown(bool(reported), *(float(each[place]) for each in values))
        if column != before:
            yield column, *[""] * len(numbers)
        yield f"  {cell}", *([reference, *[""] * (len(numbers) - 1)] if table.reference[place] else numbers)
        before = column


def head_of(table: Regression) -> tuple[tuple[str, str], ...]:
    """Return a regression's records and measures."""
    noisy = " (noisy)" if table.release.plan.noise is not None else ""
    records = () if table.nobs is None else (("records", f"{count_of(table.nobs)}{noisy}"),)
    linear = (
        ("degrees of freedom", f"{table.df_resid:,.0f}"),
        ("R-squared", HIDDEN if table.rsquared is None else f"{table.rsquared:.3f}"),
        ("residual std", f"{math.sqrt(table.scale):.4g}"),
    )
    return (
        *records,
        *(linear if math.isfinite(table.df_resid) else ()),
        ("condition number", HIDDEN if table.condition_number is None else f"{table.condition_number:.3g}"),
        *texts_of(table.release),
        *_exposed(table),
        *_dispersed(table),
        *interaction_lines(table),
        ("standard errors", f"{table.cov_type} ({table.cov_reason})"),
    )


def _exposed(table: Regression) -> tuple[tuple[str, str], ...]:
    exposure = getattr(table.release.plan.schema, "exposure", None)
    return () if exposure is None else (("exposure", f"{exposure}: coefficients are of rates per unit of it"),)


def _dispersed(table: Regression) -> tuple[tuple[str, str], ...]:
    if table.dispersion is None:
        return ()
    ratio, error = table.dispersion
    alpha = getattr(table.release.plan.schema, "negative_binomial", None)
    model = "a Poisson model" if alpha is None else f"a negative binomial model of dispersion {alpha:g}"
    shown = HIDDEN if math.isnan(ratio) else f"{ratio:.3g} (noise SE {error:.2g}); 1 for {model}"
    return (("variance over mean" if alpha is None else "variance over the model's", shown), *_overdispersed(table))


def _overdispersed(table: Regression) -> tuple[tuple[str, str], ...]:
    if (found := table.overdispersion) is None:
        return ()
    ends = f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g}); 0 for a Poisson model"
    return (("overdispersion", ends if found.reported else HIDDEN),)


def _cells(
    reported: bool, coef: float, error: float, noise: float, t: float, p: float, low: float, high: float
) -> list[str]:
    chance = chance_of(p)
    if not reported:
        return [HIDDEN, HIDDEN, HIDDEN, HIDDEN, chance, "-inf", "inf"]
    return [number_of(coef), number_of(error), number_of(noise), f"{t:.2f}", chance, number_of(low), number_of(high)]


def ratio_of(model: str) -> str | None:
    """Return the name of a coefficient's ``exp``, or None."""
    return _RATIOS.get(model)


def _named(model: str) -> str:
    name = ratio_of(model)
    if name is None:
        raise ReleaseError(
            "exponentiate is for logistic and Poisson regressions and hazards, whose coefficients are logarithms of "
            f"ratios; a {model.lower()} has none: omit it"
        )
    return name


def _exp(numbers: Any) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(numbers))


def ratios_summary(table: Regression, alpha: float) -> Summary:
    """Return a regression's ratios; errors are of logarithms."""
    name = _named(table.model)
    return source_of(table, alpha).summary(
        f"{table.model}: {name}s",
        ratio_columns(name, alpha),
        ratio_rows(table, alpha),
        head=(*head_of(table)[:-1], ("standard errors", f"of log {name}s, {table.cov_type} ({table.cov_reason})")),
        notes=(
            f"Each {name} is per unit of its column; the constant is no ratio and is excluded.",
            *interaction_notes(table),
            *_count_notes(table),
        ),
        warnings=table.notes,
        methods=f"{fitted_words(table)} Coefficients are exponentiated: {name}s.",
    )


def ratio_columns(name: str, alpha: float) -> tuple[str, ...]:
    """Return the headings of ratios."""
    return ("", name, *ends_of(alpha), f"log {name}", "std err", "noise SE", "P>|t|")


def ratio_rows(table: Regression, alpha: float) -> tuple[tuple[str, ...], ...]:
    """Return rows of ratios with intervals."""
    columns = (table.errors.estimate, *table.conf_int(alpha).T, table.bse, table.noise_bse, table.pvalues)
    return tuple(
        (name, *_ratio_cells(bool(reported), *map(float, values)))
        for name, reported, *values in zip(table.names, table.errors.reported(alpha), *columns, strict=True)
        if name != "const"
    )


def _ratio_cells(
    reported: bool, log: float, low: float, high: float, error: float, noise: float, p: float
) -> list[str]:
    if not reported:
        return [HIDDEN, "0", "inf", HIDDEN, HIDDEN, HIDDEN, chance_of(p)]
    shown = (*map(float, _exp([log, low, high])), log, error, noise)
    return [*map(number_of, shown), chance_of(p)]


def cells_as_ratios(table: CellTable) -> Summary:
    """Return ratios to the reference."""
    fit, name = table.regression, _named(table.regression.model)
    values = (table.estimate, table.low, table.high, table.error, table.noise_error, table.pvalue)
    against = f"{name} of a cell against its column's reference cell, other columns equal"
    return _of_cells(table).summary(
        f"{fit.model}: {name}s of cells",
        ratio_columns(name, table.alpha),
        _by_column(table, _ratio_cells, values, "1 (reference)"),
        head=head_of(fit),
        notes=(f"Each is the {against}; standard errors are of its logarithm.", *_count_notes(fit)),
        warnings=fit.notes,
        methods=f"{fitted_words(fit)} Shown is the {against}.",
    )


def with_ratios(rows: Sequence[Mapping[str, object]], model: str) -> list[dict[str, object]]:
    """Return ratios without the constant; NaN and 0 to infinity where hidden."""
    ratios = {_named(model).replace(" ", "_"): "estimate", "ratio_low": "conf_low", "ratio_high": "conf_high"}
    return [
        {**row, **{name: float(_exp(row[log])) for name, log in ratios.items()}}
        for row in rows
        if row.get("term") != "const"
    ]
