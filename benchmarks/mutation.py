"""List which unit tests and which audits see each deliberate bug of ``tests/mutation``.

    python -m benchmarks.mutation --save

Measures only; ``python -m tests.mutation`` is the same with a verdict, for the nightly run. The bugs are planted in
processes of their own, one per core unless ``--jobs`` says otherwise. Each row is written as it is measured to the
file that ``--rows`` names, and rows that stand there are not measured again: a run that is stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from rich.progress import track

from benchmarks.measuring import Row, Rows, command
from tests.mutation.catalogue import MUTANTS
from tests.mutation.measuring import seen

__all__ = ["TITLE", "options", "tables"]

TITLE = "deliberate bugs and who sees them"
_QUICK = ("signature of a report not checked",)  # no audit and no attack plays with it


def tables(chosen: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
    """One row per bug."""
    names = _QUICK if chosen.quick else chosen.bug or tuple(MUTANTS)
    yield TITLE, _measured(names, chosen.jobs, chosen.rows)


def _measured(names: Sequence[str], jobs: int, kept: Path | None) -> Rows:
    """A row per name, in their order, as they stand in ``kept`` or are measured now."""
    rows: dict[str, Row] = {row["bug"]: row for row in _read(kept)}
    missing = [name for name in names if name not in rows]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:  # spawned: no bug of another row in it
        running = [pool.submit(seen, name) for name in missing]
        for done in track(as_completed(running), "planting bugs", total=len(running), disable=len(running) < 2):
            row = done.result()
            rows[row["bug"]] = row
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    return [rows[name] for name in names]


def _read(kept: Path | None) -> list[Row]:
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept is not None and kept.exists() else []


def options(parser: argparse.ArgumentParser) -> None:
    """Names choose rows."""
    parser.add_argument("bug", nargs="*", choices=[[], *MUTANTS], help="only these bugs; all when omitted")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes; one per core")
    parser.add_argument("--rows", type=Path, help="a file of rows, one JSON object a line, to stop and go on with")


if __name__ == "__main__":
    command("mutation", __doc__, tables, options)
