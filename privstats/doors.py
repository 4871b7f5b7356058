"""Open doors: tables of rows that installed packages extend by entry points, and that no code assigns to.

A row is a frozen value or a class. Our rows come first, and an installed package replaces none of them. A key comes
from a plan, a file's header or a user: text of the core names no row that another room brings.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cached_property
from importlib.metadata import EntryPoint
from keyword import iskeyword
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
        except BrokenPackageWarning:  # of another row, where a user turns it into an error
            raise
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

    def options(self, part: str) -> RowOptions:
        """Return the options that the rows add to a command: those in a field of each row that is not None.

        Example:
            >>> from privstats.course.kinds import COURSE_KINDS
            >>> COURSE_KINDS.options("terms").joined()(rounds=3).rounds
            3
        """
        found = {name: getattr(row, part) for name, row in self.rows().items()}
        parts = {name: own for name, own in found.items() if own is not None}
        return RowOptions(parts, origin=self.origin, noun=self.noun)

    def require_own(self, name: str, option: str, part: str, options: str) -> None:
        """Refuse that an option of ours means a row of another package: it would change what our commands do.

        Args:
            name: the row's.
            option: the option that means the row, by the name of its field; empty for none.
            part: the field of the row that states it, for the message.
            options: the field with a row's options.

        Raises:
            RowError: one of our rows has this option.
        """
        if not option or not self.origin(name):
            return
        ours = {own: getattr(row, options) for own, row in self.rows(of_others=False).items()}
        having = [
            own for own, each in ours.items() if each is not None and option in {one.name for one in fields(each)}
        ]
        if having:
            raise RowError(
                f"its {part} is {option!r}, an option of the {self.noun} {having[0]!r} of privstats: choose an option "
                "that no row of privstats has"
            )

    @contextmanager
    def using(self, name: str, part: str = "") -> Iterator[None]:
        """Refuse by the name of its package what the code of a row raises in this block.

        Errors of privstats, of the system and of memory pass as they are, and so does every error of our own rows.

        Args:
            name: the row's.
            part: the field whose code runs, for the message; empty for none.

        Example:
            >>> from privstats.review.plan_notes import NOTES
            >>> with NOTES.using("of no package"):
            ...     len([1, 2])
            2
        """
        try:
            yield
        except (PrivstatsError, BrokenPackageWarning, OSError, MemoryError):
            raise
        except Exception as fault:
            if not self.origin(name):
                raise
            raise self._error(
                f"{f'the {part} of ' if part else ''}{self.titled(name)} failed with {type(fault).__name__}: "
                f"{one_line(fault)}; mend or uninstall that package"
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

    def titled(self, name: str) -> str:
        """Return a row of another package with that package, for a message; a row of ours without one.

        Example:
            >>> from privstats.workflows.tables import READERS
            >>> READERS.titled("ols")
            "the table reader 'ols'"
        """
        origin = self.origin(name)
        return f"the {self.noun} {name!r}{f' of {origin}' if origin else ''}"

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


def is_row(cls: type[Any], key: str = "name", options: str = "", over: type = object) -> Callable[[Any, str], bool]:
    """Return the check of a door whose rows are instances of ``cls``.

    Args:
        key: the field with the row's name.
        options: the field with the row's options, a dataclass whose fields have defaults and an :class:`Option`; None
            is accepted where it is the field's default. Empty: the rows have none.
        over: the class from which all options derive.

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
            _check_options(options, own, over)  # a field's default is one of its class
        return True

    return fits


def _check_options(name: str, own: Any, over: type) -> None:
    if not (isinstance(own, type) and is_dataclass(own)):
        raise RowError(f"its {name} is {shown(own)}, and must be a dataclass of options")
    if not issubclass(own, over):
        raise RowError(f"its {name} is {shown(own)}, and must be a dataclass over {over.__name__}")
    for each in fields(own):
        if default_of(each) is MISSING:
            raise RowError(f"the option {each.name!r} of its {name} has no default: give it one")
    try:
        hints = option_hints(own)
    except Exception as fault:
        raise RowError(f"the annotations of its {name} fail with {type(fault).__name__}: {one_line(fault)}") from fault
    seen: dict[str, str] = {}
    for each in fields(own):
        which = f"the option {each.name!r} of its {name}"
        if (shows := option_in(hints[each.name])) is None:
            raise RowError(f"{which} has no help: annotate it with an Option")
        if why := fault_of_option(each.name, hints[each.name], shows):
            raise RowError(f"{which} {why}")
        for flag in _flags(each.name, hints[each.name]):
            if (other := seen.setdefault(flag, each.name)) != each.name:
                raise RowError(f"{which} has the flag {flag} of its option {other!r}: give it another one")


