"""The last Newton step of a regression by rounds: what it may have left, when it is reported, how often it misses."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import privstats as ps
from privstats import inference as inf
from privstats.inference.inversion import Inversion, NormalEquations
from privstats.inference.last_step import EARLY, HIDDEN_STEP, Earlier, LastStep, ended_early, notes_on, remainder
from privstats.transforms import ConstantFeature
from tests import made
from tests.inference.test_score import played
from tests.lengths import sized

MEANS = {"logistic": lambda u: 1 / (1 + np.exp(-u)), "poisson": np.exp}


def rates(family, eta):
    """The mean outcome and v."""
    m = MEANS[family](eta)
    return m, (m * (1 - m) if family == "logistic" else m)


def exact(G, h, bias=0.0):
    """Equations without noise, and an inversion of every coefficient."""
    equations = NormalEquations(G, h, 0.0, 0.0, 0.0, 0.0, math.inf, known_variance=1.0)
    return Inversion(equations, np.eye(len(G)), math.inf, bias)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(MEANS)), st.floats(0.01, 2.0))
def test_what_the_step_leaves_is_bounded(seed, family, size):
    rng = np.random.default_rng(seed)
    U = rng.uniform(-1, 1, (60, 3))
    w = rng.normal(size=3)
    step = rng.normal(size=3) * size
    m, v = rates(family, U @ w)
    H = (U * v[:, None]).T @ U
    after = rates(family, U @ (w + step))[0]
    score = U.T @ (m - after) + H @ step  # of outcomes that make this the step: g = H step
    left = math.sqrt(float(score @ np.linalg.solve(H, score)))
    moved = float(np.abs(U @ step).max())
    bound = remainder(exact(H, H @ step).equations, moved)
    assert left <= bound.bias * (1 + 1e-9)
    assert np.abs(m + v * (U @ step) - after).sum() <= bound.residual * (1 + 1e-9)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(MEANS)))
def test_the_information_changes_by_no_more_than_the_weights_moved(seed, family):
    rng = np.random.default_rng(seed)
    U, w, then = rng.uniform(-1, 1, (40, 3)), rng.normal(size=3), rng.normal(size=3)
    H, before = ((U * rates(family, U @ each)[1][:, None]).T @ U for each in (w, then))
    moved = float(np.linalg.norm(U, axis=1).max() * np.linalg.norm(w - then))
    steps = LastStep(exact(H, H @ w), np.zeros(3), (Earlier(before, 0.0, math.inf, 1),))
    assert (steps.change <= moved).all()
    bounded = LastStep(exact(H, H @ w), np.zeros(3), (Earlier(before, 0.0, 0.1, 2),))
    assert (bounded.change <= 0.05).all()


def test_noise_in_the_information_counts_as_change():
    G = np.diag([100.0, 100.0])
    earlier = [Earlier(G, sigma, 9.0, 1) for sigma in (0.0, 10.0)]
    quiet, noisy = (LastStep(exact(G, np.ones(2)), np.zeros(2), (each,)).change for each in earlier)
    assert quiet.tolist() == [0.0, 0.0]
    assert noisy.tolist() == pytest.approx([0.2, 0.2])
    lost = LastStep(exact(G, np.ones(2)), np.zeros(2), (Earlier(-G, 10.0, 9.0, 1),))
    assert lost.change.tolist() == [9.0, 9.0]
    assert not lost.reported(0.05).any()


def test_information_that_still_falls_is_not_told():
    G, h = np.diag([100.0, 100.0]), np.array([1.0, 0.5])
    falling = Earlier(np.diag([100.0, 100.0 * math.e]), 0.0, 9.0, 1)
    steps = LastStep(exact(G, h), np.zeros(2), (falling,))
    assert steps.reported(0.05).tolist() == [True, False]
    assert steps.pvalues()[1] == 1.0
    assert steps.joint_pvalue() == 1.0
    assert steps.combined(np.array([[0.0, 1.0]])).pvalues().tolist() == [1.0]
    assert np.isinf(steps.interval(0.05)[1]).tolist() == [False, True]


def test_rounds_that_may_leave_more_than_two_errors_are_not_told():
    steps = [LastStep(exact(np.eye(1), np.ones(1), bias), np.zeros(1)) for bias in (1.9, 2.1)]
    assert [each.reported(0.05).tolist() for each in steps] == [[True], [False]]
    assert LastStep(exact(-np.eye(1), np.ones(1), math.inf), np.zeros(1)).joint_pvalue() == 1.0


@pytest.mark.parametrize(("step", "alone"), [(0.5, True), (3.0, True), (8.0, False)])
def test_a_step_no_longer_than_noise_makes_it_is_no_reason_for_more_rounds(step, alone):
    """Noise of deviation 1 in each of four entries moves a step by 2 in an information of 1."""
    G = np.eye(4)
    equations = NormalEquations(G, np.array([step, 0, 0, 0]), 0.0, 0.0, 1.0, 0.0, math.inf, known_variance=1.0)
    steps = LastStep(Inversion(equations, np.eye(4), math.inf, bias=99.0), np.zeros(4))
    assert steps.noise_alone == alone
    assert notes_on(steps) == [HIDDEN_STEP if alone else EARLY]
    assert not LastStep(exact(G, np.full(4, step), 99.0), np.zeros(4)).noise_alone, "without noise rounds help"


def test_a_direction_without_information_does_not_hide_that_more_rounds_would_help():
    """Noise makes the step long along the last direction, and the score is clear of noise along the first."""
    G, h = np.diag([100.0, 100.0, 100.0, 0.1]), np.array([50.0, 0, 0, 1.0])
    equations = NormalEquations(G, h, 0.0, 0.0, 1.0, 0.0, math.inf, known_variance=1.0)
    steps = LastStep(Inversion(equations, np.eye(4), math.inf, bias=99.0), np.zeros(4))
    assert np.linalg.norm(equations.solution) < 2 * math.sqrt((1 / np.square(np.diag(G))).sum())
    assert ended_early(steps)
    assert notes_on(steps) == [EARLY]


def test_information_that_changes_beyond_noise_is_no_noise():
    """The step is short, and the information was e times as large a round ago: a further round shows what it is."""
    G, noise = np.diag([100.0, 100.0]), {"sigma_h": 1.0, "sigma_q": 0.0, "degrees": math.inf, "known_variance": 1.0}
    for sigma, early in ((1.0, True), (60.0, False)):
        equations = NormalEquations(G, np.ones(2), 0.0, sigma, **noise)
        before = Earlier(np.diag([100.0, 100.0 * (math.e if early else 1.0)]), sigma, 9.0, 1)
        steps = LastStep(Inversion(equations, np.eye(2), math.inf, bias=1e-3), np.zeros(2), (before,))
        assert not steps.arrived.all()
        assert ended_early(steps) == early
    assert not ended_early(LastStep(exact(G, np.ones(2)), np.zeros(2)))


# -- coverage: a claim about releases ----------------------------------------------------------------------------------


def binary(slope, share, level=0.0):
    """One column of 0 and 1."""

    def draw(rng, n):
        return (rng.random((n, 1)) < share) * 1.0

    return draw, np.array([level, slope])


def spread(slope, level):
    """Two columns between -1 and 1, the first with a strong effect."""

    def draw(rng, n):
        return rng.uniform(-1, 1, (n, 2))

    return draw, np.array([level, slope, 0.5])


WORLDS = {  # family, records, epsilon, rounds, records and coefficients, the least share reported
    "odds 5, four rounds": ("logistic", 5_000, 8.0, 4, binary(5.0, 0.15), 0.0),
    "odds 5, eight rounds": ("logistic", 5_000, 8.0, 8, binary(5.0, 0.15), 0.7),
    "odds -5": ("logistic", 5_000, 8.0, 4, binary(-5.0, 0.15), 0.0),
    "odds 6, few records": ("logistic", 1_000, 8.0, 4, binary(6.0, 0.15), 0.0),
    "unbalanced and steep": ("logistic", 5_000, 8.0, 6, spread(4.0, -3.0), 0.9),
    "usual, much noise": ("logistic", 5_000, 1.0, 4, spread(0.6, -0.3), 0.9),
    "rates fall by e^3": ("poisson", 5_000, 8.0, 5, binary(-3.0, 0.15, 1.0), 0.0),
    "rates rise by e^2": ("poisson", 5_000, 8.0, 5, spread(2.0, 0.0), 0.8),
}


def missed_and_reported(name, runs):
    """Of ``runs`` releases: how many reported and missed each coefficient, and how many reported it."""
    family, n, epsilon, rounds, (draw, truth), _ = WORLDS[name]
    bound = {"family": "poisson", "target_bound": 30.0} if family == "poisson" else {}
    schema = ps.ScoreSchema(len(truth), math.sqrt(len(truth)), transform=(ConstantFeature(1.0),), **bound)
    promise = made.promise(epsilon=epsilon, delta=1e-6)
    course = ps.Newton.start(schema, ps.Cohort(2, 2, 2 * n), promise, rounds)
    read = inf.logit if family == "logistic" else inf.poisson
    missed, reported = np.zeros(len(truth), int), np.zeros(len(truth), int)
    for run in range(runs):
        chance = np.random.default_rng(run)
        X = draw(chance, n)
        mean = MEANS[family](truth[0] + X @ truth[1:])
        y = chance.poisson(mean) if family == "poisson" else (chance.random(n) < mean).astype(int)
        table = read(played(course, X, y, run))
        low, high = table.conf_int().T
        missed += (low > truth) | (high < truth)
        reported += table.reported
    return missed, reported


def most_misses(runs):
    """More misses than that come up in one of a thousand true claims."""
    return binom.ppf(0.999, runs, 0.05)


@pytest.mark.ci
@pytest.mark.parametrize("name", WORLDS)
def test_strong_effects_are_missed_no_more_often_than_is_claimed(name):
    missed, reported = missed_and_reported(name, 40)
    assert (missed <= most_misses(40)).all()
    assert (reported >= 40 * WORLDS[name][-1] - 4).all()


@pytest.mark.nightly
@pytest.mark.parametrize("name", WORLDS)
def test_of_hundreds_of_releases_no_more_are_told_and_missed_than_is_claimed(name):
    runs = sized(200, 500)
    missed, reported = missed_and_reported(name, runs)
    assert (missed <= most_misses(runs)).all()
    assert (reported >= runs * WORLDS[name][-1]).all()
