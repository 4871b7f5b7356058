"""The samplers' law is exact, and their streams are frozen."""

import hashlib
import math
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import chi2, chi2_contingency

from privstats.dp import exact, samplers
from privstats.dp.privacy import MODELS
from privstats.dp.samplers import MAX_SIGMA, discrete_gaussian, discrete_laplace, rounded_gaussian
from privstats.randomness import Generator, seeded
from tests.made import refused
from tests.numerics.bits import SAMPLERS as EVERY_SAMPLER

SIGMAS = [0.3, 1.0, 4.0, 17.3, 63.999, 64.0, 1000.5, 2.0**20, 2.0**31]
SAMPLERS = [rounded_gaussian, discrete_gaussian]


def test_the_law_of_every_sampler_is_checked_here_or_in_test_laplace():
    assert {row.sampler for row in MODELS.values()} == set(SAMPLERS)
    assert {*SAMPLERS, discrete_laplace} == set(EVERY_SAMPLER)


def upper_tail(sampler, sigma, k):
    """P(X > k), k >= 0, to 60 digits by a route of its own."""
    t = (mpmath.mpf(k) + mpmath.mpf(1) / 2) / mpmath.mpf(sigma)
    if sampler is rounded_gaussian:
        return mpmath.ncdf(-t)
    s = mpmath.mpf(sigma)
    if sigma < 64:
        return direct_tails(sigma)[k]
    # a billion weights cannot be summed: the midpoint expansion written out, to within its next term
    phi = lambda x: mpmath.npdf(x)  # noqa: E731
    d1 = -t * phi(t) / s**2
    d3 = -(t**3 - 3 * t) * phi(t) / s**4
    d5 = -(t**5 - 10 * t**3 + 15 * t) * phi(t) / s**6
    return mpmath.ncdf(-t) + d1 / 24 - 7 * d3 / 5760 + 31 * d5 / 967680


@lru_cache
def direct_tails(sigma):
    """P(X > k) of the discrete Gaussian for k = 0, 1, ...: the weights, added up."""
    weights = [mpmath.exp(-(mpmath.mpf(j) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for j in range(int(20 * sigma) + 40)]
    above = list(accumulate(reversed(weights[1:]), initial=mpmath.mpf(0)))[::-1]
    return [tail / (weights[0] + 2 * above[0]) for tail in above]


def edges(sigma):
    """Cell edges at equal quantiles as integers k: the last value of each cell."""
    z = ndtri(np.arange(1, 40) / 40)
    return sorted({int(v) for v in np.floor(z * sigma)} - {0, -1} | {-1, 0})


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_cell_counts_follow_the_exact_probabilities(sampler, sigma):
    n = 400_000
    sample = sampler(sigma, n, seeded(2025))
    with mpmath.workdps(60):

        def below(k):  # P(X <= k)
            return 1 - upper_tail(sampler, sigma, k) if k >= 0 else upper_tail(sampler, sigma, -k - 1)

        cumulative = [mpmath.mpf(0), *[below(k) for k in edges(sigma)], mpmath.mpf(1)]
        expected = np.array([float(b - a) for a, b in pairwise(cumulative)]) * n
    observed = np.bincount(np.searchsorted(edges(sigma), sample, side="left"), minlength=len(expected))
    keep = expected > 5
    statistic = float(((observed - expected)[keep] ** 2 / expected[keep]).sum())
    assert expected.sum() == pytest.approx(n)
    assert chi2.sf(statistic, keep.sum() - 1) > 1e-6


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 63.999, 64.0, 1000.5, 2.0**31, 2.0**35, 2.0**44, 2.0**47])
def test_the_exact_path_alone_gives_the_same_samples(sampler, sigma, monkeypatch):
    fast = sampler(sigma, 300, seeded(9))
    law = type(
        samplers._tabled(sigma)
        if sampler is discrete_gaussian and sigma < 64
        else samplers._Discrete(sigma)
        if sampler is discrete_gaussian
        else samplers._Rounded(sigma)
    )
    propose = law.propose

    def doubt_everything(self, magnitude):
        guess = propose(self, magnitude).values
        return samplers._searched(np.maximum(guess - 1, 0), np.arange(len(guess)))

    monkeypatch.setattr(law, "propose", doubt_everything)
    np.testing.assert_array_equal(sampler(sigma, 300, seeded(9)), fast)


