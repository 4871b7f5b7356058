"""Every hostile record and person at ``private_release``, engines and SQL; ``test_doors`` tries some by day."""

from pathlib import Path

import pytest

from tests.intake.door_law import NIGHT_PARTS, failures_by_night
from tests.intake.doors import DOORS

NAMES = [name for name in DOORS if not name.startswith(("measure: ", "Partitioned: "))]


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(NIGHT_PARTS))
def test_no_record_and_no_person_decides_under_any_plan(part: int, tmp_path: Path) -> None:
    assert failures_by_night(NAMES, part, tmp_path) == []
