"""Count by room the lines of privstats that one session runs: what a reader of that session reads.

    python -m benchmarks.core.lines --save
    python -m benchmarks.core.lines --tree ../older-checkout

A session of README's shape (``benchmarks/core/session.py``) runs in a process of its own, traced from ``import
privstats`` on. A line counts once, also if it runs while its module is loaded. Comments and the inner lines of
docstrings never run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from types import CodeType

from benchmarks.core.rooms import PACKAGE, ROOT, Rooms, module_of
from benchmarks.measuring import Row, Rows, Tables, child, command

__all__ = ["TITLE", "code_lines", "rows", "tables"]

TITLE = "lines of code that one session runs"
_SESSION = Path(__file__).with_name("session.py")


def options(parser: argparse.ArgumentParser) -> None:
    """``--tree``."""
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout than this one")


def tables(chosen: argparse.Namespace) -> Tables:
    """One row per room."""
    yield TITLE, rows(chosen.tree.resolve())


def rows(root: Path) -> Rows:
    """Return each room of the core, and any other in which a line ran, from the top of the tower to its bottom."""
    rooms, package, ran = Rooms.read(root), root / PACKAGE, _ran(root)
    found: dict[tuple[int, str, str], Counter[str]] = {}
    for path in package.rglob("*.py"):
        file = path.relative_to(package).as_posix()
        room, part = rooms.room(module_of(file)), rooms.part(module_of(file))
        counts = found.setdefault((rooms.floor(room), room, part), Counter())
        counts["of"] += len(code_lines(compile(path.read_text("utf-8"), path, "exec")))
        if file in ran:
            counts.update(files=1, **{until: len(own) for until, own in ran[file].items()})
    shown = (each for each in sorted(found.items()) if each[0][-1] == "core" or each[1]["files"])
    return [_row(room, part, counts) for (_, room, part), counts in shown]


def _ran(root: Path) -> dict[str, dict[str, list[int]]]:
    """Return by file the lines that run until the release, and those that run until the head."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    ran: dict[str, dict[str, list[int]]] = json.loads(
        child([sys.executable, "-P", str(_SESSION)], cwd=root, env=environment)
    )
    return ran


def _row(room: str, part: str, counts: Counter[str]) -> Row:
    return {"room": room, "part": part, **{name: counts[name] for name in ("files", "release", "head", "of")}}


def code_lines(code: CodeType) -> set[int]:
    """Return the lines of a code object, and of all functions and classes in it."""
    own = {line for *_, line in code.co_lines() if line}
    return own.union(*(code_lines(each) for each in code.co_consts if isinstance(each, CodeType)))


if __name__ == "__main__":
    command("core.lines", __doc__, tables, options)