class Scripted(Generator):
    """A generator whose words are given, so that a sample can be put on an edge."""

    def __init__(self, words, extension=b"\x00"):
        super().__init__(bytes(32))
        self._words, self._extension = words, extension

    def uint64(self, size):
        return np.array(self._words, np.uint64)

    def spawn(self):
        return self

    def substream_bytes(self, index, n):
        return (self._extension * n)[:n]


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", [4.0, 63.0, 64.0, 5000.25, 2.0**31, 2.0**40 * 1.3])
@pytest.mark.parametrize("t", [0.3, 1.1, 3.9])
def test_a_uniform_beside_a_cell_edge_falls_on_the_right_side(sampler, sigma, t):
    k = int(t * sigma)
    with mpmath.workdps(60):
        edge = upper_tail(sampler, sigma, k) * mpmath.mpf(2) ** 64
        word = int(mpmath.floor(edge))
    values = sampler(sigma, 3, Scripted([word - 1, word, word + 1], b"\x00"))
    assert (values[0], values[2]) == (k + 1, k)
    fraction = edge - word
    assert values[1] == (k + 1 if fraction > 2**-40 else k)
    assert sampler(sigma, 1, Scripted([word], b"\xff"))[0] == (k if fraction < 1 - 2**-40 else k + 1)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_uniform_that_sits_on_an_edge_for_many_bits_is_still_decided(sampler):
    sigma, k = 100.0, 57
    bits = 64 + 64 * 5
    law = samplers._Discrete(sigma) if sampler is discrete_gaussian else samplers._Rounded(sigma)
    edge = law.tail(k, bits + 64) >> 64
    words = [(edge >> (bits - 64 * (i + 1))) & (2**64 - 1) for i in range(6)]

    class OnTheEdge(Scripted):
        def substream_bytes(self, index, n):
            return b"".join(w.to_bytes(8, "little") for w in [*words[1:-1], self._words[1]])[:n]

        def uint64(self, size):
            return np.array(self._words[:1], np.uint64)

    below = OnTheEdge([words[0], words[-1] - 1000])
    above = OnTheEdge([words[0], words[-1] + 1000])
    assert (sampler(sigma, 1, below)[0], sampler(sigma, 1, above)[0]) == (k + 1, k)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", [0.5, 30.0, 64.0, 2.0**31, 2.0**40])
def test_the_largest_and_smallest_uniforms_are_ordinary_samples(sampler, sigma):
    values = sampler(sigma, 2, Scripted([2**63 - 1, 0], b"\x01"))
    assert values[0] == 0
    assert 9 * sigma - 1 < values[1] < 12 * sigma + 2


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", [4.0, 64.0, 2.0**31, 2.0**40])
def test_the_sign_is_the_top_bit(sampler, sigma):
    word = 2**61 + 12345
    plus, minus = sampler(sigma, 2, Scripted([word, word + 2**63]))
    assert plus == -minus
    assert plus > 0


FROZEN = {
    ("rounded_gaussian", 0.5): ([0, 0, 0, 0], "11b3635d1e541354670c99e1d50a10bf"),
    ("rounded_gaussian", 4.0): ([2, 4, -1, -1], "695383f06d9dd939d29c875877ecce64"),
    ("rounded_gaussian", 17.3): ([10, 17, -4, -4], "1f50125ff084003713f19592345095ae"),
    ("rounded_gaussian", 64.0): ([38, 63, -14, -16], "17d768e0dc1e11e46e23ff9b4d52afae"),
    ("rounded_gaussian", 1000.5): ([588, 979, -222, -255], "95ba0e7660940981240d837a4a24b96a"),
    ("rounded_gaussian", 2147483648.0): ([1262104012, 2100613238, -475572050, -547477184],
        "ac084ce2ee090e5878fa9e55e758438b"),
    ("discrete_gaussian", 0.5): ([0, 0, 0, 0], "52a2eddf2e65f0a310193158a950b821"),
    ("discrete_gaussian", 4.0): ([2, 4, -1, -1], "88d1f16b896e807f5c62d5ce6f530d7b"),
    ("discrete_gaussian", 17.3): ([10, 17, -4, -4], "1987bb25a9e110660b3e371d49ff9ebe"),
    ("discrete_gaussian", 64.0): ([38, 63, -14, -16], "8bb1297f825db5ef469d8e0b354f2866"),
    ("discrete_gaussian", 1000.5): ([588, 979, -222, -255], "0ba5f12378b41abaf7db2bfeaf8e4c03"),
    ("discrete_gaussian", 2147483648.0): ([1262104012, 2100613238, -475572050, -547477184],
        "ac084ce2ee090e5878fa9e55e758438b"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "sigma"), FROZEN)
def test_a_stream_gives_the_same_samples_everywhere(name, sigma):
    sample = getattr(samplers, name)(sigma, 50_000, seeded(11))
    first, digest = FROZEN[name, sigma]
    assert sample[:4].tolist() == first
    assert hashlib.sha256(sample.astype("<i8").tobytes()).hexdigest()[:32] == digest


@given(k=st.integers(0, 300), sigma=st.floats(64, 2.0**33))
def test_the_two_ways_to_a_discrete_tail_agree_and_bracket_the_normal(k, sigma):
    t = (Fraction(2 * k + 1, 2)) / Fraction(sigma)
    discrete, normal = exact.discrete_tail(t, Fraction(sigma), 160), exact.gaussian_tail(t, 160)
    assert 0 <= normal - discrete <= (1 << 160) * 0.02 / sigma**2 + 2 * exact.ERROR


@settings(max_examples=5)
@given(sigma=st.floats(64, 90), bits=st.sampled_from([128, 192, 256]))  # two from knots, one from the series
def test_euler_maclaurin_agrees_with_direct_summation(sigma, bits):
    direct = exact.discrete_tails(Fraction(sigma), bits)
    for k in range(0, int(6 * sigma), 37):
        expansion = exact.discrete_tail(Fraction(2 * k + 1, 2) / Fraction(sigma), Fraction(sigma), bits)
        assert abs(expansion - direct[k]) <= 2 * exact.ERROR


