"""Open doors: tables of rows that installed packages extend by entry points, and that no code assigns to.

A row is a frozen value or a class. Our rows come first, and an installed package replaces none of them. A key comes
from a plan, a file's header or a user: text of the core names no row that another room brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_type_hints

from privstats.errors import PrivstatsError
from privstats.plug_ins import announced, dist_name, is_ours, loaded

Row = TypeVar("Row")


class Door(Mapping[str, Row]):
    """Rows by name: ours, then those that installed packages announce, each loaded on first use.

    Reading one row of ours looks at no package. Listing rows refuses a package that takes the name of another row, and
    loading all rows refuses a package that is broken.

    Args:
        group: entry points that announce a row under its name.
        noun: what a row is, for messages.
        error: raised where an announced row cannot be loaded, is no row, or is missing: the error of the room whose
            call needs the row.
        fits: whether an object is a row of this name.
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
        fits: Callable[[Any, str], bool],
        own: Mapping[str, Row] = MappingProxyType({}),
    ) -> None:
        self.group, self.noun = group, noun
        self._error, self._fits = error, fits
        self._own: Mapping[str, Row] = MappingProxyType(dict(own)) if isinstance(own, dict) else own

    def __repr__(self) -> str:
        return f"<Door {self.group}: {self._listed()}>"

    def __getitem__(self, name: str) -> Row:
        if name in self._own:  # found without entry points, so no broken package stops what names our rows alone
            return self._own[name]
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        row: Row = loaded(entry, self.noun, self._error)
        try:
            good = self._fits(row, name)
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
        holders = dict.fromkeys(self._own, "privstats")
        for entry in announced(self.group):
            holder = "privstats" if is_ours(entry) else dist_name(entry)
            if entry.name in holders:
                raise self._error(clash(self.noun, entry.name, holders[entry.name], holder))
            holders[entry.name] = holder
        return iter(holders)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def needed(self, name: str, by: str, otherwise: str = "") -> Row:
        """Return a row that something else needs.

        Args:
            by: what needs it, for the message.
            otherwise: what to do without it, for the end of the message.

        Raises:
            PrivstatsError: no installed package announces the row.
        """
        if name in self:
            return self[name]
        installed = self._listed()
        raise self._error(
            f"{by} needs the {self.noun} {name!r:.80}, which no installed package announces under the entry points "
            f"{self.group}{f' (installed: {installed})' if installed else ''}; install the package that does"
            f"{f', or {otherwise}' if otherwise else ''}"
        )

    def origin(self, name: str) -> str:
        """Return name and version of the package that announces a row; empty for ours."""
        entry = None if name in self._own else self._entry(name)
        return "" if entry is None or is_ours(entry) else dist_name(entry)

    def _entry(self, name: str) -> EntryPoint | None:
        entries = [entry for entry in announced(self.group) if entry.name == name]
        entries = [entry for entry in entries if is_ours(entry)] or entries  # no package stops what names our rows
        if len(entries) > 1:
            raise self._error(clash(self.noun, name, *map(dist_name, entries[:2])))
        return entries[0] if entries else None

    def _listed(self) -> str:
        """Return all names for a message, without a refusal of two rows of one name."""
        return ", ".join(dict.fromkeys([*self._own, *(entry.name for entry in announced(self.group))]))


def clash(noun: str, name: str, one: str, other: str) -> str:
    """Return the refusal of two packages that have a row of one name.

    Example:
        >>> from privstats.doors import clash
        >>> clash("head", "LDA", "privstats", "stranger 0.1")
        "privstats and stranger 0.1 both have the head 'LDA'; rename it in one of them, or uninstall one"
    """
    return f"{one} and {other} both have the {noun} {name!r}; rename it in one of them, or uninstall one"


