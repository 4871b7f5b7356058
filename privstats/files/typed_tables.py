"""Convert a file's tables to a declared type, or name the first setting that does not fit.

msgspec states neither the item of a list nor TOML's words for a type, so the settings are walked here after it refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from privstats.errors import PlanError

T = TypeVar("T")

_WORDS: Mapping[type[inspect.Type], tuple[str, str]] = {
    inspect.IntType: ("an integer", "write digits without quotes"),
    inspect.FloatType: ("a number", "write it without quotes, with a decimal point"),
    inspect.StrType: ("a text", "write it in quotes"),
    inspect.BoolType: ("true or false", "write it without quotes"),
    inspect.DateType: ("a date", "write it without quotes, such as 2020-01-31"),
    inspect.VarTupleType: ("a list", "write it in square brackets"),
    inspect.DictType: ("a table", "write [{}]"),
    inspect.StructType: ("a table", "write [{}]"),
}
"""By type: the name of the type in TOML, and how to write a value of it; ``{}`` stands for the setting."""


def tables_as(tables: object, kind: type[T], where: str = "") -> T:
    """Return the tables of a file as the declared type.

    Args:
        kind: a ``msgspec.Struct``, or a ``dict`` of them.
        where: the table's name in the file; empty for the whole file.

    Raises:
        PlanError: a setting is unknown, missing or of another type; the message names the setting and the remedy.

    Example:
        >>> import msgspec
        >>> from privstats.files.typed_tables import tables_as
        >>> Outcome = msgspec.defstruct("Outcome", [("within_days", int)])
        >>> Study = msgspec.defstruct("Study", [("outcome", Outcome)])
        >>> tables_as({"outcome": {"within_days": "365"}}, Study)
        Traceback (most recent call last):
            ...
        privstats.errors.PlanError: outcome.within_days must be an integer, got '365'; write digits without quotes
    """
    try:
        return msgspec.convert(tables, kind)
    except msgspec.ValidationError as error:
        refusals = _refusals(where, tables, inspect.type_info(kind))
        raise PlanError(next(refusals, f"{where or 'the file'}: {error}")) from None


def unknown_keys(where: str, table: Mapping[str, Any], known: Sequence[str]) -> str:
    """Return the sentence on a table's unknown keys; an empty text where all are known.

    Example:
        >>> from privstats.files.typed_tables import unknown_keys
        >>> unknown_keys("cohort", {"client": 3}, ("clients", "colluders"))
        "cohort has unknown keys 'client'; did you mean clients?"
    """
    unknown = sorted(set(table) - set(known))
    if not unknown:
        return ""
    close = get_close_matches(unknown[0], known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"the keys are {', '.join(known)}"
    return f"{where} has unknown keys {', '.join(map(repr, unknown))}; {hint}"


def _refusals(where: str, value: object, kind: inspect.Type) -> Iterator[str]:
    """Yield a sentence for each setting that does not fit."""
    if isinstance(kind, inspect.UnionType):
        kinds = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        if len(kinds) == 1:
            yield from _refusals(where, value, kinds[0])
        elif all(any(_refusals(where, value, each)) for each in kinds):
            words = " or ".join(_WORDS[type(each)][0] for each in kinds)
            yield f"{where} must be {words}, got {_shown(value)}"
    elif isinstance(kind, inspect.LiteralType):
        if value not in kind.values:
            yield f"{where} must be one of {', '.join(map(str, kind.values))}; got {_shown(value)}"
    elif not _is_of(value, kind):
        words, remedy = _WORDS[type(kind)]
        if _holds_tables(kind):
            remedy = "write [[{}]] for each"
        yield f"{where or 'the file'} must be {words}, got {_shown(value)}; {remedy.format(where or 'NAME')}"
    elif isinstance(kind, inspect.StructType):
        yield from _refusals_of_table(where, value, kind)
    elif isinstance(kind, inspect.DictType):
        for name, each in value.items():  # type: ignore[attr-defined]
            if isinstance(name, str):
                yield from _refusals(_joined(where, name), each, kind.value_type)
            else:
                yield f"names in {where} must be texts, got {_shown(name)}; write them in quotes"
    elif isinstance(kind, inspect.VarTupleType):
        yield from _refusals_of_list(where, value, kind)


def _holds_tables(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.VarTupleType) and isinstance(kind.item_type, inspect.StructType)


def _refusals_of_list(where: str, items: Any, kind: inspect.VarTupleType) -> Iterator[str]:
    for place, item in enumerate(items, 1):
        if not _holds_tables(kind):
            yield from _refusals(f"item {place} of {where}", item, kind.item_type)
        elif not isinstance(item, dict):
            yield f"{where} must hold tables, got {_shown(item)}; write [[{where}]] for each"
        else:
            name = item.get("name")
            table = _joined(where, name) if isinstance(name, str) else f"{where} {place}"
            yield from _refusals(table, item, kind.item_type)


def _refusals_of_table(where: str, table: Any, kind: inspect.StructType) -> Iterator[str]:
    names, whole = [field.encode_name for field in kind.fields], where or "the file"
    if kind.forbid_unknown_fields and (refusal := unknown_keys(whole, table, names)):
        yield refusal
    if lacks := [field.encode_name for field in kind.fields if field.required and field.encode_name not in table]:
        yield f"{whole} lacks {', '.join(lacks)}; add it"
    for field in kind.fields:
        if field.encode_name in table:
            yield from _refusals(_joined(where, field.encode_name), table[field.encode_name], field.type)


def _is_of(value: object, kind: inspect.Type) -> bool:
    """Return whether the value has the type of TOML that msgspec accepts for ``kind``, of its items apart."""
    python = _PYTHON.get(type(kind), (object,))
    if isinstance(value, bool):
        return bool in python or object in python
    if isinstance(value, datetime):
        return object in python
    return isinstance(value, python)


_PYTHON: Mapping[type[inspect.Type], tuple[type, ...]] = {
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.StrType: (str,),
    inspect.BoolType: (bool,),
    inspect.DateType: (date,),
    inspect.VarTupleType: (list, tuple),
    inspect.DictType: (dict,),
    inspect.StructType: (dict,),
}


def _joined(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _shown(value: object) -> str:
    text = value.isoformat() if isinstance(value, date) else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
