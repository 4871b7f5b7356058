"""``privstats sweep``."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from privstats.cli.output import prepare, progress_bar
from privstats.errors import DataError
from privstats.files import write_whole
from privstats.heads.registry import HEADS, head_class, named
from privstats.plain import json_text
from privstats.plan import Plan
from privstats.schema import ClassSchema
from privstats.workflows import report
from privstats.workflows.score import EPSILONS, heading, metric
from privstats.workflows.sweep import Sweep, cell, table
from privstats.workflows.sweep import sweep as run_sweep

__all__ = ["app"]

app = typer.Typer()

_ARRAYS = ("X_train", "y_train", "X_test", "y_test")


@app.command()
def sweep(
    plan: Annotated[Path, typer.Argument(help="The plan; its epsilon is varied.", metavar="PLAN.TOML")],
    data: Annotated[Path, typer.Argument(help="npz with X_train, y_train, X_test, y_test.", metavar="DATA.NPZ")],
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A grid value; repeat for more. By default 8, 3, 1 and 0.3.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help=f"A head, repeat for more: {', '.join(HEADS)}. By default the closed forms."),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Noise draws per epsilon.")] = 5,
    seed: Annotated[int, typer.Option(help="Fixes the noise.")] = 0,
    out: Annotated[Path | None, typer.Option(help="A folder for sweep.json and a one-page HTML report.")] = None,
) -> None:
    """Score heads against epsilon on data that you may look at, for choosing a budget before a deployment."""
    subject = Plan.read(plan)
    arrays = read_arrays(data)
    chosen = heads_named(head, subject)
    grid = epsilon or list(EPSILONS)
    if out is not None:
        prepare(out)
    with progress_bar("sweeping", 1 + len(set(grid)) * repeats) as tick:
        train, test = (arrays["X_train"], arrays["y_train"]), (arrays["X_test"], arrays["y_test"])
        result = run_sweep(subject, train, test, chosen, grid, repeats=repeats, seed=seed, tick=tick)
    console = Console()
    console.print(table(result))
    for note in _notes(result):
        console.print(f"- {note}", highlight=False)
    if not result.points:
        raise DataError("no head could be scored; let the plan's schema send the statistics that a head needs")
    if out is not None:
        write_whole(out / "sweep.json", json_text(_document(result)).encode(), shared=True)
        report.write_page(_page(result, data), out / "report.html")
        console.print(f"\nwrote sweep.json and report.html to {out}", highlight=False, soft_wrap=True)


def read_arrays(path: Path) -> Mapping[str, np.ndarray[Any, Any]]:
    """The four arrays of a feature set.

    Raises:
        DataError: not an npz file, or an array is missing.
    """
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{path} holds one array; a sweep needs {', '.join(_ARRAYS)}, so write it with numpy.savez")
        with archive:
            missing = [name for name in _ARRAYS if name not in archive]
            if missing:
                raise DataError(f"{path} lacks {', '.join(missing)}; a sweep needs {', '.join(_ARRAYS)}")
            return {name: archive[name] for name in _ARRAYS}
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot read {path} as an npz file of plain arrays; write it with numpy.savez") from None


def heads_named(names: list[str] | None, plan: Plan) -> dict[str, Callable[[], Any]]:
    """The heads to score; by default every closed-form head for the plan's task.

    Raises:
        DataError: no head has that name.
    """
    usual = named("classes" if isinstance(plan.schema, ClassSchema) else "ridge", trained=False)
    known = {name.lower(): name for name in HEADS}
    unknown = [name for name in names or () if name.lower() not in known]
    if unknown:
        raise DataError(f"--head {unknown[0]} is unknown; the heads are {', '.join(HEADS)}")
    chosen = dict.fromkeys(known[name.lower()] for name in names or usual)
    return {name: head_class(name) for name in chosen}


def _notes(result: Sweep) -> list[str]:
    """What a reader of the scores must know."""
    least = result.plan.min_count
    return [
        *(
            f"{heading(epsilon)}: min_count={least} dropped {count:.1f} classes per release; the scores count their "
            "records as errors, so set min_count = 0 to see the price of noise alone"
            for epsilon, count in result.dropped.items()
        ),
        *(f"left out {name}: {why}" for name, why in result.missing.items()),
    ]


def _document(result: Sweep) -> dict[str, Any]:
    return {
        "plan": result.plan.tables,
        "repeats": result.repeats,
        "points": [dataclasses.asdict(point) for point in result.points],
        "missing": dict(result.missing),
    }


def _page(result: Sweep, data: Path) -> report.Page:
    private = [epsilon for epsilon in result.epsilons if not math.isinf(epsilon)]
    curves = [report.Curve(name, [result.at(name, epsilon) for epsilon in private]) for name in result.heads]
    columns = [heading(epsilon) for epsilon in result.epsilons]
    return report.Page(
        title=f"privstats sweep: {data.name}",
        chart=report.Chart(metric(result.plan.schema), curves),
        header=("head", *columns),
        scores=[
            (name, *(cell(result, result.at(name, epsilon)) for epsilon in result.epsilons)) for name in result.heads
        ],
        facts=[
            f"mean ± standard deviation over {result.repeats} draws of reproducible noise, for experiments only",
            "the budget below is the plan's own; the curves replace its epsilon",
            *_notes(result),
        ],
        plan=result.plan,
    )
