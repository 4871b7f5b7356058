"""One direction of each party: bounded in integers whatever floats do, and the same sum wherever it is formed."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import privstats as ps
from privstats.kinds import party as parties
from privstats.kinds.party import PartyMoments, shortened, truncated
from privstats.moments import gradient_map
from privstats.records import opened
from tests import made
from tests.made import refused

C, D = 3, 4
SCHEMA = ps.PartySchema(C, D, transform=(ps.transforms.UnitNorm(),))
PARTY = {"unit": "client", "max_records_per_client": 1}
ANY = st.floats(allow_nan=True, allow_infinity=True)
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 6))


def records(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, C, n)
    return rng.normal(size=(n, D)) + 2 * np.eye(C, D)[y] + 1.0, y


def square(P: Any) -> int:
    """In Python's integers, which cannot wrap."""
    return sum(int(entry) ** 2 for entry in np.asarray(P).ravel())


def in_floats(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The definition, in real numbers."""
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    W = ahead = np.zeros((C, U.shape[1]))
    for step in range(30):
        scores = np.exp(U @ ahead.T)
        before, W = W, ahead + C * (np.eye(C)[y] - scores / scores.sum(axis=1, keepdims=True)).T @ U / len(U)
        ahead = W + step / (step + 3) * (W - before)
    return np.asarray(W / np.linalg.norm(W))


def test_the_direction_is_that_of_the_definition_up_to_the_grid() -> None:
    X, y = records(200)
    P = ps.measure(SCHEMA, X, y).real().P
    np.testing.assert_allclose(P, in_floats(X, y), atol=2 / SCHEMA.grid_steps)
    assert 1 - 2 * math.sqrt(C * D) / SCHEMA.grid_steps < np.linalg.norm(P) <= 1


def test_an_exact_direction_is_that_of_the_definition_at_any_scale() -> None:
    X, y = records(200)
    U = X / np.linalg.norm(X, axis=1, keepdims=True)
    found = ps.PartySchema.exact_direction(U, y, C)
    np.testing.assert_allclose(found, in_floats(X, y), atol=1e-4)
    np.testing.assert_array_equal(ps.PartySchema.exact_direction(1024 * U, y, C), found)


@given(SHAPES.flatmap(lambda shape: arrays.arrays(np.float64, shape, elements=ANY)), st.integers(2, 20))
def test_attack_no_float_array_becomes_longer_than_one(V: np.ndarray, bits: int) -> None:
    """Not one that is longer than 1, nor infinite, nor NaN: a party's own arithmetic may go wrong anywhere."""
    assert square(truncated(V, 1 << bits)) <= 4**bits


@given(st.integers(2, 20), st.data())
def test_a_ray_of_whole_numbers_is_shortened_exactly_and_hardly_more_than_it_must(bits: int, data: Any) -> None:
    steps = 1 << bits
    entries = st.integers(-steps, steps) | st.sampled_from([-steps, steps])
    ray = data.draw(SHAPES.flatmap(lambda shape: arrays.arrays(np.int64, shape, elements=entries)))
    out = shortened(ray, steps)
    assert square(out) <= steps**2
    if square(ray) <= steps**2:
        np.testing.assert_array_equal(out, ray)
    else:
        exact = ray * (steps / math.sqrt(square(ray)))
        assert np.abs(out - exact).max() <= 1 + 1e-3
        assert (np.abs(out) <= np.abs(exact) + 1e-9).all()  # toward zero


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("same", [False, True])
def test_no_records_break_the_bound(scale: float, same: bool) -> None:
    X, y = records(50)
    X, y = (np.tile(X[:1], (50, 1)) * scale, y) if same else (X * scale, y)
    for schema in (ps.PartySchema(C, D), ps.PartySchema(C, D, grid_bits=20), SCHEMA):
        assert square(ps.measure(schema, X, y).P) <= schema.grid_steps**2


def test_a_direction_that_fails_to_be_a_number_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parties, "direction", lambda _, classes, features, start: np.full((classes, features), np.nan))
    assert not ps.measure(SCHEMA, *records(50)).P.any()


def test_a_party_without_records_or_with_nothing_to_say_sends_zeros() -> None:
    nothing = ps.measure(SCHEMA, np.zeros((0, D)), np.zeros(0, int))
    assert (nothing.records, nothing.P.any()) == (0, False)
    rows = np.tile(np.eye(D)[:1], (C, 1))
    assert not ps.measure(SCHEMA, rows, np.arange(C)).P.any()  # the same row in every class
    assert not ps.measure(ps.PartySchema(C, D), 0 * rows, np.arange(C)).P.any()


