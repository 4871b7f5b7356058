"""The slices of the night: all of it, each file once, and none longer than a run of `.ci/run` has room for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import night

MINUTES = 20
LISTED = pytest.mark.skipif(not night.SECONDS.exists(), reason="a source distribution is without it")


@LISTED
def test_every_file_of_the_night_is_in_exactly_one_slice_of_at_most_twenty_minutes_on_two_cores() -> None:
    seconds = night.kept()
    dealt = night.slices(seconds)
    assert len(dealt) == night.SLICES <= 8
    assert sorted(file for files in dealt for file in files) == sorted(seconds)
    assert all((night.ROOT / file).is_file() for file in seconds)
    assert max(sum(seconds[file] for file in files) for files in dealt) <= 2 * 60 * MINUTES
    assert max(seconds.values()) <= 60 * MINUTES


@LISTED
def test_as_many_commits_as_there_are_slices_run_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(100, 100 + night.SLICES):
        night.main(["--number", str(number)])
    assert sorted(capsys.readouterr().out.split()) == sorted(night.kept())


def test_a_commit_has_the_number_of_those_that_led_to_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRIVSTATS_SLICE", raising=False)
    monkeypatch.setattr(night, "ROOT", tmp_path)
    names = {f"GIT_{who}_{what}": "nobody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for words in (["init", "--quiet"], *(["commit", "--quiet", "--allow-empty", "--message", "one"] for _ in range(3))):
        subprocess.run(["git", "-C", str(tmp_path), *words], env={**os.environ, **names}, check=True)
    assert night.number_of_commit() == 3
    monkeypatch.setenv("PRIVSTATS_SLICE", "12")
    assert night.number_of_commit() == 12


@pytest.mark.parametrize(
    ("tests", "listed", "whole", "words"),
    [
        ([("a.py", True), ("a.py", False), ("b.py", False)], ["a.py", "c.py"], True, ""),
        ([("a.py", False)], ["a.py"], False, ""),
        ([("a.py", False)], ["a.py"], True, "a.py: in a slice of the night, and marked nightly no more"),
        ([("a.py", True), ("b.py", True)], ["a.py"], False, "b.py: marked nightly, and in no slice of the night"),
    ],
)
def test_the_list_is_held_against_what_is_collected(tests, listed, whole, words):
    assert night.not_as_collected(tests, listed, whole=whole).partition(";")[0] == words


INTERPRETER = """#!/bin/bash
case "$*" in
  "-m pip"*) exit 1 ;;
  "-m pytest"*) printf "%s\\n" "${*:3}" >> "$ASKED"; exit "$(cat "$CODE")" ;;
esac
exec "$REAL" "$@"
"""


@LISTED
@pytest.mark.parametrize(
    ("words", "code", "numbers", "ends"),
    [([], 0, [11 % night.SLICES], 0), (["3"], 5, [3], 0), (["all"], 1, range(night.SLICES), 1)],
)
def test_a_slice_is_run_whole_and_its_failure_is_the_runs(tmp_path, words, code, numbers, ends):
    """With a double of the interpreter: nothing is installed, and pytest only notes what it is asked for."""
    python, asked = tmp_path / "python", tmp_path / "asked"
    python.write_text(INTERPRETER)
    python.chmod(0o700)
    (tmp_path / "code").write_text(str(code))
    own = {"PRIVSTATS_PYTHON": str(python), "REAL": sys.executable, "ASKED": str(asked), "CODE": str(tmp_path / "code")}
    script = night.ROOT / ".ci" / "slice"
    done = subprocess.run(
        [script, *words], env={**os.environ, **own, "PRIVSTATS_SLICE": "11"}, capture_output=True, text=True
    )
    assert done.returncode == ends, done.stdout + done.stderr
    assert ".[nightly] cannot be installed here: what needs it is skipped" in done.stdout
    dealt = night.slices(night.kept())
    for line, number in zip(asked.read_text().splitlines(), numbers, strict=True):
        assert line == f"-n auto -m nightly -rfEs {' '.join(dealt[number])}"
        assert f"slice {number} took" in done.stdout


HELPED = """
import pytest
from tests.searched import UNTIL_FOUND

@UNTIL_FOUND
def test_something(until_found): ...
"""


@LISTED
@pytest.mark.ci
def test_a_file_that_has_the_mark_from_a_helper_is_found_and_its_seconds_are_kept(tmp_path: Path) -> None:
    """In a copy of what pytest needs: one test, marked by night for one of its parameters."""
    for name in ("tests/__init__.py", "tests/night.py", "tests/timed.py", "tests/searched.py", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((night.ROOT / name).read_bytes())
    (tmp_path / "tests" / "test_helped.py").write_text(HELPED)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / night.SECONDS.name).write_text("{}")
    words = [sys.executable, "-m", "pytest", "-p", "tests.timed", "-m", "nightly", "-n", "2", "tests/test_helped.py"]
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("SLIPCOVER_")}
    own = {**unmeasured, "PYTHONPATH": str(tmp_path), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / ".ci" / night.SECONDS.name).read_text()) == {"tests/test_helped.py": 1}
