"""What looks odd in one party's file beside what was read off the first: other spellings, dates, gap codes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from privstats.transforms import Categories, Column
from privstats.transforms.reading import Readings
from privstats.workflows.look import looked, spellings, unlisted
from privstats.workflows.rehearsal.held_tables import HeldTable, Source

__all__ = ["odd"]


def odd(file: Source, columns: tuple[Column, ...], found: Mapping[str, Readings]) -> tuple[str, ...]:
    """A sentence for each column that somebody may want to mend, with the name of the file, as ``privstats look`` says.

    Values beside the listed ones are no oddity by themselves, for a rehearsal lists the most frequent ones of the first
    file; but all of a file's are, and those that differ from a listed one by case alone.
    """
    name = file.path if isinstance(file, HeldTable) else Path(os.fspath(file.path)).name
    return tuple(f"{name}: {said}" for column in columns for said in _of_column(column, found[column.name]))


def _of_column(column: Column, found: Readings) -> Iterator[str]:
    seen = looked(column, found)
    if isinstance(column, Categories) and not seen.unreadable:
        rest = unlisted(column, found)
        if not column.values or not (_is_all(seen.other, seen.records - seen.missing) or spellings(column, rest)):
            return
    for remark in seen.remarks:
        yield f"{column.name}: {remark}"


def _is_all(other: int, given: int) -> bool:
    return 0 < other == given
