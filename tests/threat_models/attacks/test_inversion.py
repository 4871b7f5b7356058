"""Records are read off sums of few, off the last digits of doubles, and off one FedAvg update."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm, rankdata

import privstats as ps
from benchmarks.attacks.doubles import double_gaussian
from tests.made import refused
from threat_models.attacks.constraints import NONNEGATIVE
from threat_models.attacks.encoder import conv_features, digit_images
from threat_models.attacks.fedavg_update import first_step, step_of_sums, sums_of
from threat_models.attacks.float_digits import baseline as baseline_of_digits
from threat_models.attacks.float_digits import digit_scores, unreachable
from threat_models.attacks.images import Decoder, psnr
from threat_models.attacks.inversion import baseline, one_record, pair_from_moments, pair_from_squares
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import recover

INTEGERS = arrays(np.int64, (2, 6), elements=st.integers(-5000, 5000))


def moments_of(rows):
    return rows.sum(axis=0), rows.T @ rows, np.square(rows).sum(axis=0)


def test_the_sum_of_one_record_is_the_record():
    row = np.random.default_rng(0).standard_normal((1, 64))
    assert np.array_equal(one_record(row.sum(axis=0)), row)


@pytest.mark.parametrize("seed", range(5))
def test_two_records_are_read_off_real_sums_to_1e9(seed):
    rows = np.random.default_rng(seed).standard_normal((2, 64))
    A, S, D = moments_of(rows)
    found = pair_from_moments(A, S)
    assert np.abs(rows - found[match(rows, found).order]).max() < 1e-9
    assert pair_from_squares(A, D).found(rows, 1e-6) == 1.0
    assert np.median(np.abs(np.sort(rows, axis=0)[1] - pair_from_squares(A, D).high)) < 1e-9


@given(INTEGERS)
def test_two_records_on_a_grid_are_exact(rows):
    A, S, D = moments_of(rows)
    found = pair_from_moments(A, S)
    assert {tuple(row) for row in found} == {tuple(row) for row in rows}
    pairs = pair_from_squares(A, D)
    assert np.array_equal(np.stack([pairs.low, pairs.high]), np.sort(rows, axis=0))


def test_two_records_of_a_real_upload_are_their_quantised_selves():
    """Through the library's own clip and grid: rounding to 2^-12 of the clip norm hides nothing."""
    X = np.random.default_rng(1).standard_normal((3, 16))
    schema = ps.ClassSchema(2, 16, "NAS", clip_norm=8.0)
    moments = ps.measure(schema, X, np.array([0, 0, 1]))
    step = 8.0 / 2**schema.grid_bits
    pair = pair_from_moments(moments.A[0], moments.S[0]) * step
    assert match(X[:2], pair).errors.max() < 16 * step
    assert np.abs(one_record(moments.A[1]) * step - X[2]).max() <= step
    again = ps.measure(schema, X[:1], np.array([0]))  # the grid point itself comes out, not something near it
    assert any(np.array_equal(row, again.A[0] * step) for row in pair)


def test_squares_leave_open_which_record_has_which_value():
    A, S, D = moments_of(np.array([[1, 5], [4, 2]]))
    other = np.array([[1, 2], [4, 5]])
    assert pair_from_squares(A, D).found(other, 0) == 1.0
    assert not np.array_equal(other.T @ other, S)


def test_sums_of_three_records_are_refused_on_the_grid():
    A, S, _ = moments_of(np.random.default_rng(2).integers(-50, 50, (3, 4)))
    refused(ps.DataError, "two integer records", pair_from_moments, A, S)


def test_noise_costs_the_attack_what_it_adds_and_no_more():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((2, 64))
    A, S, D = moments_of(rows)
    noise = rng.standard_normal(S.shape) * 1e-3
    found = pair_from_moments(A + 1e-3 * rng.standard_normal(64), S + (noise + noise.T) / 2)
    assert 1e-6 < match(rows, found).errors.max() < 1e-2
    assert pair_from_squares(A, D - 1.0).found(rows, 1e9) == 1.0  # no NaN where noise is below 0 under the root


def test_without_the_release_the_attacker_says_the_public_mean():
    public = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(baseline(public, 2), [[4.5, 5.5, 6.5]] * 2)
    rows = np.random.default_rng(4).standard_normal((2, 3))
    assert match(rows, baseline(rows * 0 + public.mean(axis=0), 2)).errors.min() > 0.05


D = 4096
MU = ps.dp.gaussian_mu(1.0, 1e-5)
CEILING = norm.cdf(MU / np.sqrt(2))


def auc(without, with_target):
    ranks = rankdata(np.concatenate([without, with_target]))
    m, n = len(without), len(with_target)
    return (ranks[m:].sum() - n * (n + 1) / 2) / (m * n)


