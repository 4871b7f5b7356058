"""Points of a sweep: their mean and spread, their words, and their noise."""

import math

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep.points import heading, metric, noise_draw, scored, shown
from privstats.workflows.report import Point

CLASSES, RIDGE = ps.ClassSchema(3, 4, "NAB", 2.0), ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0)


def test_a_point_is_mean_and_spread_over_the_draws():
    assert scored("LDA", 3.0, [0.5, 0.7]) == Point("LDA", 3.0, 0.6, pytest.approx(0.2 / math.sqrt(2)))
    assert scored("LDA", math.inf, [0.5]).spread == 0


def test_every_draw_of_every_seed_is_its_own():
    draws = [noise_draw(seed, repeat).bytes(8) for seed in range(3) for repeat in range(3)]
    assert len(set(draws)) == len(draws)
    assert np.array_equal(noise_draw(1, 2).uint64(4), noise_draw(1, 2).uint64(4))


def test_scores_are_told_in_the_words_of_the_schema():
    assert (metric(CLASSES), shown(CLASSES, 0.5)) == ("accuracy", "50.0%")
    assert (metric(RIDGE), shown(RIDGE, 0.5)) == ("R²", "0.500")
    assert (heading(3.0), heading(math.inf)) == ("epsilon 3", "no DP")
