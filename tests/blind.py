"""Run the core's tests where rooms are deleted: ``python -m tests.blind ROOM...``, as ``.ci/blind`` does.

    python -m tests.blind                        all rooms of privstats.contrib and threat_models, deleted together
    python -m tests.blind streams                one of them, or several
    python -m tests.blind --commit               this commit's room, if it has one, and its part of the files
    python -m tests.blind streams -- tests/dp    other words for pytest than those of the core's tests

A failed test is run once more, alone. A copy of the checkout loses each room, the room's tests, and every line that
announces or lists either. The entry points that remain are written into the copy, so nothing is installed and no
network is needed. ``tests.without`` skips the tests that need what is deleted.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from tests import core, night
from tests.without import VARIABLE

ROOT = Path(__file__).parents[1]
PARTS = 6
"""Number of commits per room among which the core's files are divided."""
_CONTRIB = Path("privstats", "contrib")
_ATTACKER = "threat_models"
_LISTS = ("pyproject.toml", "tests/core.toml", "tests/project/core.toml")
_SITE = f"""import os, sys
here = os.path.dirname(__file__)
sys.path[:] = [each for each in sys.path if each == here or not os.path.isdir(os.path.join(each, {_ATTACKER!r}))]
"""
"""Takes a checkout that pip installed in place from the path, because a deleted package would be found there."""


def rooms(root: Path = ROOT) -> list[str]:
    """Return the names of all rooms that can be deleted."""
    contributed = sorted(each.parent.name for each in (root / _CONTRIB).glob("*/__init__.py"))
    return [*contributed, *[_ATTACKER] * (root / _ATTACKER).is_dir()]


def folders(room: str) -> tuple[Path, Path]:
    """Return a room's folder and that of its tests."""
    own = Path(_ATTACKER) if room == _ATTACKER else _CONTRIB / room
    return own, Path("tests", *own.parts[-2:])


def copy(target: Path, root: Path = ROOT) -> None:
    """Copy all files that git tracks or would track."""
    asked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(asked, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)


def delete(deleted: Sequence[str], root: Path) -> list[str]:
    """Delete rooms from a copy, and return what :mod:`tests.without` is to know."""
    before = _rows(root)
    gone = [path for room in deleted for path in folders(room)]
    if not {*rooms(root)} - {*deleted, _ATTACKER}:
        gone += [_CONTRIB, Path("tests/contrib")]
    for path in gone:
        shutil.rmtree(root / path, ignore_errors=True)
    for name in _LISTS:
        (root / name).write_text(_without(root / name, gone), "utf-8")
    seconds = root / ".ci" / night.SECONDS.name
    kept = {file: spent for file, spent in json.loads(seconds.read_text()).items() if (root / file).is_file()}
    seconds.write_text(json.dumps(kept, indent=0) + "\n")
    return [*map(_module, gone), *(row for row in before if row not in _rows(root))]


def _module(path: Path) -> str:
    return ".".join(path.parts)


def _rows(root: Path) -> list[str]:
    points = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["entry-points"]
    return [f"{group}:{name}" for group, rows in points.items() for name in rows]


def _without(file: Path, gone: Iterable[Path]) -> str:
    """Return a list's text without the lines that begin with a deleted module or file, or announce one."""
    names = "|".join("[./]".join(each.parts).removeprefix("privstats[./]") for each in gone if each.parts[0] != "tests")
    line = re.compile(rf'\s*([\w"./-]+ = )?"(privstats[./])?({names})[./:"]')
    return "".join(each for each in file.read_text("utf-8").splitlines(keepends=True) if not line.match(each))


def write_entry_points(root: Path) -> None:
    """Write the entry points of a copy into it, as pip would, and hide the checkout from processes that begin there."""
    known = distribution("privstats")
    about = root / f"privstats-{known.version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(known.read_text("METADATA") or "", "utf-8")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    sections = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in rows.items())])
        for group, rows in groups.items()
        if rows
    )
    (about / "entry_points.txt").write_text("\n\n".join(sections) + "\n", "utf-8")
    (root / "sitecustomize.py").write_text(_SITE, "utf-8")


def of_commit(number: int, names: Sequence[str]) -> tuple[list[str], int] | None:
    """Return the rooms that a commit deletes, all together after each alone, and its part of the files.

    Commits with an even number, among them those that measure coverage, delete no room.
    """
    turn, odd = divmod(number, 2)
    if not odd:
        return None
    turns = [*([name] for name in names), [*names]]
    return turns[turn % len(turns)], turn // len(turns) % PARTS


def run(deleted: Sequence[str], words: Sequence[str], part: int | None = None) -> int:
    """Run pytest in a copy without these rooms, and return its exit code."""
    print(f"\n$ without {', '.join(deleted)}{'' if part is None else f': part {part} of {PARTS}'}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        copy(home)
        stated = delete(deleted, home)
        for asked in (["init", "-q"], ["add", "."], [*_AUTHOR, "commit", "-qm", "A copy"]):
            subprocess.run(["git", *asked], cwd=home, check=True)
        write_entry_points(home)  # git does not track them
        own = {VARIABLE: " ".join(stated), "PYTHONPATH": str(home)}
        if part is not None:
            own[_PART] = str(part)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("SLIPCOVER_", "PYTEST_"))}
        command = [sys.executable, "-m", "pytest", "-p", "tests.blind", "-rfE", *words]
        code = subprocess.run(command, cwd=home, env={**plain, **own}).returncode
        if code != 1:
            return code
        print("\n$ the failed tests once more, alone", flush=True)
        return subprocess.run([*command, "-n", "0", "--last-failed"], cwd=home, env={**plain, **own}).returncode


_AUTHOR = ("-c", "user.name=privstats", "-c", "user.email=privstats@example.org", "-c", "commit.gpgsign=false")
_PART = "PRIVSTATS_PART"


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Select the tests of one part of the files, all of which were imported."""
    if _PART in os.environ:
        files = sorted({item.path for item in items})[int(os.environ[_PART]) :: PARTS]
        config.hook.pytest_deselected(items=[item for item in items if item.path not in files])
        items[:] = [item for item in items if item.path in files]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the skipped tests and files by what is deleted."""
    said = [report.longrepr[-1].removeprefix("Skipped: ") for report in terminalreporter.stats.get("skipped", ())]
    for reason, count in sorted(Counter(said).items()):
        if "is deleted" in reason or "no installed package announces" in reason:
            terminalreporter.write_line(f"{count:6d} skipped: {reason}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.blind", usage="%(prog)s [--commit] [ROOM ...] [-- WORD ...]")
    given = [*(sys.argv[1:] if words is None else words)]
    at = given.index("--") if "--" in given else len(given)
    names = rooms()
    parser.add_argument("room", nargs="*", help="a room to delete; all of them if none is named")
    parser.add_argument("--commit", action="store_true", help="this commit's room and part")
    chosen = parser.parse_args(given[:at])
    if unknown := [each for each in chosen.room if each not in names]:
        parser.error(f"no such room: {', '.join(unknown)}; there are {', '.join(names)}")
    turn = of_commit(night.number_of_commit(), names) if chosen.commit else (chosen.room or names, None)
    if turn is None:
        print("\n$ no room is deleted: every second commit deletes one")
        return 0
    return run(turn[0], given[at + 1 :] or ["-n", "auto", "-m", core.MARK], turn[1])


if __name__ == "__main__":
    sys.exit(main())
