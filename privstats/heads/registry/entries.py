"""The heads by name, found by looking: each head's own module says what it needs.

No list to keep: a module of ``privstats.heads`` with a class that has a row is in it. The command line, error messages
and the file reader speak of heads through here, and no head is imported before one of them asks.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeAlias

from privstats.tables import by_name

__all__ = ["HEADS", "Entry", "Task", "able", "head_class", "named"]

Task: TypeAlias = Literal["classes", "ridge"]
_PACKAGE = "privstats.heads"


@dataclass(frozen=True)
class Entry:
    """One head's row: what it is built from. It stands in the head's class as ``entry``.

    Attributes:
        task: of the schemas whose releases it is built from.
        any_of: letters of which one must be released beside N and A, the best first; none where N and A alone suffice.
        closed_form: solved at once, rather than trained on synthetic records.
        after_rounds: made from the releases of a course, so that lists of what one release can give leave it out.
    """

    task: Task = "classes"
    any_of: str = ""
    closed_form: bool = True
    after_rounds: bool = False

    @property
    def measured(self) -> str:
        """Statistics that ``fit`` measures of local records."""
        return "NA" + self.any_of[:1]

    def reads(self, sent: str) -> str:
        """Statistics that the head reads, with its default parameters, of a release that holds these; in order.

        Beside N and A that is one: S where it was sent, which stands for B and D, or else the best of ``any_of``. The
        rest of such a release changes no digit of the head. A head in a Fisher subspace reads B as well.
        """
        if self.task == "ridge":
            return sent
        best = [letter for letter in "S" + self.any_of if letter in sent][:1] if self.any_of else []
        return "".join(letter for letter in sent if letter in {"N", "A", *best})


class _Registry(Mapping[str, Entry]):
    """Rows by the name of the class: closed forms first, then by task, then by name."""

    @cached_property
    def classes(self) -> Mapping[str, Any]:
        """The classes themselves; the first look imports every head."""
        rooms = pkgutil.iter_modules([str(Path(__file__).parents[1])])
        modules = [import_module(f"{_PACKAGE}.{room.name}") for room in rooms if not room.ispkg]
        found = [value for module in modules for value in vars(module).values() if _lives_in(module.__name__, value)]
        return by_name(sorted(found, key=_order), lambda cls: str(cls.__name__), "head")

    def __getitem__(self, name: str) -> Entry:
        entry: Entry = self.classes[name].entry
        return entry

    def __iter__(self) -> Iterator[str]:
        return iter(self.classes)

    def __len__(self) -> int:
        return len(self.classes)


HEADS = _Registry()
"""The row of every head of the package, in the order in which lists show them."""


def head_class(name: str) -> Any:
    """The class of a head of the registry."""
    return HEADS.classes[name]


def named(task: Task, *, trained: bool = True) -> tuple[str, ...]:
    """Names of the heads for a task, in order; ``trained=False`` leaves out those that are no closed form."""
    rows = ((name, entry) for name, entry in HEADS.items() if entry.task == task and not entry.after_rounds)
    return tuple(name for name, entry in rows if trained or entry.closed_form)


def able(statistics: str) -> tuple[str, ...]:
    """Names of the classification heads that can be built from these statistics (S brings B and D with it)."""
    held = set(statistics) | (set("BD") if "S" in statistics else set())
    needs = {name: HEADS[name].any_of for name in named("classes")}
    return tuple(name for name, any_of in needs.items() if not any_of or held & set(any_of))


def _lives_in(module: str, value: object) -> bool:
    """Whether this is a head's class, and defined there rather than imported."""
    return isinstance(value, type) and value.__module__ == module and isinstance(vars(value).get("entry"), Entry)


def _order(cls: Any) -> tuple[bool, Task, str]:
    return not cls.entry.closed_form, cls.entry.task, cls.__name__
