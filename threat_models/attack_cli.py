"""The ``privstats attack`` commands; plugged into the library's command line through an entry point.

Reads a plan and data, runs attacks, prints the report. JSON alone on standard output, progress on standard error.
"""

from __future__ import annotations

import json as jsons
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from privstats.errors import DataError, MissingExtraError
from privstats.files.atomic import atomic_write
from privstats.plan import Plan
from threat_models import evaluate as evaluation
from threat_models.attack import attacks, attacks_named
from threat_models.chance import named
from threat_models.data import bundled, from_file
from threat_models.evaluate import AXES, Effort
from threat_models.page import render
from threat_models.pictures import draw_all
from threat_models.report import LeakageReport, Row, number
from threat_models.world import Pool

__all__ = ["attack"]

_LONG = 120  # seconds

attack = typer.Typer(help="Attack a plan and measure what it gives away.", no_args_is_help=True)

PlanFile = Annotated[Path, typer.Argument(help="The plan document.", metavar="PLAN.TOML")]
Names = Annotated[list[str] | None, typer.Option("--attack", help="An attack by name; repeat for more. Default: all.")]
Data = Annotated[
    Path | None, typer.Option(help="Records as npz with X and y (or X_train, y_train). Default: bundled ones.")
]
Out = Annotated[Path | None, typer.Option(help="A folder for report.json, report.md, report.html and pictures.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Seed = Annotated[int | None, typer.Option(help="Reproduce a run, and continue a stopped one; needs --out for that.")]
Trials = Annotated[int, typer.Option(min=8, help="Worlds drawn per attack, with and without the target.")]
Records = Annotated[int, typer.Option(min=1, help="Records per class in a world.")]


@attack.callback()
def _attack() -> None:
    """Attack a plan and measure what it gives away; exit code 1 when more than the plan allows."""


@attack.command("list")
def list_(json: Json = False) -> None:
    """Every attack: its number, its goal and who runs it."""
    if json:
        typer.echo(jsons.dumps([{"name": a.name, "number": a.number, "goal": a.goal} for a in attacks()], indent=2))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("#", "attack", "goal", "somebody who"):
        table.add_column(heading)
    for each in attacks():
        table.add_row(str(each.number), each.name, each.goal, each.needs.describe())
    Console().print(table)


@attack.command()
def run(
    path: PlanFile,
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 200,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Run attacks against a plan, each compared with the same attacker without the release and with the ceiling."""
    plan, chosen = Plan.read(path), attacks_named(attack_ or ())
    pool, what = _pool(plan, data, seed)
    with _bar(evaluation.steps(plan, chosen, Effort(trials=trials))) as pace:
        effort = _effort(trials, records, seed, out, pace.tick)
        report = evaluation.evaluate(plan, chosen, pool, effort)
    _finish(report, what, out, json, pace)


@attack.command()
def sweep(
    path: PlanFile,
    over: Annotated[str, typer.Option(help=f"What to vary: {', '.join(AXES)}.")],
    value: Annotated[list[float], typer.Option(help="A value of it; repeat for more.")],
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 200,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Run attacks over a range of one setting, for a curve."""
    plan, chosen = Plan.read(path), attacks_named(attack_ or ())
    if over not in AXES:
        raise DataError(f"--over must be one of {', '.join(AXES)}, got {over}")
    pool, what = _pool(plan, data, seed)
    with _bar(len(value) * evaluation.steps(plan, chosen, Effort(trials=trials))) as pace:
        effort = _effort(trials, records, seed, out, pace.tick)
        report = evaluation.sweep(plan, chosen, pool, over, value, effort)
    _finish(report, what, out, json, pace)


@attack.command()
def matrix(
    path: PlanFile,
    attack_: Names = None,
    data: Data = None,
    out: Out = None,
    records: Records = 30,
    trials: Trials = 40,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Who learns what: every attack by everybody who could run it, from the public to the server itself."""
    plan, chosen = Plan.read(path), attacks_named(attack_ or ())
    pool, what = _pool(plan, data, seed)
    with _bar(None) as pace:
        report = evaluation.matrix(plan, chosen, pool, _effort(trials, records, seed, out, pace.tick))
    _finish(report, what, out, json, pace)


def _pool(plan: Plan, data: Path | None, seed: int | None) -> tuple[Pool, str]:
    rng = named(seed, "data")
    return bundled(plan, rng) if data is None else (from_file(plan, data, rng), data.name)


def _effort(trials: int, records: int, seed: int | None, out: Path | None, tick: Callable[[int], None]) -> Effort:
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None
    results = None if out is None or seed is None else out / "rows.jsonl"
    return Effort(trials=trials, records=records, seed=seed, results=results, tick=tick)


class _Pace:
    """Trials done and the time they took, and what more of them would take."""

    def __init__(self, progress: Progress, bar: TaskID) -> None:
        self._progress, self._bar, self._done, self._start = progress, bar, 0, time.monotonic()

    def tick(self, count: int) -> None:
        """Trials that were done."""
        self._done += count
        self._progress.advance(self._bar, count)

    def takes(self, report: LeakageReport) -> str:
        """The time of a run with as many trials as the report needs; empty where this one was read from a file."""
        if not self._done:
            return ""
        seconds = (time.monotonic() - self._start) * report.needed / report.trials
        told = f"{seconds:.0f} seconds" if seconds < _LONG else f"{seconds / 60:.0f} minutes"
        return f" At this run's pace that takes about {told}."


@contextmanager
def _bar(total: int | None) -> Iterator[_Pace]:
    """A bar on standard error."""
    columns = (TextColumn("attacking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        yield _Pace(progress, progress.add_task("attacking", total=total))


def _finish(report: LeakageReport, what: str, out: Path | None, json: bool, pace: _Pace) -> None:
    if out is not None:
        _write(report, out, quiet=json)
    if json:
        typer.echo(report.to_json())
    else:
        console = Console()
        console.print(Text(f"{report.title} on {what}"), style="bold")
        console.print(Text(report.declared))
        console.print(_table(report.rows))
        for line in dict.fromkeys(f"- {row.attack}: {row.note}" for row in report.rows if row.note):
            console.print(Text(line))
        if report.doubt:
            console.print(Text(report.doubt + pace.takes(report)), style="bold yellow")
        colour = "red" if report.violated else "yellow" if report.doubt else "green"
        end = "a ceiling is VIOLATED" if report.violated else "no ceiling is violated"
        console.print(Text(end), style=f"bold {colour}")
    if report.violated:
        raise typer.Exit(1)


def _write(report: LeakageReport, out: Path, quiet: bool) -> None:
    """Numbers always; the page and the pictures where their extra is there."""
    atomic_write(out / "report.json", report.to_json().encode(), shared=True)
    atomic_write(out / "report.md", report.to_markdown().encode(), shared=True)
    console = Console(stderr=True)
    try:
        atomic_write(out / "report.html", render(report).encode(), shared=True)
        draw_all(report, out)
    except MissingExtraError as error:
        console.print(Text(f"without report.html and pictures: {error}"))
        return
    if not quiet:
        console.print(Text(f"wrote report.json, report.md, report.html and pictures to {out}"))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("attack", overflow="fold", min_width=max((len(row.attack) for row in rows), default=0))
    table.add_column("metric", overflow="fold", width=_longest(["metric", *(row.metric for row in rows)]))
    for heading in ("measured", "between", "base", "ceiling"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", min_width=12)
    several = len({(row.attack, row.metric, row.sees) for row in rows}) > len(
        {(row.attack, row.metric) for row in rows}
    )
    for row in rows:
        name = f"{row.attack} ({row.sees})" if several else row.attack
        name += "".join(f" {axis}={value:g}" for axis, value in row.setting.items())
        base = "-" if row.baseline is None else f"{row.baseline:.2f}"
        numbers = (number(row.measured), _between(row), base, number(row.ceiling))
        table.add_row(name, row.metric, *numbers, row.verdict)
    return table


def _longest(texts: Iterable[str]) -> int:
    """Characters of the longest word, so that none is broken."""
    return max((len(word) for text in texts for word in text.split()), default=0)


def _between(row: Row) -> str:
    if row.interval is None:
        return "-"
    low, high = row.interval
    return f"{low:.2f} up" if math.isinf(high) else f"{low:.2f} {high:.2f}"
