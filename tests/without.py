"""Skip the tests that need a deleted room, by its name, where a run states that the room is deleted.

``.ci/blind`` deletes rooms from a copy of the checkout, and states in ``PRIVSTATS_WITHOUT`` their modules and the rows
that they announced (``group:name``). Where nothing is stated, nothing is skipped here: with a broken entry point, or
without a module, tests fail. Files of tests and benchmarks that import a deleted module get stand-ins, so that only the
tests that use one are skipped.
"""

import builtins
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from privstats.plug_ins import announced

ROOT = Path(__file__).parents[1]
VARIABLE = "PRIVSTATS_WITHOUT"
STATED = tuple(os.environ.get(VARIABLE, "").split())
_COMMANDS, _HEADS, _OPTIONS = "privstats.commands", "privstats.heads", ("privstats.findings", "privstats.pages")


def wrong(stated: Sequence[str] = STATED) -> str:
    """Return what of the statement is untrue; empty if all of it is deleted."""
    present = [each for each in modules(stated) if _is_there(each)]
    present += [f"{group}:{name}" for group, name in rows(stated) if name in {row.name for row in announced(group)}]
    return f"{VARIABLE} states that {', '.join(present)} is deleted, and it is here" if present else ""


def modules(stated: Sequence[str] = STATED) -> list[str]:
    """Return the stated modules."""
    return [each for each in stated if ":" not in each]


def rows(stated: Sequence[str] = STATED) -> list[tuple[str, str]]:
    """Return group and name of each stated row."""
    return [(group, name) for group, colon, name in (each.partition(":") for each in stated) if colon]


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False


def room_of(module: str, stated: Sequence[str] = STATED) -> str:
    """Return the deleted room that a module belongs to; empty if its room is not deleted."""
    within = [each for each in modules(stated) if f"{module}.".startswith(f"{each}.")]
    return max(within, key=len, default="").removeprefix("tests.").removeprefix("privstats.")


def reason(error: BaseException, stated: Sequence[str] = STATED) -> str:
    """Return which deleted room, or which row of a door, one error is about; empty for any other error."""
    if isinstance(error, ImportError):
        lost = re.search(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
        room = room_of(f"{lost[2]}.{lost[1]}" if lost else error.name or "", stated)
        return f"{room} is deleted" if room else _head(lost[1] if lost else None, stated)
    if isinstance(error, FileNotFoundError):
        room = room_of(_module_of(error.filename), stated)
        return f"{room} is deleted" if room else ""
    if isinstance(error, AttributeError):
        return _head(error.name, stated)
    if isinstance(error, KeyError):
        return _head(str(error.args[0]) if error.args else None, stated)
    return refused(str(error), stated)  # also of an assertion that shows what a command printed


def _module_of(file: Any) -> str:
    """Return the dotted name of a path in the checkout; empty for any other."""
    path = Path(str(file))
    return ".".join(path.relative_to(ROOT).parts) if path.is_relative_to(ROOT) else ""


def _head(name: str | None, stated: Sequence[str]) -> str:
    """Return that an announced head is missing, which users find as a name of ``privstats.heads``."""
    known = (_HEADS, name) in rows(stated)
    return f"no installed package announces the head {name!r} ({_HEADS})" if known else ""


def refused(text: str, stated: Sequence[str] = STATED) -> str:
    """Return which deleted row a door's refusal or a command line's message is about; empty for any other text."""
    text = " ".join(re.sub(r"[│╭╮╰╯─]|\\n", " ", text).split()) if rows(stated) else ""
    for group, name in rows(stated):
        needed = re.search(rf"needs the ([\w -]+) {name!r}, which no installed package .*{re.escape(group)}\b", text)
        if needed:
            return f"no installed package announces the {needed[1]} {name!r} ({group})"
        if group.startswith(_COMMANDS) and f"No such command {name!r}" in text:
            return f"no installed package announces the command {name!r} ({group})"
        if group in _OPTIONS and re.search(rf"No such option: --{name}\b", text):
            return f"no installed package announces the option {name!r} ({group})"
    return ""


def needing(*wanted: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs modules, or rows as ``group:name``: it is skipped where one is deleted."""
    lost = [each for each in wanted if each in STATED or room_of(each)]
    return pytest.mark.skipif(bool(lost), reason=_lack(lost[0]) if lost else "")


def _lack(wanted: str) -> str:
    group, colon, name = wanted.partition(":")
    return f"no installed package announces {name!r} ({group})" if colon else f"{room_of(wanted)} is deleted"


WHOLE = pytest.mark.skipif(bool(STATED), reason="the complete checkout is judged, and a room of it is deleted")


class StandIn:
    """A name of a deleted module: whoever uses it is skipped."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> "StandIn":
        if name.startswith("__"):
            raise AttributeError(name)
        return StandIn(f"{self._name}.{name}")

    def _skip(self, *_: Any, **__: Any) -> NoReturn:
        raise pytest.skip.Exception(f"{room_of(self._name)} is deleted", allow_module_level=True)

    __call__ = __iter__ = __len__ = __bool__ = __contains__ = __getitem__ = __setattr__ = __delattr__ = _skip
    __enter__ = __mro_entries__ = __instancecheck__ = __subclasscheck__ = _skip
    __eq__ = __ne__ = _skip  # type: ignore[assignment]
    __hash__ = object.__hash__
    __add__ = __radd__ = __mul__ = __rmul__ = __lt__ = __gt__ = __le__ = __ge__ = _skip

    def __or__(self, _: Any) -> "StandIn":  # a type of an annotation
        return self

    __ror__ = __or__


def present(cases: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cases that are no stand-ins."""
    return {name: case for name, case in cases.items() if not isinstance(case, StandIn)}


def give_stand_ins(stated: Sequence[str] = STATED) -> None:
    """Let test files import deleted modules: a stand-in is imported for each name."""
    if modules(stated):
        builtins.__import__ = _importing(builtins.__import__, stated)


def _importing(ordinary: Callable[..., Any], stated: Sequence[str]) -> Callable[..., Any]:
    def importing(
        name: str, globals: Mapping[str, Any] | None = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level or not (globals or {}).get("__name__", "").startswith(("tests.", "benchmarks.")):
            return ordinary(name, globals, locals, fromlist, level)
        if room_of(name, stated):
            return StandIn(name if fromlist else name.partition(".")[0])
        module = ordinary(name, globals, locals, fromlist, level)
        lost = [each for each in fromlist or () if room_of(f"{name}.{each}", stated)]
        if not lost:
            return module
        return SimpleNamespace(**{
            each: StandIn(f"{name}.{each}") if each in lost else getattr(module, each) for each in fromlist
        })  # fmt: skip

    return importing
