"""Open doors: tables of rows that installed packages extend by entry points, and that no code assigns to.

A row is a frozen value or a class. Our rows come first, and an installed package replaces none of them. A key comes
from a plan, a file's header or a user: text of the core names no row that another room brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, make_dataclass
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_type_hints

from privstats.errors import PrivstatsError
from privstats.plug_ins import announced, dist_name, is_ours, loaded
from privstats.tables import by_name

Row = TypeVar("Row")


class Door(Mapping[str, Row]):
    """Rows by name: ours, then those that installed packages announce, each loaded on first use.

    Args:
        group: entry points that announce a row under its name.
        noun: what a row is, for messages.
        error: raised where an announced row cannot be loaded, is no row, or is missing.
        fits: whether an object is a row of this name, or the place of such a function, ``"module:name"``: a module that
            reads the door may define what rows are.
        own: our rows by name.

    Example:
        >>> from privstats.doors import Door
        >>> colours = Door("my.colours", "colour", ps.PrivstatsError, lambda row, name: row == name, {"red": "red"})
        >>> colours["red"], colours.origin("red"), list(colours)
        ('red', '', ['red'])
        >>> colours["blue"] = "blue"
        Traceback (most recent call last):
            ...
        TypeError: 'Door' object does not support item assignment
    """

    def __init__(
        self,
        group: str,
        noun: str,
        error: type[PrivstatsError],
        fits: Callable[[Any, str], bool] | str,
        own: Mapping[str, Row] = MappingProxyType({}),
    ) -> None:
        self.group, self.noun = group, noun
        self._error, self._fits = error, fits
        self._own: Mapping[str, Row] = MappingProxyType(dict(own)) if isinstance(own, dict) else own

    def __repr__(self) -> str:
        return f"<Door {self.group}: {self._listed()}>"

    def __getitem__(self, name: str) -> Row:
        if name in self._own:  # found without entry points: a broken package stops no plan that does not name it
            return self._own[name]
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        row: Row = loaded(entry, self.noun, self._error)
        fits: Any = resolve_name(self._fits) if isinstance(self._fits, str) else self._fits
        try:
            good = fits(row, name)
        except PrivstatsError:
            raise
        except Exception:  # a check may run another package's code
            good = False
        if good:
            return row
        raise self._error(
            f"{dist_name(entry)} announces the {self.noun} {name!r} as {entry.value!r}, which is no {self.noun} of "
            "that name; repair or uninstall that package"
        )

    def __contains__(self, name: object) -> bool:
        return name in self._own or any(entry.name == name for entry in announced(self.group))

    def __iter__(self) -> Iterator[str]:
        """Yield our names, then announced ones by name; refuse two rows of one name."""
        names = list(self._own)
        for entry in announced(self.group):
            if entry.name in names:
                self._entry(entry.name)  # names two packages that announce one name
                raise self._error(self._taken(entry.name, "privstats", dist_name(entry)))
            names.append(entry.name)
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def needed(self, name: str, by: str, otherwise: str = "") -> Row:
        """Return a row that something else needs.

        Args:
            by: what needs it, for the message.
            otherwise: what to do without it, for the end of the message.

        Raises:
            PrivstatsError: no installed package brings the row; the error's ``lacking`` is this door's group.
        """
        if name in self:
            return self[name]
        installed = self._listed()
        error = self._error(
            f"{by} needs the {self.noun} {name!r:.80}, which no installed package brings"
            f"{f' (installed: {installed})' if installed else ''}; install the package that announces it under the "
            f"entry points {self.group}{f', or {otherwise}' if otherwise else ''}"
        )
        error.lacking = self.group
        raise error

    def origin(self, name: str) -> str:
        """Return name and version of the package that brings a row; empty for ours."""
        entry = None if name in self._own else self._entry(name)
        return "" if entry is None or is_ours(entry) else dist_name(entry)

    def _entry(self, name: str) -> EntryPoint | None:
        entries = [entry for entry in announced(self.group) if entry.name == name]
        if len(entries) > 1:
            raise self._error(self._taken(name, *map(dist_name, entries[:2])))
        return entries[0] if entries else None

    def _listed(self) -> str:
        """Return all names for a message, without a refusal of two rows of one name."""
        return ", ".join(dict.fromkeys([*self._own, *(entry.name for entry in announced(self.group))]))

    def _taken(self, name: str, one: str, other: str) -> str:
        return f"{one} and {other} both bring the {self.noun} {name!r}; rename it in one of them, or uninstall one"


def is_row(cls: type[Any], key: str = "name") -> Callable[[Any, str], bool]:
    """Return the check of a door whose rows are instances of ``cls`` with their name in the field ``key``.

    Example:
        >>> from privstats.doors import Option, is_row
        >>> fits = is_row(Option, "help")
        >>> fits(Option("One sentence."), "One sentence."), fits(Option("One sentence."), "Another one.")
        (True, False)
    """
    return lambda row, name: isinstance(row, cls) and getattr(row, key) == name


class Option(NamedTuple):
    """How a command shows one field of a row's options, as metadata of ``Annotated``.

    Attributes:
        help: one sentence.
        metavar: what stands for the value in the help.
        flag: the option's name where it is not the field's.
    """

    help: str
    metavar: str | None = None
    flag: str | None = None


def together(name: str, parts: Iterable[type[Any]]) -> type[Any]:
    """Return one frozen dataclass with the fields of several rows' options.

    Raises:
        PrivstatsError: two rows have an option of one name with another type, default or :class:`Option`.

    Example:
        >>> from dataclasses import dataclass
        >>> from privstats.doors import together
        >>> @dataclass(frozen=True)
        ... class Digits:
        ...     digits: int | None = None
        >>> together("Options", [Digits])(digits=2)
        Options(digits=2)
    """
    hints = {part: get_type_hints(part, include_extras=True) for part in dict.fromkeys(parts)}
    every = [(each.name, hints[part][each.name], anew(each)) for part in hints for each in fields(part)]
    different = {(one, str(hint), repr(own.default)): (one, hint, own) for one, hint, own in every}
    joined = by_name(different.values(), _first, "option")
    return make_dataclass(name, joined.values(), frozen=True, kw_only=True)


def _first(row: tuple[str, Any, Any]) -> str:
    return row[0]


def anew(own: Field[Any]) -> Any:
    """Return a field with the default and the metadata of another.

    Example:
        >>> from dataclasses import fields, make_dataclass
        >>> from privstats.doors import Option, anew
        >>> (first,) = fields(make_dataclass("Digits", [("digits", int, 3)]))
        >>> anew(first).default
        3
    """
    if own.default_factory is not MISSING:
        return field(default_factory=own.default_factory, metadata=own.metadata)
    return field(default=own.default, metadata=own.metadata)
