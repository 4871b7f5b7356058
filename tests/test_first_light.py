"""The whole way on real data: accuracy that a user may count on, at the noise they chose."""

from statistics import mean

import pytest
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

import privstats as ps
from privstats.randomness import seeded
from privstats.transforms import CentreRows, UnitNorm

X, Y = load_digits(return_X_y=True)
X_TRAIN, X_TEST, Y_TRAIN, Y_TEST = train_test_split(X, Y, test_size=0.25, random_state=0, stratify=Y)
SHARDS = [(X_TRAIN[k::10], Y_TRAIN[k::10]) for k in range(10)]


def accuracy(privacy, seed):
    plan = ps.Plan(
        schema=ps.ClassSchema(10, 64, "NAB", clip_norm=1.0, transform=(CentreRows(), UnitNorm())),
        cohort=ps.Cohort(10, 10, len(Y_TRAIN)),
        privacy=privacy,
    )
    return ps.heads.LDA().fit_release(ps.simulate(plan, SHARDS, rng=seeded(seed))).score(X_TEST, Y_TEST)


@pytest.mark.slow
@pytest.mark.parametrize("model", ["central", "distributed"])
@pytest.mark.parametrize(
    ("epsilon", "least"),
    [pytest.param(0.3, 0.6, marks=pytest.mark.ci), (1.0, 0.86), pytest.param(3.0, 0.9, marks=pytest.mark.ci)],
)
def test_digits_with_noise(model, epsilon, least):
    privacy = ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    assert mean(accuracy(privacy, seed) for seed in range(5)) >= least


def test_digits_without_noise_are_within_a_point_of_scikit_learn():
    peer = LinearDiscriminantAnalysis().fit(X_TRAIN, Y_TRAIN).score(X_TEST, Y_TEST)
    assert accuracy(ps.NoPrivacy(), 0) >= peer - 0.01
