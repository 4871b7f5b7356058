"""Calibration in the large: every installed head's mean prediction, on skewed targets and for rare classes.

A head that is named least squares has the mean and slopes of least squares. Worlds are in ``tests.heads.worlds``.
"""

from __future__ import annotations

import numpy as np
import pytest

from privstats.heads.registry import HEADS, head_class
from tests.heads.worlds import TARGETS, UNLEARNABLE

REGRESSIONS = tuple(name for name, entry in HEADS.items() if entry.task == "ridge")
TERMS = {"delta": 1e-6, "adjacency": "replace-one", "clip_norm": 1.0, "ledger": "uncharged"}
TESTED = 20_000


def errors_of(name: str, world: str, n: int, epsilon: float | None, seed: int) -> np.ndarray:
    """Return a head's errors against least squares on the same records: mean, slope and square, in the targets' sd.

    The last is the share by which its mean square error exceeds that of least squares, or of the mean where nothing
    can be learned.
    """
    chosen, head = TARGETS[world], head_class(name)()
    (X, y), (X_test, y_test) = chosen.records(2 * seed, n), chosen.records(2 * seed + 1, TESTED)
    if epsilon is None:
        head.fit(X, y)
    else:
        head.fit_private(X, y, epsilon=epsilon, target_bound=chosen.bound, expected_records=n, **TERMS)
    least = np.linalg.lstsq(np.hstack([X, np.ones((n, 1))]), y, rcond=None)[0]
    wanted = np.full(TESTED, y.mean()) if world in UNLEARNABLE else X_test @ least[:-1] + least[-1]
    found, deviation = head.predict(X_test), y.std()
    excess = np.square(y_test - found).mean() / np.square(y_test - wanted).mean() - 1
    return np.array([(found - wanted).mean() / deviation, (head.coef_ - least[:-1])[0] / deviation / 3**0.5, excess])


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("world", TARGETS)
def test_a_regression_has_the_mean_and_the_slope_of_least_squares(name, world):
    mean, slope, excess = errors_of(name, world, 8_000, 3.0, 0)
    assert abs(mean) < 0.06
    assert abs(slope) < 0.06
    assert excess < 0.01


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("world", TARGETS)
def test_without_noise_a_regression_is_least_squares_or_a_ridge_near_it(name, world):
    mean, slope, excess = errors_of(name, world, 4_000, None, 0)
    assert abs(mean) < 0.005
    assert abs(slope) < 0.03
    assert excess < 0.001


@pytest.mark.parametrize("name", REGRESSIONS)
@pytest.mark.parametrize("world", ["cost", "stay"])
def test_its_errors_vanish_with_records(name, world):
    mean, slope, excess = errors_of(name, world, 40_000, 8.0, 0)
    assert abs(mean) < 0.012
    assert abs(slope) < 0.012
    assert excess < 0.0005
