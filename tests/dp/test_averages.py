"""A person whose rows are averaged costs what one record costs, however many rows there are."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import averaged_mu, joint_mu
from privstats.encoding import PersonAverage, flatten, layout_of
from privstats.errors import DataError, PlanError
from privstats.schema.public_values import Published, Values
from tests import made
from tests.made import refused

ADJACENCIES = ("add-remove", "replace-one")
CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)
COUNTS = ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 40, 60))), (("sex", "age"), ("age",)))
NUMBERS = ps.CountSchema(
    COUNTS.variables,
    COUNTS.tables,
    numbers=(ps.Number("hours", 0, 80), ps.Number("cost", 0, 9, by=("sex",)), ps.Number("dose", -1, 1, missing=True)),
)
EFFECT = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.3)
OVERLAP = ps.EffectSchema.of(
    {"age": (20, 90)},
    treatment="arm",
    outcome=(0, 1),
    trim=0.1,
    estimand="overlap",
    subgroups=(ps.Bins("age", (20, 50, 90)),),
)
SUMMED: tuple[Any, ...] = (
    CLASSES,
    ps.ClassSchema(2, 3, "NAS", 2.0, grid_bits=6),
    ps.ClassSchema(2, 3, "NABD", 2.0, nonnegative=True),
    ps.RidgeSchema(3, 2, clip_norm=1.0, target_bound=4.0, folds=2),
    ps.MeanSchema(3, 1.0, grid_bits=6),
    COUNTS,
    NUMBERS,
    ps.ScoreSchema(3, 1.0, errors="model"),
    ps.ScoreSchema(3, 1.0, family="poisson", target_bound=9, errors="model"),
    ps.ScoreSchema(3, 1.0, family="poisson", target_bound=9),
    ps.GradientSchema(3, 2, residual_norm=0.3, expected_records=100, course_mu=1.0),
    ps.CalibrationSchema(3, 4, expected_records=100, course_mu=1.0),
    EFFECT,
    OVERLAP,
)


def plan_of(schema: Any, said: Published | None = None, **changes: Any) -> ps.Plan:
    terms = {"unit": "person", "person_clip": "average", **changes}
    needs = Published("1" * 64) if schema.needs and said is None else said
    return made.plan(schema, ps.Cohort(3, 3, 1000), made.promise(**terms), published=needs)


def published(schema: Any, rng: np.random.Generator) -> Published | None:
    if not schema.needs:
        return None
    return Published.of(
        {name: Values.rounded(0.5 * rng.standard_normal(shape)) for name, shape in schema.needs.items()}
    )


def rows_of(schema: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of one person: alike, of one line or of none, at most as long as the bounds or far beyond."""
    if schema.task == "counts":
        numbers = {"hours": (0.0, 80.0, 33.0), "cost": (0.0, 9.0, 7.1), "dose": (-1.0, 1.0, math.nan)}
        read = {name: rng.choice(values, n) for name, values in numbers.items() if schema.numbers}
        return {"sex": rng.choice(["f", "m"], n), "age": rng.choice([1.0, 50.0, 70.0, -2.0], n), **read}, None
    if schema.task == "effect":
        return np.c_[rng.uniform(20, 90, n), rng.integers(0, 2, n)], rng.uniform(-1, 2, n)
    base, spread = rng.standard_normal(schema.features), rng.choice([0.0, 0.1, 10.0])
    X = (base + spread * rng.standard_normal((n, schema.features))) * rng.choice([0.01, 1.0, 100.0])
    if schema.task == "ridge":
        return X, rng.standard_normal((n, 2)) * 3
    return X, rng.integers(0, 2, n) * rng.integers(0, 2)


def added(schema: Any, X: Any, y: Any, said: Published | None) -> np.ndarray:
    n = len(next(iter(X.values()))) if isinstance(X, dict) else len(X)
    found = ps.moments.exact_moments(
        schema, X, y, persons=["only"] * n, person_clip=PersonAverage(), published=said, unreadable="leave out"
    )
    return flatten(found)


def far(schema: Any, sigma: Any, moved: np.ndarray) -> float:
    """mu of a change of the sums, by the noise alone."""
    layout = layout_of(schema)
    levels = [sigma[each.statistic] * each.scale * each.noise_factor for each in layout.segments]
    parts = zip(levels, layout.slices, strict=True)
    return math.sqrt(math.fsum(float(((moved[place] / level) ** 2).sum()) for level, place in parts))


@settings(deadline=None)
@given(
    schema=st.sampled_from(SUMMED),
    sizes=st.tuples(st.integers(0, 12), st.integers(0, 12)),
    levels=st.lists(st.floats(-2, 2), min_size=4, max_size=4),
    seed=st.integers(0, 2**32),
)
@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
def test_no_average_and_no_exchange_of_averages_passes_the_bound(schema, sizes, levels, seed):
    """Whatever the noise of each statistic is, and whatever was published."""
    rng = np.random.default_rng(seed)
    said = published(schema, rng)
    sigma = {s: 10**level for s, level in zip(schema.statistics, levels, strict=False)}
    one, other = (added(schema, *rows_of(schema, n, rng), said) for n in sizes)
    add, swap = (averaged_mu(schema, sigma, adjacency) for adjacency in ADJACENCIES)
    assert far(schema, sigma, one) <= add * (1 + 1e-12)
    assert far(schema, sigma, one - other) <= swap * (1 + 1e-12)


@pytest.mark.parametrize("schema", SUMMED, ids=lambda schema: schema.task)
def test_it_costs_what_one_record_costs(schema: Any) -> None:
    """And an exchange little more than one of records: on usual grids the cut adds less than a part in a hundred."""
    sigma = {s: ps.dp.sensitivity(schema, s, "add-remove") for s in schema.statistics}
    assert averaged_mu(schema, sigma, "add-remove") == joint_mu(schema, sigma, "add-remove")
    records = joint_mu(schema, sigma, "replace-one")
    more = averaged_mu(schema, sigma, "replace-one") / records
    coarse = getattr(schema, "grid_bits", 12) < 8
    assert 1 <= more < (1.3 if coarse or schema.task == "gradients" else 1.01)


@pytest.mark.parametrize("levels", [(0, 0, 0), (0, -1, 0), (0, 0, -1), (1, 0, 0)])
def test_no_two_persons_with_numbers_pass_the_bound_and_some_come_near(levels: Any) -> None:
    """Counts beside numbers had the bound of opposed vectors, with a sixth to a fourth more noise than it needs."""
    sigma = {s: 10.0**level for s, level in zip(NUMBERS.statistics, levels, strict=True)}
    cells = itertools.product(("f", "m"), (1.0, 50.0), (0.0, 40.0, 80.0), (0.0, 4.5, 9.0), (-1.0, 0.0, 1.0, math.nan))
    rows = [dict(zip(("sex", "age", "hours", "cost", "dose"), map(np.array, zip(row)), strict=True)) for row in cells]
    alone = [added(NUMBERS, row, None, None) for row in rows]
    lone = [*alone, np.zeros_like(alone[0])]
    bound = averaged_mu(NUMBERS, sigma, "replace-one")
    layout = layout_of(NUMBERS)
    levels_of = [np.full(each.size, sigma[each.statistic] * each.scale) for each in layout.segments]
    scaled = np.stack(lone) / np.concatenate(levels_of)
    found = max(float(np.linalg.norm(scaled - each, axis=1).max()) for each in scaled)
    assert 0.97 * bound <= found <= bound
    rng = np.random.default_rng(0)
    for _ in range(40):
        mixed = [
            {name: np.concatenate([row[name] for row in chosen]) for name in rows[0]}
            for chosen in ([rows[place] for place in rng.integers(0, len(rows), rng.integers(1, 6))] for _ in range(2))
        ]
        one, other = (added(NUMBERS, each, None, None) for each in mixed)
        assert far(NUMBERS, sigma, one - other) <= bound


def test_counts_alone_cost_what_they_did() -> None:
    """Their records are as far apart as any vectors of their lengths, so that plans keep their noise."""
    assert averaged_mu(COUNTS, {"T": 3.0}, "replace-one") == pytest.approx(joint_mu(COUNTS, {"T": 3.0}, "replace-one"))


@pytest.mark.parametrize("schema", SUMMED[:6], ids=lambda schema: schema.task)
def test_many_equal_rows_are_one_row(schema: Any) -> None:
    """So the bound of a record is attained, in every statistic."""
    X, y = rows_of(schema, 1, np.random.default_rng(0))
    if isinstance(X, dict):
        many: Any = {name: np.repeat(column, 7) for name, column in X.items()}
    else:
        many = np.repeat(X, 7, axis=0)
    again = added(schema, many, None if y is None else np.repeat(y, 7, axis=0), None)
    np.testing.assert_array_equal(again, added(schema, X, y, None))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("schema", [ps.ClassSchema(2, 5, "NAD", 1.0, grid_bits=8), COUNTS], ids=["classes", "counts"])
def test_a_pure_promise_has_the_scales_of_a_record(schema: Any, adjacency: Any) -> None:
    averaged = plan_of(schema, delta=0, adjacency=adjacency).noise
    record = plan_of(schema, delta=0, adjacency=adjacency, unit="record", person_clip=None).noise
    assert (averaged.scales, averaged.rows) == (record.scales, record.rows)


@settings(deadline=None)
@given(sizes=st.tuples(st.integers(0, 9), st.integers(0, 9)), seed=st.integers(0, 2**32), counts=st.booleans())
def test_no_average_passes_the_distance_that_laplace_noise_pays(sizes: tuple[int, int], seed: int, counts: bool):
    schema: Any = COUNTS if counts else ps.ClassSchema(2, 5, "NAD", 1.0, grid_bits=8)
    rng = np.random.default_rng(seed)
    one, other = (added(schema, *rows_of(schema, n, rng), None) for n in sizes)
    for segment, place in zip(layout_of(schema).segments, layout_of(schema).slices, strict=True):
        moved = int(np.abs(one[place]).sum()), int(np.abs(one[place] - other[place]).sum())
        for found, adjacency in zip(moved, ADJACENCIES, strict=True):
            assert found <= ps.dp.l1_sensitivity(schema, segment.statistic, adjacency)


def test_sums_of_which_nobody_knows_how_many_rows_are_no_average() -> None:
    """Undivided they would cost as many records as there are rows."""
    schema = ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0)
    unknown = ps.encoding.unflatten(schema, flatten(ps.measure(schema, [[0.5, 0.5]] * 3, [1.0] * 3)))
    refused(DataError, "no number of records", PersonAverage().clipped, unknown)


def test_rows_whose_sums_pass_64_bits_have_the_exact_average() -> None:
    """In parts, as those of one person of so many rows are measured."""
    schema = ps.ClassSchema(2, 3, "NA", 1.0)
    parts = [ps.measure(schema, np.full((n, 3), value), [0] * n) for n, value in ((3, 0.3), (4, -0.5), (2, 0.1))]
    found, shrunk = PersonAverage().clipped(*parts)
    totals = sum(part.A[0, 0] for part in parts)
    assert (found["A"][0, 0], found["N"].tolist()) == (math.trunc(Fraction(int(totals), 9)), [4096, 0])
    assert not shrunk


@pytest.mark.parametrize(
    "schema",
    [
        ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=0.5, groups=6),
        ps.EffectSchema(6, 1.0, outcome=(0.0, 1.0), probability=(0.5, 0.4, 0.5)),
    ],
    ids=["groups", "chances"],
)
def test_sites_that_sum_in_their_own_way_average_nobody(schema: Any) -> None:
    refused(PlanError, "groups of sites, and sites that differ in their probability, sum single rows", plan_of, schema)
