"""Count the commits that touch the core and a contributed room together.

    python -m benchmarks.core.commits FIRST..LAST ... --save

Each range counts its commits without merges. Today's lists decide what is core, also for older commits.
"""

from __future__ import annotations

import argparse
import subprocess

from benchmarks.core.rooms import PACKAGE, ROOT, Rooms, is_contributed, module_of
from benchmarks.measuring import Row, Tables, command

__all__ = ["TITLE", "counted", "tables"]

TITLE = "commits that touch the core and a contributed room"


def options(parser: argparse.ArgumentParser) -> None:
    """The ranges."""
    parser.add_argument("range", nargs="*", default=["HEAD"], help="of commits, as git log reads it; all when omitted")


def tables(chosen: argparse.Namespace) -> Tables:
    """One row per range."""
    rooms = Rooms.read()
    yield TITLE, [{"range": _hashes(each), **counted(_log(each), rooms)} for each in chosen.range]


def counted(log: str, rooms: Rooms) -> Row:
    """Count the commits of a log: a zero byte, a day and a line break before each commit's files.

    Returns:
        the first and the last day, and the number of commits: all, those that touch the package, and those that touch
        both the core and a contributed room.
    """
    commits = [commit.split("\n") for commit in log.split("\0")[1:]]
    touched = [{module_of(below) for file in files if (below := _below(file))} for _, *files in commits]
    days = [day for day, *_ in commits]
    both = [any(rooms.part(each) == "core" for each in own) and any(map(is_contributed, own)) for own in touched]
    return {
        "first day": min(days, default=""),
        "last day": max(days, default=""),
        "commits": len(commits),
        "touch the package": sum(map(bool, touched)),
        "touch both": sum(both),
    }


def _below(file: str) -> str:
    """Return a file's path below the package; empty for any other file."""
    return file.removeprefix(f"{PACKAGE}/") if file.startswith(f"{PACKAGE}/") else ""


def _hashes(range_: str) -> str:
    """Return a range by the commits that its ends are today."""
    return "..".join(_git("rev-parse", "--short=9", end).strip() for end in range_.split(".."))


def _log(range_: str) -> str:
    return _git("log", "--no-merges", "--no-renames", "--name-only", "--format=%x00%cs", range_, "--")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    command("core.commits", __doc__, tables, options)
