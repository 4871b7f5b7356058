"""No record and no person decides whether a party has sums: every door, with hostile records and persons by day.

Files for the night try every table: ``test_doors_measure``, ``test_doors_partitioned`` and ``test_doors_others``.
"""

from pathlib import Path

import pytest

from tests.intake import containers_fuzz as fuzz
from tests.intake.containers import NotHeldError, Table
from tests.intake.door_law import TABLES, failures, small_parts
from tests.intake.doors import DOORS, Door, outcome

TURNS = len({table.name.rpartition(", ")[2] for table in TABLES})
OTHERS = [name for name in DOORS if not name.startswith("measure: ")]


@pytest.mark.parametrize("part", range(12))
def test_no_record_and_no_person_decides_whether_a_door_has_sums(part: int, tmp_path: Path) -> None:
    """Each hostile value under one plan and unit, at every sixth door; the night tries the others."""
    chosen = [table for place, table in enumerate(TABLES) if place % (TURNS + 1) == 0]
    for place in range(part, len(chosen), 12):
        assert failures(OTHERS[place % 6 :: 6], chosen[place : place + 1], tmp_path) == []


def test_every_door_has_sums_of_some_table(tmp_path: Path) -> None:
    """The doors are tried by tables that they hold, and not refused all."""
    calm = [table for table in TABLES if table.name.startswith("rows")]
    with small_parts():
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
