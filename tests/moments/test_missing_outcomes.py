"""Records of a trial without an outcome: what each adds to every session, whatever was published."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course.effect import propensity_schema
from privstats.errors import RecordError, SchemaError
from privstats.kinds.effect.influences import influence_of, population_of
from privstats.kinds.effect.sums import mapped_records
from privstats.moments.rounds import arm_rows
from privstats.schema.public_values import Published, Values
from tests.made import refused
from tests.moments.test_effect import any_values
from tests.searched import UNTIL_FOUND, farthest
from threat_models.audits.effect import worst_attempt

SCHEMA = ps.EffectSchema.of(
    {"age": (20, 90), "dose": (0, 10)}, treatment="arm", outcome=(0, 1), probability=0.3, missing="weights", trim=0.5
)
ROUND = propensity_schema(SCHEMA)
LINE = np.array([0.02, -0.1, 0.05, 0.1, 0.03, -0.2, 0.07])
W = np.array([0.9, -0.4, 0.6, -0.7, 0.3, 0.5])
SAID = Published.of({"line": Values.rounded(LINE), "w": Values.rounded(W)})
SESSIONS = ((SCHEMA, SAID), (SCHEMA.rows, None), (ROUND, Published.of({"w": Values.rounded(W)})))


def records(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.c_[rng.uniform(20, 90, n), rng.uniform(0, 10, n), rng.random(n) < 0.3]
    return X, np.where(rng.random(n) < 0.7, rng.uniform(0, 1, n), np.nan)


def measured(schema: Any, X: Any, y: Any, said: Published | None, **how: Any) -> Any:
    return ps.moments.exact_moments(schema, X, y, published=said, **how)


def aipw(U: Any, a: Any, y: Any, line: Any, o: Any, pi: float, trim: float) -> tuple[np.ndarray, np.ndarray]:
    """Textbook influence values of inverse-probability-weighted AIPW less the guess, and who is kept."""
    m1, m0 = (np.clip(U @ each, -0.5, 0.5) for each in (line[:3], line[3:6]))
    seen, goal = np.isfinite(y) * 1.0, np.nan_to_num(y) - 0.5
    kept = (o[0] >= trim) & (o[1] >= trim)
    weight = np.where(a, seen / (pi * o[0]), -seen / ((1 - pi) * o[1]))
    return kept * (m1 - m0 + weight * (goal - np.where(a, m1, m0)) - line[-1]), kept


def test_the_sums_are_those_of_weighted_aipw() -> None:
    """In real numbers at the same nuisances to 1e-10; through the grid to its steps."""
    X, y = records(3_000)
    arm, x = arm_rows(SCHEMA, X)
    step = SCHEMA.clip_norm / SCHEMA.grid_steps
    U, values = x * step, SAID.read()
    o = [1 / (1 + np.exp(-U @ each)) for each in (values["w"].real[:3], values["w"].real[3:])]
    population = population_of(SCHEMA, arm, x, values)
    assert np.abs(population.p / 0.3 - o[0]).max() < 2**-19
    assert np.abs(population.others / 0.7 - o[1]).max() < 2**-19
    published = [population.p / 0.3, population.others / 0.7]
    psi, kept = aipw(U, arm, y, values["line"].real, published, 0.3, 0.5)
    assert 300 < (~kept).sum() < 2_700
    found = influence_of(SCHEMA, population, arm, x, (y - 0.5) / 0.5, values["line"]) * 0.5 - values["line"].real[-1]
    assert (population.included == kept).all()
    assert np.abs(found * kept - psi).max() < 1e-10
    moments, C = measured(SCHEMA, X, y, SAID), SCHEMA.unit(values["line"])
    assert (3_000, kept.sum() * SCHEMA.grid_steps) == (moments.N, moments.W)
    assert C * moments.real().e[0] == pytest.approx(psi.sum(), abs=0.05)
    assert C**2 * (3_000 - moments.real().e[1]) == pytest.approx((psi**2).sum(), rel=1e-2)


def test_the_propensity_is_of_being_observed_and_the_lines_are_of_those_who_are() -> None:
    X, y = records(2_000)
    seen = np.isfinite(y)
    assert measured(SCHEMA.rows, X, y, None) == measured(SCHEMA.rows, X[seen], y[seen], None)
    arm, x = arm_rows(SCHEMA.rows, X)
    U = x * (SCHEMA.clip_norm / SCHEMA.rows.grid_steps)
    wide = np.c_[U * arm[:, None], U * ~arm[:, None]]
    o = 1 / (1 + np.exp(-wide @ Values.rounded(W).real))
    found = measured(ROUND, X, y, SESSIONS[2][1]).real()
    assert np.abs(found.g - wide.T @ (seen - o)).max() < 1.0
    assert np.abs(found.H - (wide * (o * (1 - o))[:, None]).T @ wide).max() < 1.0
    other = np.where(seen, 1 - y, y)
    assert measured(ROUND, X, other, SESSIONS[2][1]) == measured(ROUND, X, y, SESSIONS[2][1]), (
        "what y says adds nothing"
    )


@pytest.mark.parametrize(("schema", "said"), SESSIONS, ids=["last", "lines", "propensity"])
def test_parts_add_up_and_batches_change_nothing(schema: Any, said: Published | None) -> None:
    X, y = records(400)
    whole = measured(schema, X, y, said)
    assert sum(measured(schema, X[k::3], y[k::3], said) for k in range(3)) == whole
    assert measured(schema, X[::-1], y[::-1], said) == whole
    assert measured(schema, ((X[i : i + 7], y[i : i + 7]) for i in range(0, 400, 7)), None, said) == whole
    gone = np.full(400, np.nan)
    assert sum([measured(schema, X[:5], gone[:5], said), measured(schema, X[5:], y[5:], said)]) == measured(
        schema, X, np.r_[gone[:5], y[5:]], said
    )


@pytest.mark.parametrize(("schema", "said"), SESSIONS, ids=["last", "lines", "propensity"])
def test_a_gap_is_no_outcome_and_what_is_no_number_leaves_the_record_out(schema: Any, said: Any) -> None:
    """Alike in every session, and whatever the container; a column that cannot be read is left out with its outcome."""
    X, y = records(40)
    y[:6] = 0.5
    gaps: list[Any] = [None, "", "NA", float("nan"), float("inf"), "null"]
    plain = np.r_[np.full(6, np.nan), y[6:]]
    whole = measured(schema, X, plain, said)
    assert measured(schema, X, [*gaps, *y[6:]], said, unreadable="leave out") == whole
    assert measured(schema, X.tolist(), [*gaps, *y[6:]], said, unreadable="leave out") == whole
    assert measured(schema, X, np.ma.masked_array(y, np.arange(40) < 6), said, unreadable="leave out") == measured(
        schema, X, np.where(np.arange(40) < 6, np.nan, y), said
    )
    odd = X.copy()
    odd[0, 2], odd[1, 0] = 0.5, np.nan  # of records without an outcome
    for rows, goals, gone in ((odd, plain, [0, 1]), (X, [*plain[:2], "refused", *plain[3:]], [2])):
        refused(RecordError, "", measured, schema, rows, goals, said)
        with pytest.warns(UserWarning, match=f"{len(gone)} of the records cannot be read"):
            left = measured(schema, rows, goals, said, unreadable="leave out")
        assert left == measured(schema, np.delete(X, gone, 0), np.delete(plain, gone), said)


def test_without_the_option_a_missing_outcome_is_refused_and_says_what_to_do() -> None:
    X, y = records(20)
    plain = replace(SCHEMA, missing=None, trim=None)
    with pytest.raises(RecordError, match=r"report complete cases; or set missing='weights'"):
        measured(plain, X, y, Published.of({"line": Values.rounded(LINE)}))


@given(st.data())
def test_every_record_keeps_the_bound_whatever_is_published(data: Any) -> None:
    schema = replace(SCHEMA, grid_bits=data.draw(st.integers(4, 20)))
    values = any_values(data, schema)
    rows = data.draw(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e9, 1e9)), min_size=1, max_size=5))
    many = len(rows)
    arms = data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=many, max_size=many))
    goals = st.floats(-50, 50) | st.just(np.nan)
    y = np.array(data.draw(st.lists(goals, min_size=many, max_size=many)))
    mapped = mapped_records(schema, np.c_[np.array(rows), arms], y, values)
    t, s = mapped.influences["e"].T
    assert (t * t + s * s <= 4**schema.grid_bits).all()
    assert (np.trunc(t) == t).all()
    assert ((s >= 0) & (s * 2**schema.grid_bits <= 4**schema.grid_bits - t * t)).all()
    assert np.isin(mapped.weights, (0, 2**schema.grid_bits)).all()
    assert ((t == 0) | (mapped.weights > 0)).all()


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("sigmas", [{"N": 2.5, "W": 2.5, "e": 1.0}, {"N": 90.0, "W": 90.0, "e": 1.0}])
@UNTIL_FOUND
def test_the_search_reaches_the_bound_and_never_passes_it(adjacency: Any, sigmas: dict[str, float], until_found: bool):
    """Records with an outcome and without, and every published line and propensity. Under replace-one a weight and an
    influence are not worst for the same pair: .98 where W costs much."""
    bare = replace(SCHEMA, transform=(), feature_names=None)
    claimed = ps.dp.joint_mu(bare, sigmas, adjacency)
    least = 0.98 if adjacency == "replace-one" and sigmas["W"] < 9 else 0.999
    found = farthest(
        lambda seed: worst_attempt(bare, sigmas, adjacency, ps.randomness.seeded(seed), 200)[0],
        least * claimed,
        until_found=until_found,
    )
    assert least * claimed <= found <= claimed * (1 + 1e-12)


def test_one_outcome_that_goes_missing_moves_no_session_beyond_its_price() -> None:
    """Replace-one between a record and itself without its outcome, the largest at the smallest kept propensity."""
    ends = Published.of({"line": Values.rounded([0, 0, -9, 0, 0, 9, 0.0]), "w": Values.rounded([0, 0, 1e-5] * 2)})
    X = np.array([[55.0, 5.0, 1.0]])
    there, gone = (measured(SCHEMA, X, [y], ends).real() for y in (1.0, np.nan))
    C = SCHEMA.unit(ends.read()["line"])
    assert C * there.e[0] == pytest.approx(1 / (0.3 * 0.5) - 1, rel=1e-3)
    assert C * gone.e[0] == pytest.approx(-1.0, rel=1e-3), "the difference of both lines"
    opposite = Published.of({"line": Values.rounded([0, 0, -9, 0, 0, -9, 0.0]), "w": ends.read()["w"]})
    most = measured(SCHEMA, X, [1.0], opposite)
    assert most.e.tolist() == [pytest.approx(SCHEMA.grid_steps, rel=1e-4), pytest.approx(0, abs=9)], "attained"
    assert (there.N, gone.N, there.W, gone.W) == (1, 1, 1, 1)
    none = measured(SCHEMA.rows, X, [np.nan], None)
    assert not none.G.any()
    assert not none.h.any()
    assert none.q == 0


def test_a_record_below_the_trim_in_either_arm_is_dropped_and_not_cut() -> None:
    X, y = records(400)
    steep = Published.of({"line": Values.rounded(LINE), "w": Values.rounded([9.0, 0, 2, 0, 0, 3])})
    inside = (X[:, 0] - 55) / 35 * 9 + 2 > 0
    whole, kept = measured(SCHEMA, X, y, steep), measured(SCHEMA, X[inside], y[inside], steep)
    assert 0 < inside.sum() < 350
    assert (whole.W, whole.e[0], kept.W) == (kept.W, kept.e[0], inside.sum() * SCHEMA.grid_steps)
    assert whole.e[1] - kept.e[1] == (~inside).sum() * SCHEMA.grid_steps


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"missing": "mean"}, "missing must be 'weights' or omitted, got 'mean'"),
        ({"trim": None}, "trim must be a number from 0.2 to 0.8 where outcomes may be missing, got None"),
        ({"trim": 0.1}, "trim must be a number from 0.2 to 0.8"),
        (
            {"probability": None},
            "missing='weights' needs a trial with one probability of treatment. With a fitted propensity",
        ),
        ({"probability": (0.3, 0.5)}, "missing='weights' needs a trial with one probability"),
        ({"measure": "ratio"}, "needs one outcome in all records, and no measure"),
        ({"balance": 0.2}, "needs one outcome in all records, and no balance"),
        ({"groups": 6}, "needs one outcome in all records, and no groups"),
        ({"subgroups": (ps.Bins("age", (20, 50, 90)),)}, "needs one outcome in all records, and no subgroups"),
        ({"outcome_names": ("pain", "sleep")}, "needs one outcome in all records, and no several outcomes"),
    ],
)
def test_a_schema_refuses_what_is_not_proved_beside_missing_outcomes(changes: dict[str, Any], said: str) -> None:
    if changes.get("probability", 0) is None:
        changes = {**changes, "trim": 0.3}
    refused(SchemaError, said, replace, SCHEMA, **changes)


def test_schemas_of_single_sessions_refuse_other_words() -> None:
    with pytest.raises(SchemaError, match="missing must be 'left out', and of one target, got 'weights'"):
        ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0, missing="weights")  # type: ignore[arg-type]
    refused(SchemaError, "and of one target", ps.RidgeSchema, 2, 2, clip_norm=1.0, target_bound=1.0, missing="left out")
    refused(SchemaError, "missing must be 'outcome' or omitted", ps.ScoreSchema, 2, 1.0, missing="left out")
    with pytest.raises(SchemaError, match="missing='outcome' models whether one y is known: set family='logistic'"):
        ps.ScoreSchema(2, 1.0, missing="outcome", family="poisson", target_bound=3)