def test_a_party_is_one_record_however_many_it_holds_and_in_any_batches(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    """Orders, batches, containers and the pieces of a pass: a sum of floats would give it away."""
    X, y = records(300)
    whole = ps.measure(SCHEMA, X, y)
    order = np.random.default_rng(1).permutation(300)
    batches = ps.measure(SCHEMA, ((X[order[k : k + 70]], y[order[k : k + 70]]) for k in range(0, 300, 70)))
    assert whole == batches
    assert whole.records == batches.records == 1
    assert whole.clip_report == batches.clip_report
    assert whole.clip_report == ps.measure(SCHEMA.rows, X, y).clip_report
    np.save(tmp_path / "X.npy", X)
    for container in (tmp_path / "X.npy", sp.csr_array(X), X.tolist()):
        assert whole == ps.measure(SCHEMA, container, y)
    assert whole == ps.measure(SCHEMA, np.tile(X, (3, 1)), np.tile(y, 3))
    monkeypatch.setattr(opened, "_ROWS", 7)
    assert whole == ps.measure(SCHEMA, X[::-1], y[::-1])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0, 3, 200]), st.sampled_from([1e-4, 1.0, 1e4]))
def test_attack_no_party_makes_a_logit_that_floats_would_round(seed: int, empty: int, scale: float) -> None:
    """Most rows are 0, or all lie far inside or outside the clip: logits are integers, and order is nothing."""
    rng = np.random.default_rng(seed)
    X, y = np.zeros((5 + empty, D)), rng.integers(0, C, 5 + empty)
    X[:5] = rng.normal(size=(5, D)) * scale
    order = rng.permutation(len(X))
    schema = ps.PartySchema(C, D)
    with pytest.MonkeyPatch.context() as patch:
        assert largest_logit(patch, schema, X, y) < 2.0**53
    assert ps.measure(schema, X, y) == ps.measure(schema, X[order], y[order])


def test_weights_are_cut_before_rows_are_multiplied_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parties, "_MAX", 1000.0)
    assert 2.0**16 < largest_logit(monkeypatch, SCHEMA, *records(50)) <= 2.0**16 * 1000 * math.sqrt(D)


def largest_logit(patch: pytest.MonkeyPatch, schema: ps.PartySchema, X: np.ndarray, y: np.ndarray) -> float:
    """Of a party's whole descent, in integers."""
    right, seen = gradient_map.probabilities, [0.0]

    def watched(logits: np.ndarray, exponent: int) -> np.ndarray:
        seen.append(float(np.abs(logits).max()))
        assert (logits == np.rint(logits)).all()
        return right(logits, exponent)

    patch.setattr(gradient_map, "probabilities", watched)
    ps.measure(schema, X, y)
    return max(seen)


def test_the_federated_sum_is_the_sum_of_the_directions_to_the_last_digit() -> None:
    """Masked and summed over parties, one of which has no record, against the integers in one place."""
    shards = [records(20 * k, k) for k in range(5)]
    release = ps.simulate(ps.Plan(schema=SCHEMA, cohort=ps.Cohort(5, 5, 5), privacy=ps.NoPrivacy()), shards)
    together = sum(ps.measure(SCHEMA, *shard) for shard in shards)
    assert np.array_equal(release.vector, ps.encoding.flatten(together))
    assert together.records == 4
    assert (release.moments.P == together.real().P).all()


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1.0), ("replace-one", 2.0)])
@pytest.mark.parametrize("model", made.MODELS)
def test_the_noise_is_one_over_mu_for_a_party_that_comes_and_twice_that_for_an_exchange(model, adjacency, factor):
    promise = made.promise(model, epsilon=8.0, adjacency=adjacency, **PARTY)
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(5, 5, 5), privacy=promise)
    assert plan.noise.sigma["P"] == pytest.approx(factor / plan.noise.mu, rel=1e-12)
    assert ps.simulate(plan, [records(9, k) for k in range(5)], rng=ps.randomness.seeded(0)).moments.P.shape == (C, D)


def test_a_direction_that_is_too_long_is_no_partys() -> None:
    """Two parties added are two records, which no plan of parties takes from one client."""
    one = ps.measure(SCHEMA, *records(50))
    refused(ps.DataError, "must not be longer than 2", PartyMoments, SCHEMA, 2 * one.P, records=1)
    both = one + one
    assert both.records == 2
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(5, 5, 5), privacy=made.promise(**PARTY))
    refused(ps.DataError, "more records than privacy.max_records_per_client=1", ps.session.contribution, plan, both)


@pytest.mark.parametrize("records", [float("nan"), -3, 1.0, True])
def test_attack_a_direction_of_an_odd_number_of_records_is_none(records: Any) -> None:
    P = np.zeros((C, D), np.int64)
    P[0, 0] = 10 * SCHEMA.grid_steps
    refused(ps.DataError, "records must be an integer of at least 0", PartyMoments, SCHEMA, P, records=records)


def test_sums_that_are_not_exact_are_refused_before_all_agree_on_them() -> None:
    refused(ps.SchemaError, "features must be at most 65536, got 70000", ps.PartySchema, 2, 70_000)
    refused(ps.SchemaError, "classes must be at most 8192, got 9000", ps.PartySchema, 9_000, 2)


def test_a_cohort_of_more_parties_than_records_is_refused() -> None:
    """Its ring would be made for too few."""
    with pytest.raises(ps.PlanError, match="max_records must be at least clients, 40, not 10"):
        made.plan(SCHEMA, ps.Cohort(40, 40, 10), made.promise(unit="client", max_records_per_client=1))


def test_parties_attain_the_bound() -> None:
    """One whose direction lies on one axis, and its opposite: no smaller sensitivity is true."""
    schema = ps.PartySchema(2, 2)
    one, other = (ps.encoding.flatten(ps.measure(schema, [[1.0, 0.0]], [label])) for label in (0, 1))
    root = schema.grid_steps * math.sqrt(0.5)
    assert np.linalg.norm(one) == pytest.approx(schema.grid_steps, abs=2)
    np.testing.assert_array_equal(one, -other)
    assert np.abs(one).max() == math.floor(root)
    assert square(2 * truncated(np.array([[1.0, 0.0]]), schema.grid_steps)) == (2 * schema.grid_steps) ** 2


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        ({"unit": "record"}, "one record may change its party's direction completely"),
        ({**PARTY, "max_records_per_client": 2}, "a party is one record of a PartySchema"),
        ({**PARTY, "client_clip": 1.0}, "omit client_clip"),
    ],
)
def test_a_promise_for_anything_but_whole_parties_is_refused(promise: dict[str, Any], words: str) -> None:
    refused(ps.PlanError, words, ps.Plan, schema=SCHEMA, cohort=ps.Cohort(5, 5, 5), privacy=made.promise(**promise))


def test_the_exchange_of_a_client_is_for_parties_alone() -> None:
    promise = made.promise(adjacency="replace-one", **PARTY)
    with pytest.raises(ps.PlanError, match="with unit='client' is for a PartySchema"):
        ps.Plan(schema=ps.ClassSchema(C, D, "NA", 1.0), cohort=ps.Cohort(5, 5, 5), privacy=promise)


@pytest.mark.parametrize(
    ("account", "words"),
    [
        ({}, "one record can move all of its client's vector"),
        ({"unit": "client", "adjacency": "replace-one"}, "kept per client under replace-one and the plan promises per"),
    ],
)
def test_attack_a_ledger_of_another_unit_does_not_price_a_party_too_low(tmp_path, account, words):
    """A record turns its party's direction, which costs 2 / sigma, and an account per record asked 1 / sigma."""
    ledger = ps.dp.Ledger.create(tmp_path / "ledger.sqlite")
    ledger.set_cap("ward", **made.cap(epsilon=9.0, **account))
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(5, 5, 5), privacy=made.promise(**PARTY))
    spend = {"schema": plan.schema, "privacy": plan.privacy, "noise": plan.noise}
    refused(ps.LedgerError, words, ledger.spend, "ward", plan=plan.digest, run=b"run", **spend)
    ledger.set_cap("parties", **made.cap(epsilon=9.0, unit="client"))
    assert ledger.spend("parties", plan=plan.digest, run=b"run", **spend).mu == plan.noise.mu


def test_a_plan_of_another_direction_is_refused_by_the_word_for_it() -> None:
    """Of earlier versions "parties" was a ridge step: two versions of one plan would measure two things."""
    text = made.plan(SCHEMA, ps.Cohort(5, 5, 5), None).to_toml()
    assert 'task = "party-softmax"' in text
    with pytest.raises(ps.PlanError, match=r"schema\.task must be one of .*'party-softmax'.*, got 'parties'"):
        ps.Plan.from_toml(text.replace("party-softmax", "parties"))
