"""Open doors: tables of rows that installed packages extend by entry points, and that no code assigns to.

A row is a frozen value or a class. Our rows come first, and an installed package replaces none of them. A key comes
from a plan, a file's header or a user: text of the core names no row that another room brings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, field, fields, is_dataclass, make_dataclass
from datetime import datetime
from enum import Enum
from importlib.metadata import EntryPoint
from pathlib import Path
from pkgutil import resolve_name
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin
from uuid import UUID

from privstats.errors import BrokenPackageWarning, PrivstatsError
from privstats.plug_ins import announced, dist_name, is_ours, loaded, one_line
from privstats.row_fields import RowError, fault_of, option_hints, shown

Row = TypeVar("Row")


class Door(Mapping[str, Row]):
    """Rows by name: ours, then those that installed packages announce, each loaded on first use.

    Reading one row of ours looks at no package. A broken package, or two packages with one name, stop no other row:
    the row is refused where it is named, and lists leave it out with a warning.

    Args:
        group: entry points that announce a row under its name.
        noun: what a row is, for messages.
        error: raised where an announced row cannot be loaded, is no row, or is missing: the error of the room whose
            call needs the row.
        fits: whether an object is a row of this name; raises ``RowError`` with what is wrong.
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
        self._checked: dict[str, Row] = {}

    def __repr__(self) -> str:
        return f"<Door {self.group}: {self._listed()}>"

    def __getitem__(self, name: str) -> Row:
        if name in self._own:  # found without entry points, so no broken package stops what names our rows alone
            return self._own[name]
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        row: Row = loaded(entry, self.noun, self._error)
        # A session reads the row of its course at each message. Another package's row is checked each time.
        if is_ours(entry) and self._checked.get(name, MISSING) is row:
            return row
        if why := self._fault(row, name):
            raise self._error(
                f"{dist_name(entry)} announces the {self.noun} {name!r} as {entry.value!r}, which is no {self.noun} of "
                f"that name: {why}; repair or uninstall that package"
            )
        self._checked[name] = row
        return row

    def _fault(self, row: Any, name: str) -> str:
        """Return why an object is no row of this name, a clause; empty for a row."""
        try:
            return "" if self._fits(row, name) else f"it is {shown(row)}"
        except (RowError, PrivstatsError) as fault:
            return str(fault)
        except Exception as fault:  # a check may run another package's code
            return f"its check fails with {type(fault).__name__}: {one_line(fault)}"

    def __contains__(self, name: object) -> bool:
        return name in self._own or any(entry.name == name for entry in announced(self.group))

    def __iter__(self) -> Iterator[str]:
        """Yield our names, then those of other packages; warn of a name that two rows have, and yield ours alone."""
        ours, others = dict.fromkeys(self._own), dict[str, None]()
        for name in dict.fromkeys(entry.name for entry in announced(self.group)):
            if why := self._clash(name):
                warnings.warn(why, BrokenPackageWarning, stacklevel=2)
            if any(map(is_ours, self._entries(name))):
                ours[name] = None
            elif not why:
                others[name] = None
        return iter([*ours, *others])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def rows(self, *, of_others: bool = True) -> dict[str, Row]:
        """Return all rows by name, ours first; warn of each package whose row is broken, and leave that row out.

        Args:
            of_others: whether to load the rows of other packages.
        """
        return {name: row for name in self if of_others or not self.origin(name) for row in self._sound(name)}

    def first(self, wanted: Callable[[Row], bool]) -> Row | None:
        """Return the first row that is wanted, ours first, and load none after it; None where no row is.

        Example:
            >>> from privstats.course.kinds import COURSE_KINDS
            >>> COURSE_KINDS.first(lambda kind: kind.task == "of no kind of schema") is None
            True
        """
        return next((row for name in self for row in self._sound(name) if wanted(row)), None)

    def _sound(self, name: str) -> Iterator[Row]:
        """Yield one row; none, with a warning, where it is broken and of another package."""
        try:
            row = self[name]
        except PrivstatsError as fault:
            if not self.origin(name):
                raise  # so that no list lacks a row of ours without a word
            warnings.warn(str(fault), BrokenPackageWarning, stacklevel=4)
        else:
            yield row

    @contextmanager
    def using(self, name: str) -> Iterator[None]:
        """Refuse by the name of its package what the code of a row raises in this block.

        Errors of privstats, of the system and of memory pass as they are, and so does every error of our own rows.

        Example:
            >>> from privstats.review.plan_notes import NOTES
            >>> with NOTES.using("of no package"):
            ...     len([1, 2])
            2
        """
        try:
            yield
        except (PrivstatsError, OSError, MemoryError):
            raise
        except Exception as fault:
            if not (package := self.origin(name)):
                raise
            raise self._error(
                f"the {self.noun} {name!r} of {package} failed with {type(fault).__name__}: {one_line(fault)}; mend or "
                "uninstall that package"
            ) from fault

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
        entries = self._entries(name)
        entries = [entry for entry in entries if is_ours(entry)] or entries  # no package stops what names our rows
        if len(entries) > 1:
            raise self._error(self._clash(name))
        return entries[0] if entries else None

    def _entries(self, name: str) -> list[EntryPoint]:
        return [entry for entry in announced(self.group) if entry.name == name]

    def _clash(self, name: str) -> str:
        """Return the refusal of two rows of one name; empty for one row."""
        entries = sorted(self._entries(name), key=is_ours, reverse=True)
        packages = ["privstats" if is_ours(entry) else dist_name(entry) for entry in entries]
        packages = ["privstats", *packages] if name in self._own else packages
        return clash(self.noun, name, *packages[:2]) if len(packages) > 1 else ""

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
        >>> fits(Option("One sentence."), "One sentence.")
        True
        >>> fits(Option("One sentence."), "Another one.")
        Traceback (most recent call last):
            ...
        privstats.row_fields.RowError: its help is 'One sentence.', and must be 'Another one.', the name of the ...
    """

    def fits(row: Any, name: str) -> bool:
        if not isinstance(row, cls):
            raise RowError(f"it is {shown(row)}, and must be an instance of {cls.__name__}")
        if why := fault_of(row) if is_dataclass(cls) else "":
            raise RowError(why)
        if (own := getattr(row, key)) != name:
            raise RowError(f"its {key} is {shown(own)}, and must be {name!r}, the name of the entry point")
        if options and (own := getattr(row, options)) is not getattr(cls, options, MISSING):
            _check_options(options, own)  # a field's default is one of its class
        return True

    return fits


def _check_options(name: str, own: Any) -> None:
    if not (isinstance(own, type) and is_dataclass(own)):
        raise RowError(f"its {name} is {shown(own)}, and must be a dataclass of options")
    for each in fields(own):
        if default_of(each) is MISSING:
            raise RowError(f"the option {each.name!r} of its {name} has no default: give it one")
    try:
        hints = option_hints(own)
    except Exception as fault:
        raise RowError(f"the annotations of its {name} fail with {type(fault).__name__}: {one_line(fault)}") from fault
    for each in fields(own):
        if not is_typed(hints[each.name]):
            raise RowError(f"the option {each.name!r} of its {name} is of no type that a command reads: {TYPES}")


TYPES = (
    "use a str, int, float, bool, Path, datetime, UUID or Enum, a list of one of these, a Literal of texts, or one of "
    "all these or None"
)
"""The types that an option may have, for refusals."""


def is_typed(hint: Any) -> bool:
    """Return whether a command can read a value of this type.

    Example:
        >>> from privstats.doors import is_typed
        >>> is_typed(list[int] | None), is_typed(int | str), is_typed(dict[str, int])
        (True, False, False)
    """
    origin, parts = get_origin(hint), [each for each in get_args(hint) if each is not NoneType]
    if origin is Annotated:
        return is_typed(parts[0])
    if origin is Literal:
        return all(isinstance(each, str) for each in parts)
    if origin in (Union, UnionType):
        return len(parts) == 1 and is_typed(parts[0])
    if origin is list:
        return len(parts) == 1 and _is_plain(parts[0])
    return _is_plain(hint)


def _is_plain(hint: Any) -> bool:
    return hint in (str, int, float, bool, Path, datetime, UUID) or (isinstance(hint, type) and issubclass(hint, Enum))


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
    hint = option_hints(options).get(name)
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
    """Return one frozen dataclass with the fields of several rows' options, our rows' first.

    Options of another package that differ from earlier ones of their name are left out, with a warning.

    Args:
        parts: each row's options, by the row's name.
        origin: returns the package of a row, as :meth:`Door.origin` does.

    Raises:
        PrivstatsError: two rows of privstats have an option of one name with another type, default or
            :class:`Option`.

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
    for row, part in sorted(parts.items(), key=lambda item: bool(origin(item[0]))):  # ours first
        hints = option_hints(part)
        meanings = {
            each.name: (str(hints[each.name]), repr(each.default), repr(each.default_factory)) for each in fields(part)
        }
        if unlike := [each for each, meaning in meanings.items() if first.get(each, (meaning,))[0] != meaning]:
            _, other = first[unlike[0]]
            why = (
                f"{other!r} of {origin(other) or 'privstats'} and {row!r} of {origin(row) or 'privstats'} have "
                f"different options {unlike[0]!r}; rename one, or give both one type, default and Option"
            )
            if not origin(row):
                raise PrivstatsError(why)
            warnings.warn(f"{why} (the options of {row!r} are left out)", BrokenPackageWarning, stacklevel=2)
            continue
        for each in fields(part):
            first.setdefault(each.name, (meanings[each.name], row))
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
