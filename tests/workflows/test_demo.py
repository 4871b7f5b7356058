"""What the demo shows beside its one release: a rival at its strongest, and a picture that hides nothing."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measuring import results
from benchmarks.refinement.gradient import Recipe
from privstats.dp import gaussian_mu
from privstats.randomness import seeded
from privstats.workflows.demo import TASKS
from privstats.workflows.demo.gradient_descent import Descent, clipped_sum, descend, softmax
from privstats.workflows.demo.output import drawn
from privstats.workflows.score import EPSILONS, Point

seeds = st.integers(0, 2**32 - 1)


def made(seed, n=12, k=5, C=3, draws=2):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, k)).astype(np.float32) * rng.choice([0.01, 1.0, 100.0])
    targets = np.eye(C, dtype=np.float32)[rng.integers(0, C, n)]
    return rows, targets, rng.normal(size=(draws, k, C)).astype(np.float32)


@given(seeds, st.sampled_from([0.1, 0.3, 1.0]))
def test_one_record_moves_a_step_of_the_rival_by_no_more_than_its_clip(seed, clip):
    rows, targets, W = made(seed)
    moved = clipped_sum(rows, targets, W, clip) - clipped_sum(rows[1:], targets[1:], W, clip)
    assert np.sqrt(np.square(moved).sum(axis=(1, 2))).max() <= clip * (1 + 1e-4)


def test_a_step_without_a_clip_is_the_gradient_of_the_cross_entropy():
    rows, targets, W = made(3)
    rows, step = rows / np.abs(rows).max(), 1e-2

    def loss(weights):
        return -(targets * np.log(softmax((rows @ weights).astype(np.float64)))).sum()

    G = clipped_sum(rows, targets, W, 1e9)
    for place in itertools.product(range(5), range(3)):
        bump = np.zeros_like(W[0])
        bump[place] = step
        assert G[0][place] == pytest.approx((loss(W[0] + bump) - loss(W[0] - bump)) / (2 * step), abs=2e-3)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_steps_of_the_rival_compose_to_the_promise(epsilon):
    recipe = TASKS["classes"].descents[epsilon]
    spent = np.hypot.reduce([recipe.clip / recipe.noise(epsilon, 1e-5)] * recipe.steps)
    assert spent == pytest.approx(gaussian_mu(epsilon, 1e-5))


def test_the_noise_of_the_rival_is_as_wide_as_it_says():
    rows, targets, _ = made(0, n=1, k=60, C=40)
    rows *= 0
    W = descend(rows, targets, Descent(rate=1.0, clip=1.0, steps=1), 2.5, [seeded(seed) for seed in range(4)])
    assert W.std(axis=(1, 2)) == pytest.approx(2.5, rel=0.05)
    assert not np.allclose(W[0], W[1])


def test_the_recipes_of_the_rival_are_those_that_the_benchmark_found():
    rows = results("refinement.compare")["accuracy under differential privacy, %: digits"]
    (found,) = (row for row in rows if row["model"] == "full-batch DP-GD")
    for epsilon, recipe in TASKS["classes"].descents.items():
        ours = Recipe(recipe.rate, recipe.clip, recipe.momentum, recipe.steps, sample=1)
        assert str(ours) == found[f"recipe {epsilon:g}"]


@given(st.lists(st.lists(st.floats(-0.5, 1.0), min_size=4, max_size=4), min_size=1, max_size=4))
def test_every_point_is_in_the_picture_in_the_row_of_its_score(scores):
    names = ["one release", "refinement rounds", "DP-GD", "more"][: len(scores)]
    curves = {
        name: [Point(name, epsilon, mean, 0.0) for epsilon, mean in zip(EPSILONS, means, strict=True)]
        for name, means in zip(names, scores, strict=True)
    }
    lines = drawn(curves)
    rows = {float(line[:6]): line[8:] for line in lines if line[7:8] == "|"}
    step = max(a - b for a, b in itertools.pairwise([*rows, *rows])) if len(rows) > 1 else 0.01
    for mark, points in zip("oRx*", curves.values(), strict=False):
        shown = sorted((line.index(mark, at), height) for height, line in rows.items() for at in _at(line, mark))
        assert len(shown) == len(points)
        for (_, height), point in zip(shown, sorted(points, key=lambda each: each.epsilon), strict=True):
            assert abs(height - point.mean) <= step / 2 + 0.006
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)


def _at(line, mark):
    return [place for place, cell in enumerate(line) if cell == mark]
