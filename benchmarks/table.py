"""What every benchmark here needs: the least of repeated timings, taken in turns, and a table that is also JSON."""

from __future__ import annotations

import gc
import json
import os
import platform
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

DATA = Path(os.environ.get("PRIVSTATS_DATA", Path(__file__).parents[2] / "shared" / "data"))


def least_seconds(
    tasks: Mapping[str, Callable[[], object]], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Least time of every task; the tasks take turns, so that a busy machine disturbs all of them alike.

    ``time.process_time`` as the clock leaves other processes out of the account; use it with one BLAS thread.
    """
    best = dict.fromkeys(tasks, float("inf"))
    for _ in range(repeats):
        for name, task in tasks.items():
            start = clock()
            task()
            best[name] = min(best[name], clock() - start)
    return best


def peak_bytes(task: Callable[[], object]) -> tuple[int, object]:
    """Most memory that Python and numpy held at once during a task beyond what they held before, and its result."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    result = task()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak - before, result


def report(title: str, rows: Sequence[Mapping[str, Any]], path: Path | None) -> None:
    """Print rows as a table; save them with a description of the machine as JSON."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        table.add_row(*(_shown(value) for value in row.values()))
    Console(width=140).print(table)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        document = json.loads(path.read_text()) if path.exists() else {"machine": machine()}
        document[title] = list(rows)
        path.write_text(json.dumps(document, indent=2) + "\n")


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "default"),
    }


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
