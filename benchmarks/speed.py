"""What people wait for, beside its floor and beside an older checkout: exact sums, raw tables, noise, masks.

    python -m benchmarks.speed --before ../older-checkout [--only sparse] --save

Each work runs in a process of its own per checkout, with one BLAS thread, and takes turns with its floor; the table has
the least and the median of the repeats. The floors are the symmetric product of the same rows by BLAS (dsyrk), scipy's
products of the same sparse rows, pandas' reading of a file and dsyrk of rows as wide, a keystream with one inverse
normal per sample, and a keystream with one addition.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

import numpy as np

from benchmarks.measuring import Row, Tables, child, command, results
from benchmarks.speed_works import COUNTED, GOALS, SECONDS, WORKS

ROOT = Path(__file__).parents[1]
_TITLE = "processor seconds"
_QUICK = ("2M x 40, ridge with 5 folds", "sparse 50k x 2000, NAB", "discrete noise, sigma 4")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The older checkout, how often, and which works."""
    parser.add_argument("--before", type=Path, help="a checkout of an older version, timed in the same run")
    parser.add_argument("--repeats", type=int, default=5, help="of floor and work, in turns")
    parser.add_argument("--processes", type=int, default=1, help="of each checkout, in turns, for each work")
    parser.add_argument("--only", help="works whose names hold these words; with --quick, '' for all works")


def tables(options: argparse.Namespace) -> Tables:
    """One row per work; a run of some keeps the saved rows of the others."""
    trees = ({"before": options.before.resolve()} if options.before else {}) | {"after": ROOT}
    repeats = 1 if options.quick else options.repeats
    quick = options.quick and options.only is None
    names = list(_QUICK) if quick else [name for name in WORKS if (options.only or "") in name]
    kept = {} if options.quick else {row["work"]: row for row in results("speed")[_TITLE]}
    rows = kept | {name: _row(name, trees, repeats, options.processes, options.quick) for name in names}
    yield _TITLE, [rows[name] for name in WORKS if name in rows]


def _row(name: str, trees: dict[str, Path], repeats: int, processes: int, quick: bool) -> Row:
    row: dict[str, object] = {"work": name, "goal": GOALS.get(name), "load average": os.getloadavg()[0]}
    row |= {"goal s": SECONDS[name]} if name in SECONDS else {}
    row |= {"counted": COUNTED[name]} if name in COUNTED else {}
    timed: dict[str, dict[str, list[float]]] = {when: {} for when in trees}
    for _ in range(processes):
        for when, tree in trees.items():
            for what, seconds in _timed(name, tree, repeats, quick).items():
                timed[when].setdefault(what, []).extend(seconds)
    for when, found in timed.items():
        least = {what: min(seconds) for what, seconds in found.items()}
        middle = {what: statistics.median(seconds) for what, seconds in found.items()}
        row |= {f"floor {when} s": least["floor"], f"{when} s": least["work"]}
        row |= {f"{when} / floor": least["work"] / least["floor"], f"median {when}": middle["work"] / middle["floor"]}
        row |= {f"MB {when}": least["MB"], "repeats": repeats * processes}
        quartiles = np.quantile(found["work"], (0.25, 0.75)).tolist()
        row |= {f"median {when} s": middle["work"], f"quartiles {when} s": quartiles}
    return row


def _timed(name: str, tree: Path, repeats: int, quick: bool) -> dict[str, list[float]]:
    words = [sys.executable, str(ROOT / "benchmarks" / "speed_works.py"), name, str(repeats)]
    environment = {**os.environ, "PYTHONPATH": str(tree), **dict.fromkeys(_THREADS, "1")}
    found: dict[str, list[float]] = json.loads(child([*words, *["--quick"] * quick], cwd=tree, env=environment))
    return found


if __name__ == "__main__":
    command("speed", __doc__, tables, add_options)
