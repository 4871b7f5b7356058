"""Read the options that rows of doors add to a command, and join those of all rows into one dataclass.

Options are a dataclass. Each field has a default, and its annotation has an :class:`Option`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, make_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cached_property
from keyword import iskeyword
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin
from uuid import UUID

from privstats.errors import BrokenPackageWarning, PrivstatsError
from privstats.plug_ins import one_line
from privstats.row_fields import RowError, fault_of, option_hints, shown

TYPES = (
    "use a str, int, float, bool, Path, datetime, UUID or Enum, a list of one of these, a Literal of texts, or one of "
    "all these or None"
)
"""The types that an option may have, for refusals."""


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
        >>> from privstats.row_options import Option, option_in
        >>> option_in(Annotated[int, Option("Digits.")]).help, option_in(int)
        ('Digits.', None)
    """
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Option)), None)


def flag_of(options: type[Any], name: str) -> str:
    """Return an option as people type it.

    Example:
        >>> from dataclasses import make_dataclass
        >>> from typing import Annotated
        >>> from privstats.row_options import Option, flag_of
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


_FLAG = re.compile(r"--[^\W_][\w-]*")


def is_typed(hint: Any) -> bool:
    """Return whether a command can read a value of this type.

    Example:
        >>> from privstats.row_options import is_typed
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


def fault_of_option(name: str, hint: Any, shows: Option) -> str:
    """Return why a command cannot have an option, a clause; empty where it can.

    Example:
        >>> from privstats.row_options import Option, fault_of_option
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
        >>> from privstats.row_options import fault_of_name
        >>> fault_of_name("covering letter")
        "its name is 'covering letter', and must be an option: a word of letters, digits and hyphens, no Python keyword"
        >>> fault_of_name("covering-letter")
        ''
    """
    field = name.replace("-", "_")
    if _FLAG.fullmatch(f"--{name}") and field.isidentifier() and not iskeyword(field):
        return ""
    return f"its name is {name!r:.80}, and must be an option: a word of letters, digits and hyphens, no Python keyword"


def check_options(name: str, own: Any, over: type) -> None:
    """Refuse an object that is no dataclass of options.

    Args:
        name: the field of the row that holds it, for messages.
        own: the object.
        over: the class from which it must derive.

    Raises:
        RowError: it is no dataclass over ``over``, or a command cannot have one of its options.

    Example:
        >>> from privstats.course.terms import RefinementTerms
        >>> from privstats.row_options import check_options
        >>> check_options("terms", RefinementTerms, object)
        >>> check_options("terms", int, object)
        Traceback (most recent call last):
            ...
        privstats.row_fields.RowError: its terms is the class int, and must be a dataclass of options
    """
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


def given(options: Any) -> dict[str, Any]:
    """Return the options whose values differ from their defaults.

    Example:
        >>> from dataclasses import dataclass
        >>> from privstats.row_options import given
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
        options: an instance of what :meth:`RowOptions.joined` returns; any other object left none out.

    Example:
        >>> from privstats.course.kinds import COURSE_KINDS
        >>> from privstats.row_options import left_out
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
        >>> from privstats.row_options import RowOptions
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


def default_of(own: Field[Any]) -> Any:
    """Return a field's default, built anew where a factory builds it; ``MISSING`` where the field has none.

    Example:
        >>> from dataclasses import field, fields, make_dataclass
        >>> from privstats.row_options import default_of
        >>> words = ("words", list, field(default_factory=list))
        >>> [default_of(each) for each in fields(make_dataclass("Two", [("digits", int, 3), words]))]
        [3, []]
    """
    return own.default if own.default_factory is MISSING else own.default_factory()


def anew(own: Field[Any]) -> Any:
    """Return a field with the default and the metadata of another.

    Example:
        >>> from dataclasses import fields, make_dataclass
        >>> from privstats.row_options import Option, anew
        >>> (first,) = fields(make_dataclass("Digits", [("digits", int, 3)]))
        >>> anew(first).default
        3
    """
    if own.default_factory is not MISSING:
        return field(default_factory=own.default_factory, metadata=own.metadata)
    return field(default=own.default, metadata=own.metadata)
