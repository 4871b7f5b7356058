"""How a bug gets into a running process and out again: names are rebound, in memory, for as long as a block lasts.

Knows no particular bug; ``catalogue`` does. Whoever imports a planted name inside the block gets the bug.
"""

import ast
import importlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

from privstats.tables import load_all
from tests import without
from tests.schema.changed import changed_fact

_ROOMS = (
    "privstats.cli", "privstats.course", "privstats.dp", "privstats.encoding", "privstats.estimates",
    "privstats.heads", "privstats.heads.rules", "privstats.intake", "privstats.kinds", "privstats.moments",
    "privstats.plan", "privstats.secagg.interactive", "privstats.secagg.upload", "privstats.session",
    "privstats.testing", "privstats.transforms", "privstats.contrib.sweep",
)  # fmt: skip
"""Loaded whole before a bug is planted: a module that was loaded beside it would keep it."""
_MODULES = ("privstats.workflows.simulate", "threat_models.cli")

Edit = tuple[Any, str, Any]
"""An owner (module or class), a name in it, and what the name shall mean."""


def everywhere(original: Any, bug: Any) -> Callable[[], list[Edit]]:
    """Every name in the library and the audits that is bound to ``original``: as if its source were changed."""

    def edits() -> list[Edit]:
        return [
            (module, name, bug)
            for module in _loaded()
            for name, value in list(vars(module).items())
            if value is original
        ]

    return edits


def everywhere_new(original: Any, make: Callable[[], Any]) -> Callable[[], list[Edit]]:
    """Like :func:`everywhere` for a bug with a memory, which starts empty whenever it is planted."""
    return lambda: everywhere(original, make())()


def name_in(module: str, name: str, bug: Callable[[Any], Any]) -> Callable[[], list[Edit]]:
    """One name of one module; ``bug`` makes the wrong value out of the right one."""

    def edits() -> list[Edit]:
        owner = importlib.import_module(module)
        return [(owner, name, bug(getattr(owner, name)))]

    return edits


def row_in(module: str, table: str, row: Any, bug: Callable[[Any], Any]) -> Callable[[], list[Edit]]:
    """One row of one module's table; ``bug`` makes the wrong value out of the right one."""
    return name_in(module, table, lambda right: {**right, row: bug(right[row])})


def square_of(task: str, bug: Callable[[Any], Any]) -> Callable[[], list[Edit]]:
    """The formula of one kind's sensitivity; ``bug`` makes the wrong one out of the right one."""
    return lambda: [changed_fact(task, "move", bug)]


def both(*several: Callable[[], list[Edit]]) -> Callable[[], list[Edit]]:
    """A mistake that takes more than one edit."""
    return lambda: [edit for edits in several for edit in edits()]


def member(owner: type, name: str, bug: Any) -> Callable[[], list[Edit]]:
    """A method or property of a class."""
    return lambda: [(owner, name, bug)]


def homes(edits: Callable[[], list[Edit]]) -> set[str]:
    """The modules that a bug is in: those whose names are rebound; where many share a function, the one that has it."""
    found = [(owner, name, vars(owner)[name]) for owner, name, _ in edits()]
    shared = Counter(id(value) for _, _, value in found)
    return {
        value.__module__ if shared[id(value)] > 1 and hasattr(value, "__qualname__") else _module_of(owner)
        for owner, name, value in found
        if shared[id(value)] == 1 or hasattr(value, "__qualname__") or _makes(owner, name)
    }


def _makes(owner: Any, name: str) -> bool:
    """Whether a module assigns this name, rather than imports what has it."""
    return name in _assigned(owner)


@cache
def _assigned(owner: Any) -> frozenset[str]:
    assigned = (
        node for node in ast.parse(inspect.getsource(owner)).body if isinstance(node, ast.Assign | ast.AnnAssign)
    )
    targets = (each for node in assigned for each in getattr(node, "targets", None) or [node.target])
    return frozenset(each.id for each in targets if isinstance(each, ast.Name))


def _module_of(owner: Any) -> str:
    return str(owner.__name__ if isinstance(owner, ModuleType) else owner.__module__)


@contextmanager
def planted(edits: Callable[[], list[Edit]]) -> Iterator[None]:
    """The bug is there inside the block and gone after it.

    Raises:
        LookupError: nothing in the library has that name any more, so that the bug would not be one.
    """
    for room in _ROOMS:
        if not without.room_of(room):
            load_all(room)
    for module in _MODULES:
        if not without.room_of(module):
            importlib.import_module(module)
    todo = edits()
    if not todo:
        raise LookupError("the bug has nothing to be planted in: follow the library's names")
    before = [(owner, name, vars(owner)[name]) for owner, name, _ in todo]
    for owner, name, bug in todo:
        setattr(owner, name, bug)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


def _loaded() -> list[Any]:
    rooms = ("privstats", "threat_models")
    return [m for key, m in list(sys.modules.items()) if key.split(".")[0] in rooms and m is not None]
