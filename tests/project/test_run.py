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
  *"{part}"*) {does} ;;
esac
"""
SLICE = """#!/bin/sh
echo "the slice of the commit, ${{SLIPCOVER_ENABLED-not measured}}"
{slice}
"""
BLIND = """#!/bin/sh
echo "the core without a room, $*"
{blind}
"""
NIGHTLY = "-m pip install -q -c constraints.txt -e .[nightly] in checkout"
DOCS = NIGHTLY.replace("nightly", "docs")
ROOMS = f"-m pytest -n {(os.cpu_count() or 1) + 1} -m not nightly and not ci and not seer in checkout"
CI = "-m pytest -n auto -m ci and not nightly and not seer tests/test_marked.py in checkout"
INSTALL = "mkdir -p .venv/bin && cp python .venv/bin && .venv/bin/python -m pytest"
RECORD = 'echo tests/test_once.py >> "$PRIVSTATS_FAILED"'  # as pytest does with tests.flaky
WAIT = "for i in $(seq 400); do [ -e {} ] && break; sleep .05; done"  # 20 seconds at most

pytestmark = [
    pytest.mark.ci,
    pytest.mark.skipif(
        any(shutil.which(tool) is None for tool in ("bash", "git", "tar")), reason="the script needs them"
    ),
]


def run(folder, demo="echo shown", test=INSTALL, part="nothing", does="exit 1", slice="true", blind="true", again=0):
    """Run the script in a checkout with these two commands.

    Args:
        folder: where the checkout is made.
        demo: the README's first command.
        test: the README's second command.
        part: a word of the command line of ``python`` by which one part of the script is chosen.
        does: what this part does, in shell.
        slice: what the slice of the night does, in shell.
        blind: what the tests without a room do, in shell.
        again: the exit code of the second run of failed tests.
    """
    checkout = folder / "checkout"
    (checkout / ".ci").mkdir(parents=True)
    (folder / "tmp").mkdir()
    shutil.copy(ROOT / ".ci" / "run", checkout / ".ci")
    for name, text in {"README.md": README.format(demo=demo, test=test), ".gitignore": "ignored\n.venv\n"}.items():
        (checkout / name).write_text(text)
    (checkout / "python").write_text(PYTHON.format(part=part, does=does, again=again))
    (checkout / ".ci" / "slice").write_text(SLICE.format(slice=slice))
    (checkout / ".ci" / "blind").write_text(BLIND.format(blind=blind))
    for name in ("python", ".ci/slice", ".ci/blind"):
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
    tests, rooms, shown, nightly, ci, coverage, night, blind, flaky, _ = said
    assert (tests, rooms, shown) == ("-m pytest in checkout", ROOMS, "all of it")
    assert "-m slipcover --merge" in coverage
    assert "--fail-under 98" in coverage
    assert (nightly, ci) == (NIGHTLY, CI)
    assert flaky.startswith("-m tests.flaky ")
    assert (night, blind) == ("the slice of the commit, not measured", "the core without a room, --commit")
    assert not (tmp_path / "checkout" / "left").exists()
    assert not list((tmp_path / "tmp").iterdir()), "what the run made for itself is gone with it"


@pytest.mark.parametrize(
    "commands",
    [
        {"demo": "echo shown; false"},
        {"test": f"{INSTALL} tests", "part": "tests"},
        {"part": "not seer"},
        {"part": "merge"},
        {"part": "ci and not nightly"},
        {"slice": "exit 1"},
        {"blind": "exit 1"},
    ],
    ids=["demo", "tests", "rooms", "coverage", "ci", "slice", "blind"],
)
def test_a_part_that_fails_fails_the_run_and_stops_no_other(tmp_path: Path, commands: dict[str, str]) -> None:
    done = run(tmp_path, **commands)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "\nshown\n" in done.stdout
    last = done.stdout.split("$ what is marked ci\n")[1]
    assert last.startswith(f"{NIGHTLY}\n{CI}\n")
    assert "-m slipcover --merge" in last
    assert "\nthe slice of the commit, not measured\n" in last
    assert "\nthe core without a room, --commit\n" in last
    assert ("coverage is below 98 %" in done.stderr) == (commands.get("part") == "merge")


def test_packages_of_the_night_that_cannot_be_installed_do_not_fail_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, part="[nightly]")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{NIGHTLY}\n.[nightly] cannot be installed here: what needs it is skipped\n{DOCS}\n{CI}\n" in done.stdout


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ({"part": "ci and not nightly", "does": f"{RECORD}; exit 1"}, 0),
        ({"part": "ci and not nightly", "does": f"{RECORD}; exit 1", "again": 1}, 1),
        ({"part": "ci and not nightly", "does": f"{RECORD}; exit 3"}, 1),
        ({"part": "ci and not nightly", "does": "exit 1"}, 1),
        ({"slice": f"{RECORD}; exit 1"}, 0),
        ({"part": "ci and not nightly", "does": f"{RECORD}; exit 1", "slice": "exit 1"}, 1),
        ({"part": "ci and not nightly", "does": "exit 1", "slice": f"{RECORD}; exit 1"}, 1),
    ],
    ids=[
        "passes at its second run",
        "fails twice",
        "pytest itself fails",
        "no failed test explains it",
        "in the slice",
        "only that of ci explains",
        "only that of the slice explains",
    ],
)
def test_a_failed_test_fails_the_run_unless_it_passes_alone(tmp_path: Path, how: dict[str, object], code: int) -> None:
    done = run(tmp_path, **how)
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "tests/test_once.py FLAKY"
    assert ("which no failed test explains" in done.stdout + done.stderr) == (code == 1 and "again" not in how)


def test_the_slice_runs_beside_what_is_marked_ci(tmp_path: Path) -> None:
    """Each waits for a file of the other, so neither would pass before the other has begun."""
    ci, night = tmp_path / "ci", tmp_path / "night"
    ours, theirs = (f"touch {mine}; {WAIT.format(other)}; [ -e {other} ]" for mine, other in ((ci, night), (night, ci)))
    assert run(tmp_path, part="ci and not nightly", does=ours, slice=theirs).returncode == 0


@pytest.mark.parametrize("aside", ["demo", "slice"])
def test_what_runs_aside_ends_with_a_run_that_is_ended(tmp_path: Path, aside: str) -> None:
    """The part beside it ends the script, as an interrupt would.

    Each command waits for a file of the other side, so no time limit decides whether the part aside still runs.
    """
    begun, ended, late = tmp_path / "begun", tmp_path / "ended", tmp_path / "late"
    stays = f"touch {begun}; {WAIT.format(ended)}; touch {late}"
    kills = f"until [ -e {begun} ]; do sleep .05; done; while ! kill -TERM $PPID; do :; done"
    how = (
        {"demo": stays, "test": kills}
        if aside == "demo"
        else {"slice": stays, "part": "ci and not nightly", "does": kills}
    )
    assert run(tmp_path, **how).returncode != 0
    ended.touch()
    time.sleep(0.8)
    assert not late.exists()
    assert not list((tmp_path / "tmp").iterdir())
