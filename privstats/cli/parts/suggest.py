"""``privstats plan suggest``: clip norm and grid from public features, and shares from what a plan says."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import privstats as ps
from privstats.cli.parts.options import Decimal, Encoding, Separator, Target
from privstats.cli.parts.terminal import escape, new_table, terminal
from privstats.errors import PlanError
from privstats.files.jsonable import json_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from privstats.moments import RecordFile
    from privstats.workflows.suggest import Choice, Suggestion

__all__ = ["suggest"]


def suggest(
    public: Annotated[
        Path | None, typer.Option(help="Public features: .npy, records x features; or a CSV or Parquet file.")
    ] = None,
    target: Target = None,
    labels: Annotated[Path | None, typer.Option(help="Their labels (.npy, whole numbers).")] = None,
    plan: Annotated[Path | None, typer.Option(help="Apply this plan's transform, and suggest shares for it.")] = None,
    tolerance: Annotated[float, typer.Option(help="Accuracy a choice may lose, 0 to 1.")] = 0.005,
    half_width: Annotated[
        float | None,
        typer.Option(
            help="Predict intervals of --plan's regression, effect or hazards for columns of this variance behind "
            "their ranges: 0.33 for even ones.",
            metavar="VARIANCE",
        ),
    ] = None,
    residual: Annotated[
        float | None, typer.Option(help="With --half-width: spread of outcomes that columns leave.", metavar="STD")
    ] = None,
    treated: Annotated[
        float, typer.Option(help="With --half-width, of an effect that nobody assigned: share of the treated.")
    ] = 0.5,
    separation: Annotated[
        float, typer.Option(help="Likewise: spread of the log odds of treatment, 0 for a coin.", metavar="STD")
    ] = 1.0,
    encoding: Encoding = "utf-8",
    separator: Separator = ",",
    decimal: Decimal = ".",
    reader: Annotated[
        str | None, typer.Option("--for", help="Suggest --plan's shares for this table or head.", metavar="READER")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show what clip norms and grids lose on public data, and suggest one of each; or how wide intervals will be.

    With --plan alone: shares of its budget, for --for where one is named.
    """
    if half_width is not None:
        guesses = {"variance": half_width, "residual": residual, "treated": treated, "separation": separation}
        _show_widths(plan, guesses, as_json)
        return
    if public is None:
        if plan is None:
            raise PlanError("give public features with --public, or --plan for its shares or with --half-width")
        _show_shares(ps.Plan.read(plan), reader, as_json)
        return
    if reader is not None:
        raise PlanError("--for is about shares and not about public data: give it with --plan and without --public")
    from privstats.moments import RecordFile
    from privstats.plan.grid_cost import grid_sentences
    from privstats.workflows import suggest as public_data
    from privstats.workflows.readers import suggested

    governing = ps.Plan.read(plan) if plan else None
    transform = governing.schema.transform if governing else ()
    file = RecordFile(public, target, encoding=encoding, separator=separator, decimal=decimal)
    features, targets = _public(file, labels, governing)
    found = public_data.suggest(features, targets, transform=transform, tolerance=tolerance)
    shares = suggested(governing) if governing is not None and governing.noise is not None else {}
    costs = [] if governing is None else grid_sentences(governing)
    _show_found(found, shares, costs, as_json)


def _show_found(found: Suggestion, shares: dict[str, float], costs: list[str], as_json: bool) -> None:
    """Clips and grids with their losses, the choice of each, and what follows for the plan."""
    if as_json:
        typer.echo(json_text({**asdict(found), **({"shares": shares} if shares else {}), "plan_grid": costs}))
        return
    console = terminal()
    console.print(_table("Clipping, on a grid of 16 bits", found.clips, found))
    console.print(_table(f"Grid, at clip_norm = {found.clip_norm:g}", found.grids, found))
    if found.reference is not None:
        reference, error = 100 * found.reference, 100 * (found.error or 0.0)
        console.print(f"LDA without clip or grid: {reference:.2f} %, standard error {error:.2f}", highlight=False)
    console.print(f"\n\\[schema]\nclip_norm = {found.clip_norm:g}\ngrid_bits = {found.grid_bits}", highlight=False)
    if shares:
        _print_shares(console, shares)
    for line in (*found.remarks, *costs):
        console.print(f"- {escape(line)}", highlight=False)


