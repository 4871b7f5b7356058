"""What a schema refuses of a declared table."""

from __future__ import annotations

import pytest

import privstats as ps
from privstats.errors import SchemaError

CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m"))), signs=2)
USUAL = {"classes": 2, "features": 6, "statistics": "NAB", "clip_norm": 1.0, "transform": (CELLS,)}
UNIT = ps.transforms.UnitNorm()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"transform": (UNIT, CELLS)}, "Cells must be the first map"),
        ({"transform": (CELLS, CELLS)}, "Cells must be the first map"),
        ({"nonnegative": True}, "nonnegative must be False: the signs of Cells are negative"),
        ({"grid_bits": 10}, "grid_bits must be at least 12, the bits of Cells"),
        ({"feature_names": ("age", "sex")}, "feature_names must be left out: Cells names the columns"),
        (
            {"transform": (CELLS, ps.transforms.Transport(6, "ab" * 32, 0.4))},
            "no map of one client's records may follow",
        ),
        ({"features": 4}, "transform gives 6 features but features=4"),
    ],
)
def test_where_cells_cannot_stand(changes, said):
    with pytest.raises(SchemaError, match=said):
        ps.ClassSchema(
            **{"classes": 2, "features": 6, "statistics": "NAB", "clip_norm": 1.0, "transform": (CELLS,), **changes}
        )


def test_a_plan_with_cells_is_its_file():
    schema = ps.ClassSchema(2, 6, "NAB", 1.0, transform=(CELLS, UNIT), grid_bits=10)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 1000), privacy=ps.NoPrivacy())
    text = plan.to_toml()
    assert ps.Plan.from_toml(text) == plan
    assert ps.Plan.from_toml(text).digest == plan.digest
    assert 'kind = "cells"' in text
    by_hand = text.replace("edges = [\n    40.0,\n    65.0,\n]", "edges = [40, 65]")
    assert by_hand != text
    assert ps.Plan.from_toml(by_hand).digest == plan.digest
