"""Tables of every kind of schema and of every reader of tables, from their rows alone."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from benchmarks.table import Cells, Tables, by_name
from privstats.kinds import KINDS
from privstats.kinds.base import Kind
from privstats.row_options import flag_of
from privstats.schema.checks import REQUIRED
from privstats.workflows.tables import READERS, TableReader
from privstats.workflows.tables.options import names_in

__all__ = ["TABLES"]

_SHARED = ("features", "clip_norm", "grid_bits", "nonnegative", "transform", "feature_names")
"""Keys that the page explains once, for all kinds."""


def kinds_of_schema() -> Cells:
    """docs/plan.md: each task, what its sums are for, and its keys."""
    head = ["`task`", "in Python", "its sums are for", "statistics", "keys without a default", "keys with a default"]
    return [head, *(_row(task, kind) for task, kind in KINDS.items())]


def _row(task: str, kind: type[Kind]) -> list[str]:
    example: Any = kind.example()
    own = [each for each in fields(example) if each.init and each.name not in _SHARED]
    required, optional = ([each for each in own if _is_required(each) == wanted] for wanted in (True, False))
    return [
        f'`"{task}"`',
        f"`ps.kinds.{kind.__name__}`",
        kind.purpose,
        " ".join(kind.proved),
        _names(required),
        _names(optional),
    ]


def _is_required(field: Field[Any]) -> bool:
    return field.default in (MISSING, REQUIRED) and field.default_factory is MISSING


def _names(given: list[Field[Any]]) -> str:
    return ", ".join(f"`{each.name}`" for each in given)


def readers_of_tables() -> Cells:
    """docs/tables.md: each reader of ``privstats table``, what it reads, and its options besides --alpha."""
    head = ["`--reader`", "reads", "releases", "options"]
    return [head, *(_reader_row(reader) for reader in READERS.values())]


def _reader_row(reader: TableReader) -> list[str]:
    own = [flag_of(reader.options, name) for name in names_in(reader.options) if name != "alpha"]
    releases = "one, or a course's" if reader.of_courses else "one"
    return [f"`{reader.name}`", reader.wanted, releases, ", ".join(f"`{flag}`" for flag in own)]


TABLES: Tables = by_name(kinds_of_schema, readers_of_tables)
