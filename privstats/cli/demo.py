"""``privstats demo``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privstats.cli.parts.terminal import say, terminal
from privstats.files.atomic import atomic_write

if TYPE_CHECKING:
    from privstats.workflows.demo import Demo

__all__ = ["app"]

app = typer.Typer(rich_help_panel="Begin")


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
    from threadpoolctl import threadpool_limits

    from privstats.cli.parts.output import prepare
    from privstats.progress import progress_bar
    from privstats.workflows.demo import TASKS, Settings, run_demo, show, ticks

    settings = Settings(clients=clients, alpha=alpha, drop=drop, seed=seed, repeats=repeats)
    if out is not None:
        prepare(out)
    console = terminal()
    chosen = TASKS[task.value]
    with progress_bar("aggregating", ticks(chosen, settings)) as advance, threadpool_limits(1):  # products are small
        found = run_demo(chosen, settings, lambda: advance(1))
    show(found, console)
    if out is not None:
        _write(found, out)
        console.print()
        say(f"wrote release.safetensors, plan.toml and report.html to {out}")


def _write(found: Demo, out: Path) -> None:
    from privstats.workflows import report
    from privstats.workflows.demo.output import findings, header, scores
    from privstats.workflows.score import WITHOUT_NOISE, heading

    chart = report.Chart(
        found.task.metric,
        [report.Curve(name, points) for name, points in found.curves.items()],
        lines=[
            (f"scikit-learn {found.task.peer}, centralised", found.peer),
            (f"privstats, {heading(WITHOUT_NOISE)}", found.without_dp),
        ],
    )
    page = report.Page(
        title=f"privstats demo: {found.task.title}",
        chart=chart,
        header=header(found),
        scores=scores(found),
        facts=findings(found),
        plan=found.plan,
    )
    found.release.save(out / "release.safetensors")
    atomic_write(out / "plan.toml", found.plan.to_toml().encode(), shared=True)
    report.write_page(page, out / "report.html")
