"""``privstats sweep``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from privstats.cli.parts.heads import spelled
from privstats.cli.parts.output import prepare, progress_bar
from privstats.cli.parts.record_tables import Records, Split, Target, is_table, read_archive, read_table
from privstats.errors import DataError
from privstats.files.atomic import atomic_write
from privstats.heads.registry import HEADS, head_class, named
from privstats.plan import Plan
from privstats.schema import predicted
from privstats.workflows import report
from privstats.workflows.score import EPSILONS, heading
from privstats.workflows.sweep import (
    KEPT,
    Axes,
    Study,
    Sweep,
    cell,
    drawn,
    means,
    over_epsilon,
    steps,
    table,
)
from privstats.workflows.sweep import study as run_study

__all__ = ["app"]

app = typer.Typer()

_DONE = "sweep.json"


@app.command()
def sweep(
    plan: Annotated[Path, typer.Argument(help="The plan; the axes are varied.", metavar="PLAN.TOML")],
    data: Annotated[
        Path,
        typer.Argument(
            help="npz with X_train, y_train, X_test, y_test, or with X and y; or a CSV or Parquet file.", metavar="DATA"
        ),
    ],
    target: Target = None,
    split: Split = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget; repeat for more, as for every axis. By default 8, 3, 1, 0.3.")
    ] = None,
    head: Annotated[
        list[str] | None,
        typer.Option(help=f"A head: {', '.join(HEADS)}. By default the closed forms."),
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="central, distributed or local.")] = None,
    unit: Annotated[list[str] | None, typer.Option(help="record or client.")] = None,
    clients: Annotated[list[int] | None, typer.Option(help="Parties.")] = None,
    alpha: Annotated[list[float] | None, typer.Option(help="Dirichlet label skew: .05 is extreme, 100 even.")] = None,
    clip_norm: Annotated[list[float] | None, typer.Option(help="The norm that records are shortened to.")] = None,
    dimension: Annotated[list[int] | None, typer.Option(help="Features left by a public random projection.")] = None,
    statistics: Annotated[list[str] | None, typer.Option(help="What is summed, such as NAB.")] = None,
    records_per_client: Annotated[
        int | None, typer.Option(min=1, help="For unit client: most records of a party; more are left out at random.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Draws of noise and partition at every point.")] = 5,
    seed: Annotated[int, typer.Option(help="Fixes the draws.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    baselines: Annotated[bool, typer.Option(help="Score scikit-learn's models on the pooled records, too.")] = True,
    out: Annotated[
        Path | None, typer.Option(help="A folder for JSON, CSV, figures and a page; a stopped sweep goes on in it.")
    ] = None,
) -> None:
    """Score heads over axes of plans on data that you may look at, for choosing before a deployment, or for a paper."""
    subject = Plan.read(plan)
    train, test = _sets(data, subject, target, split, seed)
    chosen = heads_named(head, subject)
    axes = Axes(
        model=model or (),
        unit=unit or (),
        clients=clients or (),
        alpha=alpha or (),
        clip_norm=clip_norm or (),
        dimension=dimension or (),
        statistics=statistics or (),
        epsilon=epsilon or EPSILONS,
        records_per_client=records_per_client,
    )
    if out is not None:
        prepare(out)
        _refuse_overwriting(out)
    with progress_bar("sweeping", steps(subject, axes, repeats)) as tick:
        found = run_study(
            subject,
            (train.X, train.y),
            (test.X, test.y),
            chosen,
            axes,
            repeats=repeats,
            seed=seed,
            jobs=jobs,
            with_baselines=baselines,
            kept=None if out is None else out / KEPT,
            tick=tick,
        )
    if not len(found.draws):
        raise DataError("no head could be scored; let the plan's schema send the statistics that a head needs")
    _show(found)
    if out is not None:
        _write(found, out, data)


def _sets(data: Path, plan: Plan, target: str | None, split: float | None, seed: int) -> tuple[Records, Records]:
    """What to learn on and what to score on.

    Raises:
        DataError: the file cannot be read, or has to be split and nothing says how.
    """
    if is_table(data):
        whole = read_table(data, target, plan.schema.feature_names)
    else:
        arrays = read_archive(data, "X_train y_train X_test y_test", "X y")
        if "X" not in arrays:
            return Records(arrays["X_train"], arrays["y_train"]), Records(arrays["X_test"], arrays["y_test"])
        whole = Records(arrays["X"], arrays["y"])
    if split is None:
        raise DataError(
            f"{data} holds one set of records; say with --split which share of it to score on, such as 0.25"
        )
    return whole.split(split, seed)


def heads_named(names: list[str] | None, plan: Plan) -> dict[str, Callable[[], Any]]:
    """The heads to score; by default every closed-form head for the plan's task.

    Raises:
        DataError: no head has that name.
        SchemaError: no head is built from a release of such a plan.
    """
    usual = named(predicted(plan.schema), trained=False)
    return {name: head_class(name) for name in spelled(names or usual)}


def _refuse_overwriting(out: Path) -> None:
    if (out / _DONE).exists():
        raise DataError(f"{out} holds a finished sweep ({_DONE}); name another folder, or move that one away")


def _show(found: Study) -> None:
    console = Console()
    result = _over_epsilon(found)
    console.print(means(found) if result is None else table(result))
    for name, score in found.baselines.items():
        console.print(f"- {name}: {found.metric} {score:.4g}", highlight=False)
    for note in _notes(found):
        console.print(f"- {note}", highlight=False)


def _over_epsilon(found: Study) -> Sweep | None:
    """The study as points against epsilon, where nothing else was varied."""
    return None if set(found.axes.varied) - {"epsilon"} else over_epsilon(found)


def _notes(found: Study) -> list[str]:
    """What a reader of the scores must know."""
    least, counted = found.plan.min_count, dict[float, float]()
    for row in found.summary:
        if row["dropped"]:
            epsilon = float("inf") if row["epsilon"] is None else row["epsilon"]
            counted[epsilon] = max(counted.get(epsilon, 0.0), row["dropped"])
    return [
        "nothing was charged: scores on private records are for their owner alone, and a plan that is chosen by them "
        "is a leak outside the budget; choose on public data",
        *(
            f"{heading(epsilon)}: min_count={least} dropped {count:.1f} classes per release; the scores count their "
            "records as errors, so set min_count = 0 to see the price of noise alone"
            for epsilon, count in counted.items()
        ),
        *(f"left out {name.partition(' from ')[0]}: {why}" for name, why in found.missing.items()),
    ]


def _write(found: Study, out: Path, data: Path) -> None:
    """Tables, pictures and a page; the JSON last, because it says that the folder is finished."""
    for kind, picture in drawn(found).items():
        atomic_write(out / f"sweep.{kind}", picture, shared=True)
    atomic_write(out / "draws.csv", found.draws.to_csv().encode(), shared=True)
    atomic_write(out / "sweep.csv", found.summary.to_csv().encode(), shared=True)
    result = _over_epsilon(found)
    if result is not None:
        report.write_page(_page(found, result, data), out / "report.html")
    atomic_write(out / _DONE, found.to_json().encode(), shared=True)
    (out / KEPT).unlink(missing_ok=True)
    names = "sweep.json, sweep.csv, draws.csv, figures" + ("" if result is None else " and report.html")
    Console().print(f"\nwrote {names} to {os.fspath(out)}", highlight=False, soft_wrap=True)


def _page(found: Study, result: Sweep, data: Path) -> report.Page:
    private = [epsilon for epsilon in result.epsilons if epsilon != float("inf")]
    curves = [report.Curve(name, [result.at(name, epsilon) for epsilon in private]) for name in result.heads]
    columns = [heading(epsilon) for epsilon in result.epsilons]
    return report.Page(
        title=f"privstats sweep: {data.name}",
        chart=report.Chart(found.metric, curves, lines=tuple(found.baselines.items())),
        header=("head", *columns),
        scores=[
            (name, *(cell(result, result.at(name, epsilon)) for epsilon in result.epsilons)) for name in result.heads
        ],
        facts=[
            f"mean ± standard deviation over {result.repeats} draws of reproducible noise, for experiments only",
            "the budget below is the plan's own; the curves replace its epsilon",
            *_notes(found),
        ],
        plan=result.plan,
    )
