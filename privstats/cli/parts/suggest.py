"""``privstats plan suggest``: compute clip norm and grid from public features, and shares from a plan."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import TABLE, Dialect, Target, expanded, for_readers, option
from privstats.cli.parts.terminal import escape, table_of, terminal
from privstats.errors import PlanError
from privstats.files.text import json_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from privstats.inference import HalfWidth
    from privstats.moments import RecordFile
    from privstats.workflows.suggest import Choice, Suggestion


@dataclass(frozen=True)
class Guesses:
    """Assumptions from which interval widths are predicted."""

    variance: Annotated[
        float | None,
        option(
            "Predict intervals of --plan's regression, effect or hazards for columns of this variance where "
            "a range is mapped to -1 to 1: 0.33 if uniform.",
            "VARIANCE",
            flag="--half-width",
        ),
    ] = None
    residual: Annotated[float | None, option("With --half-width: residual spread of the outcome.", "STD")] = None
    treated: Annotated[float, option("With --half-width, in an observational study: share of the treated.")] = 0.5
    separation: Annotated[float, option("As --treated: spread of treatment's log odds, 0 for a coin.", "STD")] = 1.0
    rarest: Annotated[
        float | None, option("With --half-width: share of the rarest stratum, or of each column's last text.", "SHARE")
    ] = None


_for = partial(for_readers, "Suggest shares of --plan's budget for this table or head.", several=False)


@expanded
def suggest(
    dialect: Dialect,
    guesses: Guesses,
    public: Annotated[Path | None, option(f"Public features: .npy, records x features; or {TABLE}.")] = None,
    target: Target = None,
    labels: Annotated[Path | None, option("The labels of the public features (.npy, integers).")] = None,
    plan: Annotated[Path | None, option("Apply this plan's transform, and suggest shares for it.")] = None,
    tolerance: Annotated[float, option("Accuracy a choice may lose, 0 to 1.")] = 0.005,
    *,
    chosen: Annotated[Any, _for],
    as_json: Annotated[bool, option("Print JSON instead of tables.", flag="--json")] = False,
) -> None:
    """Show what clip norms and grids lose on public data, suggest one of each, or predict how wide intervals will be.

    With --plan alone it suggests shares of the plan's budget, for the reader that --for names.
    """
    if guesses.variance is not None:
        _show_widths(plan, vars(guesses), as_json)
        return
    if public is None:
        if plan is None:
            raise PlanError("pass public features with --public, or --plan for its shares or with --half-width")
        _show_shares(ps.Plan.read(plan), chosen.readers, as_json)
        return
    if chosen.readers is not None:
        raise PlanError("--for suggests shares and reads no public data: pass it with --plan and without --public")
    governing = ps.Plan.read(plan) if plan else None
    _suggest_from(_public(dialect.file(public, target), labels, governing), governing, tolerance, as_json)


def _suggest_from(records: tuple[Any, Any], governing: ps.Plan | None, tolerance: float, as_json: bool) -> None:
    from privstats.review.grid_cost import grid_sentences
    from privstats.workflows import suggest as public_data
    from privstats.workflows.readers import suggested

    transform = governing.schema.transform if governing else ()
    suggestion = public_data.suggest(*records, transform=transform, tolerance=tolerance)
    shares = suggested(governing) if governing is not None and governing.noise is not None else {}
    costs = [] if governing is None else grid_sentences(governing)
    _show_suggestion(suggestion, shares, costs, as_json)


def _show_suggestion(suggestion: Suggestion, shares: dict[str, float], costs: list[str], as_json: bool) -> None:
    if as_json:
        typer.echo(json_text({**asdict(suggestion), **({"shares": shares} if shares else {}), "plan_grid": costs}))
        return
    console = terminal()
    console.print(_table("Clipping, on a grid of 16 bits", suggestion.clips, suggestion))
    console.print(_table(f"Grid, at clip_norm = {suggestion.clip_norm:g}", suggestion.grids, suggestion))
    if suggestion.reference is not None:
        reference, error = 100 * suggestion.reference, 100 * (suggestion.error or 0.0)
        console.print(f"LDA without clip or grid: {reference:.2f} %, standard error {error:.2f}")
    console.print(f"\n\\[schema]\nclip_norm = {suggestion.clip_norm:g}\ngrid_bits = {suggestion.grid_bits}")
    if shares:
        _print_shares(console, shares)
    for line in (*suggestion.remarks, *costs):
        console.print(f"- {escape(line)}")


def _public(file: RecordFile, labels: Path | None, plan: ps.Plan | None) -> tuple[Any, Any]:
    import numpy as np

    from privstats.intake.arrays import file_rows

    if not file.is_table:
        return file_rows(file.path, "public")[:], file_rows(labels, "labels")[:] if labels else None
    if labels is not None:
        raise PlanError("--labels go with an array: of a table, name the column of its labels with --target")
    if plan is not None and plan.schema.reading.declaration is not None:
        raise PlanError(
            "rows of declared columns always have norm 1, so there is no clip norm to suggest: pass --plan without "
            "--public for its shares"
        )
    records = file.all_records(None if plan is None else plan.schema.feature_names)
    classes = records.y.dtype.kind in "biuU"  # others are targets of a regression, which have no accuracy
    return records.X, np.unique(records.y, return_inverse=True)[1] if classes else None


def _show_shares(plan: ps.Plan, reader: str | None, as_json: bool) -> None:
    from privstats.cli.parts.options import readers_spelled
    from privstats.inference.prediction import cap_warnings
    from privstats.workflows.readers import suggested
    from privstats.workflows.tables.reader import sent

    names = readers_spelled([reader] if reader is not None else [])
    shares, warned = suggested(plan, *names), cap_warnings(plan)
    if as_json:
        typer.echo(json_text({"shares": shares, **({"warnings": warned} if warned else {})}))
        return
    console = terminal()
    for line in warned:
        console.print(escape(line))
    if names and set(shares) != set(sent(plan.schema)):
        console.print(f'\\[schema]\nstatistics = "{"".join(shares)}"')
    _print_shares(console, shares)


def _print_shares(console: Console, shares: dict[str, float]) -> None:
    table = ", ".join(f"{statistic} = {share:g}" for statistic, share in shares.items())
    console.print(f"\n\\[privacy]\nshares = {{ {table} }}")


def _show_widths(path: Path | None, guesses: dict[str, Any], as_json: bool) -> None:
    from privstats.inference.prediction import cap_warnings, predicted_half_width, predicted_of

    if path is None:
        raise PlanError("--half-width predicts a plan's regression, effect or hazards: pass it with --plan")
    plan = ps.Plan.read(path)
    most = plan.cohort.max_records
    records = [most // part for part in (1, 3, 10) if most // part]
    ways, warned = _ways(plan), cap_warnings(plan)
    rows = [(label, predicted_half_width(way, each, **guesses)) for each in records for label, way in ways.items()]
    if as_json:
        named = [{**asdict(width), **({"shares": label} if label else {})} for label, width in rows]
        typer.echo(json_text({"half_widths": named, **({"warnings": warned} if warned else {})}))
        return
    several = ["shares of the promise"] if len(ways) > 1 else []
    headings = ["records", "half width", "no noise", "reported", *several]
    cells = [
        (f"{width.records:,}", f"{width.noisy:.3g}", f"{width.exact:.3g}", _draws(width), label)
        for label, width in rows
    ]
    console = terminal()
    console.print(table_of(headings, [row[: len(headings)] for row in cells], left=several))
    console.print(f"95 % intervals {predicted_of(plan).quantity}. inf: noise will hide it.")
    console.print(
        "reported: draws from these guesses whose table reports the row; of several rows, the one hidden most."
    )
    for line in warned:
        console.print(escape(line))


def _draws(width: HalfWidth) -> str:
    return f"{width.reported} of {width.draws}"


def _ways(plan: ps.Plan) -> dict[str, Any]:
    if not isinstance(plan.schema, ps.EffectSchema):
        return {"": plan}
    if plan.schema.fits_propensity:
        return {"": plan}
    lines, none = ps.Effect.within(plan), ps.Effect.within(plan, share=0.0)
    return {"outcome lines .1": lines, "none, course init --share 0": none}


def _table(title: str, choices: tuple[Choice, ...], suggestion: Suggestion) -> Table:
    headings = ["clip norm", "bits", "clipped", "steps", "cov. error", "noise"]
    rows = []
    for choice in choices:
        cells = [
            f"{choice.clip_norm:g}",
            str(choice.grid_bits),
            f"{choice.clipped:.1%}",
            f"{choice.steps:.3g}",
            f"{choice.covariance_error:.2g}",
            f"{choice.noise:.2g}",
        ]
        if suggestion.reference is not None and choice.accuracy is not None:
            cells += [f"{100 * choice.accuracy:.2f}", f"{100 * (suggestion.reference - choice.accuracy):.2f}"]
        rows.append(cells)
    scored = [] if suggestion.reference is None else ["accuracy", "lost"]
    return table_of([*headings, *scored], rows, title=title, left=())