def record(seed):
    x = np.random.default_rng(seed).standard_normal(D)
    return x / np.linalg.norm(x)


def test_a_double_gaussian_at_epsilon_one_is_told_apart_far_above_its_ceiling():
    rng, sigma, x = np.random.default_rng(0), 1 / MU, record(1)
    nothing = np.zeros(D)
    scores = [digit_scores(double_gaussian(v, sigma, 250, rng), nothing, x, sigma) for v in (nothing, x)]
    assert pytest.approx(0.58, abs=0.01) == CEILING
    assert auc(*scores) > 0.9


def test_our_integer_noise_at_the_same_epsilon_is_at_its_ceiling():
    """Within three standard errors of the ceiling, on both sides: the likelihood ratio is still there."""
    steps, trials, rng = 2.0**12, 600, ps.randomness.seeded(2)
    x = np.rint(record(1) * steps)
    sigma = float(np.linalg.norm(x) / MU)
    nothing = np.zeros(D)
    noise = [ps.dp.rounded_gaussian(sigma, D * trials, rng).reshape(trials, D).astype(np.float64) for _ in range(2)]
    scores = [digit_scores(noise[0], nothing, x, sigma), digit_scores(noise[1] + x, nothing, x, sigma)]
    assert abs(auc(*scores) - CEILING) < 3 * np.sqrt(1 / (6 * trials))


def test_what_was_added_is_never_called_unreachable():
    rng = np.random.default_rng(3)
    for size in (1e-9, 1.0, 1e9):
        value = size * rng.standard_normal(D)
        assert not unreachable(double_gaussian(value, 1.0, 20, rng), value).any()


def test_without_outputs_nothing_is_told_apart_and_noise_of_no_size_is_refused():
    assert auc(baseline_of_digits(5), baseline_of_digits(7)) == 0.5
    refused(ps.DataError, "sigma", digit_scores, np.zeros((1, 2)), np.zeros(2), np.ones(2), 0.0)


def records(seed, classes=4, n=9, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.integers(0, classes, n)


def sums(X, y, classes=4):
    at = np.eye(classes)[y]
    return at.sum(axis=0), at.T @ X


@pytest.mark.parametrize("seed", range(5))
def test_the_first_step_from_zero_is_a_function_of_counts_and_sums_alone(seed):
    X, y = records(seed)
    for one, other in zip(first_step(X, y, 4, rate=0.3), step_of_sums(*sums(X, y), rate=0.3), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-14)


def test_records_with_the_same_counts_and_sums_send_the_same_update_and_other_second_moments():
    """What the inequality would need to be the other way round: B tells these two clients apart, FedAvg does not."""
    X, y = records(1, classes=1)
    turned = 2 * X.mean(axis=0) - X  # every record mirrored in the mean: the same sum
    stretched = X.mean(axis=0) + 3 * (X - X.mean(axis=0))
    for same in (turned, stretched):
        np.testing.assert_allclose(first_step(same, y, 2).weights, first_step(X, y, 2).weights, atol=1e-12)
    assert np.linalg.norm(stretched.T @ stretched - X.T @ X) > 1


def test_an_update_gives_the_sums_back_where_a_class_is_absent_and_only_there():
    X, y = records(2)
    present = np.where(y == 3, 0, y)
    N, A = sums_of(first_step(X, present, 4, rate=2.0), len(X), rate=2.0)
    wanted = sums(X, present)
    np.testing.assert_array_equal(N, wanted[0])
    np.testing.assert_allclose(A, wanted[1], atol=1e-12)
    y[:4] = range(4)
    refused(ps.DataError, "up to a common vector", sums_of, first_step(X, y, 4), len(X))


def test_pictures_from_a_fedavg_update_are_twelve_decibels_below_those_from_the_sums_of_lda():
    """The paper's own four samples of a class: L(moments) <= L(FedAvg) is refuted by an attack on each."""
    images, y = digit_images()
    features, half = conv_features(images), len(images) // 2
    decoder = Decoder.fit(features[:half], images[:half])
    rng = np.random.default_rng(0)
    chosen = half + rng.choice(np.flatnonzero(y[half:] == 0), 4, replace=False)
    rows, truth = features[chosen], images[chosen]
    found = recover(4, rows.sum(axis=0), rows.T @ rows, constraints=NONNEGATIVE, rng=rng).rows
    of_sums = decoder.images(found[match(rows, found).order])
    average = sums_of(first_step(rows, np.zeros(4, int), 10), 4)[1][0] / 4
    of_update = decoder.images(np.tile(average, (4, 1)))
    assert np.mean([psnr(t, a) - psnr(t, b) for t, a, b in zip(truth, of_sums, of_update, strict=True)]) > 8
