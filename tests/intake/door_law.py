"""The law at a door: no record and no person decides whether a party has sums, or moves the sums of others."""

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import dask

from privstats.contrib.parts import tables as parts_of_tables
from tests.intake import containers_fuzz as fuzz
from tests.intake.containers import NotHeldError, Table
from tests.intake.doors import DOORS, Door, outcome, tables
from tests.lengths import sized

TABLES = list(tables())
NIGHT_PARTS = 40


@contextmanager
def small_parts() -> Iterator[None]:
    """Run Dask in this process and DuckDB in parts of three rows, without warnings."""
    with (
        patch.object(parts_of_tables, "_RECORDS_OF_PART", 3),
        dask.config.set(scheduler="synchronous"),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def broken(door: Door, table: Table, folder: Path) -> str | None:
    """Return how a hostile record or person moves others; "" if it does not, None where a door cannot hold it."""
    if fuzz.PLANS[table.plan].reads not in door.reads:
        return None
    try:
        both, more, base = (outcome(door, rows, table, folder) for rows in (table.both, table.more, table.base))
    except NotHeldError:
        return None
    refusals = {re.sub("[0-9]+", "#", each.refusal) for each in (both, more, base)}
    if found := fuzz.judged(table, base, more, both).broken:
        return str(found)
    if len(refusals) > 1 and not fuzz.judged(table, base, more, both).is_refused:
        return f"the refusals differ: {refusals}"
    is_calm = table.name.startswith(("rows", "ids"))  # the hostile person's values are as others'
    if door.keeps and is_calm and not both.refusal and (both.sums != at_once(table)).any():
        return "the sums are not those of one process"
    return ""


def at_once(table: Table) -> Any:
    """Return the sums of all records in one process, without a container's own types."""
    name = "mapping" if fuzz.PLANS[table.plan].reads == "counts" else "list"
    found = fuzz.outcome(name, table.both, table, Path())
    assert not found.refusal, found.refusal
    return found.sums


def failures(doors: Sequence[str], chosen: Sequence[Table], folder: Path) -> list[str]:
    """Return a line per door and table where the hostile record or person moves others."""
    found = []
    with small_parts():
        for table in chosen:
            for name in doors:
                if why := broken(DOORS[name], table, folder):
                    found.append(f"{name}, {table.name} ({table.plan}, {table.clip}): {why}")
    return found


def failures_by_night(doors: Sequence[str], part: int, folder: Path) -> list[str]:
    """Try one of ``NIGHT_PARTS`` parts of all tables at these doors; in a slice of the night at every other door."""
    return failures(sized(doors[part % 2 :: 2], doors), TABLES[part::NIGHT_PARTS], folder)
