"""The map of a refinement round: exact, total, bounded for every record and every published value."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privstats as ps
from privstats.moments import gradient_map
from privstats.moments.rounds import PieceMemory
from privstats.schema.public_values import Published, Values
from tests.made import refused

D, C = 6, 3
SCHEMA = ps.GradientSchema(
    D, C, residual_norm=0.3, expected_records=100, course_mu=1.0, transform=(ps.transforms.UnitNorm(),)
)
RIDGE = ps.GradientSchema(D, residual_norm=1.0, expected_records=100, course_mu=1.0, clip_norm=2.0, target_bound=3.0)


def published(seed: int = 0, size: float = 3.0, d: int = D, c: int = C) -> Published:
    rng = np.random.default_rng(seed)
    M, W = rng.normal(size=(d, d)), size * rng.normal(size=(c, d + 1))
    return Published.of({"M": Values.rounded(M + M.T), "W": Values.rounded(W)})


def published_ridge(seed: int = 0, c: float = 0.8) -> Published:
    rng = np.random.default_rng(seed)
    M, w = 0.3 * rng.normal(size=(D, D)), 0.4 * rng.normal(size=D)
    return Published.of({"M": Values.rounded(M + M.T), "w": Values.rounded(w), "c": Values.rounded(c)})


def records(n: int, seed: int = 1, d: int = D, c: int = C) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, c, n)


def softmax_in_floats(X: np.ndarray, y: np.ndarray, said: Published) -> tuple[np.ndarray, float]:
    """The definition, in real numbers."""
    M, W = (said.read()[name].real for name in "MW")
    z = X / np.linalg.norm(X, axis=1, keepdims=True) @ M
    u = np.hstack([np.sqrt(0.99) * z / np.linalg.norm(z, axis=1, keepdims=True), np.full((len(X), 1), 0.1)])
    p = np.exp(u @ W.T)
    p /= p.sum(axis=1, keepdims=True)
    r = p - np.eye(len(W))[y]
    q = np.minimum(1, 0.3 / np.linalg.norm(r, axis=1))
    return (q[:, None] * r).T @ u, float(q @ (1 - np.square(p).sum(axis=1)))


def test_the_sums_are_those_of_the_definition_up_to_the_grid() -> None:
    X, y = records(400)
    real = ps.measure(SCHEMA, X, y, published=published()).real()
    g, k = softmax_in_floats(X, y, published())
    np.testing.assert_allclose(real.g, g, atol=400 * 0.3 * 2**-12)
    assert real.k == pytest.approx(k, abs=400 * 2**-12)


def test_a_regression_sums_clipped_residuals_and_counts_the_others() -> None:
    X, y = records(400)
    targets = X[:, 0] + 0.5 * y
    M, w, c = (published_ridge().read()[name].real for name in "Mwc")
    x = X * np.minimum(1, 2 / np.linalg.norm(X, axis=1, keepdims=True))
    u = x @ M
    u /= np.maximum(1, np.linalg.norm(u, axis=1, keepdims=True))
    residual = np.clip(targets, -3, 3) - x @ w
    real = ps.measure(RIDGE, X, targets, published=published_ridge()).real()
    np.testing.assert_allclose(real.g[0], np.clip(residual / c, -1, 1) @ u, atol=400 * 2**-11)
    assert real.k == (np.abs(residual) <= c).sum()


finite = st.floats(-1e300, 1e300)
anything = st.floats(allow_nan=True, allow_infinity=True)
integers = st.integers(-(2**19) + 1, 2**19 - 1)


def values_of(shape: tuple[int, ...], exponents: tuple[int, int]) -> st.SearchStrategy[Values]:
    extremes = st.one_of(st.sampled_from([0, 1, -1, 2**19 - 1, 1 - 2**19]), integers)
    return st.builds(Values, arrays.arrays(np.int64, shape, elements=extremes), st.integers(*exponents))


def in_ball(schema: ps.GradientSchema, moments: Any, records: int) -> bool:
    """One record: |g| and kappa within what the sensitivity says, in integers."""
    square = sum(int(entry) ** 2 for entry in moments.g.reshape(-1))
    return square <= records * schema.grid_steps**4 and 0 <= moments.k <= records * schema.grid_steps


HOSTILE = {
    "X": arrays.arrays(np.float64, (1, D), elements=anything),
    "y": st.integers(0, C - 1),
    "M": values_of((D, D), (-64, 128)),
    "W": values_of((C, D + 1), (-8, 64)),
}


@pytest.mark.nightly
@settings(max_examples=5000, deadline=None)
@given(**HOSTILE)
def test_of_thousands_of_records_and_published_values_none_breaks_the_bound(X, y, M, W):
    assert in_ball(SCHEMA, ps.measure(SCHEMA, X, np.array([y]), published=Published.of({"M": M, "W": W})), 1)


@settings(max_examples=100, deadline=None)
@given(**HOSTILE)
def test_no_record_and_no_published_value_breaks_the_bound(X: np.ndarray, y: int, M: Values, W: Values) -> None:
    moments = ps.measure(SCHEMA, X, np.array([y]), published=Published.of({"M": M, "W": W}))
    assert in_ball(SCHEMA, moments, 1)


@settings(max_examples=100, deadline=None)
@given(
    X=arrays.arrays(np.float64, (1, D), elements=anything),
    y=anything,
    M=values_of((D, D), (-64, 128)),
    w=values_of((D,), (-8, 64)),
    c=st.builds(Values, arrays.arrays(np.int64, (), elements=st.integers(1, 2**19 - 1)), st.integers(-8, 64)),
)
def test_no_target_breaks_the_bound_of_a_regression(X: np.ndarray, y: float, M: Values, w: Values, c: Values) -> None:
    moments = ps.measure(RIDGE, X, np.array([y]), published=Published.of({"M": M, "w": w, "c": c}))
    assert in_ball(RIDGE, moments, 1)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_record_that_is_no_number_counts_as_zero_and_nothing_is_refused(bad: float) -> None:
    """A refusal would tell who has such a record: it was a noise-free oracle."""
    X, y = records(50)
    clean = ps.measure(SCHEMA, X, y, published=published())
    dirty = ps.measure(SCHEMA, np.vstack([X, [[bad] * D]]), np.append(y, 1), published=published())
    assert dirty == clean
    assert dirty.records == 50  # as under a promise, where averages divide by them
    targets = np.append(X[:, 0], bad)
    whole = ps.measure(RIDGE, np.vstack([X, np.ones((1, D))]), targets, published=published_ridge())
    assert whole == ps.measure(RIDGE, X, X[:, 0], published=published_ridge())


def test_a_zero_row_and_no_rows_at_all_have_sums_too() -> None:
    empty = ps.measure(SCHEMA, np.zeros((0, D)), np.zeros(0, int), published=published())
    assert not empty.g.any()
    assert (empty.k, empty.records) == (0, 0)
    zero = ps.measure(SCHEMA, np.zeros((1, D)), [0], published=published())
    assert not zero.g[:, :-1].any()
    assert zero.g[:, -1].any()  # the constant is still there


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"M": Values(np.full((D, D), 1 << 19), 10)}, "wider than 20 bits"),
        ({"M": Values(np.full((D, D), -(1 << 19)), 10)}, "wider than 20 bits"),
        ({"M": Values(np.ones((D, D), np.int64), 200)}, "tiny or enormous"),
        ({"M": Values(np.ones((D, D), np.int64), -100)}, "tiny or enormous"),
        ({"W": Values(np.ones((C, D + 1), np.int64), 65)}, "tiny or enormous"),
        ({"W": Values(np.ones((C, D + 1), np.int64), -9)}, "tiny or enormous"),
        ({"W": Values(np.ones((C, D), np.int64), 0)}, "of shape"),
        ({"V": Values(np.ones((C, D), np.int64), 0)}, "of shape"),
    ],
)
def test_hostile_values_are_refused_before_a_record_is_looked_at(values: dict[str, Values], said: str) -> None:
    def untouched() -> Any:
        raise AssertionError("a record was looked at")
        yield

    hostile = Published.of({**published().read(), **values})
    refused(ps.PlanError, said, ps.measure, SCHEMA, untouched(), published=hostile)


def test_a_clip_of_zero_or_below_is_refused() -> None:
    for clip in (0, -4):
        with pytest.raises(ps.PlanError, match="above 0"):
            ps.measure(
                RIDGE,
                np.ones((1, D)),
                [1.0],
                published=Published.of({**published_ridge().read(), "c": Values(np.array(clip), 0)}),
            )


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_the_batch_does_not_change_a_bit(size: int) -> None:
    X, y = records(1500)
    batches = ((X[at : at + size], y[at : at + size]) for at in range(0, 1500, size))
    assert ps.measure(SCHEMA, batches, published=published(), progress=True) == ps.measure(
        SCHEMA, X, y, published=published(), progress=True
    )


@pytest.mark.parametrize("kind", ["softmax", "regression"])
def test_what_a_piece_leaves_in_reused_memory_is_in_no_sum(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    schema, said = (SCHEMA, published()) if kind == "softmax" else (RIDGE, published_ridge())
    X, y = records(9_000)
    X[::5] *= 9.0
    X[::7] = np.nan
    parts = [slice(start, start + 500) for start in range(0, 9_000, 500)]
    apart = [ps.measure(schema, X[part], y[part], published=said) for part in parts]
    assert ps.measure(schema, X, y, published=said) == sum(apart[1:], apart[0])
    right = PieceMemory.rows

    def unfit(memory: PieceMemory, name: str, count: int, columns: int) -> np.ndarray:
        rows = right(memory, name, count, columns)
        rows.fill(np.nan)
        return rows

    monkeypatch.setattr(PieceMemory, "rows", unfit)
    batches = [(X[part], y[part]) for part in parts]
    assert ps.measure(schema, iter(batches), published=said) == sum(apart[1:], apart[0])
    assert ps.measure(schema, X, y, published=said) == sum(apart[1:], apart[0])


def test_memory_is_that_of_the_piece_before_where_it_suffices() -> None:
    memory = PieceMemory()
    first = memory.rows("unit", 5, 3)
    assert memory.rows("unit", 2, 3).base is first.base
    assert not np.shares_memory(memory.rows("grid", 5, 3), first)
    assert not np.shares_memory(memory.rows("unit", 6, 3), first)
    assert memory.rows("unit", 6, 4).shape == (6, 4)


def test_order_parts_and_containers_do_not_change_a_bit() -> None:
    X, y = records(1200)
    whole, order = ps.measure(SCHEMA, X, y, published=published()), np.random.default_rng(2).permutation(1200)
    assert ps.measure(SCHEMA, X[order], y[order], published=published()) == whole
    parts = [ps.measure(SCHEMA, X[i::3], y[i::3], published=published()) for i in range(3)]
    assert (parts[0] + parts[1] + parts[2], (parts[0] + parts[1]).records) == (whole, 800)
    narrow = X.astype(np.float32)
    assert ps.measure(SCHEMA, narrow, y, published=published()) == ps.measure(
        SCHEMA, narrow.astype(np.float64), y, published=published()
    )


def test_a_map_in_float32_would_change_with_the_order_of_its_sums() -> None:
    """The weakened double: the same map in single precision is another one if a product adds its terms backwards.

    A kernel may do that in another batch or on another machine; the map of the library is the same in any order.
    """
    X, y = records(4000, 5, 200, 30)
    M, W = (published(3, 8.0, 200, 30).read()[name].real.astype(np.float32) for name in "MW")

    def r_of(z: np.ndarray) -> np.ndarray:
        u = np.hstack([z / np.linalg.norm(z, axis=1, keepdims=True), np.full((len(z), 1), np.float32(0.1))])
        p = np.exp(u @ W.T)
        return np.trunc(4096 * p / p.sum(axis=1, keepdims=True))

    rows = X.astype(np.float32)
    assert (r_of(rows @ M) != r_of(rows[:, ::-1] @ M[::-1])).any()


def test_a_norm_that_were_passed_would_count_as_zero() -> None:
    unit = np.array([[4096.0, 0], [4096, 1], [0, 0], [0, 0], [np.nan, 0]])
    residuals = np.array([[0, 4096.0], [0, 0], [4096, 1], [5, 5], [0, 0]])
    mapped = gradient_map._within(SCHEMA, unit, residuals, np.array([0, 9, 9, 4097.0, 9]))
    assert mapped.rows.tolist() == [[4096, 0], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert mapped.residuals.tolist() == [[0, 4096], [0, 0], [0, 0], [0, 0], [0, 0]]
    assert mapped.kappa.tolist() == [0, 0, 0, 0, 0]


def test_the_polynomial_is_the_exponential_to_eleven_digits() -> None:
    logits = np.array([[0.0, -(2.0**20), -(2.0**21), -(2.0**26)]])
    found = gradient_map.exponentials(logits, 20)[0] / 2.0**40
    np.testing.assert_allclose(found[:3], np.exp([0, -1, -2]), rtol=1e-11)
    assert found[0] == 1
    assert 0 <= found[3] < 2**-63


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"clip_norm": 2.0}, "clip_norm at 1"),
        ({"target_bound": 1.0}, "no target_bound"),
        ({"classes": 1}, "two or more"),
        ({"classes": 1 << 14}, "at most 8192"),
        ({"features": 1 << 17}, "at most 65536"),
        ({"classes": None}, "set target_bound"),
        ({"classes": None, "target_bound": 1.0, "class_names": ("a", "b")}, "no class_names"),
        ({"classes": None, "target_bound": 1.0}, "residual_norm of a regression must be 1, got 0.3"),
        ({"expected_records": 0}, "expected_records"),
        ({"residual_norm": 0.0}, "residual_norm"),
        ({"course_mu": -1.0}, "course_mu"),
    ],
)
def test_schemas_say_what_does_not_fit(changes: dict[str, Any], said: str) -> None:
    fields: dict[str, Any] = {
        "features": D,
        "classes": C,
        "residual_norm": 0.3,
        "expected_records": 9,
        "course_mu": 1.0,
        "transform": (ps.transforms.UnitNorm(),),
    }
    refused(ps.SchemaError, said, ps.GradientSchema, **{**fields, **changes})


@pytest.mark.parametrize("schema", [SCHEMA, RIDGE])
def test_a_gradient_without_noise_is_refused(schema: ps.GradientSchema) -> None:
    said = published() if schema.classes else published_ridge()
    with pytest.raises(ps.PlanError, match="two rounds at chosen weights"):
        ps.Plan(schema=schema, cohort=ps.Cohort(4, 3, 100), privacy=ps.NoPrivacy(), published=said)


def test_two_rounds_with_chosen_weights_would_give_a_record_without_noise() -> None:
    """Why it is refused: W = 0, then W that saturates all but the victim's class, and the difference is its row."""
    rng = np.random.default_rng(6)
    X, y = records(20)
    target, rows = rng.integers(20), X / np.linalg.norm(X, axis=1, keepdims=True)
    M, normal = Values.rounded(np.eye(D)), rows[target]
    cosines = np.sort(rows @ normal)[::-1]
    cut = (cosines[0] + cosines[1]) / 2  # a half-space with the victim alone in it
    W = np.zeros((C, D + 1))
    W[0, :-1], W[0, -1] = 4e4 * normal * 1.0, -4e4 * cut * np.sqrt(0.99) / 0.1
    inside = ps.measure(SCHEMA, X, y, published=Published.of({"M": M, "W": Values.rounded(W)}))
    W[0] = 0
    W[0, -1] = -4e5
    outside = ps.measure(SCHEMA, X, y, published=Published.of({"M": M, "W": Values.rounded(W)}))
    assert abs(np.linalg.svd((inside.g - outside.g)[:, :-1].astype(float))[2][0] @ normal) > 0.999


