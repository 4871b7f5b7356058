"""``privstats demo``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from privstats import report
from privstats.cli.output import prepare, progress_bar
from privstats.demo import TASKS, Outcome, Settings, run_demo, show
from privstats.demo.experiment import EPSILONS
from privstats.demo.show import facts, scores
from privstats.files import write_whole

__all__ = ["app"]

app = typer.Typer()


class TaskName(StrEnum):
    """The bundled tasks."""

    classes = "classes"
    ridge = "ridge"


@app.command()
def demo(
    task: Annotated[TaskName, typer.Option(help="classes: digits and LDA; ridge: diabetes and R².")] = TaskName.classes,
    clients: Annotated[int, typer.Option(help="Parties that hold the records.")] = 20,
    alpha: Annotated[float, typer.Option(help="Dirichlet label skew: 0.05 is extreme, 100 is even.")] = 0.05,
    drop: Annotated[int, typer.Option(help="Clients that vanish, at different steps.")] = 3,
    repeats: Annotated[int, typer.Option(help="Noise draws per epsilon.")] = 10,
    seed: Annotated[int, typer.Option(help="Fixes split, skew, dropouts and the demo's noise.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the release, the plan and a one-page HTML report.")
    ] = None,
) -> None:
    """Run the whole way of the data on a bundled data set, with real masking and real noise."""
    settings = Settings(clients=clients, alpha=alpha, drop=drop, seed=seed, repeats=repeats)
    if out is not None:
        prepare(out)
    console = Console()
    total = 1 + len(EPSILONS) * repeats
    with progress_bar("aggregating", total) as tick:
        outcome = run_demo(TASKS[task.value], settings, tick)
    show(outcome, console)
    if out is not None:
        _write(outcome, out)
        console.print(
            f"\nwrote release.safetensors, plan.toml and report.html to {out}", highlight=False, soft_wrap=True
        )


def _write(outcome: Outcome, out: Path) -> None:
    points = outcome.points
    curve = report.Curve(
        "privstats with noise (± one standard deviation)",
        [point.epsilon for point in points],
        [point.mean for point in points],
        [point.spread for point in points],
    )
    chart = report.Chart(
        outcome.task.metric,
        [curve],
        lines=[
            (f"scikit-learn {outcome.task.peer}, centralised", outcome.peer),
            ("privstats, no DP", outcome.without_dp),
        ],
    )
    page = report.Page(
        title=f"privstats demo: {outcome.task.title}",
        chart=chart,
        header=("model", outcome.task.metric),
        scores=scores(outcome),
        facts=facts(outcome),
        plan=outcome.plan,
    )
    outcome.release.save(out / "release.safetensors")
    write_whole(out / "plan.toml", outcome.plan.to_toml().encode())
    report.write_page(page, out / "report.html")
