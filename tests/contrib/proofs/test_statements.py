"""Honest clients are always accepted, and what they prove is what the statement says, in Python's own integers."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.proofs.counts import of_counts
from privstats.contrib.proofs.field import elements, lift
from privstats.contrib.proofs.moments import of_classes, of_folds, of_separate_classes
from privstats.contrib.proofs.norm import of_norms
from privstats.contrib.proofs.prover import Attempt, prove
from privstats.contrib.proofs.verifier import answer_size, bad_parts
from privstats.encoding import flatten
from privstats.errors import DataError, PlanError
from tests.contrib.proofs.cases import BITS, CASES, STEP, Case, attempt_of, found, judged, nab, proof_of, secrets_of


@pytest.mark.parametrize("kind", CASES)
def test_an_honest_report_of_every_statement_is_taken(kind: str) -> None:
    assert found(CASES[kind](np.random.default_rng(0))) == ()


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32), classes=st.integers(2, 4), features=st.integers(1, 6), n=st.integers(0, 40),
    rank=st.integers(0, 2), scale=st.sampled_from([1e-3, 0.3, 1.0]), helpers=st.integers(1, 3),
)  # fmt: skip
def test_any_records_are_taken(seed, classes, features, n, rank, scale, helpers) -> None:
    case = nab(np.random.default_rng(seed), classes, features, n, rank=min(rank, features), scale=scale)
    made = attempt_of(case, helpers=helpers)
    assert made.fits  # no second blind
    assert judged(case.statement, made.finished(), secrets_of(helpers=helpers)) == ()


@pytest.mark.nightly
def test_five_thousand_honest_reports_are_taken_at_the_first_blind() -> None:
    rng, kinds = np.random.default_rng(0), list(CASES)
    for number in range(5000):
        case = CASES[kinds[number % len(kinds)]](rng)
        if number % 3 == 0:
            n, features = int(rng.integers(0, 300)), int(rng.integers(1, 12))
            case = nab(
                rng, int(rng.integers(2, 6)), features, n, rank=int(rng.integers(0, features)), scale=rng.random()
            )
        made = attempt_of(case, str(number))
        assert made.fits
        assert judged(case.statement, made.finished(), secrets_of(str(number))) == ()


@pytest.mark.parametrize("spread", ["one class", "a record each", "at the clip"])
def test_corners_of_admissible_records_are_taken(spread: str) -> None:
    n, d = 6, 3
    X = np.zeros((n, d), np.int64)
    X[:, 0] = STEP  # n equal records at the clip exactly, so T has rank one
    y = {"one class": [0] * n, "a record each": range(n), "at the clip": [0, 1, 2, 0, 1, 2]}[spread]
    y = np.asarray(list(y))
    counts = STEP**2 * np.bincount(y, minlength=n)
    sums = np.zeros((n, d), np.int64)
    np.add.at(sums, y, STEP * X)
    second = X.T @ X
    x = np.concatenate([counts, sums.ravel(), second.diagonal(), second[np.triu_indices(d, 1)]])
    assert found(Case(of_classes(n, d, BITS, n), x)) == ()


def test_what_measure_gives_is_taken_after_its_wire_factors() -> None:
    schema = ps.ClassSchema(3, 5, "NAB", 1.0, grid_bits=12)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 5)), rng.integers(0, 3, 20)
    factors = np.repeat([4**12 // 4096, 2**12, 1], [3, 15, 15])
    x = factors * flatten(ps.measure(schema, X, y))
    assert found(Case(of_classes(3, 5, 12, 20), x)) == ()
    with pytest.raises(DataError, match="not of at most most_records=19 records"):
        Case(of_classes(3, 5, 12, 19), x).witness()


def test_a_clipped_client_is_taken_where_the_plan_clips_clients() -> None:
    """Whole grid steps, toward zero: up to a step an entry off a sum of records."""
    schema = ps.ClassSchema(3, 5, "NAB", 1.0, grid_bits=12)
    promise = {"unit": "client", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-5}
    privacy = ps.Privacy(model="panel", max_records_per_client=40, client_clip=1.5, **promise)
    rng, factors = np.random.default_rng(1), np.repeat([4**12 // 4096, 2**12, 1], [3, 15, 15])
    for _ in range(5):
        n = int(rng.integers(1, 40))
        vector = flatten(ps.measure(schema, rng.normal(size=(n, 5)), rng.integers(0, 3, n)))
        x = factors * ps.dp.clip_client(schema, privacy, vector)
        assert found(Case(of_classes(3, 5, 12, 40, clipped=True), x)) == ()


def test_the_clear_report_keeps_the_statement_in_integers() -> None:
    """The second way: T = L L' + E entry by entry, traces, counts, size of E and cones, without the field."""
    case = nab(np.random.default_rng(5))
    s, (C, d) = case.statement, (3, 4)
    w = [int(each) for each in case.witness()]
    factor, error = w[: s.entries], w[s.entries :]
    K = C + d
    lower, left, target = ([[0] * K for _ in range(K)] for _ in range(3))
    rows, columns = s.pattern.inner
    x = [int(each) for each in case.x]
    for place, (i, j) in enumerate(zip(rows, columns, strict=True)):
        lower[i][j] = factor[place]
        left[i][j] = left[j][i] = error[place]
        target[i][j] = target[j][i] = x[s.source[place]]
    N, A, trace = x[:C], x[C : C + C * d], sum(x[C + C * d : C + C * d + d])
    assert [target[c][c] for c in range(C)] == N
    assert [target[C + i][c] for c in range(C) for i in range(d)] == A
    for i in range(K):
        for j in range(K):
            assert target[i][j] == sum(lower[i][k] * lower[j][k] for k in range(K)) + left[i][j]
    assert all(lower[i][j] == 0 for i in range(K) for j in range(i + 1, K))
    assert trace <= sum(N) + K
    assert sum(N) <= 9 * STEP**2
    assert sum(each**2 for each in error) <= s.error == 9 * K * STEP**2
    for c in range(C):
        assert sum(lower[C + i][c] ** 2 for i in range(d)) <= lower[c][c] ** 2 + s.width
    report = attempt_of(case)
    assert lift(report.vector[s.size : s.size + s.witness_size]).tolist() == w


