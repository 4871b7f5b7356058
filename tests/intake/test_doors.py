"""No record and no person decides whether a party has sums: every door, with every hostile record and person."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dask
import pytest

from privstats.contrib.parts import tables as parts_of_tables
from tests.intake import containers_fuzz as fuzz
from tests.intake.containers import NotHeldError, Table
from tests.intake.doors import DOORS, Door, outcome, tables
from tests.lengths import sized

TABLES = list(tables())
TURNS = len({table.name.rpartition(", ")[2] for table in TABLES})
MEASURED = [name for name in DOORS if name.startswith("measure: ")]
OTHERS = [name for name in DOORS if name not in MEASURED]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask in this process, and DuckDB in parts of a few rows."""
    monkeypatch.setattr(parts_of_tables, "_RECORDS_OF_PART", 3)
    with dask.config.set(scheduler="synchronous"):
        yield


def broken(door: Door, table: Table, folder: Path) -> str | None:
    """How a hostile record or person moves others at a door; "" if it does not, None where it does not fit in."""
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
    """The sums of all records in one process, without a container's own types."""
    name = "mapping" if fuzz.PLANS[table.plan].reads == "counts" else "list"
    found = fuzz.outcome(name, table.both, table, Path())
    assert not found.refusal, found.refusal
    return found.sums


def failures(doors: Sequence[str], chosen: Sequence[Table], folder: Path) -> list[str]:
    found = []
    with warnings.catch_warnings(action="ignore"):
        for table in chosen:
            for name in doors:
                if why := broken(DOORS[name], table, folder):
                    found.append(f"{name}, {table.name} ({table.plan}, {table.clip}): {why}")
    return found


@pytest.mark.parametrize("part", range(12))
def test_no_record_and_no_person_decides_whether_a_door_has_sums(part: int, tmp_path: Path) -> None:
    """Each hostile value under one plan and unit, at every third door."""
    chosen = [table for place, table in enumerate(TABLES) if place % (TURNS + 1) == 0]
    for place in range(part, len(chosen), 12):
        assert failures(OTHERS[place % 3 :: 3], chosen[place : place + 1], tmp_path) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(40))
def test_no_record_and_no_person_decides_under_any_plan(part: int, tmp_path: Path) -> None:
    """Every table at every door; in a slice of the night at every other door."""
    names = list(DOORS)
    assert failures(sized(names[part % 2 :: 2], names), TABLES[part::40], tmp_path) == []


def test_every_door_has_sums_of_some_table(tmp_path: Path) -> None:
    """The doors are tried by tables that they hold, and not refused all."""
    calm = [table for table in TABLES if table.name.startswith("rows")]
    with warnings.catch_warnings(action="ignore"):
        missing = set(DOORS)
        for table in calm:
            missing -= {name for name in missing if _sums(DOORS[name], table, tmp_path)}
    assert missing == set()


def _sums(door: Door, table: Table, folder: Path) -> bool:
    if fuzz.PLANS[table.plan].reads not in door.reads:
        return False
    try:
        return not outcome(door, table.both, table, folder).refusal
    except NotHeldError:
        return False
