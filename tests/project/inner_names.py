"""Names of inner modules that contributed rooms import, in ``inner_names.txt``: exceptions, whose list only shrinks.

A contributed room, as another package does, imports public names: ``docs/public_names.txt`` lists those of the public
rooms and of ``privstats.extend``. A name that a single contributed room imports may be an exception until code moves.
``threat_models`` is exempt: an attacker reads inner modules on purpose, and what it reads must not become an interface.

After such an import is gone, this command takes its line out of the list; it adds none:

.. code-block:: sh

    python -m tests.project.inner_names
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.project.public_names import LIST as PUBLIC_NAMES
from tests.project.public_names import ROOT

LIST = Path(__file__).with_suffix(".txt")
_HEAD = """# Inner names of the library that one contributed room imports: exceptions, which only leave.
# Import a public name or one of privstats.extend; then: python -m tests.project.inner_names
"""
OPEN = {
    "privstats.domains": "labels of all rooms are in one module, those of contributed rooms too",
    "privstats.errors": "each error is on a page of the reference",
    "privstats.lazy_names": "how a room lists its names",
    "privstats.version": "the version that a file or a page states",
}
"""Modules of which every name may be imported, with the reasons."""


def imported(text: str) -> Iterator[str]:
    """Yield the full name of everything that a module imports, also inside functions and for types alone."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from (f"{module}.{each.name}" for each in names)
            case ast.Import(names=names):
                yield from (each.name for each in names)


def public() -> frozenset[str]:
    """Return the public names, and the rooms that list them."""
    names = re.findall(r"^privstats[\w.]*", PUBLIC_NAMES.read_text("utf-8"), re.MULTILINE)
    return frozenset(names) | {name.rpartition(".")[0] for name in names} | OPEN.keys()


def inner(names: Iterable[str], room: str = "") -> set[str]:
    """Return the library's names among these that are neither public nor the room's own."""
    ours = (name for name in names if f"{name}.".startswith("privstats.") and not f"{name}.".startswith(f"{room}."))
    known = public()
    return {name for name in ours if name not in known and name.rpartition(".")[0] not in OPEN}


def uses(folder: Path = ROOT / "privstats" / "contrib", package: str = "privstats.contrib") -> dict[str, set[str]]:
    """Return the inner names that each room of a folder imports, by room."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        room = path.relative_to(folder).parts[0].removesuffix(".py")
        found[room] |= inner(imported(path.read_text("utf-8")), f"{package}.{room}")
    return dict(found)


def excepted() -> dict[str, set[str]]:
    """Return the listed exceptions by room."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for line in LIST.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            room, name = line.split()
            found[room].add(name)
    return dict(found)


def text(names: Mapping[str, set[str]]) -> str:
    """Return the file's text."""
    return _HEAD + "".join(f"{room} {name}\n" for room in sorted(names) for name in sorted(names[room]))


def kept(listed: Mapping[str, set[str]], used: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the listed exceptions that are still used."""
    return {room: names & used.get(room, set()) for room, names in listed.items()}


if __name__ == "__main__":
    LIST.write_text(text(kept(excepted(), uses())), "utf-8")