def test_the_lengths_are_those_of_the_specification() -> None:
    digits = of_classes(10, 64, 12, 68)
    assert (digits.size, digits.bits, digits.signed, digits.rows) == (2730, 23, 128, 154)
    assert (8 * digits.ends[-1], answer_size(digits)) == (101_104, 424)
    assert round(8 * of_classes(10, 128, 12, 1000).ends[-1] / 1000) == 273
    many = of_classes(77, 384, 12, 100)
    assert (many.size, round(8 * many.ends[-1] / 1e6, 2)) == (103_565, 2.61)
    gradient = of_norms((10_000,), 4**12, 68)
    assert (gradient.shift, round(8 * gradient.ends[-1] / 1000)) == (12, 193)


@pytest.mark.parametrize(
    ("features", "bits", "most"), [(64, 12, 156_544), (64, 10, 2_504_717), (128, 12, 84_981), (384, 12, 0)]
)
def test_the_largest_number_of_records_has_room_and_one_more_has_none(features: int, bits: int, most: int) -> None:
    classes = 10
    if not most:  # 77 classes
        classes, most = 77, 25_696
    of_classes(classes, features, bits, most)
    told = re.escape(f"has no room in its field for so many records: lower most_records={most + 1} or grid_bits={bits}")
    with pytest.raises(PlanError, match=told):
        of_classes(classes, features, bits, most + 1)


@pytest.mark.parametrize(
    "make",
    [
        lambda n: of_separate_classes(3, 4, 12, n),
        lambda n: of_folds(4, 2, 3, 12, n),
        lambda n: of_classes(3, 4, 12, n, second=False),
        lambda n: of_norms((20,), 4**12, n),
        lambda n: of_counts((3, 9), 4**12, n << 20),
    ],
)
def test_every_statement_refuses_more_records_than_its_field_has_room_for(make) -> None:
    make(1000)
    with pytest.raises(PlanError, match="no room in its field"):
        make(1 << 40)


@pytest.mark.parametrize(
    ("statement", "x", "told"),
    [
        (of_norms((3, 2), 100, 5), [501, 0, 0, 0, 0], "larger norm than the plan's most_records"),
        (of_norms((3, 2), 100, 5), [300, 300, 300, 0, 0], "larger norm than the plan's most_records"),
        (of_norms((3, 1), 100, 5, (3,)), [0, 0, 0, -1], "larger norm"),
        (of_norms((3,), 100, 5), [0, 0], "about 3 sums and no hidden entry"),
        (of_counts((2, 2), 10, 5), [0, 10, 0, -10], "no tables of at most most_records=5 records"),
        (of_counts((2, 2), 10, 5), [0, 15, 0, 10], "no tables"),
        (of_counts((2, 2), 10, 5), [30, 30, 0, 0], "no tables"),
        (of_counts((2, 2), 10, 5), [0], "about 4 counts"),
        (of_classes(2, 1, 8, 3), [0] * 4, "about 5 sums and 0 hidden entries"),
        (of_classes(2, 1, 8, 3), [2**60, 0, 0, 0, 0], "not of at most most_records=3 records"),
        (of_classes(2, 1, 8, 3), [-(4**8), 0, 0, 0, 0], "not of at most"),
    ],
)
def test_a_client_is_told_before_anything_leaves(statement, x: list[int], told: str) -> None:
    with pytest.raises(DataError, match=told):
        Case(statement, np.array(x, np.int64)).witness()


def test_a_witness_that_does_not_fit_ends_after_64_blinds(monkeypatch) -> None:
    case, tried = nab(np.random.default_rng(0)), []
    fits = Attempt.fits
    monkeypatch.setattr(Attempt, "fits", property(lambda made: tried.append(made) or fits.fget(made)))
    w = case.witness()
    w[0] += 1 << 40
    with pytest.raises(DataError, match="no proof of validity='moments' was found"):
        prove(case.statement, elements(case.x), elements(w), secrets_of())
    assert len(tried) == 64
    w = case.witness()
    w[case.statement.entries] += 1 << 20  # its square is beyond e2, whatever the blind
    with pytest.raises(DataError, match="no proof of"):
        prove(case.statement, elements(case.x), elements(w), secrets_of())
    assert len(tried) == 64


def test_a_body_of_another_size_or_with_words_beyond_the_field_is_refused() -> None:
    case = nab(np.random.default_rng(0))
    proof = proof_of(case)
    place = (proof.blind, proof.transcript)
    with pytest.raises(ValueError, match=f"has {case.statement.ends[-1]} words"):
        bad_parts(case.statement, proof.body[1:], *place)
    body = proof.body.copy()
    body[5] = (1 << 61) - 1
    with pytest.raises(ValueError, match="below 2\\*\\*61 - 1"):
        bad_parts(case.statement, body, *place)


def test_nothing_of_a_report_is_shown() -> None:
    secrets, proof = secrets_of(), proof_of(nab(np.random.default_rng(0)))
    for shown, secret in ((repr(secrets), secrets.secret), (repr(proof), proof.blind)):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown
