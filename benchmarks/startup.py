"""Seconds until the library is there, of the processor and by the clock: fresh processes beside ``import numpy``.

    python -m benchmarks.startup --before ../older-checkout --save

The least of the repeats and their median; which modules load is a test (``tests/cli/test_loading.py``).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.measuring import Row, Tables, child, command, seconds_of

ROOT = Path(__file__).parents[1]
TITLE = "seconds of a fresh process by the "
PLAN = ROOT / "privstats" / "cli" / "plan.toml"
_NAMES = ("ClassSchema", "RidgeSchema", "measure", "Cohort", "NoPrivacy", "Plan", "session", "secagg", "Release")
_PARTS = f"import privstats as ps; {', '.join(f'ps.{name}' for name in _NAMES)}"
FLOOR, CHECK = "import numpy", "privstats plan check"
STARTS: Mapping[str, tuple[str, ...]] = {
    FLOOR: ("-c", "import numpy"),
    f"{FLOOR}, idle threads asleep": ("-c", "import numpy"),
    "import privstats": ("-c", "import privstats"),
    "what measures, plans, masks and releases": ("-c", _PARTS),
    "privstats --version": ("-m", "privstats", "--version"),
    "privstats --help": ("-m", "privstats", "--help"),
    CHECK: ("-m", "privstats", "plan", "check", str(PLAN)),
    f"{CHECK}, idle threads spinning": ("-m", "privstats", "plan", "check", str(PLAN)),
}
WAITS = {f"{FLOOR}, idle threads asleep": "16", f"{CHECK}, idle threads spinning": "28"}
"""How long a thread of BLAS spins, where that is not what the start has by itself: see ``privstats.cli.main``."""
GOALS = {"privstats --help": ("seconds", 0.3), CHECK: ("times numpy", 4.5)}
"""What was asked of a start, in processor time."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """``--before`` and ``--repeats``."""
    parser.add_argument("--before", type=Path, help="a checkout of an older version, timed in the same run")
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes of each")


def tables(options: argparse.Namespace) -> Tables:
    """One row per way to start."""
    trees = {"seconds": ROOT} | ({"seconds before": options.before.resolve()} if options.before else {})
    repeats, names = (1, list(STARTS)[:2]) if options.quick else (options.repeats, list(STARTS))
    tasks: dict[str, Callable[[], object]] = {
        f"{column} {name}": partial(start, STARTS[name], tree, WAITS.get(name))
        for name in names
        for column, tree in trees.items()
    }
    found = seconds_of(tasks, repeats, _spent)
    yield f"{TITLE}processor", [_with_goal(_row(name, list(trees), found)) for name in names]
    found = seconds_of(tasks, repeats, time.perf_counter)
    yield f"{TITLE}clock", [_row(name, list(trees), found) for name in names]


def _spent() -> float:
    """Processor seconds of all processes that were started here and have ended."""
    times = resource.getrusage(resource.RUSAGE_CHILDREN)
    return times.ru_utime + times.ru_stime


def start(arguments: tuple[str, ...], tree: Path, wait: str | None) -> None:
    """One fresh interpreter that finds the library in ``tree``; a failure stops the benchmark."""
    environment = {**os.environ, "PYTHONPATH": str(tree)} | ({"OPENBLAS_THREAD_TIMEOUT": wait} if wait else {})
    child([sys.executable, *arguments], cwd=tree, env=environment)


def _row(name: str, columns: list[str], found: Mapping[str, Sequence[float]]) -> Row:
    row: dict[str, object] = {"start": name, "load average": os.getloadavg()[0]}
    for column in columns:
        times, floors = found[f"{column} {name}"], found[f"seconds {FLOOR}"]
        row |= {column: min(times), column.replace("seconds", "median"): statistics.median(times)}
        row[column.replace("seconds", "times numpy")] = min(times) / min(floors)
    return row


def _with_goal(row: Row) -> Row:
    if row["start"] not in GOALS:
        return row
    measure, most = GOALS[row["start"]]
    return {**row, "goal": f"{most:g} {measure}", "met": row[measure] <= most}


if __name__ == "__main__":
    command("startup", __doc__, tables, add_options)
