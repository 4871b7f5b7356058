"""Excess noise in layers: what is left keeps the variance that the promise needs, at every level and in every mix."""

from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate, pairwise

import mpmath
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import randomness
from privstats.dp.calibration import layer_sigmas, level_at, levels_of
from privstats.errors import PlanError
from tests.made import refused

SCHEMA = ps.ClassSchema(2, 3, "NAB", clip_norm=1.0)
PROMISE = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)


@st.composite
def cohorts(draw: st.DrawFn) -> tuple[int, int, int]:
    """Clients, fewest survivors, colluders."""
    clients = draw(st.integers(2, 256))
    least = draw(st.integers(1, clients))
    return clients, least, draw(st.integers(0, least - 1))


def plan_of(cohort: ps.Cohort, *, excess_noise: str = "removed") -> ps.Plan:
    return ps.Plan(schema=SCHEMA, cohort=cohort, privacy=PROMISE, excess_noise=excess_noise)


def left(sigmas: tuple[float, ...], opened: int) -> Fraction:
    """The variance of a share without its lowest layers, exactly."""
    base, *layers = (Fraction(sigma) ** 2 for sigma in sigmas)
    return base + sum(layers[opened:], Fraction(0))


@given(cohorts())
def test_levels_rise_from_the_fewest_to_all_and_skip_few(cohort: tuple[int, int, int]) -> None:
    clients, least, colluders = cohort
    levels = levels_of(clients, least, colluders)
    assert (levels[0], levels[-1]) == (least, clients)
    for fewer, more in pairwise(levels):
        assert fewer < more
        tenth = 10 * (more - colluders) <= 11 * (fewer - colluders)
        last = fewer == least and 100 * (more - colluders) <= 115 * (fewer - colluders)
        assert more - fewer == 1 or tenth or last
    for count in range(least, clients + 1):
        assert level_at(levels, count) == max(level for level in levels if level <= count)
    assert len(levels) <= 80


@given(cohorts(), st.floats(64.0, 1e9), st.data())
def test_whatever_each_client_opens_the_honest_keep_the_promised_variance(cohort, sigma, data):
    """Theorem 6: a client opens at most what it may with all honest clients of the sum and all colluders beside it."""
    clients, least, colluders = cohort
    levels = levels_of(clients, least, colluders)
    needed = sigma * sigma + 4
    sigmas = layer_sigmas(needed, [level - colluders for level in levels])
    honest = data.draw(st.integers(least - colluders, clients - colluders))
    most = levels.index(level_at(levels, honest + colluders))
    opened = data.draw(st.lists(st.integers(0, most), min_size=honest, max_size=honest))
    for choice in (opened, [most] * honest):
        assert sum(left(sigmas, each) for each in choice) >= Fraction(needed) * (1 - Fraction(2) ** -48)


@given(cohorts())
def test_what_is_left_at_a_level_is_no_more_than_rounding_above_what_is_needed(cohort: tuple[int, int, int]) -> None:
    clients, least, colluders = cohort
    levels = levels_of(clients, least, colluders)
    sigmas = layer_sigmas(10_000.0, [level - colluders for level in levels])
    for opened, level in enumerate(levels):
        rounding = Fraction(level - colluders, 10**6 * (least - colluders))
        assert left(sigmas, opened) * (level - colluders) <= 10_000 * (1 + rounding)


def test_a_layer_is_the_same_on_machines_whose_roots_differ_in_the_last_digits() -> None:
    honest = [10, 11, 12, 13]
    one, other = (layer_sigmas(variance, honest)[1:] for variance in (1e6, 1e6 * (1 + 2.0**-50)))
    assert one == other
    assert all(float(np.float32(sigma)) == sigma for sigma in one)  # 24 bits


def pmf(sigma: float, reach: int) -> np.ndarray:
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma * sigma))
    return weights / weights.sum()


