"""A run of attacks for the command line: its records, its effort, a progress bar, and its report.

The report goes to the terminal and to a folder; with JSON, standard output holds JSON alone and standard error nothing.
Without it, standard error says which attacks begin and end; a bar is drawn where that is a terminal.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from privstats.errors import DataError, MissingExtraError
from privstats.files.atomic import atomic_write
from privstats.plan import Plan
from privstats.printable import printable
from privstats.printable.pace import duration
from privstats.progress import SWITCH, progress_bar
from threat_models.chance import named
from threat_models.data import from_file, to_attack
from threat_models.evaluate import Effort
from threat_models.page import render
from threat_models.pictures import draw_all
from threat_models.report import LeakageReport, Row, number
from threat_models.world import Pool

_SILENT = 20.0  # seconds between two lines about trials


def pool_of(plan: Plan, data: Path | None, seed: int | None) -> tuple[Pool, str]:
    """The records to attack and what they are called: bundled ones, or those of a file.

    Raises:
        DataError: the file does not fit the plan.
    """
    rng = named(seed, "data")
    return to_attack(plan, rng) if data is None else (from_file(plan, data, rng), data.name)


def records_of(plan: Plan, *, seed: int | None) -> Pool:
    """The records to attack of one session of a course."""
    return pool_of(plan, None, seed)[0]


def effort_of(trials: int, records: int, seed: int | None, out: Path | None, pace: Pace) -> Effort:
    """The effort of a run, and, where there are a folder and a seed, the file from which a stopped run continues.

    Raises:
        DataError: the folder cannot be made.
    """
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"--out {out} cannot be a folder: {error.strerror}; name another one") from None
    results = None if out is None or seed is None else out / "rows.jsonl"
    return Effort(trials=trials, records=records, seed=seed, results=results, tick=pace.tick, playing=pace.playing)


class Pace:
    """Trials done and the time they took, what more of them would take, and lines that tell of them.

    Args:
        advance: counts trials for the bar.
        total: all trials of the run; None where that is not known.
        tell: takes one line.
    """

    def __init__(self, advance: Callable[[int], None], total: int | None, tell: Callable[[str], None]) -> None:
        self._advance, self._total, self._tell = advance, total, tell
        self._done, self._start = 0, time.monotonic()
        self._last_shown = self._start

    def tick(self, count: int) -> None:
        """Trials that were done; a line after every twenty seconds without one."""
        self._done += count
        self._advance(count)
        if time.monotonic() - self._last_shown > _SILENT:
            self._say(f"{self._done:,} trials{self._rest}")

    @property
    def _rest(self) -> str:
        if self._total is None:
            return ""
        left = (time.monotonic() - self._start) * max(self._total - self._done, 0) / self._done
        return f" of {self._total:,}, about {duration(left)} left"

    @contextmanager
    def playing(self, attacks: Sequence[str]) -> Iterator[None]:
        """A line as these attacks begin, and one as they end."""
        names, began = ", ".join(attacks), time.monotonic()
        self._say(f"playing {names}")
        yield
        self._say(f"played {names} in {time.monotonic() - began:.0f} s")

    def _say(self, line: str) -> None:
        self._last_shown = time.monotonic()
        self._tell(line)

    def takes(self, report: LeakageReport) -> str:
        """The time of a run with as many trials as the report needs; empty where this one was read from a file."""
        if not self._done:
            return ""
        seconds = (time.monotonic() - self._start) * report.needed / report.trials
        return f" At this run's pace that takes about {duration(seconds)}."


@contextmanager
def bar(total: int | None, *, quiet: bool) -> Iterator[Pace]:
    """A bar on a terminal, and lines on standard error unless the caller wants quiet or has turned bars off."""

    def tell(line: str) -> None:
        if not quiet and os.environ.get(SWITCH) != "0":
            typer.echo(printable(line), err=True)

    with progress_bar("attacking", total, lines=False) as advance:
        yield Pace(advance, total, tell)


def finish(report: LeakageReport, what: str, out: Path | None, json: bool, pace: Pace) -> None:
    """Write the report where a folder is named, print it, and end with exit code 1 where a ceiling is violated."""
    if out is not None:
        _write(report, out, quiet=json)
    if json:
        typer.echo(report.to_json())
    else:
        console = Console()
        console.print(Text(printable(f"{report.title} on {what}")), style="bold")
        console.print(Text(report.declared))
        console.print(_table(report.rows))
        for line in dict.fromkeys(f"- {row.attack}: {row.note}" for row in report.rows if row.note):
            console.print(Text(line))
        if report.leaking:
            console.print(Text(report.leaking))
        if report.doubt:
            console.print(Text(report.doubt + pace.takes(report)), style="bold yellow")
        colour = "red" if report.violated else "yellow" if report.doubt or report.silent else "green"
        end = "a ceiling is VIOLATED" if report.violated else report.silent or "no ceiling is violated"
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
        console.print(Text(printable(f"without report.html and pictures: {error}")))
        return
    if not quiet:
        console.print(Text(printable(f"wrote report.json, report.md, report.html and pictures to {out}")))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    table.add_column("attack", overflow="fold", min_width=max((len(row.attack) for row in rows), default=0))
    table.add_column("metric", overflow="fold", width=_longest(["metric", *(row.metric for row in rows)]))
    for heading in ("measured", "between", "base", "ceiling"):
        table.add_column(heading, justify="right", overflow="fold")
    table.add_column("verdict", min_width=12, overflow="fold")
    several = len({(row.attack, row.metric, row.sees) for row in rows}) > len(
        {(row.attack, row.metric) for row in rows}
    )
    for row in rows:
        name = f"{row.attack} ({row.sees})" if several else row.attack
        name += "".join(f" {axis}={value:g}" for axis, value in row.setting.items())
        base = "-" if row.baseline is None or row.without == "not known" else f"{row.baseline:.2f}"
        numbers = (number(row.measured), _between(row), base, number(row.ceiling))
        table.add_row(name, row.metric, *numbers, row.outcome)
    return table


def _longest(texts: Iterable[str]) -> int:
    """Characters of the longest word, so that none is broken."""
    return max((len(word) for text in texts for word in text.split()), default=0)


def _between(row: Row) -> str:
    if row.interval is None:
        return "-"
    low, high = row.interval
    return f"{low:.2f} up" if math.isinf(high) else f"{low:.2f} {high:.2f}"
