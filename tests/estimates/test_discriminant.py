"""The discriminant that a course publishes is the one that the head gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.estimates import denoise
from privstats.estimates.discriminant import Discriminant, published_weights, temperature
from privstats.estimates.noisy_sums import NoisyClassSums
from privstats.estimates.shrinkage import log_priors
from privstats.schema.calibration import FACTORS
from tests.heads.conftest import class_release


def test_it_is_the_head_to_the_last_bit() -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    X = rng.normal(size=(400, 5)) + np.eye(3, 5)[y]
    for noise in (0.0, 20.0):
        release = class_release(X, y, sigma=dict.fromkeys("NAB", noise), rng=np.random.default_rng(0))
        real = release.moments
        sigma = {letter: float(release.sigma.get(letter, 0.0)) for letter in "NAB"}
        sums = NoisyClassSums(real.N, real.A, real.B, sigma)
        n = denoise.counts(sums.N, sums.noise("N"))
        coef, intercept = Discriminant.of(sums, n).scores(log_priors("counts", n))
        head = ps.heads.LDA().fit_release(release)
        np.testing.assert_array_equal(coef, head.coef_)
        np.testing.assert_array_equal(intercept, head.intercept_)


@given(st.integers(2, 6), st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_weights_of_units_give_rows_of_norm_1_the_same_probabilities(classes: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coef, intercept = 30 * rng.normal(size=(classes, d)), 100 * rng.normal(size=classes)
    x = rng.normal(size=d)
    x /= np.linalg.norm(x)
    found = 4 * published_weights(coef, intercept) @ np.append(math.sqrt(0.99) * x, 0.1)
    own = coef @ x + intercept
    np.testing.assert_allclose(found - found.max(), own - own.max(), atol=1e-9)
    np.testing.assert_allclose(published_weights(coef, intercept).sum(axis=0), 0.0, atol=1e-9)


def test_a_discriminant_that_is_far_too_bold_is_set_right_and_noise_alone_moves_nothing_far() -> None:
    """Hits 58 %, confidence 93 % as it is: the temperature is beyond what a prior around 1 of width .3 would admit."""
    rng = np.random.default_rng(0)
    scores = 12 * rng.normal(size=(4_000, 5))
    sure = np.exp(scores / 8) / np.exp(scores / 8).sum(axis=1, keepdims=True)
    labels = (rng.random((4_000, 1)) > sure.cumsum(axis=1)).sum(axis=1)
    top = scores.max(axis=1, keepdims=True)
    confidence = [(1 / np.exp(factor / 4 * (scores - top)).sum(axis=1)).sum() for factor in FACTORS]
    sums = np.array([(scores.argmax(axis=1) == labels).sum() - confidence[0], *np.diff(confidence)])
    assert temperature(sums, 0.0, FACTORS) == pytest.approx(8.0, rel=0.1)
    assert temperature(sums, 20.0, FACTORS) == pytest.approx(8.0, rel=0.15)
    assert 0.7 < temperature(sums, 1e6, FACTORS) < 1.6