@pytest.mark.parametrize("opened", [0, 2, 4])
def test_a_sum_of_bases_and_layers_is_a_discrete_gaussian(opened: int) -> None:
    """The claim of docs/proofs/noise.md for unequal draws, of which none is narrower than four steps."""
    honest = [4, 5, 6, 7, 8]
    base, *layers = layer_sigmas(64.0**2 + 4, honest)
    assert min(layers) > 4
    total = np.ones(1)
    for sigma in [base, *layers[opened:]] * honest[opened]:
        total = np.convolve(total, pmf(sigma, 300))
    middle = len(total) // 2
    variance = honest[opened] * float(left((base, *layers), opened))
    expected = pmf(float(np.sqrt(variance)), middle)
    near = slice(middle - 400, middle + 401)
    assert np.allclose(total[near] / expected[near], 1, rtol=0, atol=1e-9)
    assert variance >= 64.0**2 + 4


def test_narrow_draws_would_not_do() -> None:
    """The reason for the least width of a layer: sums of draws of a third of a step are no discrete Gaussian."""
    total = np.ones(1)
    for _ in range(40):
        total = np.convolve(total, pmf(0.3, 20))
    middle = len(total) // 2
    expected = pmf(0.3 * 40**0.5, middle)
    assert not np.allclose(total[middle - 8 : middle + 9] / expected[middle - 8 : middle + 9], 1, rtol=0, atol=0.1)


def test_a_share_is_its_base_and_its_layers_and_the_layers_come_back_from_their_seeds() -> None:
    plan = plan_of(ps.Cohort(10, 7, 1_000, 1))
    noise, layout = plan.noise, plan.layout
    assert noise.levels == (7, 8, 9, 10)
    seeds = [bytes([place]) * 32 for place in range(3)]

    def layers(count: int, flip: int = 0) -> list[randomness.Generator]:
        return [randomness.Generator(bytes([seed[0] ^ flip]) + seed[1:]) for seed in seeds[:count]]

    whole = ps.dp.draw_share(noise, layout, randomness.seeded(1), layers(3))
    other = ps.dp.draw_share(noise, layout, randomness.seeded(1), layers(3, flip=8))
    rest = whole - ps.dp.draw_layers(noise, layout, layers(3))
    assert not np.array_equal(whole, other)
    assert np.array_equal(rest, other - ps.dp.draw_layers(noise, layout, layers(3, flip=8)))  # the same base
    for opened, segment in ((0, 0), (1, 1), (2, 2)):
        taken = whole - ps.dp.draw_layers(noise, layout, layers(opened))
        assert (taken == whole).all() == (opened == 0)
        assert len(noise.layered_sigmas(layout.segments[segment])) == 4


@pytest.mark.ci
def test_the_draws_have_the_variances_that_the_noise_declares() -> None:
    plan = plan_of(ps.Cohort(8, 6, 1_000))
    segment = plan.layout.segments[1]
    place = plan.layout.slices[1]
    sigmas = plan.noise.layered_sigmas(segment)
    draws = np.stack(
        [
            ps.dp.draw_share(plan.noise, plan.layout, randomness.secure(), [randomness.secure() for _ in sigmas[1:]])[
                place
            ]
            for _ in range(1500)
        ]
    )
    assert np.var(draws) == pytest.approx(plan.noise.share_sigma(segment) ** 2, rel=0.08)
    assert sum(sigma * sigma for sigma in sigmas) == pytest.approx(plan.noise.share_sigma(segment) ** 2, rel=1e-12)


def test_a_plan_for_the_fewest_of_twelve_releases_what_one_for_all_twenty_does() -> None:
    """The goal of the layers: with everybody there, room for eight to vanish costs nothing."""
    roomy, strict = plan_of(ps.Cohort(20, 12, 1_000, 1)), plan_of(ps.Cohort(20, 20, 1_000, 1), excess_noise="kept")
    kept = plan_of(ps.Cohort(20, 12, 1_000, 1), excess_noise="kept")
    assert roomy.noise.released_sigma(20) == pytest.approx(strict.noise.released_sigma(20), rel=1e-9)
    assert kept.noise.released_sigma(20)["A"] > 1.3 * strict.noise.released_sigma(20)["A"]
    assert roomy.noise.sigma_at_levels([20] * 20) == pytest.approx(roomy.noise.released_sigma(20))
    assert roomy.noise.sigma_at_levels([12] * 12) == pytest.approx(kept.noise.released_sigma(12))
    for honest in range(11, 20):
        assert roomy.noise.released_epsilon(honest) <= PROMISE.epsilon * (1 + 1e-9)
        assert roomy.noise.released_epsilon(honest) >= kept.noise.released_epsilon(honest) * (1 - 1e-9)


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_a_share_without_all_its_layers_is_refused(count: int) -> None:
    plan = plan_of(ps.Cohort(10, 7, 1_000, 1))
    layers = [randomness.seeded(place) for place in range(count)]
    with pytest.raises(ValueError, match="a share of this noise has 3 layers"):
        ps.dp.draw_share(plan.noise, plan.layout, randomness.seeded(9), layers)


