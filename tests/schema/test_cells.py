"""What a schema refuses of a declared table."""

import pytest

import privstats as ps
from tests.made import refused

CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m"))), signs=2)
USUAL = {"classes": 2, "features": 6, "statistics": "NAB", "clip_norm": 1.0, "transform": (CELLS,)}
UNIT = ps.transforms.UnitNorm()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"transform": (UNIT, CELLS)}, "Cells must be the first map"),
        ({"transform": (CELLS, CELLS)}, "Cells must be the first map"),
        ({"nonnegative": True}, "nonnegative must be False: rows of Cells have negative entries"),
        ({"grid_bits": 10}, "grid_bits must be at least 12, the bits of Cells"),
        ({"feature_names": ("age", "sex")}, "feature_names must be omitted: Cells names the input"),
        (
            {"transform": (CELLS, ps.transforms.Transport(6, "ab" * 32, 0.4))},
            "no map fitted on client records may follow",
        ),
        ({"features": 4}, "transform returns 6 features but features=4"),
    ],
)
def test_where_cells_cannot_stand(changes, said):
    with pytest.raises(ps.SchemaError, match=said):
        ps.ClassSchema(
            **{"classes": 2, "features": 6, "statistics": "NAB", "clip_norm": 1.0, "transform": (CELLS,), **changes}
        )


def test_a_plan_with_cells_is_its_file():
    schema = ps.ClassSchema(2, 6, "NAB", 1.0, transform=(CELLS, UNIT), grid_bits=10)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 1000), privacy=ps.NoPrivacy())
    text = plan.to_toml()
    assert (ps.Plan.from_toml(text), ps.Plan.from_toml(text).digest) == (plan, plan.digest)
    assert 'kind = "cells"' in text
    by_hand = text.replace("edges = [\n    40.0,\n    65.0,\n]", "edges = [40, 65]")
    assert by_hand != text
    assert ps.Plan.from_toml(by_hand).digest == plan.digest


CONSTANT = ps.transforms.ConstantFeature(1.0)
FIELDS = {
    ps.ClassSchema: {"classes": 2, "statistics": "NAB", "clip_norm": 1.0},
    ps.RidgeSchema: {"clip_norm": 1.0, "target_bound": 1.0},
    ps.MeanSchema: {"clip_norm": 1.0},
    ps.SitesSchema: {"clip_norm": 1.0},
    ps.ScoreSchema: {"clip_norm": 1.0},
    ps.WithinSchema: {"classes": 2, "clip_norm": 1.0, "pull": 1.0, "n_max": 20},
    ps.PartySchema: {"classes": 2},
    ps.PartyUpdateSchema: {"classes": 2},
    ps.GaussianSchema: {"clip_norm": 1.0, "shrinkage": 0.1, "rounds": 2},
    ps.GradientSchema: {"classes": 2, "residual_norm": 0.3, "expected_records": 100, "course_mu": 1.0},
    ps.CalibrationSchema: {"classes": 2, "expected_records": 100, "course_mu": 1.0},
}


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_features_follow_from_declared_columns_and_from_nothing_else(kind):
    """They may be left out, or given alike; and what else is asked for is asked for in one sentence."""
    known = FIELDS[kind]
    schema = kind(**known, transform=(CELLS,))
    width = CELLS.width + schema.appended
    assert (schema.features, schema) == (width, kind(**known, transform=(CELLS,), features=width))
    refused(ps.SchemaError, "features=9", kind, **known, transform=(CELLS,), features=9)
    for maps in ((), (UNIT,)):
        refused(ps.SchemaError, "features must be given: only a declaration of columns", kind, **known, transform=maps)


def test_features_count_what_maps_behind_the_columns_add():
    schema = ps.RidgeSchema(clip_norm=2**0.5, target_bound=1.0, transform=(CELLS, CONSTANT))
    assert schema.features == CELLS.width + 1


def test_what_has_no_default_is_asked_for_by_name():
    with pytest.raises(ps.SchemaError, match="ClassSchema lacks statistics, clip_norm; there is no default on purpose"):
        ps.ClassSchema(2, transform=(CELLS,))
