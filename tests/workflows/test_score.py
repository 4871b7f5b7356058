"""One notion of a score for everything that scores heads."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import privstats as ps
from privstats.workflows.score import Scores, auc_of

CLASSES, RIDGE = ps.ClassSchema(3, 4, "NAB", 2.0), ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0)


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
