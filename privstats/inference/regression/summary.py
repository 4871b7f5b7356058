"""Format a regression, its contrasts or its ratios as tables for publication."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.description import Count, Description, Law, degrees_text, labelled, level_labels
from privstats.inference.inversion import Inversion
from privstats.inference.last_step import LastStep
from privstats.inference.regression.clipping import Hidden, cut_caution
from privstats.inference.regression.interactions import interaction_lines, interaction_notes
from privstats.inference.releases import reckoned_sigma
from privstats.inference.reporting import HIDDEN, Source, listed, texts_of
from privstats.inference.summary import Summary, chance_of, ends_of, number_of
from privstats.kinds import ScoreSchema

if TYPE_CHECKING:
    from privstats.inference.regression.cell_table import CellTable
    from privstats.inference.regression.table import Regression
    from privstats.release import Release

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
_ABSENT = "not in these sums"
_CLEAR = 2.0  # standard deviations of its noise from which on a variance over the mean is shown
_PARTS_BELOW = (
    "std err is estimated from few parts, and noise SE is known: std err can be the smaller of the two by chance."
)
_PARTS = ("folds", "groups")
_OF_NOISE = "Satterthwaite"  # whose degrees count that a part of the variance is noise of known size
_WHY = "a warning below states the reason"


def summarise(table: Regression, alpha: float) -> Summary:
    """Return a regression's table."""
    low, high = table.conf_int(alpha).T
    columns = (table.errors.estimate, table.bse, table.noise_bse, table.tvalues, table.pvalues, low, high)
    shown, about = len(table.names) - (table.names[0] == "const"), description_of(table, "coef")
    law, names = law_of(table), printed_names(table)
    return source_of(table, alpha).summary(
        table.model,
        ("", "coef", "std err", "noise SE", law.letter, *law.columns, law.heading, *ends_of(alpha)),
        (
            (name, *_cells(reported, *map(float, values), degrees=law.cells(place)))
            for place, (name, reported, *values) in enumerate(
                zip(names, table.errors.reported(alpha), *columns, strict=True)
            )
        ),
        head=head_of(table),
        notes=(
            f"{shown} of {table.columns} released {'contrasts' if table.column_cells else 'columns'} shown.",
            *interaction_notes(table),
            *_count_notes(table),
        ),
        warnings=table.notes,
        methods=fitted_words(table),
        about=about,
    )


def description_of(table: Regression, heading: str, law: Law | None = None) -> Description:
    """Return what a regression's rows are.

    Args:
        table: the fit.
        heading: of the estimates: ``"coef"``, ``"contrast"``, or a ratio's name.
        law: of the rows, if not of the parameters.
    """
    parts = table.cov_type in _PARTS and bool((table.noise_bse > table.bse)[table.reported].any())
    return Description(
        estimand=(heading, _estimand(table, heading)),
        counts=table.tally,
        law=law_of(table) if law is None else law,
        notes=(_PARTS_BELOW,) if parts else (),
    )


def _estimand(table: Regression, heading: str) -> str:
    """Return what an estimate is: of what, in which direction and unit."""
    ratio = ratio_of(table.model)
    levels = table.release.plan.schema.reading.levels
    outcomes = () if levels is None else levels.outcomes
    named = next((f" of {each.name}: {each.values[1]}" for each in outcomes if hasattr(each, "values")), "")
    what = "mean of the target" if ratio is None else f"log {ratio.removesuffix(' ratio')}{named}"
    per = "of a cell less its column's reference cell" if table.column_cells else "per unit of a column"
    if heading in ("coef", "contrast"):
        return f"difference in the {what} {per}, other columns equal"
    return f"{ratio}{named} {per.replace('less', 'over')}, other columns equal"


def law_of(table: Regression, degrees: Sequence[float] | None = None) -> Law:
    """Return the law of a regression's P values; of its parameters, or of rows with these degrees."""
    rows = table.df if degrees is None else degrees
    own = table.errors.errors if isinstance(table.errors, Hidden) else table.errors
    noisy = table.release.plan.noise is not None
    return Law.of(
        rows,
        table.df_reason,
        stated=table.df_resid,
        estimated=noisy and _OF_NOISE in table.df_reason,
        inverted=noisy and isinstance(own, Inversion | LastStep),
    )


def printed_names(table: Regression) -> list[str]:
    """Return the names of rows: a column of two texts with the text that counts as 1."""
    labels = level_labels(table.release.plan.schema.reading.levels)
    return [labelled(name, labels) for name in table.names]


