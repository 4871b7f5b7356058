"""A failed test's second run, and what decides a run of ``.ci/run``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import flaky

ONCE = """
from pathlib import Path

def test_at_the_second_run():
    place = Path(__file__).with_name("ran")
    ran = place.exists()
    place.touch()
    assert ran

def test_never():
    assert not "ever"

def test_always():
    pass
"""


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """The failed tests of a run with two workers, as pytest wrote them down."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_once.py").write_text(ONCE)
    place = tmp_path / "failed"
    words = ["-m", "pytest", "-q", "-n", "2", "-p", "tests.flaky", str(tmp_path)]
    here = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**here, flaky.FAILED: str(place), "PYTHONPATH": str(Path(flaky.__file__).parents[1])}
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stdout + done.stderr
    return place


@pytest.mark.ci
@pytest.mark.slow
def test_a_test_that_passes_at_its_second_run_is_named_and_one_that_fails_twice_is_red(
    failed: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    tests = failed.read_text().splitlines()
    assert sorted(tests) == ["test_once.py::test_at_the_second_run", "test_once.py::test_never"]
    monkeypatch.chdir(failed.parent)
    monkeypatch.setenv("PYTEST_ADDOPTS", "")  # of the run that this test is part of
    (none := failed.with_name("none")).touch()
    assert flaky.main([str(none), str(failed)]) == 1
    *_, never, once = capfd.readouterr().out.splitlines()
    assert never == "RED: test_once.py::test_never failed twice"
    assert once == "FLAKY, mend it: test_once.py::test_at_the_second_run failed, then passed alone"
    failed.write_text("test_once.py::test_at_the_second_run\n" * 2)
    assert flaky.main([str(failed)]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == once


def test_more_than_three_failed_tests_are_red_without_a_second_run() -> None:
    def never(test: str) -> bool:
        raise AssertionError(test)

    names = [f"test_{number}" for number in range(flaky.MAX_FLAKY + 1)]
    good, lines = flaky.verdict([*names, *names], never)
    assert (good, lines[1:]) == (False, names)


def test_three_that_pass_do_not_fail_the_run_and_none_says_nothing() -> None:
    good, lines = flaky.verdict(["a", "b", "c", "a"], lambda test: True)
    assert (good, len(lines)) == (True, 3)
    assert flaky.verdict([], lambda test: False) == (True, [])
