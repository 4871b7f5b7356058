"""Run tests many times while another process keeps a core busy, and print how often each one failed.

    python -m tests.repeated --times 20 TEST...

A plugin of pytest, too: with PRIVSTATS_TIMES set, ``-p tests.repeated`` runs each test that often. The number of the
repetition ends the test's id, so that each repetition draws other noise (``tests/drawing.py``). Repetitions share the
fixtures of their module: a test that uses up such a fixture fails from its second repetition on.
"""

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence

import pytest

TIMES = "PRIVSTATS_TIMES"
"""The variable that holds the number of repetitions."""
_ALONE = ("-p", "tests.repeated", "-p", "no:xdist", "-m", "", "-o", "addopts=--strict-markers -q", "-rA", "--tb=short")


@pytest.fixture
def repetition(request: pytest.FixtureRequest) -> int:
    """Return the number of this repetition."""
    return int(request.param)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeat the test."""
    metafunc.fixturenames.append("repetition")
    metafunc.parametrize("repetition", range(int(os.environ[TIMES])), indirect=True)


def counts(report: str) -> list[str]:
    """Return a line for each test: how often it failed, and how often it ran.

    Args:
        report: what pytest printed, with its summary of passed and failed tests.

    Example:
        >>> counts("PASSED a.py::b[0]\\nFAILED a.py::b[1] - x\\nERROR a.py::b[1] - y\\nPASSED a.py::c[tls-0]\\n")
        ['1 of 2 failed: a.py::b', '0 of 1 failed: a.py::c[tls]']
    """
    words = re.findall(r"^(PASSED|FAILED|ERROR) (.+\[.*?\d+\])(?: - .*)?$", report, re.MULTILINE)
    failed = {test for word, test in words if word != "PASSED"}
    ran, lost = (Counter(map(_named, tests)) for tests in (dict.fromkeys(test for _, test in words), failed))
    return [f"{lost[name]} of {count} failed: {name}" for name, count in ran.items()]


def _named(test: str) -> str:
    return re.sub(r"\[\d+\]$", "", re.sub(r"-\d+\]$", "]", test))


def main(words: Sequence[str] | None = None) -> int:
    """Repeat the tests, print the report of pytest and the counts; return pytest's exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.repeated")
    parser.add_argument("--times", type=int, default=20, help="repetitions of each test")
    parser.add_argument("tests", nargs="+", help="ids of tests")
    chosen = parser.parse_args(words)
    command = [sys.executable, "-m", "pytest", *_ALONE, *chosen.tests]
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        done = subprocess.run(command, env={**os.environ, TIMES: str(chosen.times)}, stdout=subprocess.PIPE, text=True)
    finally:
        busy.kill()
        busy.wait()
    print(done.stdout, *counts(done.stdout), sep="\n", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
