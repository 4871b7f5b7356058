"""Tables of the fields of every row of a door, from the annotations and docstrings of their classes alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import partial
from inspect import getdoc
from typing import Any

from benchmarks.table import Cells, Tables
from privstats.row_fields import hints_of, shown, words_of
from tests.project.every_door import row_classes

__all__ = ["TABLES"]

_ENTRY = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n(?:     .*|(?=\n     )))*)", re.MULTILINE)
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")


def _fields_of(cls: type[Any]) -> Cells:
    """docs/reference/extend.md: each field of a row, what it may be, its default, and what it means."""
    meanings, hints = _meanings(cls), hints_of(cls)
    rows = ([f"`{each.name}`", words_of(hints[each.name]), _default(each), meanings[each.name]] for each in fields(cls))
    return [["field", "is", "default", "meaning"], *(list(map(_escaped, row)) for row in rows)]


def _meanings(cls: type[Any]) -> Mapping[str, str]:
    """Return what the docstring's ``Attributes`` state of each field."""
    _, _, attributes = (getdoc(cls) or "").partition("\nAttributes:\n")
    stated = {names: " ".join(text.split()) for names, text in _ENTRY.findall(re.split(r"\n(?=\w)", attributes)[0])}
    return {name: _plain(text) for names, text in stated.items() for name in names.split(", ")}


def _plain(text: str) -> str:
    return _ROLE.sub(r"`\1`", text).replace("``", "`")


def _default(field: Field[Any]) -> str:
    if field.default_factory is not MISSING:
        return f"`{made!r}`" if not isinstance(made := field.default_factory(), type) else shown(made)
    if field.default is MISSING:
        return ""
    return "a function" if callable(field.default) else f"`{field.default!r}`"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


TABLES: Tables = {
    "fields_of" + re.sub("([A-Z])", lambda letter: f"_{letter[0].lower()}", cls.__name__): partial(_fields_of, cls)
    for cls in row_classes()
}
