"""The constant column is eliminated, and what noise has hidden is not divided by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privstats.heads.estimates.least_squares import eliminate_constant
from privstats.heads.evidence import release_gram
from tests.heads.conftest import ridge_release


def test_a_count_lost_in_its_noise_leaves_means_near_the_origin():
    rng = np.random.default_rng(0)
    exact = release_gram(ridge_release(np.c_[np.zeros((50, 3)), np.full(50, 0.5)], np.zeros(50)), None)
    means = []
    for _ in range(200):
        upper = np.triu(rng.standard_normal((4, 4)))
        G = exact.G + 100 * (np.triu(upper, 1) + np.triu(upper, 1).T + np.diag(np.diag(upper)) * 2**0.5)
        h = 100 * rng.standard_normal((4, 1))
        centred = eliminate_constant(replace(exact, G=G, h=h, sigma_G=100 * 2**0.5, sigma_h=100.0, constant=0.5))
        means.append(np.abs(np.r_[centred.feature_means, centred.target_means]).mean())
    assert np.mean(means) < 0.07
