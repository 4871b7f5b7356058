"""One notion of a point, a score and a draw for everything that scores heads."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import privstats as ps
from privstats.workflows.score import Point, Scores, auc_of, heading, metric, noise_draw, scored, shown

CLASSES, RIDGE = ps.ClassSchema(3, 4, "NAB", 2.0), ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0)


def test_a_point_is_mean_and_spread_over_the_draws():
    assert scored("LDA", 3.0, [0.5, 0.7]) == Point("LDA", 3.0, 0.6, pytest.approx(0.2 / math.sqrt(2)))
    assert scored("LDA", math.inf, [0.5]).spread == 0


class Guess:
    """A model that has one answer."""

    classes_ = np.array(["ash", "elm"])

    def __init__(self, answer):
        self.answer = answer

    def predict(self, X):
        return np.full(len(X), self.answer)

    def score(self, X, y):
        return float((y == self.answer).mean())


def test_balanced_accuracy_counts_every_class_alike():
    y = np.array(["ash"] * 18 + ["elm"] * 2)
    assert Scores.of(CLASSES, Guess("ash"), np.zeros((20, 4)), y) == Scores(0.9, 0.5, one_class=True)
    assert Scores.of(CLASSES, Guess("elm"), np.zeros((20, 4)), y) == Scores(0.1, 0.5, one_class=True)
    of_three = Scores.of(CLASSES, Guess("ash"), np.zeros((20, 4)), np.array(["ash"] * 10 + ["oak"] * 9 + ["elm"]))
    assert of_three == Scores(0.5, 1 / 3, one_class=True)  # an unknown class of the test records is missed
    assert Scores.of(RIDGE, Guess("ash"), np.zeros((20, 4)), y) == Scores(0.9, None)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_area_is_scikit_learns(classes):
    y = np.arange(300) % classes
    X = np.round(np.random.default_rng(0).normal(size=(300, 3)) + np.eye(classes, 3)[y], 1)
    head = ps.heads.LDA().fit(X[:150], y[:150])
    shares = head.predict_proba(X)
    wanted = roc_auc_score(y, shares[:, 1]) if classes == 2 else roc_auc_score(y, shares, multi_class="ovr")
    assert Scores.of(CLASSES, head, X, y).auc == pytest.approx(wanted)
    assert auc_of(Guess("ash"), X, y) is None
    assert auc_of(head, X[y == 0], y[y == 0]) is None


def test_a_head_of_one_class_is_told():
    y = (np.arange(200) % 10 == 0).astype(int)
    X = np.random.default_rng(0).normal(size=(200, 3))
    found = Scores.of(CLASSES, ps.heads.LDA().fit(X, y), X, y)
    assert (found.score, found.balanced, found.one_class) == (0.9, 0.5, True)
    assert not Scores.of(CLASSES, ps.heads.LDA().fit(X, y), X[y == 0], y[y == 0]).one_class


def test_every_draw_of_every_seed_is_its_own():
    draws = [noise_draw(seed, repeat).bytes(8) for seed in range(3) for repeat in range(3)]
    assert len(set(draws)) == len(draws)
    assert np.array_equal(noise_draw(1, 2).uint64(4), noise_draw(1, 2).uint64(4))


def test_scores_are_told_in_the_words_of_the_schema():
    assert (metric(CLASSES), shown(CLASSES, 0.5)) == ("accuracy", "50.0%")
    assert (metric(RIDGE), shown(RIDGE, 0.5)) == ("R²", "0.500")
    assert (heading(3.0), heading(math.inf)) == ("epsilon 3", "no DP")
