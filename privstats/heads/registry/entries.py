"""The heads by name, found in the modules of ``privstats.heads``: each head's own module holds its row.

A module with a class that has a row is registered; there is no list to keep. Heads of other packages are announced
under the entry-point group ``privstats.heads``. The command line, error messages and the file reader use this registry.
Rows are literals and are read from the modules' text, so listing heads imports none of them, and using one imports that
one.
"""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard

from privstats.errors import HeadError
from privstats.plug_ins import announced, brought_by, loaded
from privstats.tables import by_name

__all__ = ["HEADS", "Entry", "Task", "able", "head_class", "named"]

Task: TypeAlias = Literal["classes", "ridge", "parties"]
_PACKAGE = "privstats.heads"
_GROUP = "privstats.heads"
_TO_A_ROW = re.compile(r"^class .*?^    entry: .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
"""From a class to the end of the next row: what is behind need not be parsed to list heads."""


@dataclass(frozen=True)
class Entry:
    """One head's row: the statistics it is built from. The head's class holds it as ``entry``.

    Attributes:
        task: of the schemas whose releases it is built from.
        any_of: letters of which one must be released beside N and A, the best first; none where N and A alone suffice.
        beside_B: letters that are read too where B is the best of ``any_of`` that was released.
        closed_form: solved at once, rather than trained on synthetic records.
        after_rounds: made from the releases of a course, so lists of heads for a single release leave it out.
    """

    task: Task = "classes"
    any_of: str = ""
    beside_B: str = ""
    closed_form: bool = True
    after_rounds: bool = False

    @property
    def measured(self) -> str:
        """Statistics that ``fit`` measures of local records."""
        return "NA" + self.any_of[:1]

    def reads(self, sent: str) -> str:
        """Statistics that the head reads, with its default parameters, of a release that holds these; in order.

        Beside N and A that is one: S where it was sent, which stands for B and D, or else the best of ``any_of``, and
        with B what the row names ``beside_B``. The rest of such a release changes no digit of the head. A head in a
        Fisher subspace reads B as well.
        """
        if self.task != "classes":
            return sent
        best = [letter for letter in "S" + self.any_of if letter in sent][:1] if self.any_of else []
        beside = self.beside_B if best == ["B"] else ""
        return "".join(letter for letter in sent if letter in {"N", "A", *best, *beside})


@dataclass(frozen=True)
class _Written:
    """A head read from its module's text: the class's name, the module, the row; who announces it, if others do."""

    name: str
    module: str
    entry: Entry
    announced: EntryPoint | None = None

    @property
    def order(self) -> tuple[bool, Task, str]:
        """Closed forms first, then by task, then by name."""
        return not self.entry.closed_form, self.entry.task, self.name


class _Registry(Mapping[str, Entry]):
    """Rows by the name of the class: closed forms first, then by task, then by name."""

    @cached_property
    def _heads(self) -> Mapping[str, _Written]:
        folder = Path(__file__).parents[1]
        rooms = [room.name for room in pkgutil.iter_modules([str(folder)]) if not room.ispkg]
        found = [head for room in rooms for head in _heads_in(f"{_PACKAGE}.{room}", _text(folder / f"{room}.py"))]
        found += map(_announced, announced(_GROUP))
        return by_name(sorted(found, key=lambda head: head.order), lambda head: head.name, "head")

    def class_of(self, name: str) -> Any:
        """The class of a head; the module that defines it is imported now."""
        head = self._heads[name]
        if head.announced is not None:
            return loaded(head.announced, "head", HeadError)
        return getattr(import_module(head.module), name)

    def __getitem__(self, name: str) -> Entry:
        return self._heads[name].entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)


HEADS = _Registry()
"""The row of every head, of this package and of others, in the order in which lists show them."""


def head_class(name: str) -> Any:
    """The class of a head of the registry; its module is imported now."""
    return HEADS.class_of(name)


def named(task: Task, *, trained: bool = True) -> tuple[str, ...]:
    """Names of the heads for a task, in order; ``trained=False`` leaves out those that are no closed form."""
    rows = ((name, entry) for name, entry in HEADS.items() if entry.task == task and not entry.after_rounds)
    return tuple(name for name, entry in rows if trained or entry.closed_form)


def able(statistics: str) -> tuple[str, ...]:
    """Names of the classification heads that can be built from these statistics (S brings B and D with it)."""
    held = set(statistics) | (set("BD") if "S" in statistics else set())
    needs = {name: HEADS[name].any_of for name in named("classes")}
    return tuple(name for name, any_of in needs.items() if not any_of or held & set(any_of))


def _text(module: Path) -> str:
    return module.read_text(encoding="utf-8")


def _announced(entry: EntryPoint) -> _Written:
    """The head that another package announces as ``Name = "module:Name"``, read from its text like ours.

    Raises:
        HeadError: there is no such class with a row in that module.
    """
    for head in _heads_in(entry.module, _text_of(entry.module) or ""):
        if head.name == entry.name == entry.attr:
            return replace(head, announced=entry)
    raise HeadError(
        f"{brought_by(entry)} announces the head {entry.name!r} as {entry.value!r}, and the text of {entry.module} has "
        f"no class {entry.name} with a row, entry: ClassVar[Entry] = Entry(...); mend or uninstall that package"
    )


def _text_of(module: str) -> str | None:
    """The text of a module, found without importing it or a package around it, which may ask for heads itself."""
    top, *below = module.split(".")
    spec, name = find_spec(top), top
    for part in below:
        name = f"{name}.{part}"
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations)
    loader = spec and spec.loader
    return loader.get_source(module) if isinstance(loader, InspectLoader) else None


def _heads_in(module: str, text: str) -> Iterator[_Written]:
    """The classes with a row in a module's text.

    Raises:
        HeadError: a row is more than a call of ``Entry`` with literals.
    """
    nodes = (node for part in _TO_A_ROW.findall(text) for node in ast.parse(part).body)
    for defined in filter(_is_class, nodes):
        for line in defined.body:
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "entry" and line.value is not None:
                yield _Written(defined.name, module, _row(f"{module}.{defined.name}", line.value))


def _is_class(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef)


def _row(head: str, written: ast.expr) -> Entry:
    try:
        if isinstance(written, ast.Call) and ast.unparse(written.func) == Entry.__name__ and not written.args:
            return Entry(**{str(each.arg): ast.literal_eval(each.value) for each in written.keywords})
    except (ValueError, TypeError):
        pass
    raise HeadError(f"the row of {head} is {ast.unparse(written)!r:.80}; write Entry(...) with literals alone")
