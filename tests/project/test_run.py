"""The script of every change, with commands of a moment in the README's place: nothing that fails goes unsaid."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests import night

ROOT = Path(__file__).parents[2]
README = """
<!-- command: demo -->
```bash
{demo}
```
<!-- command: test -->
```bash
{test}
```
"""
PYTHON = """#!/bin/sh
echo "$* in $(basename "$PWD")"
case "$*" in
  *tests.flaky*) echo "tests/test_once.py FLAKY"; exit {again} ;;
  *"{fails}"*) {records} && echo tests/test_once.py >> "$PRIVSTATS_FAILED"; exit {code} ;;
esac
"""
SLICE = """#!/bin/sh
echo "the slice of the commit, ${{SLIPCOVER_ENABLED-not measured}}"
case slice in '{fails}') exit 1;; esac
"""
DOCS = "-m pip install -q -c constraints.txt -e .[docs] in checkout"
CI = "-m pytest -n auto -m ci and not nightly tests/test_marked.py in checkout"
INSTALL = "mkdir -p .venv/bin && cp python .venv/bin && .venv/bin/python -m pytest"

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        any(shutil.which(tool) is None for tool in ("bash", "git", "tar")), reason="the script needs them"
    ),
]


def run(folder, demo="echo shown", test=INSTALL, fails="nothing", records="false", code=1, again=0):
    """Run the script in a checkout with these two commands.

    Args:
        folder: where the checkout is made.
        demo: the README's first command.
        test: the README's second command.
        fails: what fails: a word of the command line of ``python``, or ``slice``.
        records: ``true`` if what fails writes down the failed test, as pytest does with ``tests.flaky``.
        code: the exit code of what fails.
        again: the exit code of the second run of failed tests.
    """
    checkout = folder / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    (folder / "tmp").mkdir()
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci")
    for name, text in {"README.md": README.format(demo=demo, test=test), ".gitignore": "ignored\n.venv\n"}.items():
        (checkout / name).write_text(text)
    (checkout / "python").write_text(PYTHON.format(fails=fails, records=records, code=code, again=again))
    (checkout / ".ci" / "slice").write_text(SLICE.format(fails=fails))
    for name in ("python", ".ci/slice"):
        (checkout / name).chmod(0o755)
    (checkout / "deleted").touch()
    (checkout / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "night.py", checkout / "tests")
    for name, mark in (("marked", "ci"), ("plain", "slow")):
        (checkout / "tests" / f"test_{name}.py").write_text(f"@pytest.mark.{mark}\n")
    for words in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *words], cwd=checkout, check=True)
    (checkout / "deleted").unlink()
    (checkout / "a new file").touch()
    (checkout / "ignored").touch()
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("SLIPCOVER_")}
    environment = {**unmeasured, "TMPDIR": str(folder / "tmp"), "PRIVSTATS_SLICE": str(night.SLICES)}
    return subprocess.run([".ci/run"], cwd=checkout, env=environment, capture_output=True, text=True, timeout=60)


def test_each_command_starts_from_nothing_and_every_part_is_shown(tmp_path: Path) -> None:
    demo = "test ! -e .venv && test -e 'a new file' && test ! -e ignored && touch left && mkdir .venv && echo all of it"
    done = run(tmp_path, demo, f"test ! -e .venv && {INSTALL}")
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line for line in done.stdout.splitlines() if line and not line.startswith("$")]
    tests, shown, docs, ci, coverage, night, flaky, _ = said
    assert (tests, shown) == ("-m pytest in checkout", "all of it")
    assert "-m slipcover --merge" in coverage
    assert "--fail-under 98" in coverage
    assert (docs, ci) == (DOCS, CI)
    assert flaky.startswith("-m tests.flaky ")
    assert night == "the slice of the commit, not measured"
    assert not (tmp_path / "checkout" / "left").exists()
    assert not list((tmp_path / "tmp").iterdir()), "what the run made for itself is gone with it"


@pytest.mark.parametrize(
    "commands",
    [
        {"demo": "echo shown; false"},
        {"test": f"{INSTALL} tests", "fails": "tests"},
        {"fails": "merge"},
        {"fails": "ci"},
        {"fails": "slice"},
    ],
    ids=["demo", "tests", "coverage", "ci", "slice"],
)
def test_a_part_that_fails_fails_the_run_and_stops_no_other(tmp_path: Path, commands: dict[str, str]) -> None:
    done = run(tmp_path, **commands)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "\nshown\n" in done.stdout
    last = done.stdout.split("$ what is marked ci\n")[1]
    assert last.startswith(f"{DOCS}\n{CI}\n")
    assert "-m slipcover --merge" in last
    assert "\nthe slice of the commit, not measured\n" in last
    assert ("coverage is below 98 %" in done.stderr) == (commands.get("fails") == "merge")


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"records": "true"}, 0),
        ({"records": "true", "again": 1}, 1),
        ({"records": "true", "code": 3}, 1),
        ({"records": "false"}, 1),
    ],
    ids=["passes at its second run", "fails twice", "pytest itself fails", "no failed test explains it"],
)
def test_a_failed_test_fails_the_run_unless_it_passes_alone(tmp_path: Path, how: dict[str, object], code: int) -> None:
    done = run(tmp_path, fails="not nightly", **how)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "tests/test_once.py FLAKY"
    assert ("which no failed test explains" in done.stderr) == (how["records"] == "false" or "code" in how)


def test_the_demo_ends_with_a_run_that_is_ended(tmp_path: Path) -> None:
    """The second command ends the script, as an interrupt would, while the first still runs.

    Each command waits for a file of the other side, so no time limit decides whether the first one still runs.
    """
    begun, ended, late = tmp_path / "begun", tmp_path / "ended", tmp_path / "late"
    first = f"touch {begun}; for i in $(seq 400); do [ -e {ended} ] && break; sleep .05; done; touch {late}"
    second = f"until [ -e {begun} ]; do sleep .05; done; while ! kill -TERM $PPID; do :; done"
    assert run(tmp_path, first, second).returncode != 0
    ended.touch()
    time.sleep(0.8)
    assert not late.exists()
    assert not list((tmp_path / "tmp").iterdir())