def plain_stream(seed: bytes, block: int, size: int) -> bytes:
    return Cipher(AES(seed), CTR(block.to_bytes(16, "big"))).encryptor().update(bytes(size))


def plain_draw(stream: bytes, further: bytes, entry: int, tails: list[Fraction]) -> int:
    """One entry by docs/wire/interactive.md, in fractions: the least k whose tail is at most the uniform number."""
    word, bits = int.from_bytes(stream[8 * entry : 8 * entry + 8], "little"), 64
    uniform = word & (2**63 - 1)
    while True:
        low, high = Fraction(uniform, 2**bits), Fraction(uniform + 1, 2**bits)
        ends = [bisect_left(tails, -end, key=lambda tail: -tail) for end in (low, high)]
        if low > 0 and ends[0] == ends[1]:
            return -ends[0] if word >> 63 else ends[0]
        more = plain_stream(further, (entry + 1) << 64, bits // 8)
        uniform, bits = uniform << 64 | int.from_bytes(more[-8:], "little"), bits + 64


def test_a_layer_is_drawn_as_the_page_says_in_another_implementation() -> None:
    schema = ps.ClassSchema(2, 12, "NA", clip_norm=1.0, grid_bits=8)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(10, 7, 1_000, 1), privacy=PROMISE, excess_noise="removed")
    seed, (_, sums) = bytes(range(32)), plan.layout.slices
    mine = ps.dp.draw_layers(plan.noise, plan.layout, [randomness.Generator(seed)])
    counts, segment = plan.layout.segments
    stream = plain_stream(seed, 0, 1 << 10)[32 + 8 * counts.size :]  # those of the counts are too wide for a table
    with mpmath.workdps(60):
        sigma = mpmath.mpf(plan.noise.layered_sigmas(segment)[1])
        weights = [mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * sigma**2)) for k in range(int(15 * sigma))]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        above = list(accumulate(reversed(weights)))[::-1]
        tails = [Fraction(int(mpmath.floor(each / total * 2**180)), 2**180) for each in above[1:]]
    theirs = [plain_draw(stream[32:], stream[:32], entry, tails) for entry in range(segment.size)]
    assert theirs == mine[sums].tolist()


def test_more_layers_than_there_are_cannot_be_drawn() -> None:
    plan = plan_of(ps.Cohort(10, 7, 1_000, 1))
    refused(ValueError, "has 3 layers, got 4", ps.dp.draw_layers, plan.noise, plan.layout, [randomness.seeded(0)] * 4)
    kept = plan_of(ps.Cohort(10, 7, 1_000, 1), excess_noise="kept")
    refused(ValueError, "has 0 layers, got 1", ps.dp.draw_layers, kept.noise, kept.layout, [randomness.seeded(0)])


def test_layers_too_narrow_for_the_proof_are_refused() -> None:
    schema = ps.ClassSchema(2, 3, "NA", clip_norm=1.0, grid_bits=5)
    with pytest.raises(PlanError, match="a layer of noise on A is .* and must be at least 4"):
        ps.Plan(schema=schema, cohort=ps.Cohort(100, 80, 1_000), privacy=PROMISE, excess_noise="removed")


def test_only_shares_have_layers() -> None:
    central = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    with pytest.raises(PlanError, match="no excess noise is in a sum of the central model"):
        ps.dp.calibrate(SCHEMA, central, honest_shares=1, levels=(1, 2))
