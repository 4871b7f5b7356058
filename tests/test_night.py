"""The slices of the night: all of it, each file once, and none longer than a run of `.ci/run` has room for."""

import os
import signal
import subprocess
import sys

import pytest

from tests import night
from tests.threads import lives, until

MINUTES = 10
LISTED = pytest.mark.skipif(not night.SECONDS.exists(), reason="a source distribution is without it")


@LISTED
def test_every_file_of_the_night_is_in_exactly_one_slice_of_at_most_ten_minutes_on_two_cores() -> None:
    seconds = night.kept()
    dealt = night.slices(seconds)
    assert len(dealt) == night.SLICES <= 24
    assert all(dealt), "a slice without a file is an error of .ci/slice"
    assert sorted(file for files in dealt for file in files) == sorted(seconds)
    assert all((night.ROOT / file).is_file() for file in seconds)
    assert max(sum(seconds[file] for file in files) for files in dealt) <= 2 * 60 * MINUTES
    assert max(seconds.values()) <= 60 * MINUTES


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
    """With a double of the interpreter: pytest only notes what it is asked for."""
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
    dealt, workers = night.slices(night.kept()), len(os.sched_getaffinity(0)) + 1
    for line, number in zip(asked.read_text().splitlines(), numbers, strict=True):
        assert line == f"-n {workers} -m nightly -rfEs {' '.join(dealt[number])}"
        assert f"slice {number} took" in done.stdout


@LISTED
def test_a_slice_that_is_ended_as_a_group_leaves_no_pytest(tmp_path):
    """``timeout`` made a group of its own, so an interrupted ``.ci/run`` left the slice's pytest running."""
    python, begun = tmp_path / "python", tmp_path / "begun"
    python.write_text(f"""#!/bin/bash
case "$*" in
  "-m pytest"*) echo $$ > {begun}.new; mv {begun}.new {begun}; exec sleep 60 ;;
esac
exec "{sys.executable}" "$@"
""")
    python.chmod(0o700)
    environment = {**os.environ, "PRIVSTATS_PYTHON": str(python)}
    running = subprocess.Popen(
        [night.ROOT / ".ci" / "slice", "3"], env=environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        until(begun.exists, lambda: f"the slice ended with {running.poll()}")
        os.killpg(running.pid, signal.SIGTERM)
        until(lambda: not lives(int(begun.read_text())))
    finally:
        running.kill()
        running.wait()