def test_a_refusal_that_depends_on_a_record_would_tell_who_is_there_without_any_noise() -> None:
    """The server aims W at one row. A map that refuses what overflows answers it in 50 of 50; ours says nothing."""

    def refuses(X: np.ndarray, W: np.ndarray) -> bool:
        """The weakened double: a softmax in floats, and an error where it is not finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            p = np.exp(X @ W.T)
            return not np.isfinite(p / p.sum(axis=1, keepdims=True)).all()

    told = 0
    for seed in range(50):
        X, y = records(20, seed)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        cosines = X[1:] @ X[0]
        W = np.zeros((C, D + 1))
        W[0, :D] = X[0] * 2 * 710 / (1 + cosines.max())  # exp overflows beyond 709.8: for the victim alone
        told += refuses(X, W[:, :D]) and not refuses(X[1:], W[:, :D])
        said = Published.of({"M": Values.rounded(np.eye(D)), "W": Values.rounded(W)})
        for there in (X, X[1:]):
            ps.measure(SCHEMA, there, y[: len(there)], published=said)
    assert told == 50


def test_attack_sums_at_the_values_of_another_round_are_not_added_and_not_sent() -> None:
    """The schema of all rounds is one, so a party that was shown other values would spoil the sum unseen."""
    X, y = records(20)
    mine, other = published(), published(seed=1)
    moments = [ps.measure(SCHEMA, X, y, published=said) for said in (mine, other)]
    assert (moments[0] + moments[0]).published == mine.sha256
    refused(ps.DataError, "different published values", lambda: moments[0] + moments[1])
    plan = plan_of(mine)
    assert ps.session.contribution(plan, moments[0], ps.randomness.seeded(1), allow_reproducible=True)
    with pytest.raises(ps.DataError, match="measured with other published values; measure with published=plan.publ"):
        ps.session.contribution(plan, moments[1], ps.randomness.seeded(1), allow_reproducible=True)


def plan_of(said: Published) -> ps.Plan:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    return ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 2, 100), privacy=privacy, published=said)
