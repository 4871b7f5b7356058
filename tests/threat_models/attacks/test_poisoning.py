"""One lying client in twenty, against accuracy and against checks of the total."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from privstats.errors import DataError
from threat_models.attacks.poisoning import Moments, accuracy, baseline, check_total, poisoned

CLIENTS = 20


@pytest.fixture(scope="module")
def cohort():
    """Moments of twenty clients with rows of norm 1, and test records."""
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    shards = [Moments.of(X[i:1400:CLIENTS], y[i:1400:CLIENTS], 10) for i in range(CLIENTS)]
    return shards, X[1400:], y[1400:]


def total_of(shards, lie=None, scale=1.0):
    total = shards[0] if lie is None else poisoned(shards[0], lie, scale)
    for shard in shards[1:]:
        total = total + shard
    return total


def test_an_honest_total_passes_every_check(cohort):
    shards, _, _ = cohort
    assert check_total(total_of(shards), 1.0).caught_by == ()


def test_one_client_that_sends_enough_ruins_the_model(cohort):
    shards, X, y = cohort
    honest = baseline(total_of(shards), X, y)
    assert honest > 0.85
    assert accuracy(total_of(shards, "scaled sums", 1.0), X, y) == honest
    assert accuracy(total_of(shards, "swapped classes", 20.0), X, y) < 0.3
    assert accuracy(total_of(shards, "negated sums", 30.0), X, y) < 0.5


@pytest.mark.parametrize(
    ("lie", "scale", "seen"),
    [
        ("scaled sums", 100.0, {"norm", "scatter"}),
        ("scaled records", 100.0, {"norm", "trace"}),
        ("negated sums", 100.0, {"norm", "scatter"}),
        ("swapped classes", 100.0, {"norm", "scatter"}),
    ],
)
def test_great_lies_are_seen_by_the_checks_that_can_see_them(cohort, lie, scale, seen):
    shards, _, _ = cohort
    assert set(check_total(total_of(shards, lie, scale), 1.0).caught_by) == seen


def test_the_scatter_sees_lies_that_norms_do_not(cohort):
    """Rows of a class are alike, so there is little scatter to hide in: A A^T / N outgrows S before ||A|| does N R."""
    shards, X, y = cohort
    total = total_of(shards, "scaled sums", 1.5)
    assert check_total(total, 1.0).caught_by == ("scatter",)
    assert baseline(total_of(shards), X, y) - accuracy(total, X, y) < 0.02


def test_a_small_lie_passes_all_checks_and_costs_little(cohort):
    shards, X, y = cohort
    total = total_of(shards, "negated sums", 1.0)
    assert check_total(total, 1.0).caught_by == ()
    assert accuracy(total, X, y) > 0.8


def test_noise_alone_accuses_nobody_and_hides_small_lies(cohort):
    shards, _, _ = cohort
    rng, sigma, accused = np.random.default_rng(0), 3.0, 0
    for _ in range(20):
        honest = total_of(shards)
        upper = np.triu(rng.standard_normal(honest.S.shape))
        noise = sigma * (upper + upper.transpose(0, 2, 1)) / np.sqrt(2)
        noise[:, range(64), range(64)] /= np.sqrt(2)
        noisy = Moments(
            honest.N + sigma * rng.standard_normal(10),
            honest.A + sigma * rng.standard_normal((10, 64)),
            honest.S + noise,
        )
        accused += bool(check_total(noisy, 1.0, sigma_N=sigma, sigma_A=sigma, sigma_S=sigma).caught_by)
    assert accused == 0
    assert check_total(total_of(shards, "scaled sums", 4.0), 1.0, sigma_N=3.0, sigma_A=3.0, sigma_S=3.0).caught_by == ()
    assert check_total(total_of(shards, "scaled sums", 1000.0), 1.0, sigma_N=3.0, sigma_A=3.0, sigma_S=3.0).caught_by


def test_a_lie_that_nobody_described_is_refused(cohort):
    with pytest.raises(DataError, match="lie must be"):
        poisoned(cohort[0][0], "another", 1.0)
