"""Shared parts of all benchmarks: one timer, one table, one JSON file for one command.

A benchmark is a function from its options to named tables; :func:`command` gives it ``--quick``, ``--save`` and
``--json``. Times are the least of repeats taken in turns, so that a busy machine disturbs all candidates alike.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import subprocess
import sys
import time
import traceback
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from privstats.files.text import json_text
from privstats.stopwatch import Stopwatch

__all__ = [
    "RESULTS",
    "Row",
    "Rows",
    "Tables",
    "child",
    "command",
    "last_line",
    "least_seconds",
    "peak_bytes",
    "results",
    "seconds_of",
    "standard_error",
]

RESULTS = Path(__file__).parent / "results"
_LONGEST = 80  # characters of a cell that is printed

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
Tables: TypeAlias = Iterable[tuple[str, Rows]]
"""Titles and their rows, in the order in which they are measured."""


@cache
def results(name: str) -> dict[str, Any]:
    """The committed results of one benchmark."""
    read: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return read


def saved(name: str) -> dict[str, Any]:
    """The tables of an earlier run, without its machine; none where there was no run."""
    if not (RESULTS / f"{name}.json").exists():
        return {}
    return {title: rows for title, rows in results(name).items() if title != "machine"}


def command(
    name: str,
    about: str,
    tables: Callable[[argparse.Namespace], Tables],
    options: Callable[[argparse.ArgumentParser], None] | None = None,
    before: Callable[[argparse.Namespace], Mapping[str, Any]] = lambda _: {},
) -> None:
    """Run a benchmark from the command line: print each table as it is ready, then save all of them.

    One that fails says why in its last line, below the traceback, with exit code 1.

    Args:
        name: of the result file, ``benchmarks/results/NAME.json``.
        about: the module's docstring, for ``--help``.
        tables: the benchmark; its options hold ``quick``.
        options: adds the benchmark's own options.
        before: results that a run of some tables keeps beside its own.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small version in seconds, as the tests run it")
    parser.add_argument("--save", action="store_true", help=f"write benchmarks/results/{name}.json")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    if options is not None:
        options(parser)
    chosen = parser.parse_args()
    results: dict[str, Any] = {"machine": machine(), **before(chosen)}
    try:
        for title, rows in tables(chosen):
            show(title, rows)
            results[title] = [dict(row) for row in rows]
            for path in (chosen.json, RESULTS / f"{name}.json" if chosen.save else None):
                if path is not None:  # after each table, so that a run that is stopped has not been for nothing
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(json_text(results) + "\n")
    except Exception as error:
        traceback.print_exc()
        raise SystemExit(f"{name} failed: {type(error).__name__}: {last_line(str(error))}") from None


def child(words: Sequence[str], **options: Any) -> str:
    """Run a program to its end and return its output; one that fails raises an error with its last line.

    Args:
        words: the program and its arguments.
        options: of ``subprocess.run``.
    """
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    done: subprocess.CompletedProcess[str] = subprocess.run(words, **options, **pipes, check=False)
    sys.stderr.write(done.stderr)
    if done.returncode:
        said = last_line(done.stderr) or "it said nothing"
        raise RuntimeError(f"{' '.join(words[:4])} ended with exit code {done.returncode}: {said}")
    return done.stdout


def last_line(text: str) -> str:
    """The last line with anything in it; empty where there is none."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def least_seconds(
    tasks: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Least time of every task, as :func:`seconds_of` takes them."""
    return {name: min(seconds) for name, seconds in seconds_of(tasks, repeats, clock).items()}


def seconds_of(
    tasks: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Times of every task; the tasks take turns, so that a busy machine disturbs all of them alike.

    ``time.process_time`` as the clock leaves other processes out of the account; use it with one BLAS thread.
    """
    found: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        watch: Stopwatch[str] = Stopwatch(clock)
        for name, task in tasks.items():
            with watch.timing(name):
                task()
            found[name].append(watch.seconds[name])
    return found


def standard_error(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Standard error of the mean of independent values; at least two."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def peak_bytes(task: Callable[[], object]) -> tuple[int, object]:
    """Most memory that Python and numpy held at once during a task beyond what they held before, and its result."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    result = task()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before, result


def show(title: str, rows: Rows) -> None:
    """Print rows as a table, one column per key."""
    table = Table()
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    for row in rows:
        table.add_row(*(_shown(row.get(column)) for column in columns))
    console = Console()
    console.width = max(console.width, 140)
    console.print(title, style="bold", soft_wrap=True, highlight=False, markup=False)
    console.print(table)


def machine() -> dict[str, Any]:
    """Describe the machine of the measurements."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "default"),
    }


def _processor() -> str:
    """The model, family and number of the processor where Linux says them; its architecture elsewhere."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text().splitlines() if listed.exists() else []
    said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    names = ("model name", "cpu family", "model")
    if not all(said.get(name) for name in names):
        return platform.processor() or platform.machine()
    return f"{said['model name']}, family {said['cpu family']}, model {said['model']}"


def _shown(value: Any) -> str:
    shown = "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
