"""Every hostile record and person at each container of ``measure``; ``test_doors`` tries some by day."""

from pathlib import Path

import pytest

from tests.intake.door_law import NIGHT_PARTS, failures_by_night
from tests.intake.doors import DOORS

NAMES = [name for name in DOORS if name.startswith("measure: ")]


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(NIGHT_PARTS))
def test_no_record_and_no_person_decides_under_any_plan(part: int, tmp_path: Path) -> None:
    assert failures_by_night(NAMES, part, tmp_path) == []