@given(t=st.fractions(0, 11, max_denominator=10**9), bits=st.sampled_from([64, 128, 192, 200, 512]))
def test_the_normal_tail_and_density_are_within_their_error(t, bits):
    with mpmath.workdps(240):
        point = mpmath.mpf(t.numerator) / t.denominator
        tail, density = (f * mpmath.mpf(2) ** bits for f in (mpmath.ncdf(-point), mpmath.npdf(point)))
        assert abs(exact.gaussian_tail(t, bits) - tail) <= exact.ERROR
        assert abs(exact.gaussian_tail_and_density(t, bits)[1] - density) <= exact.ERROR


@pytest.mark.ci
def test_the_float_inverse_is_as_accurate_as_the_band_assumes():
    """The band allows 32 |z| + 8 units of 2**-53 for everything; ndtri itself needs a quarter of that at most."""
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.random(3000) / 2, 2.0 ** -rng.uniform(1, 16, 3000)])
    z = -ndtri(u)
    with mpmath.workdps(40):
        for value, point in zip(z, u, strict=True):
            slope = mpmath.npdf(value)
            error = (mpmath.ncdf(-mpmath.mpf(float(value))) - mpmath.mpf(float(point))) / slope
            assert abs(error) <= (8 * abs(value) + 2) * 2.0**-53


@given(sigma=st.floats(64, 1e5), t=st.floats(0, 4.2))
def test_the_proposal_of_the_discrete_gaussian_errs_by_less_than_its_slack(sigma, t):
    """Where the proposal places an exact cell edge, it is off by at most sigma^-3 cells."""
    k = int(t * sigma)
    with mpmath.workdps(40):
        edge = upper_tail(discrete_gaussian, sigma, k)
        z = -mpmath.sqrt(2) * mpmath.erfinv(2 * edge - 1)
        placed = z * (mpmath.mpf(sigma) - 1 / (24 * mpmath.mpf(sigma)))
        assert abs(placed - k - mpmath.mpf(1) / 2) <= mpmath.mpf(sigma) ** -3 / 2


@pytest.mark.nightly
@pytest.mark.parametrize("sigma", [0.7, 5.0, 300.0])
def test_an_exact_sampler_of_others_draws_from_the_same_law(sigma):
    """opendp's discrete Gaussian, by rejection with exact rationals, against ours: two samples, chi-square."""
    opendp = pytest.importorskip("opendp.prelude", reason="opendp is not installed")
    opendp.enable_features("contrib")
    n = 20_000
    space = opendp.vector_domain(opendp.atom_domain(T=int)), opendp.l2_distance(T=float)
    theirs = np.array(opendp.m.make_gaussian(*space, scale=sigma)([0] * n))
    ours = discrete_gaussian(sigma, n, seeded(3))
    cuts = edges(sigma)
    table = np.array([np.bincount(np.searchsorted(cuts, s), minlength=len(cuts) + 1) for s in (ours, theirs)])
    table = table[:, table.sum(axis=0) > 20]
    assert chi2_contingency(table).pvalue > 1e-6


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 2 * MAX_SIGMA])
def test_a_sigma_out_of_range_is_refused(sampler, sigma):
    refused(ValueError, "sigma", sampler, sigma, 1, seeded(0))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_negative_size_is_refused_and_zero_is_not(sampler):
    refused(ValueError, "size", sampler, 4.0, -1, seeded(0))
    assert sampler(4.0, 0, seeded(0)).shape == (0,)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_longer_calls_begin_with_the_samples_of_shorter_ones(sampler):
    np.testing.assert_array_equal(sampler(1e6, 20_000, seeded(4))[:9_000], sampler(1e6, 9_000, seeded(4)))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_largest_sigma_still_samples(sampler):
    assert 0.8 < sampler(MAX_SIGMA, 200, seeded(0)).std() / MAX_SIGMA < 1.2


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0, 17.3, 63.999])
def test_a_uniforms_first_bits_give_the_cell_that_a_search_finds(sigma):
    """At every edge, one and two beside it, at the ends of its prefix, and at drawn uniforms."""
    table = samplers._tabled(sigma)
    edges = np.concatenate([table.inside, table.outside])
    prefixes = (edges >> 47 << 47)[:, None] + np.array([0, -1, 2**47 - 1, 2**47])
    drawn = np.random.default_rng(0).integers(0, 2**63, 1 << 15)
    near = np.concatenate([*(edges + k for k in range(-2, 3)), prefixes.ravel(), drawn])
    magnitude = np.clip(near, 0, 2**63 - 1).astype(np.int64)
    found, unsure = table.searched(magnitude)
    guess, doubtful, one_edge = table.propose(magnitude)
    assert np.array_equal(doubtful, np.flatnonzero(unsure))
    assert np.array_equal(guess, found)
    assert not one_edge.any()
    assert (table.prefixes >= 0).mean() > 0.97