def tally_of(table: Regression) -> tuple[Count, ...]:
    """Return the numbers of records, and of events, that a regression's sums hold."""
    if table.nobs is not None:
        return (Count("records", table.nobs, table.nobs_sigma),)
    admitted = f"{_ABSENT}: the plan admits at most {table.release.plan.cohort.max_records:,}"
    events = _events(table.release)
    return Count("records", None, absent=admitted), events or Count("events", None, absent=_ABSENT)


def _events(release: Release) -> Count | None:
    """Return the sum of counts of a Poisson round, ``sum y = sum m + sum (y - m)``, from the constant's entries."""
    schema = release.plan.schema
    if not isinstance(schema, ScoreSchema) or schema.family != "poisson" or schema.constant is None:
        return None
    if schema.negative_binomial is not None:  # records then weigh less than 1
        return None
    one, sigma = schema.on_grid(schema.constant), reckoned_sigma(release)
    H, g = np.asarray(release.moments.H)[-1, -1] / one**2, np.asarray(release.moments.g)[-1] / one
    return Count("events", float(H + g), math.hypot(sigma["H"] / one**2, sigma["g"] / one))


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
    why = _WHY if isinstance(table.errors, Hidden) else ""
    return Source(table.release, alpha, assumed, plans, converged=table.converged, why=why)


def fitted_words(table: Regression) -> str:
    """Describe how a regression was fitted."""
    columns = [each.name for each in table.column_cells] or [name for name in table.names if name != "const"]
    rounds = f", in {table.rounds} rounds of score and information" if table.rounds > 1 else ""
    return f"{table.model} on {listed(columns)}{rounds}; standard errors are {table.cov_type} ({table.cov_reason})."


def cells_summary(table: CellTable) -> Summary:
    """Return the table of contrasts."""
    fit, level, law = table.regression, table.level, law_of(table.regression, table.df.tolist())
    numbers = (level.value, 0.0, 0.0, 0.0, level.pvalue, level.low, level.high)
    shown = _cells(level.reported, *numbers, degrees=law.cells(0) and (degrees_text(float(fit.df[0])),))
    rows = [("all references", shown[0], "", "", *shown[4:])]
    values = (table.estimate, table.error, table.noise_error, table.pvalue, table.low, table.high)
    return _of_cells(table).summary(
        f"{fit.model}: contrasts of cells",
        ("", "contrast", "std err", "noise SE", *law.columns, law.heading, *ends_of(table.alpha)),
        [*rows, *_by_column(table, law, _contrast, values, "reference")],
        head=head_of(fit),
        notes=("A contrast is the difference to the column's reference cell, other columns equal.", *_count_notes(fit)),
        warnings=fit.notes,
        methods=f"{fitted_words(fit)} A contrast is the difference to its column's reference cell.",
        about=description_of(fit, "contrast", law),
    )


def _contrast(reported: bool, *numbers: float, degrees: tuple[str, ...] = ()) -> list[str]:
    estimate, error, noise, p, low, high = numbers
    shown = _cells(reported, estimate, error, noise, 0.0, p, low, high, degrees=degrees)
    return shown[:3] + shown[4:]


def _of_cells(table: CellTable) -> Source:
    return source_of(table.regression, table.alpha, " effects of columns add up,")


def _by_column(
    table: CellTable, law: Law, shown: Callable[..., list[str]], values: Sequence[Array], reference: str
) -> Iterator[tuple[str, ...]]:
    before = ""
    for place, (column, cell, reported) in enumerate(zip(table.columns, table.cells, table.reported, strict=True)):
        numbers = shown(bool(reported), *(float(each[place]) for each in values), degrees=law.cells(place))
        if column != before:
            yield column, *[""] * len(numbers)
        yield f"  {cell}", *([reference, *[""] * (len(numbers) - 1)] if table.reference[place] else numbers)
        before = column