def _public(file: RecordFile, labels: Path | None, plan: ps.Plan | None) -> tuple[Any, Any]:
    """Features, and their labels or None."""
    import numpy as np

    from privstats.moments.code_rows import cells_of
    from privstats.moments.files import file_rows

    if not file.is_table:
        return file_rows(file.path, "public")[:], file_rows(labels, "labels")[:] if labels else None
    if labels is not None:
        raise PlanError("--labels go with an array: of a table, name the column of its labels with --target")
    if plan is not None and cells_of(plan.schema) is not None:
        raise PlanError(
            "rows of declared columns have norm 1 whatever they hold, so there is no clip norm to suggest: give --plan "
            "without --public for its shares"
        )
    records = file.whole(None if plan is None else plan.schema.feature_names)
    classes = records.y.dtype.kind in "biuU"  # others are targets of a regression, which have no accuracy
    return records.X, np.unique(records.y, return_inverse=True)[1] if classes else None


def _show_shares(plan: ps.Plan, reader: str | None, as_json: bool) -> None:
    """Shares alone; and the statistics, where the reader leaves some unread."""
    from privstats.cli.parts.heads import spelled_readers
    from privstats.workflows.readers import sent, suggested

    names = spelled_readers([reader] if reader is not None else [])
    shares = suggested(plan, *names)
    if as_json:
        typer.echo(json_text({"shares": shares}))
        return
    console = terminal()
    if names and set(shares) != set(sent(plan.schema)):
        console.print(f'\\[schema]\nstatistics = "{"".join(shares)}"', highlight=False)
    _print_shares(console, shares)


def _print_shares(console: Console, shares: dict[str, float]) -> None:
    table = ", ".join(f"{statistic} = {share:g}" for statistic, share in shares.items())
    console.print(f"\n\\[privacy]\nshares = {{ {table} }}", highlight=False)


def _show_widths(path: Path | None, guesses: dict[str, Any], as_json: bool) -> None:
    """Half widths at the plan's most records, and at fewer, for every way to divide its promise that is offered."""
    from privstats.inference.prediction import predicted_half_width, predicted_of

    if path is None:
        raise PlanError("--half-width is of a plan's regression, effect or hazards: give it with --plan")
    plan = ps.Plan.read(path)
    most = plan.cohort.max_records
    records = [most // part for part in (1, 3, 10) if most // part]
    ways = _ways(plan)
    rows = [(said, predicted_half_width(way, each, **guesses)) for each in records for said, way in ways.items()]
    if as_json:
        named = [{**asdict(width), **({"shares": said} if said else {})} for said, width in rows]
        typer.echo(json_text({"half_widths": named}))
        return
    table = new_table()
    for name in ("records", "half width", "without noise", *(["shares of the promise"] if len(ways) > 1 else [])):
        table.add_column(name, justify="left" if name.startswith("shares") else "right")
    for said, width in rows:
        cells = (f"{width.records:,}", f"{width.noisy:.3g}", f"{width.exact:.3g}", said)
        table.add_row(*cells[: len(table.columns)])
    console = terminal()
    console.print(table)
    console.print(f"95 % intervals {predicted_of(plan).said}. inf: noise will hide it.", highlight=False)


def _ways(plan: ps.Plan) -> dict[str, Any]:
    """Ways to divide a plan's promise, by what `course init` is told."""
    if not isinstance(plan.schema, ps.EffectSchema):
        return {"": plan}
    if plan.schema.fits_propensity:
        return {"": plan}
    lines, none = ps.Effect.within(plan), ps.Effect.within(plan, share=0.0)
    return {"outcome lines .1": lines, "none, course init --share 0": none}


def _table(title: str, choices: tuple[Choice, ...], found: Suggestion) -> Table:
    table = new_table(title)
    for name in ("clip norm", "bits", "clipped", "steps", "cov. error", "noise"):
        table.add_column(name, justify="right", no_wrap=True)
    if found.reference is not None:
        table.add_column("accuracy", justify="right", no_wrap=True)
        table.add_column("lost", justify="right", no_wrap=True)
    for choice in choices:
        cells = [
            f"{choice.clip_norm:g}",
            str(choice.grid_bits),
            f"{choice.clipped:.1%}",
            f"{choice.steps:.3g}",
            f"{choice.covariance_error:.2g}",
            f"{choice.noise:.2g}",
        ]
        if found.reference is not None and choice.accuracy is not None:
            cells += [f"{100 * choice.accuracy:.2f}", f"{100 * (found.reference - choice.accuracy):.2f}"]
        table.add_row(*cells)
    return table
