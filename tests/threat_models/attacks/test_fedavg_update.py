"""GH-OFL's "moments leak no more than FedAvg": one update is a function of N and A, and shows less than A and B."""

import numpy as np
import pytest

from privstats.errors import DataError
from threat_models.attacks.constraints import NONNEGATIVE
from threat_models.attacks.encoder import conv_features, digit_images
from threat_models.attacks.fedavg_update import first_step, step_of_sums, sums_of
from threat_models.attacks.images import Decoder, psnr
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import recover


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
    with pytest.raises(DataError, match="up to a common vector"):
        sums_of(first_step(X, y, 4), len(X))


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
    gained = np.mean([psnr(t, a) - psnr(t, b) for t, a, b in zip(truth, of_sums, of_update, strict=True)])
    assert gained > 8
