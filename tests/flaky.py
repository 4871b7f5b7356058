"""Run each failed test once more, alone, as ``.ci/run`` does: a test that then passes is flaky and is named.

    python -m tests.flaky FILE...

A plugin of pytest, too: ``-p tests.flaky`` appends the id of each failed test to the file that PRIVSTATS_FAILED names.
Two runs at once need a file each.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

FAILED = "PRIVSTATS_FAILED"
"""The variable that names the file of failed tests."""
MAX_FLAKY = 3
"""More failed tests than these are not run again."""
_OF_A_RUN = (FAILED, "PYTEST_XDIST_", "SLIPCOVER_")
"""How the variables begin that belong to a run with workers and coverage."""
_SECONDS = 1200
_ALONE = ("-p", "no:xdist", "-m", "", "-o", "addopts=--strict-markers -q -rfE")


def _record(report: pytest.TestReport | pytest.CollectReport) -> None:
    place = os.environ.get(FAILED)
    if report.failed and place and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(f"{report.nodeid}\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record a failed setup, call or teardown; workers report to the process that started them."""
    _record(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a file that cannot be collected."""
    _record(report)


def passes_alone(test: str) -> bool:
    """Run one test in a process of its own and return whether it passed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_OF_A_RUN)}
    words = [sys.executable, "-m", "pytest", *_ALONE, test]
    print(f"\n$ once more, alone: {test}", flush=True)
    try:
        return subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, timeout=_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def verdict(failed: Sequence[str], again: Callable[[str], bool]) -> tuple[bool, list[str]]:
    """Return whether a run with these failed tests counts as passed, and the lines that say why.

    Args:
        failed: the ids of the tests that failed.
        again: runs a test once more and returns whether it passed.
    """
    tests = list(dict.fromkeys(failed))
    if len(tests) > MAX_FLAKY:
        return False, [f"{len(tests)} tests failed, which are too many to run again (at most {MAX_FLAKY}):", *tests]
    passed = {test: again(test) for test in tests}
    lines = [f"RED: {test} failed twice" for test, good in passed.items() if not good]
    lines += [f"FLAKY, mend it: {test} failed, then passed alone" for test, good in passed.items() if good]
    return all(passed.values()), lines


def main(words: Sequence[str] | None = None) -> int:
    """Judge the failed tests of some files; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.flaky")
    parser.add_argument("files", type=Path, nargs="+", help="ids of failed tests, a line each")
    failed = [line for file in parser.parse_args(words).files for line in file.read_text("utf-8").splitlines()]
    good, lines = verdict(failed, passes_alone)
    if lines:
        print("\n$ failed tests", *lines, sep="\n", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
