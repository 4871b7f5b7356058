"""Noisy weights in the directions of a site's rows: what is noise goes, what the rows cannot tell stays."""

import numpy as np
import pytest

from privstats.contrib.heads.party_discriminant import site_weights

C, D, N = 6, 40, 4000
RNG = np.random.default_rng(0)
SPREAD = np.logspace(0, -1.5, D)
Q = np.linalg.qr(RNG.normal(size=(D, D)))[0]
ROWS = RNG.normal(size=(N, D)) * SPREAD @ Q.T
ROWS -= ROWS.mean(axis=0)
SIGNAL = RNG.normal(size=(C, D)) * SPREAD @ Q.T
SIGNAL -= SIGNAL.mean(axis=0)


def whitened(W: np.ndarray) -> np.ndarray:
    """In the true directions, at the same length."""
    out = W @ Q * SPREAD**-0.5
    return np.asarray(out / np.linalg.norm(out) @ Q.T)


@pytest.mark.parametrize("sigma", [0.1, 0.3, 1.0])
def test_the_weights_come_nearer_to_the_signal_than_they_were(sigma: float) -> None:
    noisy = SIGNAL + sigma * np.random.default_rng(1).normal(size=(C, D))
    found = site_weights(noisy, sigma, ROWS)
    found /= np.linalg.norm(found)
    assert np.vdot(found, whitened(SIGNAL)) > np.vdot(whitened(noisy), whitened(SIGNAL)) + 0.02


def test_without_noise_they_are_whitened_and_nothing_else() -> None:
    found = site_weights(SIGNAL, 0.0, ROWS)
    assert np.vdot(found / np.linalg.norm(found), whitened(SIGNAL)) > 0.999
    np.testing.assert_allclose(site_weights(SIGNAL, 1e-9, ROWS), found, rtol=1e-6, atol=1e-9)


def test_noise_alone_keeps_little() -> None:
    noise = np.random.default_rng(2).normal(size=(C, D))
    assert np.linalg.norm(site_weights(noise, 1.0, ROWS)) < 0.3 * np.linalg.norm(site_weights(noise, 0.0, ROWS))


def test_what_all_classes_share_and_how_the_features_are_turned_decide_nothing() -> None:
    noisy = SIGNAL + 0.3 * np.random.default_rng(3).normal(size=(C, D))
    found = site_weights(noisy, 0.3, ROWS)
    np.testing.assert_allclose(site_weights(noisy + np.arange(D), 0.3, ROWS), found, atol=1e-9)
    np.testing.assert_allclose(site_weights(noisy @ Q, 0.3, ROWS @ Q) @ Q.T, found, atol=1e-7)
    np.testing.assert_allclose(site_weights(noisy, 0.3, 1e3 * ROWS), found, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rows", [np.zeros((1, D)), np.zeros((9, D))])
def test_rows_that_say_nothing_leave_the_weights_as_they_are(rows: np.ndarray) -> None:
    np.testing.assert_array_equal(site_weights(SIGNAL, 0.3, rows), SIGNAL - SIGNAL.mean(axis=0))


def test_a_handful_of_rows_changes_no_direction_by_much() -> None:
    """Two rows span one direction: the others are not for that without a signal."""
    found = site_weights(SIGNAL, 1e-6, ROWS[:2] - ROWS[:2].mean(axis=0))
    gains = np.linalg.norm(found @ Q, axis=0) / np.linalg.norm(SIGNAL @ Q, axis=0)
    assert gains.max() < 3 * gains.min()
