"""Compare the fields of a row with their annotations, and state in words what a field must be.

A row's module imports for type checkers alone what computes, so some names of its annotations are unknown at run time.
Any value fits such a name.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from inspect import signature
from types import MappingProxyType, ModuleType, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

Place: TypeAlias = Annotated[str, "module:name"]
"""A text ``"module:name"`` that names what a row loads on use."""

_PLACE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_PLAIN: Mapping[Any, str] = {
    str: "a text",
    bool: "True or False",
    int: "an integer",
    float: "a number",
    NoneType: "None",
}
_SHOWN = 40
_MAX_CLASSES = 1 << 10
"""Classes whose annotations stay evaluated. A command builds further classes of options each time it is listed."""
_Function = TypeVar("_Function", bound=Callable[..., Any])
_evaluated_once = cast("Callable[[_Function], _Function]", lru_cache(_MAX_CLASSES))  # with the function's own signature


class RowError(Exception):
    """Why an object is no row of a door: a clause, for the refusal by the name of its package."""


class _Unknown:
    """A name that is imported for type checkers alone."""

    def __class_getitem__(cls, _: object) -> type[_Unknown]:
        return cls


class _Names(dict[str, Any]):
    """The names of a module, and :class:`_Unknown` for any name that neither the module nor Python has."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)
        return _Unknown


@_evaluated_once
def hints_of(cls: type) -> Mapping[str, Any]:
    """Return the annotations of a class whose module does not import every name that they use."""
    names = _Names(vars(sys.modules[cls.__module__]))
    return MappingProxyType(get_type_hints(cls, localns=names, include_extras=True))


@_evaluated_once
def option_hints(options: type) -> Mapping[str, Any]:
    """Return the annotations of a class of options, whose names must all be known: a command reads their types.

    A command asks for the annotations of each reader's options once for every option of every reader.

    Raises:
        NameError: an annotation uses an unknown name.
    """
    return MappingProxyType(get_type_hints(options, include_extras=True))


def fault_of(row: Any) -> str:
    """Return which field of a frozen dataclass has a value that its annotation excludes, a clause; empty for none.

    Example:
        >>> from privstats.extend.plans import PlanNote
        >>> from privstats.row_fields import fault_of
        >>> fault_of(PlanNote("ours", 3))
        'its sentences is 3, and must be a function of 1 argument'
        >>> fault_of(PlanNote("ours", lambda plan: []))
        ''
    """
    hints = hints_of(type(row))
    for each in fields(row):
        value, hint = getattr(row, each.name), hints[each.name]
        if not _fits(value, hint):
            return _must(each.name, shown(value), hint)
        for held in _held(value, hint):
            if why := fault_of(held):
                return f"its {each.name} has {_with_article(type(held).__name__)} that is wrong: {why}"
    return ""


def _held(value: Any, hint: Any) -> Iterator[Any]:
    """Yield the frozen dataclasses in a field, as its annotation states them."""
    origin, parts = get_origin(hint), get_args(hint)
    if is_dataclass(hint) and isinstance(value, cast("type", hint)):
        yield value
    elif origin in (Union, UnionType):
        yield from (held for part in parts for held in _held(value, part))
    elif origin is tuple and parts[1:] == (...,):
        yield from (held for each in value for held in _held(each, parts[0]))
    elif origin is Mapping:
        yield from (held for each in value.values() for held in _held(each, parts[1]))


def fault_of_class(cls: type, base: type) -> str:
    """Return which class variable that ``base`` declares is missing or wrong in ``cls``, a clause; empty for none.

    Example:
        >>> from typing import ClassVar
        >>> from privstats.row_fields import fault_of_class
        >>> class Named:
        ...     title: ClassVar[str]
        ...
        >>> fault_of_class(Named, Named)
        'it has no title, which must be a text'
    """
    for name, hint in hints_of(base).items():
        if get_origin(hint) is not ClassVar:
            continue
        (own,) = get_args(hint)
        if not hasattr(cls, name):
            return f"it has no {name}, which must be {words_of(own)}"
        if not _fits(value := getattr(cls, name), own):
            return _must(name, shown(value), own)
    return ""


def shown(value: object) -> str:
    """Return a value for a message.

    Example:
        >>> from privstats.row_fields import shown
        >>> shown(3), shown([3]), shown(int), shown(lambda plan: [])
        ('3', 'a list', 'the class int', 'a function of (plan)')
    """
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    if isinstance(value, str | bool | int | float | None):
        return f"{value!r:.{_SHOWN}}"
    if callable(value):
        try:
            return f"a function of {signature(value)}"
        except (TypeError, ValueError):
            return "a function"
    return _with_article(type(value).__name__)


def _must(name: str, is_: str, hint: Any) -> str:
    return f"its {name} is {is_}, and must be {words_of(hint)}"


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in parts)
    if origin is Annotated:
        return _fits(value, parts[0]) and (hint != Place or _PLACE.fullmatch(value) is not None)
    if origin is Literal:
        return value in parts
    if Callable in (hint, origin):
        return callable(value) and _accepts(value, parts[0] if parts else ...)
    if origin is type:
        return isinstance(value, type)
    if origin is tuple:
        return isinstance(value, tuple) and _fit_each(value, parts)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(each, parts[1]) for each in value.values())
    if hint in (int, float):
        return not isinstance(value, bool) and isinstance(value, int | hint)
    unread = hint in (Any, _Unknown) or bool(getattr(hint, "_is_protocol", False))
    return unread or origin is not None or not isinstance(hint, type) or isinstance(value, hint)


def _fit_each(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    every = hints[:1] * len(values) if hints[1:] == (...,) else hints
    return len(values) == len(every) and all(map(_fits, values, every))


def _accepts(function: Callable[..., Any], parameters: Any) -> bool:
    """Return whether a function can be called with that many arguments; True where Python does not state it."""
    if parameters is ...:
        return True
    try:
        stated = signature(function)
    except (TypeError, ValueError):
        return True
    try:
        stated.bind(*parameters)
    except TypeError:
        return False
    return True


def words_of(hint: Any) -> str:
    """Return in words what an annotation accepts.

    Example:
        >>> from collections.abc import Mapping
        >>> from privstats.row_fields import words_of
        >>> words_of(str | None), words_of(Mapping[str, float])
        ('a text or None', 'a dict, each value a number')
    """
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(map(words_of, parts))
    if hint == Place:
        return 'a text "module:name"'
    if origin is Annotated:
        return words_of(parts[0])
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if Callable in (hint, origin):
        return _function(parts[0] if parts else ...)
    if type in (hint, origin):
        return "a class"
    if origin is tuple and parts[1:] == (...,):
        return f"a tuple, each entry {words_of(parts[0])}"
    if origin is tuple:
        return f"a tuple ({', '.join(map(words_of, parts))})"
    if origin is Mapping:
        return f"a dict, each value {words_of(parts[1])}"
    return "any value" if hint in (Any, _Unknown) else _PLAIN.get(hint) or _with_article(hint.__name__)


def _function(parameters: Any) -> str:
    if parameters is ...:
        return "a function"
    return f"a function of {len(parameters) or 'no'} argument{'' if len(parameters) == 1 else 's'}"


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
