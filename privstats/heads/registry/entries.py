"""The registry of heads by name, and the bounds of their parameters.

Rows are literals read from modules' text, so listing heads imports none. Other packages announce heads under the
entry-point group ``privstats.heads``. Reading text is why this table is no :class:`~privstats.doors.Door`: no other
module reads entry points by itself.
"""

from __future__ import annotations

import ast
import math
import pkgutil
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.abc import InspectLoader
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from itertools import groupby
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard

from privstats.doors import clash
from privstats.errors import BrokenPackageWarning, HeadError
from privstats.plug_ins import announced, dist_name, is_ours, loaded, one_line
from privstats.row_fields import fault_of
from privstats.tables import by_name

Task: TypeAlias = Literal["classes", "ridge", "parties"]
_PACKAGE = "privstats.heads"
_GROUP = "privstats.heads"
_TO_A_ROW = re.compile(r"^class .*?^    entry: .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
"""Matches from a class to the end of the next row; the rest need not be parsed to list heads."""


@dataclass(frozen=True)
class Entry:
    """The statistics that a head is built from.

    Attributes:
        any_of: letters by preference; one is needed besides N and A, none if empty.
        beside_B: letters also read where B is the best available.
        closed_form, after_rounds: solved at once; built from a course's releases.
        on_device: whether its matrices are multiplied and factored by the algebra in force
            (:func:`~privstats.estimates.algebra.algebra_on`); else on this machine's cores alone.
    """

    task: Task = "classes"
    any_of: str = ""
    beside_B: str = ""
    closed_form: bool = True
    after_rounds: bool = False
    on_device: bool = False

    @property
    def measured(self) -> str:
        """Statistics that ``fit`` measures on local records."""
        return "NA" + self.any_of[:1]

    def reads(self, sent: str) -> str:
        """Return the statistics of ``sent`` that the head reads with default parameters, in order.

        Besides N and A: S if sent, else the best of ``any_of``, and with B also ``beside_B``.
        """
        if self.task != "classes":
            return sent
        best = [letter for letter in "S" + self.any_of if letter in sent][:1] if self.any_of else []
        beside = self.beside_B if best == ["B"] else ""
        return "".join(letter for letter in sent if letter in {"N", "A", *best, *beside})


@dataclass(frozen=True)
class _Written:
    name: str
    module: str
    entry: Entry
    announced: EntryPoint | None = None

    @property
    def order(self) -> tuple[bool, Task, str]:
        return not self.entry.closed_form, self.entry.task, self.name


class _Registry(Mapping[str, Entry]):
    """The heads that can be listed. One of a broken package is refused where it is named, and lists warn of it."""

    @cached_property
    def _found(self) -> tuple[Mapping[str, _Written], Mapping[str, str]]:
        """The heads by name, and why other names are refused."""
        folder = Path(__file__).parents[1]
        rooms = [room.name for room in pkgutil.iter_modules([str(folder)]) if not room.ispkg]
        written = [head for room in rooms for head in _heads_in(f"{_PACKAGE}.{room}", _text(folder / f"{room}.py"))]
        heads, refused = by_name(written, lambda head: head.name, "head"), dict[str, str]()
        for name, group in groupby(announced(_GROUP), key=lambda entry: entry.name):  # sorted by name
            entries = list(group)
            packages = [*(["privstats"] if name in heads else []), *map(dist_name, entries)]
            why = clash("head", name, *packages[:2]) if len(packages) > 1 else ""
            ours = list(filter(is_ours, entries))
            try:
                if not why or (ours and name not in heads):
                    heads[name] = _announced((ours or entries)[0])
            except HeadError as fault:
                why = str(fault)
            if why:
                warnings.warn(why, BrokenPackageWarning, stacklevel=2)
                refused |= {} if name in heads else {name: why}  # ours is found whatever another package announces
        return {head.name: head for head in sorted(heads.values(), key=lambda head: head.order)}, refused

    def class_of(self, name: str) -> Any:
        """Import and return a head's class."""
        head = self._written(name)
        if head.announced is not None:
            return loaded(head.announced, "head", HeadError)
        return getattr(import_module(head.module), name)

    def of_task(self, task: Task, *, trained: bool = True) -> tuple[str, ...]:
        """Return a task's heads by name, without those of rounds; ``trained=False`` selects closed forms."""
        rows = ((name, entry) for name, entry in self.items() if entry.task == task and not entry.after_rounds)
        return tuple(name for name, entry in rows if trained or entry.closed_form)

    def _written(self, name: str) -> _Written:
        heads, refused = self._found
        if name in refused:
            raise HeadError(refused[name])
        return heads[name]

    def __getitem__(self, name: str) -> Entry:
        return self._written(name).entry

    def __iter__(self) -> Iterator[str]:
        return iter(self._found[0])

    def __len__(self) -> int:
        return len(self._found[0])


HEADS = _Registry()
"""The row of every head, of this package and of others, in the order in which lists show them."""


def head_class(name: str) -> Any:
    """Import and return a registered head's class."""
    return HEADS.class_of(name)


named = HEADS.of_task


def able(statistics: str) -> tuple[str, ...]:
    """Return the classification heads that these statistics can build (S includes B and D)."""
    held = set(statistics) | (set("BD") if "S" in statistics else set())
    needs = {name: HEADS[name].any_of for name in HEADS.of_task("classes")}
    return tuple(name for name, any_of in needs.items() if not any_of or held & set(any_of))


def _text(module: Path) -> str:
    return module.read_text(encoding="utf-8")


def _announced(entry: EntryPoint) -> _Written:
    try:
        heads = list(_heads_in(entry.module, _text_of(entry.module) or ""))
    except Exception as fault:  # of an entry point without a module, or of its text
        own = isinstance(fault, HeadError)
        raise HeadError(
            f"the head {entry.name!r} of {dist_name(entry)} cannot be listed from {entry.value!r}: "
            f"{'' if own else f'{type(fault).__name__}: '}{one_line(fault)}; mend or uninstall that package"
        ) from fault
    for head in heads:
        if head.name == entry.name == entry.attr:
            return replace(head, announced=entry)
    raise HeadError(
        f"{dist_name(entry)} announces the head {entry.name!r} as {entry.value!r}, and the text of {entry.module} has "
        f"no class {entry.name} with a row, entry: ClassVar[Entry] = Entry(...); fix or uninstall that package"
    )


def _text_of(module: str) -> str | None:
    top, *below = module.split(".")
    spec, name = find_spec(top), top
    for part in below:
        name = f"{name}.{part}"
        spec = spec and PathFinder.find_spec(name, spec.submodule_search_locations)
    loader = spec and spec.loader
    return loader.get_source(module) if isinstance(loader, InspectLoader) else None


def _heads_in(module: str, text: str) -> Iterator[_Written]:
    nodes = (node for part in _TO_A_ROW.findall(text) for node in ast.parse(part).body)
    for defined in filter(_is_class, nodes):
        for line in defined.body:
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "entry" and line.value is not None:
                yield _Written(defined.name, module, _row(f"{module}.{defined.name}", line.value))


def _is_class(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef)


def _row(head: str, written: ast.expr) -> Entry:
    entry = _literal(written)
    if entry is None:
        raise HeadError(f"the row of {head} is {ast.unparse(written)!r:.80}; write Entry(...) with literals alone")
    if why := fault_of(entry):
        raise HeadError(f"the row of {head} is wrong: {why}")
    return entry


def _literal(written: ast.expr) -> Entry | None:
    try:
        if isinstance(written, ast.Call) and ast.unparse(written.func) == Entry.__name__ and not written.args:
            return Entry(**{str(each.arg): ast.literal_eval(each.value) for each in written.keywords})
    except (ValueError, TypeError):
        pass
    return None


_LONGEST_SHOWN = 60


class Constraint(ABC):
    """One condition that a value may meet."""

    @abstractmethod
    def admits(self, value: Any) -> bool:
        """Return whether the value meets the condition."""

    @abstractmethod
    def __str__(self) -> str: ...


Constraints: TypeAlias = tuple[Constraint, ...]
Bounds: TypeAlias = Mapping[str, Constraints]
"""Conditions by parameter; a value must meet one of them."""


class Text(Constraint):
    """One of several words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return ", ".join(map(repr, self.words))


@dataclass(frozen=True)
class Number(Constraint):
    """A finite real number from ``low`` to ``high``; ``low`` itself only where ``closed``."""

    low: float = 0.0
    high: float = math.inf
    closed: bool = True

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is such a number; booleans are none."""
        if isinstance(value, bool) or not isinstance(value, Real):  # numpy's booleans are no Real
            return False
        try:
            number = float(value)
        except OverflowError:
            return False
        above = number >= self.low if self.closed else number > self.low
        return math.isfinite(number) and above and number <= self.high

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"a finite number {'of at least' if self.closed else 'above'} {self.low:g}"
        return f"a number in {'[' if self.closed else '('}{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Share(Constraint):
    """A share in (0, 1] of non-integer type."""

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is such a share."""
        return not isinstance(value, Integral) and Number(0.0, 1.0, closed=False).admits(value)

    def __str__(self) -> str:
        return "a share of energy in (0, 1]"


@dataclass(frozen=True)
class Whole(Constraint):
    """An integer of at least ``low``, below 2**31."""

    low: int = 0

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is such an integer; booleans are none."""
        return isinstance(value, Integral) and not isinstance(value, bool) and self.low <= int(value) < 1 << 31

    def __str__(self) -> str:
        return f"an integer of at least {self.low}"


class Constant(Constraint):
    """One of several values, compared by identity."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is one of the values."""
        return any(value is one for one in self.values)

    def __str__(self) -> str:
        return " or ".join(map(repr, self.values))


class PerClass(Constraint):
    """Positive numbers, one per class; their number is checked later."""

    def admits(self, value: Any) -> bool:
        """Return whether ``value`` is a vector of positive finite numbers."""
        if isinstance(value, str):
            return False
        import numpy as np  # here, because a list of heads computes nothing

        try:
            array = np.asarray(value, np.float64)
        except (TypeError, ValueError, OverflowError):
            return False
        return array.ndim == 1 and array.size > 0 and bool((np.isfinite(array) & (array > 0)).all())

    def __str__(self) -> str:
        return "positive numbers, one per class"


class ModuleWord(Constraint):
    """Word of a module of refinement rounds."""

    def admits(self, value: Any) -> bool:
        """Return whether the value is KIND/SIZE; a fit checks its existence."""
        from privstats.schema.modules import is_word

        return is_word(value)

    def __str__(self) -> str:
        return "a module's KIND/SIZE, such as 'mlp/64'"


NONE = Constant(None)
SWITCH: Constraints = (Constant(True, False),)
WEIGHT: Constraints = (Number(0.0, 1.0),)
SHRINKAGE: Constraints = (Text("auto", "oas"), NONE, Number(0.0, 1.0))
PRIORS: Constraints = (Text("counts", "uniform"), PerClass())
SUBSPACE: Constraints = (NONE, Text("auto"), Whole(1), Share())
MODULE: Constraints = (NONE, ModuleWord())


def check_parameters(head: Any, bounds: Bounds) -> None:
    """Raise HeadError if a parameter has no bounds, or is out of them."""
    for name, value in head.get_params(deep=False).items():
        if name not in bounds:
            raise HeadError(f"{type(head).__name__} has no bounds for its parameter {name}; add them to its class")
        check_value(name, value, bounds[name])


def check_value(name: str, value: Any, kinds: Constraints) -> None:
    """Raise HeadError unless ``value`` meets one of the conditions."""
    if not any(kind.admits(value) for kind in kinds):
        shown = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"a {type(value).__name__}"
        raise HeadError(f"{name} must be {describe(kinds)}, got {shown}")


def describe(kinds: Constraints) -> str:
    """Return the conditions as a phrase."""
    parts = [str(kind) for kind in kinds]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"
