"""The last digits of a double give a Gaussian mechanism away; integer noise has none."""

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from benchmarks.attacks.doubles import double_gaussian
from privstats.dp import gaussian_mu, rounded_gaussian
from privstats.errors import DataError
from privstats.randomness import seeded
from threat_models.attacks.float_digits import baseline, digit_scores, unreachable

D = 4096
MU = gaussian_mu(1.0, 1e-5)
CEILING = norm.cdf(MU / np.sqrt(2))


def auc(without, with_target):
    ranks = rankdata(np.concatenate([without, with_target]))
    m, n = len(without), len(with_target)
    return (ranks[m:].sum() - n * (n + 1) / 2) / (m * n)


def record(seed):
    x = np.random.default_rng(seed).standard_normal(D)
    return x / np.linalg.norm(x)


def test_a_double_gaussian_at_epsilon_one_is_told_apart_far_above_its_ceiling():
    rng, sigma, x = np.random.default_rng(0), 1 / MU, record(1)
    nothing = np.zeros(D)
    scores = [digit_scores(double_gaussian(v, sigma, 250, rng), nothing, x, sigma) for v in (nothing, x)]
    assert pytest.approx(0.58, abs=0.01) == CEILING
    assert auc(*scores) > 0.9


def test_our_integer_noise_at_the_same_epsilon_is_at_its_ceiling():
    """Within three standard errors of the ceiling, on both sides: the likelihood ratio is still there."""
    steps, trials, rng = 2.0**12, 600, seeded(2)
    x = np.rint(record(1) * steps)
    sigma = float(np.linalg.norm(x) / MU)
    nothing = np.zeros(D)
    noise = [rounded_gaussian(sigma, D * trials, rng).reshape(trials, D).astype(np.float64) for _ in range(2)]
    scores = [digit_scores(noise[0], nothing, x, sigma), digit_scores(noise[1] + x, nothing, x, sigma)]
    assert abs(auc(*scores) - CEILING) < 3 * np.sqrt(1 / (6 * trials))


def test_what_was_added_is_never_called_unreachable():
    rng = np.random.default_rng(3)
    for size in (1e-9, 1.0, 1e9):
        value = size * rng.standard_normal(D)
        assert not unreachable(double_gaussian(value, 1.0, 20, rng), value).any()


def test_without_outputs_nothing_is_told_apart_and_noise_of_no_size_is_refused():
    assert auc(baseline(5), baseline(7)) == 0.5
    with pytest.raises(DataError, match="sigma"):
        digit_scores(np.zeros((1, 2)), np.zeros(2), np.ones(2), 0.0)
