"""Records that are non-negative, in a range or on a coarse grid are read off (N, A, S) of many."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from privstats import ClassSchema, measure
from privstats.errors import DataError
from tests.lengths import sized
from tests.made import refused
from threat_models.attacks.constraints import NONNEGATIVE, Constraints
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import baseline, certify, recover

PIXELS = Constraints(lower=0.0, upper=16.0)
GREY_LEVELS = Constraints(lower=0.0, upper=16.0, spacing=1.0)


def attack(rows, constraints, seed=0, **effort):
    rng = np.random.default_rng(seed)
    return recover(len(rows), rows.sum(axis=0), rows.T @ rows, constraints=constraints, rng=rng, **effort)


def digits(n, trial, kind="class"):
    X, y = load_digits(return_X_y=True)
    pool = np.flatnonzero(y == trial % 10) if kind == "class" else np.arange(len(X))
    return X[np.random.default_rng(trial).choice(pool, n, replace=False)]


def within(n, trials, constraints, **effort):
    shares = [match(rows, attack(rows, constraints, **effort).rows).within() for rows in (digits(n, t) for t in trials)]
    return float(np.mean(shares))


@pytest.mark.nightly
def test_a_hundred_half_zero_relu_records_in_512_dimensions_come_out_to_1e8():
    rows = np.maximum(np.random.default_rng(0).standard_normal((100, 512)), 0.0)
    found = attack(rows, NONNEGATIVE, starts=2)
    assert found.certified
    assert np.abs(rows - found.rows[match(rows, found.rows).order]).max() < 1e-8


def test_seven_digits_are_all_recovered_from_not_being_negative():
    assert within(7, range(4), NONNEGATIVE) == 1.0


@pytest.mark.parametrize("n", [7, 10, 15])
def test_on_the_pixels_own_grid_all_digits_are_exact_and_certified(n):
    for trial in range(3):
        rows = digits(n, trial)
        found = attack(rows, GREY_LEVELS)
        assert found.certified
        assert {tuple(row) for row in found.rows} == {tuple(row) for row in rows}


@pytest.mark.ci
def test_the_range_of_pixels_alone_recovers_ten_digits():
    assert within(10, range(3), PIXELS) == 1.0


def test_a_real_upload_of_relu_features_is_read_to_its_grid():
    """Through the library's own clip and grid: what comes out is every record as it was rounded, and certified."""
    X = np.maximum(np.random.default_rng(8).standard_normal((20, 128)), 0.0)
    schema = ClassSchema(2, 128, "NAS", clip_norm=16.0, nonnegative=True)
    moments = measure(schema, X, np.zeros(20, dtype=np.intp))
    grid = Constraints(lower=0.0, spacing=1.0)
    found = recover(moments.N[0], moments.A[0], moments.S[0], constraints=grid, rng=np.random.default_rng(0))
    assert found.certified
    alone = [measure(schema, x[None], np.zeros(1, dtype=np.intp)).A[0] for x in X]
    assert {tuple(row) for row in found.rows} == {tuple(row) for row in alone}


def test_one_and_two_records_are_no_special_case():
    for n in (1, 2):
        rows = digits(n, 3)
        found = attack(rows, GREY_LEVELS, starts=2, iterations=200)
        assert found.certified
        assert {tuple(row) for row in found.rows} == {tuple(row) for row in rows}


def test_a_known_norm_is_met():
    rows = np.maximum(np.random.default_rng(5).standard_normal((6, 40)), 0.0)
    rows *= 2 / np.linalg.norm(rows, axis=1, keepdims=True)
    found = attack(rows, Constraints(lower=0.0, norm=2.0))
    assert found.certified
    assert match(rows, found.rows).errors.max() < 1e-8


def test_noise_in_the_moments_ends_the_certificate_and_at_enough_of_it_the_attack():
    rng = np.random.default_rng(6)
    rows = np.maximum(rng.standard_normal((6, 64)), 0.0)

    def share(level):
        noise = level * rng.standard_normal((64, 64))
        A = rows.sum(axis=0) + level * rng.standard_normal(64)
        found = recover(6.3, A, rows.T @ rows + (noise + noise.T) / 2, rng=rng, iterations=300)
        assert not found.certified
        return match(rows, found.rows).within(0.25)

    assert (share(1e-3), share(30.0)) == (1.0, 0.0)


def test_sums_that_no_records_have_are_never_certified():
    """As many records as given sums say, and one more in S: the rank gives the lie away, whatever rows are found."""
    rows = np.maximum(np.random.default_rng(9).standard_normal((6, 64)), 0.0)
    S = rows.T @ rows + 1e-4 * np.eye(64)
    found = recover(6, rows.sum(axis=0), S, rng=np.random.default_rng(0), iterations=200)
    assert not found.certified
    assert match(rows, found.rows).within() == 1.0


def test_without_enough_zeros_nothing_is_claimed():
    """Strictly positive records in few dimensions leave a continuum of answers: found, perhaps, but not certified."""
    rows = 1.0 + np.random.default_rng(7).random((12, 5))
    found = attack(rows, NONNEGATIVE, iterations=60)
    assert not found.certified
    assert found.iterations == 60
    assert match(rows, found.rows).within(1e-6) < 1


def test_rows_of_the_wrong_rotation_are_not_certified():
    rows = digits(7, 1)
    turned = attack(rows, NONNEGATIVE, iterations=1, starts=1).rows
    A, S = rows.sum(axis=0), rows.T @ rows
    assert certify(rows, A, S, GREY_LEVELS)
    assert np.allclose(turned.T @ turned, S)
    assert not certify(turned, A, S, NONNEGATIVE)
    assert not certify(turned, A, S, GREY_LEVELS)
    assert not certify(np.rint(turned), A, S, GREY_LEVELS)


def test_the_public_sample_alone_gets_no_row():
    rows = digits(10, 2, "mixed")
    others = np.array([row for row in load_digits().data if not (row == rows).all(axis=1).any()])
    assert match(rows, baseline(others, 10, np.random.default_rng(0))).within() == 0.0
    refused(DataError, "fewer than the 10", baseline, others[:9], 10, np.random.default_rng(0))


def test_fewer_guesses_than_records_count_as_missed():
    matching = match(np.eye(3), np.eye(3)[:2])
    assert (sorted(matching.order), matching.within()) == ([-1, 0, 1], pytest.approx(2 / 3))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"lower": 1.0, "upper": 1.0}, "lower must be below upper"),
        ({"spacing": -1.0}, "spacing must be"),
        ({"norm": 0.0}, "norm must be above 0"),
    ],
)
def test_constraints_that_contradict_themselves_are_refused(bad, says):
    refused(DataError, says, Constraints, **bad)


def test_an_attack_without_knowledge_is_refused():
    rows = digits(4, 0)
    refused(DataError, "give lower, upper or spacing", attack, rows, Constraints(norm=1.0))
    refused(DataError, "at least 1 record", recover, 0.2, rows.sum(axis=0), rows.T @ rows, rng=np.random.default_rng(0))


@pytest.mark.nightly
def test_digits_by_not_being_negative_reach_the_shares_that_are_known():
    """Known: all rows to n = 7, .84 at 10, .38 at 15; one class often leaves a continuum, so draws differ widely."""
    trials = range(sized(8, 20))
    assert within(7, trials, NONNEGATIVE, starts=16, iterations=10_000) == 1.0
    assert within(10, trials, NONNEGATIVE, starts=16, iterations=10_000) > 0.6
    assert within(15, trials, NONNEGATIVE, starts=16, iterations=10_000) > 0.15
    assert within(15, trials, PIXELS, starts=16, iterations=10_000) > 0.95
