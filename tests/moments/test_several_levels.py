"""A column of several texts becomes columns of 0 and 1, which add at most 1 to a row's squared norm."""

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course.effect import propensity_schema
from privstats.errors import SchemaError, UnreadableRecordsWarning
from privstats.inference.releases import column_names
from privstats.moments import quantize
from privstats.printable import levels_text
from privstats.schema.public_values import Published, Values
from privstats.transforms import Levels, apply
from tests import made
from tests.made import refused

pandas = pytest.importorskip("pandas")

SMOKING = ("never", "former", "current")
COLUMNS: dict[str, Any] = {"age": (20, 90), "smoking": SMOKING, "sex": ("female", "male")}


def effect(columns: dict[str, Any] = COLUMNS, **design: Any) -> ps.EffectSchema:
    design = {"probability": 0.5, **design}
    return ps.EffectSchema.of(columns, treatment={"arm": ("placebo", "drug")}, outcome=(0, 1), **design)


def table(n: int) -> Any:
    rng = np.random.default_rng(n)
    texts = {"smoking": SMOKING, "sex": ("female", "male"), "arm": ("placebo", "drug")}
    drawn = {name: rng.choice(each, n) for name, each in texts.items()}
    return pandas.DataFrame({"age": rng.uniform(20, 90, n), **drawn}), rng.integers(0, 2, n)


def sums(schema: Any, X: Any, y: Any) -> dict[str, Any]:
    said = {name: Values.rounded(np.full(shape, 0.1)) for name, shape in schema.needs.items()}
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        found: Any = ps.measure(schema, X, y, published=Published.of(said) if said else None, unreadable="leave out")
    return {"records": found.records} | {row.letter: np.asarray(found.sums(row)).tolist() for row in schema.sent}


def test_each_text_but_the_first_is_a_column_and_further_ones_stand_behind() -> None:
    schema = effect()
    levels = schema.transform[0]
    assert isinstance(levels, Levels)
    assert (levels.spread, schema.features, schema.clip_norm) == ((1,), 10, 2.0)
    rows = apply((levels,), np.array([[50.0, 0, 1, 0], [50.0, 1, 0, 1], [50.0, 2, 0, 1]]))
    assert rows.tolist() == [[50, 0, 1, 0, 0], [50, 1, 0, 1, 0], [50, 0, 0, 1, 1]]
    assert column_names(schema, 5) == ("age", "smoking: former", "sex", "arm", "smoking: current")
    assert "in smoking 'never' is what 'former', 'current' are compared with" in levels_text(levels)


@given(st.integers(2, 16), st.integers(2, 16), st.floats(-1, 1))
def test_levels_cost_no_norm(first: int, second: int, age: float) -> None:
    """No record inside its ranges is cut, whatever its texts are: the clip, and so the noise, is that of two texts."""
    texts = [tuple(map(str, range(each))) for each in (first, second)]
    schema = effect({"age": (-1, 1), "a": texts[0], "b": texts[1]})
    assert schema.clip_norm == 2.0
    codes = itertools.product([age, 1.0], range(first), range(second), (0, 1))
    mapped = apply(schema.transform, np.array(list(codes), np.float64))
    assert np.linalg.norm(mapped, axis=1).max() <= schema.clip_norm


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2))
def test_whatever_comes_in_a_row_is_clipped(row: list[float]) -> None:
    """Whatever stands where a code belongs, no row is longer than the clip norm; what is no code has no row."""
    levels = Levels((ps.Categories("a", ("x", "y", "z")),), (), (0,))
    schema = ps.HazardSchema(
        4,
        2.0,
        bins=ps.Bins("t", (0, 1, 2)),
        event="e",
        feature_names=("a", "b"),
        transform=(levels, ps.transforms.ConstantFeature(1.0)),
    )
    mapped = apply(schema.transform, np.array([row]))
    if row[0] not in (0, 1, 2):
        assert np.isnan(mapped[0, [0, 2]]).all()
    elif np.isfinite(mapped).all():
        assert np.square(quantize(schema, np.array([row]))).sum() <= schema.grid_steps**2


def test_texts_are_the_columns_that_one_would_code_by_hand() -> None:
    """A third text beyond the first costs a column, and the sums are those of columns of 0 and 1."""
    frame, y = table(200)
    schema = effect()
    by_hand = {"age": (20, 90), "smoking": (-1, 1), "sex": (0, 1), "current": (-1, 1)}
    coded = ps.EffectSchema.of(by_hand, treatment="arm", outcome=(0, 1), probability=0.5, clip_norm=2.0)
    numbers = pandas.DataFrame(
        {
            "age": frame["age"],
            "smoking": (frame["smoking"] == "former") * 1.0,
            "sex": (frame["sex"] == "male") * 1.0,
            "current": (frame["smoking"] == "current") * 1.0,
            "arm": (frame["arm"] == "drug") * 1.0,
        }
    )
    assert sums(schema, frame, y) == sums(coded, numbers, y)
    design = {"probability": None, "estimand": "overlap", "trim": 0.1}
    score = propensity_schema(effect(**design))
    assert sums(score, frame, y)["records"] == 200


