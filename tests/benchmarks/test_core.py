"""The page of the core states what one session runs today, and commits are counted by the files that they touch."""

import math

import pytest

from benchmarks.core import commits, lines
from benchmarks.core.rooms import ROOT, Rooms, module_of
from benchmarks.measuring import results


@pytest.mark.nightly  # a process of its own, line by line
def test_a_session_runs_the_stored_rooms_and_as_many_lines():
    """Other versions of Python stop at a few other lines, so sums may differ by a twentieth."""
    now, stored = lines.rows(ROOT), results("core.lines")[lines.TITLE]
    rooms = ("room", "part")
    again = "python -m benchmarks.core.lines --save; python -m benchmarks.tables --write"
    assert [[row[key] for key in rooms] for row in now] == [[row[key] for key in rooms] for row in stored], again
    for key in ("release", "head", "of"):
        before, today = (sum(row[key] for row in rows) for rows in (stored, now))
        assert math.isclose(before, today, rel_tol=0.05), again


def test_a_session_runs_no_contributed_room_and_most_of_its_lines_in_the_core():
    rows = results("core.lines")[lines.TITLE]
    assert [row["room"] for row in rows if row["room"].startswith("contrib")] == []
    core, rest = (sum(row["release"] for row in rows if (row["part"] == "core") is core) for core in (True, False))
    assert core > rest
    assert all(row["release"] <= row["head"] <= row["of"] for row in rows)


def test_lines_of_functions_count_and_comments_do_not():
    text = "# one\ndef f():\n    # three\n    return [\n        each\n        for each in ()\n    ]\n\nf()\n"
    assert {2, 4, 9} <= lines.code_lines(compile(text, "file", "exec")) <= {2, 4, 5, 6, 9}


@pytest.mark.parametrize(
    ("file", "room", "part"),
    [
        ("kinds/classes.py", "kinds", "core"),
        ("kinds/__init__.py", "kinds", "core"),
        ("release_file.py", "release_file", "core"),
        ("dp/planning.py", "dp.planning", "outside"),
        ("doors.py", "doors", "support"),
        ("contrib/streams/mechanisms.py", "contrib.streams", "outside"),
        ("contrib/__init__.py", "contrib", "outside"),
        ("__init__.py", "__init__", "outside"),
    ],
)
def test_a_file_has_a_room_and_a_part(file, room, part):
    rooms, module = Rooms.read(), module_of(file)
    assert (rooms.room(module), rooms.part(module)) == (room, part)


def test_rooms_are_in_the_order_of_the_tower():
    rooms = Rooms.read()
    names = ["__init__", "contrib.streams", "cli", "session", "plan", "dp.planning", "kinds", "errors"]
    assert sorted(names, key=rooms.floor) == names


LOG = (
    "\x002026-01-02\n\nprivstats/kinds/classes.py\nprivstats/contrib/streams/stream.py\n"
    "\x002026-01-01\n\nprivstats/kinds/classes.py\nprivstats/contrib/__init__.py\ntests/contrib/streams/test_stream.py\n"
    "\x002026-01-03\n\nprivstats/dp/planning.py\nprivstats/contrib/http/page.html\n"
    "\x002026-01-03\n\ndocs/core.md\n"
    "\x002026-01-03\n"
)


def test_commits_are_counted_by_the_files_that_they_touch():
    counted = commits.counted(LOG, Rooms.read())
    days = {"first day": "2026-01-01", "last day": "2026-01-03"}
    assert counted == {**days, "commits": 5, "touch the package": 3, "touch both": 1}