def fault_of_option(name: str, hint: Any, shows: Option) -> str:
    """Return why a command cannot have an option, a clause; empty where it can.

    Example:
        >>> from privstats.doors import Option, fault_of_option
        >>> fault_of_option("digits", int, Option("Digits.", flag="digits"))
        "has the flag 'digits', and a flag is two hyphens and a word of letters, digits and hyphens, such as --digits"
        >>> fault_of_option("digits", int, Option("Digits."))
        ''
    """
    if why := fault_of(shows):
        return f"is shown wrongly: {why}"
    if not is_typed(hint):
        return f"is of no type that a command reads: {TYPES}"
    flags = _flags(name, hint) if _is_bool(hint) or not shows.flag else (shows.flag,)
    if wrong := [flag for flag in flags if not _FLAG.fullmatch(flag)]:
        return (
            f"has the flag {wrong[0]!r}, and a flag is two hyphens and a word of letters, digits and hyphens, such as "
            "--digits"
        )
    return ""


def fault_of_name(name: str) -> str:
    """Return why a row's name is no option, a clause; empty for one.

    Example:
        >>> from privstats.doors import fault_of_name
        >>> fault_of_name("covering letter")
        "its name is 'covering letter', and must be an option: a word of letters, digits and hyphens, no Python keyword"
        >>> fault_of_name("covering-letter")
        ''
    """
    field = name.replace("-", "_")
    if _FLAG.fullmatch(f"--{name}") and field.isidentifier() and not iskeyword(field):
        return ""
    return f"its name is {name!r:.80}, and must be an option: a word of letters, digits and hyphens, no Python keyword"


_FLAG = re.compile(r"--[^\W_][\w-]*")


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


@dataclass(frozen=True)
class Option:
    """How a command shows one field of a row's options, as metadata of ``Annotated``.

    Attributes:
        help: one sentence.
        metavar: what stands for the value in the help.
        flag: the option's name where it is not the field's.
    """

    help: str
    metavar: str | None = None
    flag: str | None = None


def option_in(hint: Any) -> Option | None:
    """Return the :class:`Option` in an annotation; None where there is none.

    Example:
        >>> from typing import Annotated
        >>> from privstats.doors import Option, option_in
        >>> option_in(Annotated[int, Option("Digits.")]).help, option_in(int)
        ('Digits.', None)
    """
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Option)), None)


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
    return _flags(name, option_hints(options).get(name))[0]


def _flags(name: str, hint: Any) -> tuple[str, ...]:
    """Return every flag of an option, as ``typer`` derives them from its name and type."""
    shows, word = option_in(hint), name.lower().replace("_", "-")
    if shows is not None and shows.flag:
        return tuple(each.strip() for each in shows.flag.split("/"))
    return (f"--{word}", f"--no-{word}") if _is_bool(hint) else (f"--{word}",)


def _is_bool(hint: Any) -> bool:
    origin, parts = get_origin(hint), [each for each in get_args(hint) if each is not NoneType]
    if origin in (Annotated, list) or (origin in (Union, UnionType) and len(parts) == 1):
        return _is_bool(parts[0])
    return hint is bool


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


def left_out(options: Any) -> Mapping[str, str]:
    """Return the rows whose options a command left out, with the reasons, by the row's name.

    Args:
        options: an instance of what :func:`together` returns; any other object left none out.

    Example:
        >>> from privstats.course.kinds import COURSE_KINDS
        >>> from privstats.doors import left_out
        >>> left_out(COURSE_KINDS.options("terms").joined()())
        mappingproxy({})
    """
    found: Mapping[str, str] = getattr(options, _LEFT_OUT, MappingProxyType({}))
    return found


_LEFT_OUT = "__left_out__"


class _Stated(NamedTuple):
    """One option of a row: two rows may share an option if all these are equal."""

    name: str
    flags: tuple[str, ...]
    type: str
    metavar: str | None
    default: str

    @property
    def words(self) -> frozenset[str]:
        """What no other option of a command may have."""
        return frozenset((self.name, *self.flags))

    def __str__(self) -> str:
        return f"{self.name!r}, {self.flags[0]},"


