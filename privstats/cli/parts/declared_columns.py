"""The declaration of a table's columns in ``columns.toml``: written by people, read into a plan.

One table per column, with the keys of ``Cells`` in a plan; ``kind = "?"`` is an open question, refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from tomllib import TOMLDecodeError
from types import MappingProxyType
from typing import Any

import tomli_w

from privstats.errors import SchemaError
from privstats.files.text import toml_tables
from privstats.intake.declared.columns import column_from_plan
from privstats.plan.document import read_text
from privstats.transforms import Column

OPEN = "?"
"""The kind of a column that is not declared yet."""

_HEAD = """\
# What the columns of the table hold, from its data dictionary and not from records: every party reads this.
# kind: numeric, dates, truth or categories; "?" is still to be answered. A column without a table here is never read.
# numeric: edges = [...] where cut points are public, unit = "mg/dl"; categories: values = ["f", "m"], ordered = true.
# truth: 1/0, true/false, t/f, y/n and their long forms; values = ["FALSCH", "WAHR"] for another pair, false first.
# any: gaps = [-9, "-", "#DIV/0!"], codes of a missing value.
# numeric: suffix = "%" where a sign follows the number; censored = true where "<0.5" is a number just below.
# dates: written = "DD.MM.YYYY" where they are not ISO dates; also MM/DD/YY, DDMONYYYY, days since 1899-12-30 (Excel).
# dates: written = "ISO in Europe/Berlin" where times have a zone, as 2019-03-27T23:00:00Z, which is 2019-03-28 there.
# categories: as_text = true for codes such as 042 and 1E30, which no number may replace.
# for synthetic rows also hashed: buckets = 64, codes that no list names; only their public hash is counted.
"""
_FOUND = """\
# The forms below were found in a file that one may look at, by privstats try --forms: confirm each, or delete it.
"""


def undeclared(
    names: Sequence[str],
    forms: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    orders: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Return a declaration file with names, and with the forms that a rehearsal found for some of them.

    Args:
        forms: by column, the keys that state its form.
        orders: by column, date formats that fit as well as the one that was found: none of them is declared.

    Example:
        >>> from privstats.cli.parts.declared_columns import undeclared
        >>> print(undeclared(["crp"], {"crp": {"gaps": ["-"]}}).partition("[[columns]]")[2].strip())
        name = "crp"
        kind = "?"
        gaps = [
            "-",
        ]
    """
    found = _FOUND if any(forms.values()) else ""
    return _HEAD + found + "".join(_open_table(name, forms.get(name, {}), orders.get(name, ())) for name in names)


def declared(columns: Sequence[Column]) -> str:
    """Return a declaration as a file."""
    return _HEAD + "".join(_table(each.to_plan()) for each in columns)


def read_columns(path: str | os.PathLike[str]) -> tuple[Column, ...]:
    """Return the declaration in a file; refuse an undeclared column."""
    return tuple(map(column_from_plan, tables_in(path)))


def tables_in(path: str | os.PathLike[str]) -> list[Any]:
    """Return the columns' tables in a file; refuse an undeclared column."""
    try:
        tables = toml_tables(read_text(path))
    except TOMLDecodeError as error:
        raise SchemaError(f"{path} is not valid TOML: {error}") from None
    columns = tables.get("columns")
    if set(tables) != {"columns"} or not isinstance(columns, list) or not columns:
        raise SchemaError(f"{path} must hold tables [[columns]] and nothing else, one for each column")
    undeclared = [str(each.get("name")) for each in columns if isinstance(each, dict) and each.get("kind") == OPEN]
    if undeclared:
        raise SchemaError(
            f"{path} lacks the kind of {', '.join(undeclared)}: write one for each, or delete the table of a column "
            "that nobody should read"
        )
    return columns


def _open_table(name: str, form: Mapping[str, Any], orders: Sequence[str]) -> str:
    if not orders:
        return _table({"name": name, "kind": OPEN, **form})
    settled = {key: value for key, value in form.items() if key != "written"}
    fitting = "".join(f"# {tomli_w.dumps({'written': each})}" for each in (form["written"], *orders))
    ask = "# Several formats fit these dates. Remove the # before the right one:\n"
    return _table({"name": name, "kind": OPEN, **settled}) + ask + fitting


def _table(values: Mapping[str, Any]) -> str:
    return f"\n[[columns]]\n{tomli_w.dumps(values)}"