@pytest.mark.parametrize("value", ["Never", None, "0", 0, 1, 2, "ex"])
def test_any_other_value_leaves_its_record_out_and_moves_no_other(value: Any) -> None:
    frame, y = table(40)
    frame["smoking"] = frame["smoking"].astype(object)
    frame.loc[7, "smoking"] = value
    rest = np.arange(40) != 7
    assert sums(effect(), frame, y) == sums(effect(), frame[rest], y[rest])


def test_subgroups_may_be_of_several_texts() -> None:
    by = ps.Categories("smoking", ("current", "never", "former"))
    frame, y = table(90)
    found = sums(effect(subgroups=(by,)), frame, y)
    assert found["N"] == [int((frame["smoking"] == each).sum()) for each in by.values]


def test_a_plan_with_several_texts_is_read_back_and_one_of_two_keeps_its_table() -> None:
    course = ps.Effect.start(effect(), ps.Cohort(2, 2, 1_000), made.promise(epsilon=3.0))
    assert ps.Plan.from_toml(course.plan.to_toml()) == course.plan
    assert "spread = [" in course.plan.to_toml()
    two = {"age": (20, 90), "sex": ("female", "male")}
    assert "spread" not in ps.Effect.start(effect(two), ps.Cohort(2, 2, 1_000), made.promise()).plan.to_toml()


@pytest.mark.parametrize("spread", [(), (0,), (2,), (1, 1), (-1,), (1.0,), "1"])
def test_other_places_are_refused(spread: Any) -> None:
    levels = (ps.Categories("smoking", SMOKING),)

    def built() -> ps.HazardSchema:
        maps = (Levels(levels, (), spread), ps.transforms.ConstantFeature(1.0))
        return ps.HazardSchema(
            4, 2.0, bins=ps.Bins("t", (0, 1, 2)), event="e", feature_names=("age", "smoking"), transform=maps
        )

    refused(SchemaError, "spread", built)


def test_no_arm_and_no_crossed_column_has_several_texts() -> None:
    maps = (Levels((ps.Categories("arm", SMOKING),), (), (1,)), ps.transforms.ConstantFeature(1.0))
    arm = {"outcome": (0, 1), "probability": 0.5, "feature_names": ("age", "arm")}
    with pytest.raises(SchemaError, match="must be a column of 0 and 1, or of two texts"):
        ps.EffectSchema(6, 2.0, transform=(*maps, ps.transforms.ByArm(1)), **arm)
    grades = Levels((), (ps.Categories("well", SMOKING),))
    goal = {**arm, "outcome_names": ("well",)}
    with pytest.raises(SchemaError, match="must hold numbers, or two texts"):
        ps.EffectSchema(4, 2.0, transform=(grades, maps[1], ps.transforms.ByArm(1)), **goal)
    hazards = ps.HazardSchema(
        4, 2.0, bins=ps.Bins("t", (0, 1, 2)), event="e", feature_names=("age", "arm"), transform=maps
    )
    refused(SchemaError, "'arm' has 3 texts", hazards.counted, "arm")


def hazards(n: int, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """Persons whose rate follows smoking; one in twelve smokes."""
    truth = np.array([0.3, 0.4, 0.9])  # arm, former, current
    smoking, arm = rng.choice(3, n, p=[0.6, 0.32, 0.08]), rng.integers(0, 2, n)
    rate = 0.05 * np.exp(truth[0] * arm + np.array([0, *truth[1:]])[smoking])
    time, left = rng.exponential(1 / rate), rng.uniform(0, 24, n)
    frame = {"arm": np.array(["placebo", "drug"])[arm], "smoking": np.array(SMOKING)[smoking]}
    return {**frame, "months": np.minimum(time, left), "died": (time <= left) * 1}, truth


def test_hazard_ratios_name_each_text_and_hold_what_is_true() -> None:
    levels = Levels((ps.Categories("arm", ("placebo", "drug")), ps.Categories("smoking", SMOKING)), (), (1,))
    maps = (
        levels,
        ps.transforms.Centre((0.5, 0.0, 0.0)),
        ps.transforms.Scale((0.5, 1.0, 1.0)),
        ps.transforms.ConstantFeature(1.0),
    )
    schema = ps.HazardSchema(
        4,
        math.sqrt(3),
        bins=ps.Bins("months", (0, 4, 8, 12, 16, 20)),
        event="died",
        feature_names=("arm", "smoking"),
        transform=maps,
        times="continuous",
    )
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=8.0, delta=1e-6), by="arm")
    people, truth = hazards(10_000, np.random.default_rng(3))
    parts = [({name: each[k::2] for name, each in people.items()}, None) for k in (0, 1)]
    found = ps.inference.hazards(ps.simulate(course, parts, rng=ps.randomness.seeded(0)))
    assert tuple(found.names) == ("arm", "smoking: former", "smoking: current")
    low, high = found.conf_int().T
    assert found.reported.all()
    assert ((low <= truth) & (truth <= high)).all()
    assert found.logrank().reported
