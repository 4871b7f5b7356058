"""``privstats table``: the table of a release file, by the reader that fits what it measures."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from privstats import inference
from privstats.errors import ReleaseError
from privstats.files.jsonable import json_text
from privstats.inference.summary import Summary, curve_summary, means_summary, proportions_summary
from privstats.inference.survival import Times
from privstats.release import Release
from privstats.workflows.readers import TABLES, sent

__all__ = ["app"]

app = typer.Typer()


class Reader(Enum):
    """What is computed."""

    OLS = "ols"
    FIXED_EFFECTS = "fixed-effects"
    MIXED = "mixed"
    KAPLAN_MEIER = "km"
    PROPORTIONS = "proportions"
    TABLE_ONE = "table-one"
    LOGIT = "logit"
    POISSON = "poisson"


class Form(Enum):
    """How a table is written."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"
    LATEX = "latex"
    JSON = "json"


@app.command()
def table(
    releases: Annotated[
        list[Path], typer.Argument(help="A release; for logit and poisson those of all rounds, in order.")
    ],
    chosen: Annotated[
        Reader | None, typer.Option("--reader", help="What to compute. [the first that fits the release]")
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="ols, fixed-effects, mixed: of the model; all if none is named. proportions: which.",
            metavar="NAME",
        ),
    ] = None,
    target: Annotated[int | None, typer.Option(help="ols: which target, where there are several.")] = None,
    records: Annotated[
        int | None, typer.Option(help="ols: number of records, public, where no constant column tells it.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="km: the variable of times.", metavar="NAME")] = None,
    event: Annotated[str | None, typer.Option(help="km: the variable of events.", metavar="NAME")] = None,
    by: Annotated[str | None, typer.Option(help="km: the variable of groups.", metavar="NAME")] = None,
    times: Annotated[
        Times, typer.Option(help="km: discrete where every bin is one time, continuous where it is a span of them.")
    ] = "discrete",
    figure: Annotated[
        Path | None, typer.Option(help="km: draw the curves with their bands too (.svg, .png, .pdf).")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.05,
    form: Annotated[Form, typer.Option("--format", help="How to write it.")] = Form.TEXT,
) -> None:
    """Print estimates with intervals that hold under the release's noise: a regression, survival, shares or means.

    Exit code 1 where noise hides all of it.
    """
    rounds = [Release.load(release) for release in releases]
    read = rounds[-1]
    reader = chosen or _fitting(read)
    if len(rounds) > 1 and reader not in (Reader.LOGIT, Reader.POISSON):
        raise ReleaseError(f"--reader {reader.value} takes one release, got {len(rounds)}; name one file")
    match reader:
        case Reader.LOGIT:
            found = _regression(inference.logit(rounds), alpha)
        case Reader.POISSON:
            found = _regression(inference.poisson(rounds), alpha)
        case Reader.OLS:
            found = _regression(inference.ols(read, columns=columns, target=target, records=records), alpha)
        case Reader.FIXED_EFFECTS:
            found = _regression(inference.fixed_effects(read, columns=columns), alpha)
        case Reader.MIXED:
            found = _regression(inference.mixed(read, columns=columns), alpha)
        case Reader.KAPLAN_MEIER:
            if time is None or event is None:
                raise ReleaseError("--reader km needs --time and --event: name the variables of the plan")
            curves = inference.kaplan_meier(read, time=time, event=event, by=by, times=times, alpha=alpha)
            found = _curves(curves, read, alpha)
        case Reader.PROPORTIONS:
            if columns is None or len(columns) != 1:
                raise ReleaseError("--reader proportions needs one --column: name a variable of the plan")
            found = _shares(inference.proportions(read, columns[0], alpha=alpha), read, alpha)
        case Reader.TABLE_ONE:
            found = _means(inference.table_one(read, alpha=alpha), read, alpha)
    if figure is not None:
        if reader is not Reader.KAPLAN_MEIER:
            raise ReleaseError(f"--figure draws survival curves, and --reader {reader.value} has none; leave it out")
        inference.plot_survival(curves, figure, xlabel=time or "")
    facts = {"reader": reader.value, "plan_digest": read.plan.digest, "alpha": alpha, "rows": found.rows}
    typer.echo(json_text(facts) if form is Form.JSON else _written(found.summary, form))
    if not found.told:
        raise typer.Exit(1)


def _fitting(release: Release) -> Reader:
    """The first reader that takes such a release."""
    schema = release.plan.schema
    fitting = [name for name, reader in TABLES.items() if reader.takes(schema)]
    if not fitting:
        raise ReleaseError(f"no table is read from {', '.join(sent(schema))} of a {type(schema).__name__}; fit a head")
    return Reader(fitting[0])


class _Found(NamedTuple):
    """A table to print, the same as rows of numbers, and whether any of it is told."""

    summary: Summary
    rows: list[dict[str, object]]
    told: bool


def _regression(table: inference.Regression, alpha: float) -> _Found:
    columns = {"coef": table.params, "std_err": table.bse, "noise_std_err": table.noise_bse, "pvalue": table.pvalues}
    columns["low"], columns["high"] = table.conf_int(alpha).T
    told = table.errors.told(alpha)
    rows = [
        {"name": name, "told": bool(told[i]), **{key: float(values[i]) for key, values in columns.items()}}
        for i, name in enumerate(table.names)
    ]
    return _Found(table.summary(alpha), rows, bool(told.any()))


def _curves(
    found: inference.SurvivalCurve | dict[str, inference.SurvivalCurve], release: Release, alpha: float
) -> _Found:
    curves = found if isinstance(found, dict) else {"": found}
    rows: list[dict[str, object]] = []
    for group, curve in curves.items():
        columns = (curve.timeline, curve.at_risk, curve.events, curve.survival_function_, *curve.confidence_interval_.T)
        keys = ("time", "at_risk", "events", "survival", "low", "high")
        rows += [
            {"group": group} | dict(zip(keys, map(float, values), strict=True)) for values in zip(*columns, strict=True)
        ]
    return _Found(curve_summary(curves, release, alpha), rows, bool(rows))


def _shares(shares: dict[str, inference.Interval], release: Release, alpha: float) -> _Found:
    rows = [{"cell": cell, **share._asdict()} for cell, share in shares.items()]
    return _Found(proportions_summary(shares, release, alpha), rows, any(share.told for share in shares.values()))


def _means(means: inference.GroupMeans, release: Release, alpha: float) -> _Found:
    rows = [
        {
            "column": column,
            "group": group,
            "told": bool(means.told[i]),
            "mean": float(means.means[i, j]),
            "low": float(means.low[i, j]),
            "high": float(means.high[i, j]),
            "std": float(means.deviations[i, j]),
        }
        for j, column in enumerate(means.columns)
        for i, group in enumerate(means.groups)
    ]
    return _Found(means_summary(means, release, alpha), rows, bool(means.told.any()))


def _written(summary: Summary, form: Form) -> str:
    match form:
        case Form.CSV:
            return summary.as_csv().rstrip("\n")
        case Form.HTML:
            return summary.as_html()
        case Form.LATEX:
            return summary.as_latex()
        case _:
            return summary.as_text()