def is_row(cls: type[Any], key: str = "name", options: str = "") -> Callable[[Any, str], bool]:
    """Return the check of a door whose rows are instances of ``cls``.

    Args:
        key: the field with the row's name.
        options: the field with the row's options, a dataclass whose fields have defaults; None is accepted where it is
            the field's default. Empty: the rows have none.

    Example:
        >>> from privstats.doors import Option, is_row
        >>> fits = is_row(Option, "help")
        >>> fits(Option("One sentence."), "One sentence."), fits(Option("One sentence."), "Another one.")
        (True, False)
    """

    def fits(row: Any, name: str) -> bool:
        if not isinstance(row, cls) or getattr(row, key) != name:
            return False
        if not options:
            return True
        own = getattr(row, options)
        return _is_options(own) or own is getattr(cls, options, MISSING)  # a field's default is one of its class

    return fits


def _is_options(own: Any) -> bool:
    return isinstance(own, type) and is_dataclass(own) and all(default_of(each) is not MISSING for each in fields(own))


def resolved(place: Any) -> Any:
    """Return what ``"module:name"`` names, and any other object unchanged: a row may name what it loads on use.

    Example:
        >>> from privstats.doors import resolved
        >>> resolved("math:floor")(2.5), resolved(round)(3.4)
        (2, 3)
    """
    return resolve_name(place) if isinstance(place, str) else place


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


def flag_of(options: type[Any], name: str) -> str:
    """Return an option as people type it.

    Example:
        >>> from dataclasses import make_dataclass
        >>> from typing import Annotated
        >>> from privstats.doors import Option, flag_of
        >>> model = Annotated[str, Option("A data model.", flag="--cdm")]
        >>> Source = make_dataclass("Source", [("model", model, None), ("first_year", int, None)])
        >>> flag_of(Source, "model"), flag_of(Source, "first_year")
        ('--cdm', '--first-year')
    """
    hint = get_type_hints(options, include_extras=True).get(name)
    shown = next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Option)), None)
    return (shown and shown.flag) or f"--{name.replace('_', '-')}"


def given(options: Any) -> dict[str, Any]:
    """Return the options whose values differ from their defaults.

    Example:
        >>> from dataclasses import dataclass
        >>> from privstats.doors import given
        >>> @dataclass(frozen=True)
        ... class Digits:
        ...     digits: int | None = None
        ...     words: bool = False
        >>> given(Digits(digits=2))
        {'digits': 2}
    """
    values = ((each.name, getattr(options, each.name), default_of(each)) for each in fields(options))
    return {name: value for name, value, default in values if value != default}


def together(name: str, parts: Mapping[str, type[Any]], origin: Callable[[str], str]) -> type[Any]:
    """Return one frozen dataclass with the fields of several rows' options.

    Args:
        parts: each row's options, by the row's name.
        origin: returns the package of a row, as :meth:`Door.origin` does.

    Raises:
        PrivstatsError: two rows have an option of one name with another type, default or :class:`Option`.

    Example:
        >>> from dataclasses import dataclass
        >>> from privstats.doors import together
        >>> @dataclass(frozen=True)
        ... class Digits:
        ...     digits: int | None = None
        >>> together("Options", {"totals": Digits}, lambda row: "stranger 0.1")(digits=2)
        Options(digits=2)
    """
    joined: dict[str, tuple[str, Any, Any]] = {}
    first: dict[str, tuple[object, str]] = {}
    for row, part in parts.items():
        hints = get_type_hints(part, include_extras=True)
        for each in fields(part):
            meaning = str(hints[each.name]), repr(each.default), repr(each.default_factory)
            known, other = first.setdefault(each.name, (meaning, row))
            if meaning != known:
                raise PrivstatsError(
                    f"{other!r} of {origin(other) or 'privstats'} and {row!r} of {origin(row) or 'privstats'} have "
                    f"different options {each.name!r}; rename one, or give both one type, default and Option"
                )
            joined.setdefault(each.name, (each.name, hints[each.name], anew(each)))
    return make_dataclass(name, joined.values(), frozen=True, kw_only=True)


def default_of(own: Field[Any]) -> Any:
    """Return a field's default, built anew where a factory builds it; ``MISSING`` where the field has none.

    Example:
        >>> from dataclasses import field, fields, make_dataclass
        >>> from privstats.doors import default_of
        >>> words = ("words", list, field(default_factory=list))
        >>> [default_of(each) for each in fields(make_dataclass("Two", [("digits", int, 3), words]))]
        [3, []]
    """
    return own.default if own.default_factory is MISSING else own.default_factory()


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
