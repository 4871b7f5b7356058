"""What a party reads of its own records before it takes part."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.party_facts import record_facts

SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"max_records_per_person": 2, "person_clip": 2}, "2, of whom 1 are shrunk to the weight of 2"),
        ({"person_clip": "average"}, "2, of each of whom the average counts"),
    ],
)
def test_a_party_reads_how_many_persons_it_has_and_how_many_are_shrunk(held: dict[str, Any], said: str) -> None:
    privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, **held)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 3, 100), privacy=privacy)
    ids = ["anna"] * 9 + ["ben"]
    moments = ps.measure(SCHEMA, np.full((10, 2), 0.6), [0] * 10, persons=ids, person_clip=plan.person_clip)
    facts = record_facts(SimpleNamespace(moments=moments))  # type: ignore[arg-type]
    assert (facts["records"], facts["persons"]) == (10, said)
