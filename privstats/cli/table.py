"""``privstats table``: the regression table of a release file."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from privstats import inference
from privstats.plain import json_text
from privstats.release import Release

__all__ = ["app"]

app = typer.Typer()


class Form(Enum):
    """How a table is written."""

    TEXT = "text"
    CSV = "csv"
    HTML = "html"
    LATEX = "latex"
    JSON = "json"


@app.command()
def table(
    release: Annotated[Path, typer.Argument(help="A release of a ridge schema.", metavar="RELEASE")],
    columns: Annotated[
        list[str] | None, typer.Option("--column", help="A column of the model; all if none is named.", metavar="NAME")
    ] = None,
    target: Annotated[int | None, typer.Option(help="Which target, where there are several.")] = None,
    records: Annotated[
        int | None, typer.Option(help="Number of records, public, where no constant column tells it.")
    ] = None,
    alpha: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.05,
    form: Annotated[Form, typer.Option("--format", help="How to write it.")] = Form.TEXT,
) -> None:
    """Print a regression table: coefficients with errors, intervals and p-values that hold under the release's noise.

    Exit code 1 where noise hides every coefficient.
    """
    found = inference.ols(Release.load(release), columns=columns, target=target, records=records)
    typer.echo(_written(found, alpha, form))
    if not found.errors.told(alpha).any():
        raise typer.Exit(1)


def _written(found: inference.Regression, alpha: float, form: Form) -> str:
    summary = found.summary(alpha)
    match form:
        case Form.TEXT:
            return summary.as_text()
        case Form.CSV:
            return summary.as_csv().rstrip("\n")
        case Form.HTML:
            return summary.as_html()
        case Form.LATEX:
            return summary.as_latex()
        case Form.JSON:
            return json_text(_facts(found, alpha))


def _facts(found: inference.Regression, alpha: float) -> dict[str, object]:
    low, high = found.conf_int(alpha).T
    columns = {
        "coef": found.params,
        "std_err": found.bse,
        "noise_std_err": found.noise_bse,
        "pvalue": found.pvalues,
        "low": low,
        "high": high,
    }
    told = found.errors.told(alpha)
    rows = [
        {"name": name, "told": bool(told[i])} | {key: float(values[i]) for key, values in columns.items()}
        for i, name in enumerate(found.names)
    ]
    return {
        "plan_digest": found.release.plan.digest,
        "alpha": alpha,
        "cov_type": found.cov_type,
        "records": found.nobs,
        "notes": found.notes,
        "rows": rows,
    }
