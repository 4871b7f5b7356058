"""Calibration in the large: every installed head's mean prediction, on skewed targets and for rare classes.

A head that is named least squares has the mean and slopes of least squares. No classification is worse than the class
shares by more than noise. Worlds are in ``tests.heads.worlds``.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from privstats.heads.registry import HEADS, head_class
from tests.heads.worlds import CLASSES, TARGETS, UNLEARNABLE
from tests.lengths import checkered

REGRESSIONS = {name: head_class(name) for name, entry in HEADS.items() if entry.task == "ridge"}
REGRESSIONS["Ridge from one release"] = partial(head_class("Ridge"), solver="aggregate")
CLASSIFICATIONS = {
    name: head_class(name) if entry.closed_form else partial(head_class(name), per_class=2_000)
    for name, entry in HEADS.items()
    if entry.task == "classes"
}
TERMS = {"delta": 1e-6, "adjacency": "replace-one", "clip_norm": 1.0, "ledger": "uncharged"}
TESTED = 20_000


def errors_of(name: str, world: str, n: int, epsilon: float | None, seed: int) -> np.ndarray:
    """Return a head's errors against least squares on the same records: mean, slope and square, in the targets' sd.

    The last is the share by which its mean square error exceeds that of least squares, or of the mean where nothing
    can be learned.
    """
    chosen, head = TARGETS[world], REGRESSIONS[name]()
    (X, y), (X_test, y_test) = chosen.records(2 * seed, n), chosen.records(2 * seed + 1, TESTED)
    if epsilon is None:
        head.fit(X, y)
    else:
        public = {"target_bound": chosen.bound, "expected_records": n if name in HEADS else None}
        head.fit_private(X, y, epsilon=epsilon, **public, **TERMS)
    least = np.linalg.lstsq(np.hstack([X, np.ones((n, 1))]), y, rcond=None)[0]
    wanted = np.full(TESTED, y.mean()) if world in UNLEARNABLE else X_test @ least[:-1] + least[-1]
    found, deviation = head.predict(X_test), y.std()
    excess = np.square(y_test - found).mean() / np.square(y_test - wanted).mean() - 1
    return np.array([(found - wanted).mean() / deviation, (head.coef_ - least[:-1])[0] / deviation / 3**0.5, excess])


@pytest.mark.parametrize(("name", "world"), checkered(list(REGRESSIONS), list(TARGETS)))
def test_a_regression_has_the_mean_and_the_slope_of_least_squares(name, world):
    n = 8_000 if name in HEADS else 32_000  # one release needs more records than rounds for the same errors
    mean, slope, excess = errors_of(name, world, n, 3.0, 0)
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


def class_errors_of(name: str, world: str, n: int, features: int, epsilon: float) -> tuple[float, float]:
    """Return the Brier score over that of the class shares, less 1, and the rarest class's mean probability likewise.

    Probabilities of ``RidgeClassifier`` may be 0, so no log loss compares all heads.
    """
    if not HEADS[name].closed_form:
        pytest.importorskip("torch")
    chosen = CLASSES[world]
    (X, y), (X_test, y_test) = chosen.records(0, n, features), chosen.records(1, TESTED, features)
    terms = {**TERMS, "clip_norm": None, "expected_records": n} if name == "RefinedSoftmax" else TERMS
    head = CLASSIFICATIONS[name]().fit_private(X, y, epsilon=epsilon, classes=range(len(chosen.shares)), **terms)
    found, share = head.predict_proba(X_test), np.bincount(y_test) / TESTED
    score, least = (np.square(p - np.eye(len(share))[y_test]).sum(axis=1).mean() for p in (found, share))
    return score / least - 1, found.mean(axis=0)[-1] / share[-1] - 1


@pytest.mark.parametrize(("name", "world"), checkered(list(CLASSIFICATIONS), list(CLASSES)))
def test_a_classification_is_no_worse_than_the_class_shares(name, world):
    score, mean = class_errors_of(name, world, 20_000, 3, 3.0)
    assert score < 0.03
    assert abs(mean) < 0.6  # of the rarest class; naive Bayes takes columns for normal


@pytest.mark.parametrize("name", CLASSIFICATIONS)
def test_a_rare_class_that_nothing_predicts_stays_rare_under_strong_noise(name):
    score, _ = class_errors_of(name, "rare, nothing", 2_000, 10, 1.0)
    assert score < 0.5
