"""What a party reads of its own records before it takes part."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.party_facts import record_facts, time_facts
from tests.hazard.worlds import in_months

COURSE = """
import privstats as ps
from pathlib import Path

HERE = Path(__file__).parent
TABLE = {"months": [0, 3, 6, 12], "died": [0, 1, 0, 1], "age": [50, 60, 70, 80]}


def load():
    (HERE / "ward.csv").write_text("months,died,age\\n0,0,50\\n3,1,60\\n6,0,70\\n12,1,80\\n")
    return %s
"""
SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"max_records_per_person": 2, "person_clip": 2}, "2; 1 are clipped to the weight of 2"),
        ({"person_clip": "average"}, "2, each counted by the average of the rows"),
    ],
)
def test_a_party_reads_how_many_persons_it_has_and_how_many_are_shrunk(held: dict[str, Any], said: str) -> None:
    privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, **held)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 3, 100), privacy=privacy)
    ids = ["anna"] * 9 + ["ben"]
    moments = ps.measure(SCHEMA, np.full((10, 2), 0.6), [0] * 10, persons=ids, person_clip=plan.person_clip)
    facts = record_facts(SimpleNamespace(moments=moments))  # type: ignore[arg-type]
    assert (facts["records"], facts["persons"]) == (10, said)


@pytest.mark.parametrize("loaded", ["(TABLE, None)", "ps.moments.RecordFile('ward.csv')"])
@pytest.mark.parametrize("unit", [None, 1.0])
def test_a_party_of_a_course_of_hazards_reads_that_its_times_are_whole(tmp_path: Path, loaded: str, unit: Any) -> None:
    schema = in_months(unit)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    (tmp_path / "records.py").write_text(COURSE % loaded)
    folder = SimpleNamespace(above=SimpleNamespace(course=None), base=tmp_path)
    records: Any = SimpleNamespace(folder=folder)
    assert time_facts(records) == {}
    folder.above.course = ps.Hazard.start(schema, ps.Cohort(2, 2, 100), privacy)
    folder.plan = folder.above.course.first
    said = time_facts(records).get("times", "")
    assert ("all are integers; if they are rounded down" in said) == (unit is None)
