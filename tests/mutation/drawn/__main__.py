"""Mutants drawn by the date, and those that no test sees: ``python -m tests.mutation.drawn``.

Needs the lines of every test, from ``pytest -n auto --cov=privstats --cov-context=test --cov-report=``; runs that where
``--lines`` names no file. Exit code 1 when a mutant lives: write the test that kills it, or its reason into
``equivalent.toml``.
"""

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from privstats.progress import progress_bar
from tests.mutation.drawn.running import ROOT, Fate, contexts_of, drawn, fates


def main() -> int:
    """Draw, run, print and judge."""
    chosen = _options().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = chosen.lines or _measured(Path(folder) / "lines")
        reached = contexts_of(lines)
    mutants = drawn(chosen.count, chosen.seed)
    found: list[Fate] = []
    with progress_bar("mutants", len(mutants)) as done:
        for fate in fates(mutants, reached, chosen.workers):
            found.append(fate)
            done(1)
    for fate in found:
        print(f"{fate.word:10} {fate.tests:5} tests  {fate.drawn.told}")
    words = [fate.word for fate in found]
    alive = words.count("lived") + words.count("unreached")
    print(f"seed {chosen.seed}: {words.count('killed')} killed, {alive} alive, {words.count('equivalent')} equivalent")
    return int(alive > 0)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.mutation.drawn", description=__doc__)
    today = int(datetime.date.today().strftime("%Y%m%d"))
    parser.add_argument("--count", type=int, default=50, help="mutants to draw (default 50)")
    parser.add_argument("--seed", type=int, default=today, help="of the draw (default: the date)")
    parser.add_argument("--lines", type=Path, help="coverage data with the lines of every test")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutants at once")
    return parser


def _measured(data: Path) -> Path:
    """The suite once, with the lines that each test runs."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "-m", "not nightly"]
    command += ["--cov=privstats", "--cov-context=test"]
    environment = {**os.environ, "COVERAGE_FILE": str(data), "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--cov-report="], cwd=ROOT, check=True, env=environment)
    return data


if __name__ == "__main__":
    sys.exit(main())
