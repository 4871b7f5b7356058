"""The table of statistics: what follows from a row, and that nothing follows from a letter without one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import default_shares, joint_mu
from privstats.encoding import flatten, layout_of
from privstats.errors import PlanError, PrivstatsError, SchemaError
from privstats.kinds import classes as schema_module
from privstats.kinds.classes import CLASS_TABLE
from privstats.kinds.ridge import RIDGE_TABLE
from privstats.schema.base import COUNT_SCALE, Statistic, by_letter
from privstats.testing import schemas

THIRD = Statistic("U", "class", ("feature", "feature", "feature"), (3, 0), meaning="third moments of each class")


@given(schemas())
def test_every_wire_entry_of_a_record_stays_within_its_bound(schema: ps.ClassSchema | ps.RidgeSchema) -> None:
    """One worst-case record, measured: no entry of the flat vector exceeds its segment's bound."""
    d = schema.features
    corner = np.full((1, d), schema.clip_norm / np.sqrt(d))
    axis = np.eye(1, d) * schema.clip_norm
    for rows in (corner, axis):
        if isinstance(schema, ps.ClassSchema):
            moments = ps.measure(schema, rows, np.zeros(1, int))
        else:
            moments = ps.measure(schema, rows, np.full((1, schema.targets), schema.target_bound / schema.targets**0.5))
        vector = flatten(moments)
        for segment, where in zip(layout_of(schema).segments, layout_of(schema).slices, strict=True):
            assert np.abs(vector[where]).max() <= segment.bound


@given(schemas())
def test_layout_has_exactly_the_entries_of_the_rows(schema: ps.ClassSchema | ps.RidgeSchema) -> None:
    sizes = schema.sizes
    assert layout_of(schema).size == sum(row.blocks(sizes) * row.entries(sizes) for row in schema.sent)
    assert {segment.statistic for segment in layout_of(schema).segments} == set(schema.statistics)


@given(st.integers(2, 20))
def test_bounds_and_scales_follow_from_the_degree(grid_bits: int) -> None:
    steps = 1 << grid_bits
    bounds = {row.letter: row.bound(steps) for row in (*CLASS_TABLE, *RIDGE_TABLE)}
    square = steps * steps
    powers = {"T": square * steps, "F": square * square}
    assert bounds == {"N": COUNT_SCALE, "A": steps, **dict.fromkeys("BSDGhq", square), **powers}
    assert THIRD.bound(steps) == steps**3  # not steps**2, as every statistic but N and A once had
    assert THIRD.scale(8.0) == 512.0


def test_a_letter_that_another_implies_is_computed_from_it() -> None:
    implied = [row.letter for row in CLASS_TABLE if row.implied_by]
    exact = ps.measure(ps.ClassSchema(3, 4, "NAS", 1.0), np.full((2, 4), 0.1), [0, 1])
    assert implied
    assert [letter for sums in (exact, exact.real()) for letter in implied if getattr(sums, letter) is None] == []


def test_a_letter_without_a_row_is_refused_everywhere() -> None:
    schema = ps.ClassSchema(3, 4, "NAB", 1.0)
    object.__setattr__(schema, "statistics", "NAX")
    vars(schema).pop("sent")  # cached when the schema was checked
    for derive in (
        lambda: schema.sent,
        lambda: schema.bound,
        lambda: schema.scale_of("X"),
        lambda: layout_of(schema),
        lambda: default_shares(schema),
        lambda: joint_mu(schema, {"X": 1.0}, "add-remove"),
        lambda: ps.measure(schema, np.ones((2, 4)), [0, 1]),
    ):
        with pytest.raises(PrivstatsError, match="X"):
            derive()


def test_a_row_without_a_proof_or_a_sum_is_refused_not_silently_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Third moments, described in the table but nowhere else: no plan can be built and nothing can be measured."""
    table = (*CLASS_TABLE, THIRD)
    monkeypatch.setattr(ps.ClassSchema, "table", table)
    monkeypatch.setattr(schema_module, "CLASS_STATISTICS", "".join(row.letter for row in table))
    schema = ps.ClassSchema(3, 4, "NAU", 1.0, grid_bits=8)
    assert [segment.bound for segment in layout_of(schema).segments] == [COUNT_SCALE, 2**8, 2**24]
    assert layout_of(schema).segments[-1].size == 3 * 4**3
    for adjacency in ("add-remove", "replace-one"):
        with pytest.raises(PlanError, match="no sensitivity is proved for statistic U"):
            joint_mu(schema, {"N": 1.0, "A": 1.0, "U": 1.0}, adjacency)
    with pytest.raises(SchemaError, match="no sum for statistic U"):
        ps.measure(schema, np.ones((2, 4)), [0, 1])
    with pytest.raises(PlanError, match="proved for U,"):
        ps.Plan(
            schema=schema,
            cohort=ps.Cohort(clients=4, min_survivors=3, max_records=50),
            privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5),
        )


def test_by_letter_keeps_the_order_asked_for() -> None:
    assert [row.letter for row in by_letter(CLASS_TABLE, "SN")] == ["S", "N"]
    with pytest.raises(SchemaError, match="'Z'"):
        by_letter(RIDGE_TABLE, "GZ")
