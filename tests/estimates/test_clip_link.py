"""The link of a softmax whose residuals were clipped."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax

from privstats.estimates.clip_link import link_of, unclipped
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening


@given(st.integers(2, 6), st.floats(0.1, 1.5), st.floats(0.1, 8.0), st.integers(0, 10_000))
def test_where_classes_have_the_probabilities_of_the_link_clipped_pulls_add_up_to_nothing(C, clip, width, seed):
    p = softmax(width * np.random.default_rng(seed).normal(size=(20, C)), axis=1)
    pulls = p[:, None, :] - np.eye(C)  # of a record of each class
    pulls *= np.minimum(1, clip / np.maximum(np.linalg.norm(pulls, axis=2), 1e-300))[:, :, None]
    found = unclipped(p, clip)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(np.einsum("nc,ncj->nj", found, pulls), 0, atol=1e-12)
    assert (found.max(axis=1) <= p.max(axis=1) + 1e-12).all()  # never surer


@pytest.mark.parametrize(("clip", "rate"), [(0.3, 0.5), (0.5, 0.1), (0.7, 0.2), (1.0, 0.04)])
def test_a_clipped_fit_of_a_logistic_model_gets_its_rate_and_its_log_loss_back(clip, rate):
    """Records of a logistic model, weights where the clipped gradient is 0: the truth is nearly a line away."""
    rng, n, d = np.random.default_rng(3), 40_000, 6
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    X[:, 0] = np.sqrt(np.maximum(0.0, 2 - np.square(X[:, 1:]).sum(axis=1)))  # a long mean, as rows of Cells have
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = X[:, 1:] @ np.array([5.0, -4.0, 2.0, 0.0, 1.0])
    truth += minimize(lambda b: (expit(truth + b).mean() - rate) ** 2, [np.log(rate / (1 - rate))]).x
    y = (rng.random(n) < expit(truth)).astype(int)
    A = np.eye(2)[y].T @ X
    sums = NoisyClassSums(np.bincount(y).astype(float), A, X.T @ X, dict.fromkeys("NAB", 1e-9))
    whitening = SoftmaxWhitening.of(sums, 0.1)
    U = whitening.rows(X)
    half = _clipped_fit(U, y, clip)
    weights = np.stack([-half, half])
    turned = np.hstack([weights[:, :-1] @ whitening.vectors, weights[:, -1:]])
    temperature, shifts = link_of(whitening, sums, turned, clip)
    raw = 2 * U @ half
    found = raw / temperature + shifts[1] - shifts[0]
    best = _log_loss(y, truth)
    assert abs(expit(found).mean() - rate) < 0.012
    assert _log_loss(y, found) < best + 0.012
    if clip < 1:
        assert _log_loss(y, found) < _log_loss(y, raw) - 0.001
    assert temperature >= 1
    assert U[0, -1] == INTERCEPT


def _clipped_fit(U: np.ndarray, y: np.ndarray, clip: float) -> np.ndarray:
    """Half the weights of class 1 over class 0 at which the clipped gradient is 0: of a convex loss."""
    least, sign = clip / np.sqrt(2), 2 * y - 1

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        margin = sign * (2 * U @ w)
        wrong = expit(-margin)
        edge = -np.log(1 / least - 1) if least < 1 else -np.inf  # below it the slope is the clip's
        inside = np.logaddexp(0, -np.maximum(margin, edge))
        value = inside + least * np.maximum(0.0, edge - margin)
        return value.mean(), -2 * U.T @ (sign * np.minimum(wrong, least)) / len(y)

    return minimize(loss, np.zeros(U.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x


def _log_loss(y: np.ndarray, scores: np.ndarray) -> float:
    return float(np.logaddexp(0, -(2 * y - 1) * scores).mean())
