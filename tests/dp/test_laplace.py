"""The discrete Laplace sampler: its law is exact, its tail is not cut, its stream is frozen."""

import hashlib
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from privstats.dp import exact, samplers
from privstats.dp.samplers import MAX_SCALE, discrete_laplace
from privstats.randomness import seeded
from tests.dp.test_samplers import Scripted

SCALES = [0.3, 0.7, 1.0, 17.3, 4096.0, 2.0**21 + 0.5, 2.0**33]


def tail(scale, k):
    """P(X > k) for k >= 0, to 60 digits: the weights exp(-j / scale), added up by their geometric series."""
    p = mpmath.exp(-1 / mpmath.mpf(scale))
    return p ** (k + 1) / (1 - p) / ((1 + p) / (1 - p))


@pytest.mark.parametrize("scale", SCALES)
def test_cell_counts_follow_the_exact_probabilities(scale):
    n = 400_000
    sample = discrete_laplace(scale, n, seeded(2026))
    quantiles = -np.log(2 * np.linspace(0.02, 0.48, 16)) * scale
    ends = sorted({int(sign * q) for q in quantiles for sign in (-1, 1)} | {-1, 0})
    with mpmath.workdps(60):
        below = [1 - tail(scale, k) if k >= 0 else tail(scale, -k - 1) for k in ends]
        expected = np.diff([0.0, *map(float, below), 1.0]) * n
    observed = np.bincount(np.searchsorted(ends, sample, side="left"), minlength=len(expected))
    keep = expected > 5
    assert chi2.sf(float(((observed - expected)[keep] ** 2 / expected[keep]).sum()), keep.sum() - 1) > 1e-6


@pytest.mark.parametrize("scale", SCALES)
def test_integer_tails_are_those_of_sixty_digits(scale):
    with mpmath.workdps(80):
        for k in (0, 1, 7, int(3 * scale), int(40 * scale)):
            found = exact.laplace_tail(k, Fraction(scale), 128)
            assert abs(found - tail(scale, k) * mpmath.mpf(2) ** 128) <= exact.ERROR


@pytest.mark.parametrize("scale", SCALES)
def test_the_exact_path_alone_gives_the_same_samples(scale, monkeypatch):
    fast = discrete_laplace(scale, 300, seeded(9))
    propose = samplers._Laplace.propose

    def doubt_everything(self, magnitude):
        guess = propose(self, magnitude).values
        return samplers._searched(np.maximum(guess - 1, 0), np.arange(len(guess)))

    monkeypatch.setattr(samplers._Laplace, "propose", doubt_everything)
    np.testing.assert_array_equal(discrete_laplace(scale, 300, seeded(9)), fast)


@pytest.mark.parametrize("scale", [0.7, 4096.0, MAX_SCALE])
def test_words_on_an_edge_and_beside_it_fall_to_the_right_cells(scale):
    """P(X > k) in 64 bits, one below and one above: the float64 proposal alone may not decide there."""
    for k in (0, 1, 3, int(scale), int(5 * scale)):
        edge = exact.laplace_tail(k, Fraction(scale), 64)
        for word in (edge - 9, edge + 9):
            found = int(discrete_laplace(scale, 1, Scripted([word]))[0])
            with mpmath.workdps(60):
                u = mpmath.mpf(word) / mpmath.mpf(2) ** 64
                assert tail(scale, abs(found)) <= u + mpmath.mpf(2) ** -64
                assert abs(found) == 0 or tail(scale, abs(found) - 1) > u


def test_the_tail_goes_on_where_sixty_four_bits_end():
    """A cut tail would be a value that one world has and the other has not, which no epsilon bounds."""
    deep = int(discrete_laplace(1.0, 1, Scripted([0], b"\x01"))[0])
    deeper = int(discrete_laplace(1.0, 1, Scripted([0], b"\x00\x00\x00\x00\x00\x00\x01"))[0])
    assert 64 * math.log(2) < deep < deeper


def test_signs_are_fair_and_zero_has_its_own_weight():
    sample = discrete_laplace(1.0, 200_000, seeded(3))
    p = math.exp(-1.0)
    assert np.mean(sample == 0) == pytest.approx((1 - p) / (1 + p), abs=4e-3)
    assert np.mean(sample > 0) == pytest.approx(np.mean(sample < 0), abs=5e-3)


def test_the_stream_is_frozen():
    drawn = np.concatenate([discrete_laplace(scale, 1000, seeded(1)) for scale in (1.5, 3000.0, 2.0**30)])
    assert hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest()[:16] == "88ff276f4b766ac0"
