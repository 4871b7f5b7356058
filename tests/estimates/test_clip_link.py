"""The link of a softmax whose residuals were clipped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, softmax

from privstats.estimates.clip_link import LastGradient, Link, link_of, unclipped
from privstats.estimates.denoise import NoisyClassSums
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening, exact_gradient


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
    world = _world(rate)
    y, truth, sums, whitening, U = world.y, world.truth, world.sums, world.whitening, world.U
    half = _fit(rate, clip)
    weights = np.stack([-half, half])
    link = link_of(whitening, sums, whitening.turned(weights), clip)
    raw = 2 * U @ half
    found = raw / link.temperature + link.shifts[1] - link.shifts[0]
    best = _log_loss(y, truth)
    assert abs(expit(found).mean() - rate) < 0.012
    assert _log_loss(y, found) < best + 0.012
    if clip < 1:
        assert _log_loss(y, found) < _log_loss(y, raw) - 0.001
    assert link.temperature >= 1
    assert U[0, -1] == INTERCEPT


@pytest.mark.parametrize(
    ("clip", "rate"), [(0.3, 0.5), (0.5, 0.1), (0.7, 0.05), (0.7, 0.8), (1.0, 0.05), (1.5, 0.3), (1.5, 0.05)]
)
@pytest.mark.parametrize("off", [-0.5, 0.5])
def test_the_last_gradient_brings_the_mean_probability_of_unfinished_rounds_to_the_rate(clip, rate, off):
    """Without noise; the last weights are half way from a wrong intercept, and no residual reaches a clip of 1.5."""
    world = _world(rate)
    y, sums, whitening, U = world.y, world.sums, world.whitening, world.U
    before = _fit(rate, clip)
    before[-1] += off / (2 * INTERCEPT)
    final = before.copy()
    final[-1] -= off / (4 * INTERCEPT)
    unfinished, moved = (
        abs(_mean_probability(U, final, _link(sums, whitening, final, clip, last)) - rate)
        for last in (None, _last(U, y, whitening, before, clip, sigma=0.0))
    )
    assert moved < max(0.01, unfinished / 2)
    assert unfinished > 0.01 or moved <= unfinished + 0.003


def test_a_gradient_that_noise_hides_moves_nothing_and_a_clear_one_moves_more_the_clearer_it_is():
    world = _world(0.2)
    y, sums, whitening, U = world.y, world.sums, world.whitening, world.U
    weights = _fit(0.2, 0.5)
    weights[-1] += 0.5 / (2 * INTERCEPT)
    alone = _link(sums, whitening, weights, 0.5, None)
    links = [
        _link(sums, whitening, weights, 0.5, _last(U, y, whitening, weights, 0.5, sigma))
        for sigma in (1e9, 2_000.0, 200.0, 0.0)
    ]
    moves = [abs(link.shifts - alone.shifts)[1] for link in links]
    assert moves[0] < 1e-6
    assert (np.diff(moves) > 0.001).all()
    kept = [link.match.kept for link in links if link.match is not None]
    assert alone.match is None
    assert kept[0] == pytest.approx(1)
    assert (np.diff(kept) < -0.01).all()
    assert kept[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize(("sigma", "off"), [(20.0, 0.3), (200.0, -0.5), (2_000.0, 0.5)])
def test_the_shift_moves_with_the_noise_of_the_last_gradient_as_its_match_states(sigma, off):
    world = _world(0.2)
    y, sums, whitening, U = world.y, world.sums, world.whitening, world.U
    weights = _fit(0.2, 0.5)
    weights[-1] += off / (2 * INTERCEPT)
    last = _last(U, y, whitening, weights, 0.5, sigma)
    row = np.append(sums.A.sum(axis=0) @ whitening.vectors * (whitening.scale * whitening.stretch), 0.0) / sums.records
    row[-1] = INTERCEPT
    low, high = (  # the mean residual along the mean row, .0005 lower and higher
        _link(sums, whitening, weights, 0.5, replace(last, gradient=last.gradient + step * np.outer([-1, 1], row)))
        for step in (-0.0005 * sums.records, 0.0005 * sums.records)
    )
    assert low.match is not None
    moved = float(np.diff(high.shifts)[0] - np.diff(low.shifts)[0]) * low.temperature
    assert moved == pytest.approx(-0.001 * low.match.pull, rel=0.05)


@given(
    st.just(0.0) | st.floats(1e-6, 1e6),
    st.floats(-1e6, 1e6),
    st.floats(0.0, 60.0),
    st.sampled_from([0.3, 0.7, 1.0]),
    st.just(0.0) | st.floats(1e-6, 1e3),
)
def test_any_last_gradient_gives_a_finite_link_of_the_same_temperature(sigma, pull, length, clip, noise):
    sums = NoisyClassSums(
        np.array([60.0, 40.0]), np.diag([60.0, 40.0]), np.diag([60.0, 40.0]), dict.fromkeys("NAB", noise)
    )
    whitening = SoftmaxWhitening.of(sums)
    weights = length * np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]])
    gradient = pull * np.array([[-1.0, 0.5, 0.1], [1.0, -0.5, -0.1]])
    link = link_of(whitening, sums, weights, clip, LastGradient(weights / 2, gradient, sigma))
    assert link.temperature == link_of(whitening, sums, weights, clip).temperature
    assert np.isfinite(link.shifts).all()
    assert abs(link.shifts.sum()) < 1e-9
    assert link.match is not None
    assert -1e-9 <= link.match.kept <= 1
    assert np.isfinite(link.match.pull)


def test_more_than_two_classes_have_the_link_that_they_had():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 4)), np.arange(300) % 3
    sums, whitening = _exact_sums(X / np.linalg.norm(X, axis=1, keepdims=True), y)
    weights, gradient = rng.normal(size=(2, 3, 5))
    link = link_of(whitening, sums, weights, 0.5)
    again = link_of(whitening, sums, weights, 0.5, LastGradient(weights, 9 * gradient, 1.0))
    assert again.temperature == link.temperature
    assert again.match is None
    np.testing.assert_array_equal(again.shifts, link.shifts)


@dataclass(frozen=True)
class World:
    """Records of a logistic model with log odds ``truth``, their exact sums, and their whitened rows."""

    y: np.ndarray
    truth: np.ndarray
    sums: NoisyClassSums
    whitening: SoftmaxWhitening
    U: np.ndarray


@cache
def _world(rate: float) -> World:
    X, y, truth = _logistic_records(rate)
    sums, whitening = _exact_sums(X, y)
    return World(y, truth, sums, whitening, whitening.rows(X))


def _fit(rate: float, clip: float) -> np.ndarray:
    """Return a copy of the weights of ``_clipped_fit`` in the world of this rate."""
    return _fitted(rate, clip).copy()


@cache
def _fitted(rate: float, clip: float) -> np.ndarray:
    return _clipped_fit(_world(rate).U, _world(rate).y, clip)


def _logistic_records(rate: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of norm 1 with a long mean, as those of Cells have, labels of a logistic model, and its log odds."""
    rng, n, d = np.random.default_rng(3), 40_000, 6
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    X[:, 0] = np.sqrt(np.maximum(0.0, 2 - np.square(X[:, 1:]).sum(axis=1)))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    truth = X[:, 1:] @ np.array([5.0, -4.0, 2.0, 0.0, 1.0])
    truth += minimize(lambda b: (expit(truth + b).mean() - rate) ** 2, [np.log(rate / (1 - rate))]).x
    return X, (rng.random(n) < expit(truth)).astype(int), truth


def _exact_sums(X: np.ndarray, y: np.ndarray) -> tuple[NoisyClassSums, SoftmaxWhitening]:
    A = np.eye(y.max() + 1)[y].T @ X
    sums = NoisyClassSums(np.bincount(y).astype(float), A, X.T @ X, dict.fromkeys("NAB", 1e-9))
    return sums, SoftmaxWhitening.of(sums, 0.1)


def _last(
    U: np.ndarray, y: np.ndarray, whitening: SoftmaxWhitening, half: np.ndarray, clip: float, sigma: float
) -> LastGradient:
    weights = np.stack([-half, half])
    gradient, _ = exact_gradient(U, y, weights, clip)
    return LastGradient(whitening.turned(weights), whitening.turned(gradient), sigma)


def _link(
    sums: NoisyClassSums, whitening: SoftmaxWhitening, half: np.ndarray, clip: float, last: LastGradient | None
) -> Link:
    return link_of(whitening, sums, whitening.turned(np.stack([-half, half])), clip, last)


def _mean_probability(U: np.ndarray, half: np.ndarray, link: Link) -> float:
    return float(expit(2 * U @ half / link.temperature + link.shifts[1] - link.shifts[0]).mean())


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