def head_of(table: Regression) -> tuple[tuple[str, str], ...]:
    """Return a regression's measures."""
    degrees, own = f"{table.df_resid:,.0f}", bool(law_of(table).columns)
    linear = (
        *(() if own else (("degrees of freedom", degrees),)),
        ("R-squared", HIDDEN if table.rsquared is None else f"{table.rsquared:.3f}"),
        ("residual std", f"{math.sqrt(table.scale):.4g}" + (f", from {degrees} degrees of freedom" if own else "")),
    )
    return (
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
    shown = HIDDEN if not ratio > _CLEAR * error else f"{ratio:.3g} (noise SE {error:.2g}); 1 for {model}"
    return (("variance over mean" if alpha is None else "variance over the model's", shown), *_overdispersed(table))


def _overdispersed(table: Regression) -> tuple[tuple[str, str], ...]:
    if (found := table.overdispersion) is None:
        return ()
    ends = f"{found.value:.3g} ({found.low:.3g} to {found.high:.3g}); 0 for a Poisson model"
    return (("overdispersion", ends if found.reported else HIDDEN),)


def _cells(
    reported: bool,
    coef: float,
    error: float,
    noise: float,
    statistic: float,
    p: float,
    low: float,
    high: float,
    *,
    degrees: tuple[str, ...] = (),
) -> list[str]:
    chance = chance_of(p)
    if not reported:
        return [HIDDEN, HIDDEN, HIDDEN, HIDDEN, *degrees, chance, "-inf", "inf"]
    shown = [*map(number_of, (coef, error, noise)), f"{statistic:.2f}", *degrees, chance]
    return [*shown, number_of(low), number_of(high)]


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
    name, law = _named(table.model), law_of(table)
    return source_of(table, alpha).summary(
        f"{table.model}: {name}s",
        ratio_columns(name, alpha, law),
        ratio_rows(table, alpha, law),
        head=(*head_of(table)[:-1], ("standard errors", f"of log {name}s, {table.cov_type} ({table.cov_reason})")),
        notes=(
            f"Each {name} is per unit of its column; the constant is no ratio and is excluded.",
            *interaction_notes(table),
            *_count_notes(table),
        ),
        warnings=table.notes,
        methods=f"{fitted_words(table)} Coefficients are exponentiated: {name}s.",
        about=description_of(table, name),
    )


def ratio_columns(name: str, alpha: float, law: Law) -> tuple[str, ...]:
    """Return the headings of ratios."""
    return ("", name, *ends_of(alpha), f"log {name}", "std err", "noise SE", *law.columns, law.heading)


def ratio_rows(table: Regression, alpha: float, law: Law) -> tuple[tuple[str, ...], ...]:
    """Return rows of ratios with intervals."""
    columns = (table.errors.estimate, *table.conf_int(alpha).T, table.bse, table.noise_bse, table.pvalues)
    rows = zip(printed_names(table), table.errors.reported(alpha), *columns, strict=True)
    return tuple(
        (name, *_ratio_cells(bool(reported), *map(float, values), degrees=law.cells(place)))
        for place, (name, reported, *values) in enumerate(rows)
        if table.names[place] != "const"
    )


def _ratio_cells(
    reported: bool,
    log: float,
    low: float,
    high: float,
    error: float,
    noise: float,
    p: float,
    *,
    degrees: tuple[str, ...] = (),
) -> list[str]:
    if not reported:
        return [HIDDEN, "0", "inf", HIDDEN, HIDDEN, HIDDEN, *degrees, chance_of(p)]
    shown = (*map(float, _exp([log, low, high])), log, error, noise)
    return [*map(number_of, shown), *degrees, chance_of(p)]


def cells_as_ratios(table: CellTable) -> Summary:
    """Return ratios to the reference."""
    fit, name = table.regression, _named(table.regression.model)
    law = law_of(fit, table.df.tolist())
    values = (table.estimate, table.low, table.high, table.error, table.noise_error, table.pvalue)
    against = f"{name} of a cell against its column's reference cell, other columns equal"
    return _of_cells(table).summary(
        f"{fit.model}: {name}s of cells",
        ratio_columns(name, table.alpha, law),
        _by_column(table, law, _ratio_cells, values, "1 (reference)"),
        head=head_of(fit),
        notes=(f"Each is the {against}; standard errors are of its logarithm.", *_count_notes(fit)),
        warnings=fit.notes,
        methods=f"{fitted_words(fit)} Shown is the {against}.",
        about=description_of(fit, name, law),
    )


def with_ratios(rows: Sequence[Mapping[str, object]], model: str) -> list[dict[str, object]]:
    """Return ratios without the constant; NaN and 0 to infinity where hidden."""
    ratios = {_named(model).replace(" ", "_"): "estimate", "ratio_low": "conf_low", "ratio_high": "conf_high"}
    return [
        {**row, **{name: float(_exp(row[log])) for name, log in ratios.items()}}
        for row in rows
        if row.get("term") != "const"
    ]