@dataclass(frozen=True)
class RowOptions:
    """The options that several rows add to one command.

    A command leaves out all options of another package's row that has one of the command's own, or one that is unlike
    an option of an earlier row.

    Attributes:
        parts: each row's options, a dataclass, by the row's name.
        origin: returns the package of a row, as :meth:`Door.origin` does.
        noun: what a row is, for messages.
        help: returns an option's help from its name and the options of all rows in the command; None: the first row's.
        shared: whether rows may have an option in common.

    Example:
        >>> from dataclasses import make_dataclass
        >>> from privstats.doors import RowOptions
        >>> digits = make_dataclass("Digits", [("digits", int, 3)])
        >>> RowOptions({"totals": digits}, lambda row: "stranger 0.1").joined()()
        Options(digits=3)
    """

    parts: Mapping[str, type[Any]]
    origin: Callable[[str], str]
    noun: str = "row"
    help: Callable[[str, Mapping[str, type[Any]]], str] | None = None
    shared: bool = True

    @property
    def ours(self) -> frozenset[str]:
        """Names and flags of the options of our rows."""
        own = [stated for row, stated in self._stated.items() if not self.origin(row)]
        return frozenset(word for stated in own for each in stated for word in each.words)

    @cached_property
    def _stated(self) -> Mapping[str, list[_Stated]]:
        return {row: _stated_in(part) for row, part in self.parts.items()}

    def joined(self, reserved: Collection[str] = (), name: str = "Options") -> type[Any]:
        """Return one frozen dataclass with the options of all rows, our rows' first.

        Args:
            reserved: names and flags that the command has already.
            name: the dataclass's name.

        Raises:
            PrivstatsError: an option of a row of ours is reserved, or unlike one of another row of ours.
        """
        used, without = dict[str, type[Any]](), dict[str, str]()
        for row in sorted(self.parts, key=lambda row: bool(self.origin(row))):  # ours first
            why = self._clash(row, list(used), frozenset(reserved))
            if not why:
                used[row] = self.parts[row]
            elif self.origin(row):
                warnings.warn(why, BrokenPackageWarning, stacklevel=2)
                without[row] = why
            else:
                raise PrivstatsError(why)
        options = dict[str, tuple[str, Any, Any]]()
        for part in used.values():
            hints = option_hints(part)
            own = (each for each in fields(part) if each.name not in options)
            options |= {
                each.name: (each.name, self._shown(each.name, hints[each.name], used), anew(each)) for each in own
            }
        reasons = {_LEFT_OUT: MappingProxyType(without)}
        return make_dataclass(name, options.values(), frozen=True, kw_only=True, namespace=reasons)

    def _clash(self, row: str, before: list[str], reserved: frozenset[str]) -> str:
        """Return why a command cannot have a row's options, one sentence; empty where it can."""
        for own in self._stated[row]:
            if own.words & reserved:
                return f"{self._titled(row)} cannot be used: its option {own} is one of the command itself; rename it"
            for other, each in ((one, stated) for one in before for stated in self._stated[one]):
                if own.words & each.words and not (self.shared and own == each):
                    return (
                        f"{self._titled(row)} cannot be used: its option {own} is unlike {each} of "
                        f"{self._titled(other)}; rename it"
                        + (", or give both one type, default, metavar and flag" if self.shared else "")
                    )
        return ""

    def _titled(self, row: str) -> str:
        return f"the {self.noun} {row!r} of {self.origin(row) or 'privstats'}"

    def _shown(self, name: str, hint: Any, used: Mapping[str, type[Any]]) -> Any:
        shows = option_in(hint)
        if self.help is None or shows is None:
            return hint
        return Annotated[hint.__origin__, replace(shows, help=self.help(name, used))]


def _stated_in(options: type[Any]) -> list[_Stated]:
    hints, found = option_hints(options), list[_Stated]()
    for each in fields(options):
        hint, shows = hints[each.name], option_in(hints[each.name])
        plain = hint.__origin__ if get_origin(hint) is Annotated else hint
        metavar = None if shows is None else shows.metavar
        found.append(_Stated(each.name, _flags(each.name, hint), str(plain), metavar, repr(default_of(each))))
    return found


def together(
    name: str, parts: Mapping[str, type[Any]], origin: Callable[[str], str], reserved: Collection[str] = ()
) -> type[Any]:
    """Return one frozen dataclass with the options of several rows, our rows' first, as :class:`RowOptions` does.

    Options of a row of another package that has a reserved one, or one unlike that of an earlier row, are left out
    with a warning.

    Args:
        parts: each row's options, by the row's name.
        origin: returns the package of a row, as :meth:`Door.origin` does.
        reserved: names and flags that the command has already.

    Raises:
        PrivstatsError: an option of a row of privstats is reserved, or unlike one of another row of privstats.

    Example:
        >>> from dataclasses import dataclass
        >>> from privstats.doors import together
        >>> @dataclass(frozen=True)
        ... class Digits:
        ...     digits: int | None = None
        >>> together("Options", {"totals": Digits}, lambda row: "stranger 0.1")(digits=2)
        Options(digits=2)
    """
    return RowOptions(parts, origin).joined(reserved, name)


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
