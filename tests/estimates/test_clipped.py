"""The share of a normal law beyond a bound, from what a clip left of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr

from privstats.inference.regression.clipping import share_beyond


@pytest.mark.parametrize("mean", [0.0, 0.3, -0.9, 2.0])
@pytest.mark.parametrize("size", [0.02, 0.3, 1.0, 2.0, 5.0, 20.0])
def test_the_share_that_a_clip_cut_is_found_from_the_two_moments_it_left(mean, size):
    rng = np.random.default_rng(1)
    clipped = np.clip(rng.normal(mean, size, 100_000), -1, 1)
    truth = float(ndtr((-1 - mean) / size) + ndtr((mean - 1) / size))
    assert share_beyond(7 * clipped.mean(), 49 * np.square(clipped).mean(), 7.0) == pytest.approx(truth, abs=0.01)


@pytest.mark.parametrize(
    ("mean", "square", "share"),
    [(0.0, 0.0, 0.0), (0.5, 0.25, 0.0), (0.5, 0.2, 0.0), (0.0, 1.0, 1.0), (0.0, 2.0, 1.0), (1.5, 2.0, 1.0)],
)
def test_moments_of_no_spread_or_no_room_have_a_share_too(mean, square, share):
    assert share_beyond(mean, square, 1.0) == share


def test_values_spread_evenly_up_to_the_bound_look_like_a_clip():
    assert share_beyond(0.0, 1 / 3, 1.0) == pytest.approx(0.122, abs=0.001)
