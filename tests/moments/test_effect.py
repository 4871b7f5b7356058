"""Influence values in integers: what a record adds, whatever was published, and what it adds to nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import joint_mu
from privstats.errors import PlanError, RecordError, SchemaError
from privstats.kinds.effect.sums import mapped_records
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests.searched import UNTIL_FOUND, farthest
from threat_models.audits.effect import worst_attempt

COLUMNS = {"age": (20, 90), "dose": (0, 10)}
TRIAL = ps.EffectSchema.of(COLUMNS, treatment="arm", outcome=(0, 1), probability=0.3)
OBSERVED = {
    estimand: ps.EffectSchema.of(COLUMNS, treatment="arm", outcome=(-2, 5), estimand=estimand, trim=0.1)
    for estimand in ("ate", "att", "overlap")
}
SCHEMAS = (TRIAL, *OBSERVED.values())
BY_AGE, BY_DOSE = ps.Bins("age", (20, 40, 60, 90)), ps.Categories("dose", tuple(range(11)))
SEVERAL = ps.EffectSchema.of(
    COLUMNS,
    treatment="arm",
    outcome={"relapse": (0, 1), "death": (0, 1), "fall": (0, 1)},
    probability=0.3,
    subgroups=(BY_AGE,),
)
DIVIDED = replace(OBSERVED["overlap"], outcome_names=("pain", "sleep"), subgroups=(BY_AGE, ps.Bins("dose", (0, 5, 10))))
LINE = np.array([0.02, -0.1, 0.05, 0.1, 0.03, -0.2, 0.07])


def published(schema: ps.EffectSchema, line: Any = LINE, w: Any = (0.4, -0.2, 0.1)) -> Published:
    values = {"line": Values.rounded(line), "w": Values.rounded(w)}
    return Published.of({name: values[name] for name in schema.needs})


def records(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(20, 90, n), rng.uniform(0, 10, n), rng.integers(0, 2, n)]
    return X, rng.uniform(0, 1, n)


def influence(schema: ps.EffectSchema, X: np.ndarray, y: np.ndarray, said: Published) -> tuple[np.ndarray, np.ndarray]:
    """From the definitions, in real numbers: influence values less the guess, and weights."""
    line, a = said.read()["line"].real, X[:, 2]
    U = np.c_[(X[:, 0] - 55) / 35, (X[:, 1] - 5) / 5, np.ones(len(X))]
    m1, m0 = (np.clip(U @ each, -schema.half, schema.half) for each in (line[:3], line[3:6]))
    goal, kept, e = np.clip(y, *schema.outcome) - schema.middle, np.ones(len(X)), np.full(len(X), schema.probability)
    if schema.probability is None:
        e = 1 / (1 + np.exp(-U @ said.read()["w"].real))
        kept = (e <= 0.9) & ((e >= 0.1) | (schema.estimand == "att"))
    match schema.estimand:
        case "att":
            psi, omega = a * (goal - m0) - (1 - a) * e / (1 - e) * (goal - m0), a
        case "overlap":
            omega = e * (1 - e)
            psi = omega * (m1 - m0) + a * (1 - e) * (goal - m1) - (1 - a) * e * (goal - m0)
        case _:
            psi, omega = m1 - m0 + a * (goal - m1) / e - (1 - a) * (goal - m0) / (1 - e), 1.0
    return kept * (psi - line[-1] * omega), kept * omega * np.ones(len(X))


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.estimand}-{schema.statistics}")
def test_sums_are_those_of_the_definition_to_the_grid(schema: ps.EffectSchema) -> None:
    X, y = records(2_000)
    w = (0.4, -0.2, 0.1) if schema is TRIAL else (2.4, -0.2, 1.1)
    said = published(schema, w=w)
    moments = ps.measure(schema, X, y, published=said)
    psi, omega = influence(schema, X, y, said)
    C = schema.unit(said.read()["line"])
    assert moments.N == 2_000
    assert C * moments.real().e[0] == pytest.approx(psi.sum(), abs=0.05)
    assert C**2 * (2_000 - moments.real().e[1]) == pytest.approx((psi**2).sum(), rel=1e-2)
    if schema is not TRIAL:
        assert 0 < (omega == 0).sum() < 1_500
        assert moments.real().W * schema.largest_weight == pytest.approx(omega.sum(), rel=1e-4)


def test_parts_add_up_and_batches_change_nothing() -> None:
    X, y = records(500)
    for schema in SCHEMAS:
        said = published(schema)
        whole = ps.measure(schema, X, y, published=said)
        parts = [ps.measure(schema, X[k::3], y[k::3], published=said) for k in range(3)]
        assert sum(parts) == whole
        assert ps.measure(schema, ((X[i : i + 7], y[i : i + 7]) for i in range(0, 500, 7)), published=said) == whole
        assert ps.measure(schema, X[::-1], y[::-1], published=said) == whole


def any_values(data: Any, schema: ps.EffectSchema) -> dict[str, Values]:
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    return {
        name: Values(
            np.array(data.draw(st.lists(whole, min_size=n, max_size=n)), np.int64), data.draw(st.integers(-8, 30))
        )
        for name, (n,) in schema.needs.items()
    }


@given(st.data())
def test_every_record_keeps_the_bound_whatever_is_published(data: Any) -> None:
    schema = replace(data.draw(st.sampled_from((*SCHEMAS, SEVERAL, DIVIDED))), grid_bits=data.draw(st.integers(4, 20)))
    values = any_values(data, schema)
    rows = data.draw(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e9, 1e9)), min_size=1, max_size=5))
    arms = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=len(rows), max_size=len(rows)))
    count = len(rows) * schema.outcomes
    y = np.array(data.draw(st.lists(st.floats(-50, 50), min_size=count, max_size=count))).reshape(len(rows), -1)
    mapped = mapped_records(schema, np.c_[np.array(rows), arms], y, values)
    assert len(mapped.influences) == schema.outcomes
    for t, s in (each.T for each in mapped.influences.values()):
        assert (t * t + s * s <= 4**schema.grid_bits).all()
        assert (np.trunc(t) == t).all()
        assert ((s >= 0) & (s * 2**schema.grid_bits <= 4**schema.grid_bits - t * t)).all()
    assert ((mapped.weights >= 0) & (mapped.weights <= 2**schema.grid_bits)).all()
    assert ((mapped.blocks >= 0) & (mapped.blocks < schema.blocks)).all()


@pytest.mark.parametrize("schema", [SEVERAL, DIVIDED], ids=["trial", "observed"])
def test_a_record_is_in_the_one_block_of_its_values_and_adds_there_what_it_adds_alone(schema: Any) -> None:
    X, _ = records(300)
    y = np.random.default_rng(1).uniform(*schema.outcome, (300, schema.outcomes))
    lines = {name: Values.rounded(LINE * (1 + place)) for place, name in enumerate(schema.lines)}
    said = Published.of({**lines, **({"w": Values.rounded((0.4, -0.2, 0.1))} if "w" in schema.needs else {})})
    found = ps.measure(schema, X, y, published=said)
    age = np.digitize(X[:, 0], [40, 60])
    block = age if schema is SEVERAL else 2 * age + (X[:, 1] >= 5)
    assert found.N.tolist() == np.bincount(block, minlength=schema.blocks).tolist()
    for place, letter in enumerate("efg"[: schema.outcomes]):
        one = replace(schema, outcome_names=None, subgroups=None)
        own = Published.of({name: said.read()[name if name == "w" else schema.lines[place]] for name in one.needs})
        for part in range(schema.blocks):
            alone = ps.measure(one, X[block == part], y[block == part, place], published=own)
            assert alone.e.tolist() == getattr(found, letter)[part].tolist()
            assert alone.W is None or found.W[part] == alone.W
    assert sum(ps.measure(schema, X[k::3], y[k::3], published=said) for k in range(3)) == found


def test_a_record_in_no_subgroup_is_refused_or_left_out_and_no_other_moves() -> None:
    schema = replace(TRIAL, subgroups=(BY_DOSE,))
    X, y = records(40)
    X[:, 1] = np.floor(X[:, 1])
    X[[4, 9], 1] = 3.5, 77
    for said in (published(schema), published(schema, line=0 * LINE)):
        with pytest.raises(RecordError, match="column 'dose' has a value that is not among the plan's"):
            ps.measure(schema, X, y, published=said)
        with pytest.warns(UserWarning, match="2 of the records cannot be read"):
            left = ps.measure(schema, X, y, published=said, unreadable="leave out")
        assert left == ps.measure(schema, np.delete(X, [4, 9], 0), np.delete(y, [4, 9]), published=said)


@pytest.mark.ci
@pytest.mark.parametrize("schema", [SEVERAL, DIVIDED], ids=["trial", "observed"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("counts", [2.5, 0.5])
@UNTIL_FOUND
def test_the_search_reaches_the_bound_of_blocks_and_never_passes_it(
    schema: Any, adjacency: Any, counts: float, until_found: bool
) -> None:
    """Squares of outcomes add up. Where counts weigh most, the worst exchange is one of two subgroups."""
    sigmas = {letter: counts if letter in "NW" else 1.0 for letter in schema.statistics}
    claimed = joint_mu(schema, sigmas, adjacency)
    least = 0.999 if adjacency == "add-remove" or schema is SEVERAL else 0.98
    found = farthest(
        lambda seed: worst_attempt(schema, sigmas, adjacency, seeded(seed), 200)[0],
        least * claimed,
        until_found=until_found,
    )
    many, weights = schema.outcomes, 1 / counts**2
    alone = weights * (1 + ("W" in schema.statistics)) + many
    within = weights * ("W" in schema.statistics) + 4 * many
    assert claimed == pytest.approx((alone if adjacency == "add-remove" else max(within, 2 * alone)) ** 0.5)
    assert least * claimed <= found <= claimed * (1 + 1e-12)


@pytest.mark.parametrize("bits", [4, 5, 6, 7])
def test_on_a_whole_grid_the_bounds_are_met_and_never_passed(bits: int) -> None:
    """Every t of the grid, alone and against every other."""
    R = 1 << bits
    t = np.arange(-R, R + 1)
    s = (R * R - t * t) // R
    assert (t * t + s * s).max() == R * R
    apart = np.subtract.outer(t, t) ** 2 + np.subtract.outer(s, s) ** 2
    assert apart.max() == 4 * R * R


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.estimand}-{schema.statistics}")
@pytest.mark.parametrize(("adjacency", "least"), [("add-remove", 0.999), ("replace-one", 0.98)])
@UNTIL_FOUND
def test_the_search_reaches_the_bound_and_never_passes_it(
    schema: Any, adjacency: Any, least: float, until_found: bool
) -> None:
    """Under replace-one a weight and an influence are not worst for the same pair: an upper bound there."""
    bare = replace(schema, transform=(), feature_names=None)
    sigmas = {"N": 2.5, "W": 2.5, "e": 1.0} if schema is not TRIAL else {"N": 2.5, "e": 1.0}
    claimed = joint_mu(bare, sigmas, adjacency)
    found = farthest(
        lambda seed: worst_attempt(bare, sigmas, adjacency, seeded(seed), 200)[0],
        least * claimed,
        until_found=until_found,
    )
    assert least * claimed <= found <= claimed * (1 + 1e-12)
    assert claimed == pytest.approx({("add-remove", 2): 1.16**0.5, ("add-remove", 3): 1.32**0.5}.get(
        (adjacency, len(sigmas)), (4 + 0.16 * (len(sigmas) == 3)) ** 0.5))  # fmt: skip


def test_a_record_beyond_the_trim_is_dropped_and_not_cut() -> None:
    """A cut propensity is a wrong one; a dropped record leaves the sums of the others as they were."""
    schema = OBSERVED["ate"]
    said = published(schema, w=(9.0, 0.0, 0.0))
    X, y = records(400)
    inside = np.abs((X[:, 0] - 55) / 35) * 9 < np.log(9) * 0.999
    whole = ps.measure(schema, X, y, published=said)
    kept = ps.measure(schema, X[inside], y[inside], published=said)
    assert 0 < inside.sum() < 200
    assert (whole.W, whole.e[0]) == (kept.W, kept.e[0])
    dropped = 400 - int(inside.sum())
    assert dropped == whole.N - kept.N
    assert whole.e[1] - kept.e[1] == dropped * schema.grid_steps, "phi^2 of 0, and not of C^2"


def test_the_att_drops_only_controls_that_look_treated() -> None:
    schema = OBSERVED["att"]
    X, y = records(200)
    everywhere = published(schema, w=(0.0, 0.0, -9.0))  # propensities far below the trim
    moments = ps.measure(schema, X, y, published=everywhere)
    assert int((X[:, 2] == 1).sum()) * schema.grid_steps == moments.W
    assert ps.measure(schema, X, y, published=published(schema, w=(0.0, 0.0, 9.0))).W == 0


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: f"{schema.estimand}-{schema.statistics}")
def test_what_is_no_record_is_refused_or_left_out_whatever_is_published(schema: ps.EffectSchema) -> None:
    """Counted with s = 0 it would be read as the largest influence there is."""
    X, y = records(20)
    X[3, 0], X[7, 2], y[5] = np.inf, 0.5, np.nan
    rest = np.delete(np.arange(20), [3, 5, 7])
    for said in (published(schema), published(schema, line=0 * LINE, w=(0, 0, 0))):
        for place, name in ((3, "X"), (7, "arm that is neither 0 nor 1"), (5, "y")):
            with pytest.raises(RecordError, match=name):
                ps.measure(schema, X[place : place + 1], y[place : place + 1], published=said)
        with pytest.warns(UserWarning, match="3 of the records cannot be read"):
            left = ps.measure(schema, X, y, published=said, unreadable="leave out")
        assert left == ps.measure(schema, X[rest], y[rest], published=said)


def test_outcomes_and_lines_are_cut_to_the_public_range() -> None:
    """Both, or a published line would lift an influence beyond its cap, and t would be cut instead."""
    X, y = records(50)
    wide = published(TRIAL, line=1e6 * LINE * (np.arange(7) < 6))
    beyond = ps.measure(TRIAL, X, y * 90 - 30, published=wide)
    assert beyond == ps.measure(TRIAL, X, np.clip(y * 90 - 30, 0, 1), published=wide)
    psi, _ = influence(TRIAL, X, np.clip(y * 90 - 30, 0, 1), wide)
    assert TRIAL.unit(wide.read()["line"]) * beyond.real().e[0] == pytest.approx(psi.sum(), abs=1e-2)
    worst = np.array([[20.0, 0.0, 0.0]]), np.array([1.0])  # the rarer error is divided by .3, this one by .7
    ends = published(TRIAL, line=np.array([0, 0, -1e3, 0, 0, -1e3, 0.0]))
    treated = ps.measure(TRIAL, np.array([[20.0, 0.0, 1.0]]), worst[1], published=ends)
    control = ps.measure(TRIAL, *worst, published=ends)
    assert treated.e.tolist() == [TRIAL.grid_steps, 0], "attained"
    assert control.real().e[0] == pytest.approx(-0.3 / 0.7, abs=1e-4)


def test_by_arm_has_a_constant_in_each_arm() -> None:
    """Before the constant there would be one for both arms, and a block between them."""
    X, y = records(300)
    G = ps.measure(TRIAL.rows, X, y).real().G
    d = TRIAL.width
    assert not G[:d, d:].any()
    assert G[d - 1, d - 1] == pytest.approx(X[:, 2].sum(), rel=1e-3)
    assert G[2 * d - 1, 2 * d - 1] == pytest.approx(300 - X[:, 2].sum(), rel=1e-3)
    before = (ps.transforms.ByArm(2), ps.transforms.ConstantFeature(1.0), ps.transforms.ConstantFeature(1.0))
    with pytest.raises(SchemaError, match="ConstantFeature and then ByArm"):
        replace(TRIAL, transform=(*TRIAL.transform[:2], *before))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"probability": 0.01}, "probability must be a number from 0.05 to 0.95, got 0.01"),
        ({"probability": None}, "trim must be a number from 0.02 to 0.4 where treatment was not assigned"),
        ({"probability": None, "trim": 0.5}, "trim must be a number from 0.02 to 0.4"),
        ({"trim": 0.1}, "trim must be omitted in a trial"),
        ({"estimand": "att"}, "estimand must be 'ate' in a trial"),
        ({"estimand": "late"}, "estimand must be 'ate', 'att' or 'overlap', got 'late'"),
        ({"outcome": (1, 0)}, "outcome must be .low, high. with low < high; take it from public knowledge"),
        ({"outcome": None}, "outcome must be .low, high."),
        ({"features": 7}, "features"),
        ({"features": 2, "transform": (), "feature_names": None}, "features must be an even number from 4"),
        ({"transform": (), "grid_bits": 21, "feature_names": None}, "grid_bits must be at most 20"),
        ({"outcome_names": tuple("abcdefghi")}, "outcome_names must name 1 to 8 outcomes, got 9"),
        ({"subgroups": ()}, "subgroups must be a tuple of Categories and Bins"),
        ({"subgroups": (ps.Bins("age", (0, 40, 90), open="none"),)}, "'age' must put every record into one of them"),
        ({"subgroups": (ps.Bins("age", (0, 40, 90), missing=True),)}, "'age' must put every record into one of them"),
        ({"subgroups": (ps.Categories("dose", ("low", "high")),)}, "'dose' must be of integers"),
        ({"subgroups": (ps.Bins("weight", (0, 40, 90)),)}, "got 'weight': name each of age"),
        ({"subgroups": (ps.Categories("arm", (0, 1)),)}, "got 'arm'"),
        ({"subgroups": (ps.Bins("age", (0, 40, 90)), ps.Bins("age", (0, 50, 90)))}, "got 'age'"),
        ({"subgroups": (ps.Bins("age", tuple(range(40))), BY_AGE)}, "subgroups must be at most 64 where crossed"),
    ],
)
def test_a_schema_refuses_what_no_design_has(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SchemaError, match=said):
        replace(TRIAL, **changes)


def test_the_columns_refuse_the_treatment_and_ranges_without_width() -> None:
    more: Any = {"outcome": (0, 1), "probability": 0.5}
    with pytest.raises(SchemaError, match="treatment 'age' must not be among the columns"):
        ps.EffectSchema.of(COLUMNS, treatment="age", **more)
    with pytest.raises(SchemaError, match="the range of 'age' must be"):
        ps.EffectSchema.of({"age": (3, 3)}, treatment="arm", **more)
    with pytest.raises(SchemaError, match="outcomes must share one public range"):
        ps.EffectSchema.of(COLUMNS, treatment="arm", outcome={"death": (0, 1), "pain": (0, 10)}, probability=0.5)
    with pytest.raises(SchemaError, match="columns must give a public range"):
        ps.EffectSchema.of({}, treatment="arm", **more)


def test_published_values_of_any_other_form_are_refused_before_a_record_is_read() -> None:
    for line in (Values(np.full(7, 1 << 20), 3), Values(np.zeros(7, np.int64), 99)):
        with pytest.raises(PlanError, match="published line is wider than 20 bits"):
            ps.measure(TRIAL, [["no", "record"]], [None], published=Published.of({"line": line}))
    with pytest.raises(PlanError, match="the published values do not fit"):
        ps.measure(TRIAL, [["no", "record"]], [None], published=Published.of({"line": Values.rounded(np.zeros(6))}))


def test_no_plan_goes_without_dp() -> None:
    with pytest.raises(PlanError, match="influence values cannot be released without differential privacy"):
        ps.Plan(schema=TRIAL, cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy(), published=published(TRIAL))


@pytest.mark.parametrize("shares", [{"N": 0.98, "e": 0.02}, {"N": 0.1, "e": 0.9}])
@pytest.mark.parametrize("gap", [float("nan"), 2.0])
def test_a_record_that_is_left_out_moves_no_more_than_the_promise(shares: dict[str, float], gap: float) -> None:
    """Under replace-one its neighbour may be one that can be read: then N moves by 1, whatever the price of N is."""
    promise = ps.Privacy(
        model="central", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-6, shares=shares
    )
    said = published(TRIAL)
    plan = ps.Plan(schema=TRIAL, cohort=ps.Cohort(2, 2, 1_000), privacy=promise, published=said)
    X, y = records(40)
    odd = X.copy()
    odd[0, 2] = gap
    one, other = (ps.measure(TRIAL, rows, y, unreadable="leave out", published=said).real() for rows in (X, odd))
    moved = {letter: np.sum((getattr(one, letter) - getattr(other, letter)) ** 2) for letter in "Ne"}
    assert moved["N"] == 1
    sigma = plan.noise.sigma
    assert sum(moved[letter] / sigma[letter] ** 2 for letter in "Ne") <= joint_mu(TRIAL, sigma, "replace-one") ** 2
