"""Recovered features are pictures again: by a linear decoder, and by a net that saw no image."""

import sys

import numpy as np
import pytest

from privstats.errors import DataError, MissingExtraError
from tests.made import refused
from threat_models.attacks.constraints import NONNEGATIVE
from threat_models.attacks.deep_prior import deep_images
from threat_models.attacks.encoder import conv_features, digit_images, torch_features
from threat_models.attacks.images import Decoder, baseline, four_samples, psnr, ssim
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import recover


@pytest.fixture(scope="module")
def decoder():
    """Trained on the first thousand digits, which are public; the others are the clients'."""
    images, _ = digit_images()
    return Decoder.fit(conv_features(images[:1000]), images[:1000])


def written_out(x, y, top, sigma=1.5, radius=5):
    """Equations 6 and 13 of Wang et al. 2004, place by place."""
    offsets = np.arange(-radius, radius + 1)
    w = np.exp(-(offsets[:, None] ** 2 + offsets[None] ** 2) / (2 * sigma**2))
    w /= w.sum()
    scores = []
    for i in range(radius, x.shape[0] - radius):
        for j in range(radius, x.shape[1] - radius):
            a, b = (z[i - radius : i + radius + 1, j - radius : j + radius + 1] for z in (x, y))
            ma, mb = (w * a).sum(), (w * b).sum()
            va, vb, cov = (w * (a - ma) ** 2).sum(), (w * (b - mb) ** 2).sum(), (w * (a - ma) * (b - mb)).sum()
            C1, C2 = (0.01 * top) ** 2, (0.03 * top) ** 2
            scores.append((2 * ma * mb + C1) * (2 * cov + C2) / ((ma**2 + mb**2 + C1) * (va + vb + C2)))
    return np.mean(scores)


def test_ssim_is_the_published_formula():
    rng = np.random.default_rng(0)
    x, y = rng.random((16, 14)) * 255, rng.random((16, 14)) * 255
    assert ssim(x, y, top=255.0) == pytest.approx(written_out(x, y, 255.0), rel=1e-10)
    assert ssim(x[:8, :8], y[:8, :8], top=255.0) == pytest.approx(written_out(x[:8, :8], y[:8, :8], 255.0, radius=3))
    assert ssim(x, x) == pytest.approx(1)
    refused(DataError, "one shape", ssim, x, y[:8])


def test_psnr_is_twenty_decibels_at_a_tenth_of_the_range():
    assert psnr(np.zeros((4, 4)), np.full((4, 4), 0.1)) == pytest.approx(20)
    assert psnr(np.zeros((4, 4)), np.zeros((4, 4))) == np.inf


def test_a_linear_decoder_of_public_digits_draws_what_features_show(decoder):
    images, _ = digit_images()
    drawn = decoder.images(conv_features(images[1000:1100]))
    known = baseline(images[:1000], 100)
    assert np.mean([psnr(a, b) for a, b in zip(images[1000:1100], drawn, strict=True)]) > 25
    assert np.mean([ssim(a, b) for a, b in zip(images[1000:1100], drawn, strict=True)]) > 0.9
    assert np.mean([psnr(a, b) for a, b in zip(images[1000:1100], known, strict=True)]) < 14
    assert np.mean([ssim(a, b) for a, b in zip(images[1000:1100], known, strict=True)]) < 0.5


def test_four_samples_of_a_class_are_seen_with_secure_aggregation_and_without(decoder):
    """FedCGS says that "uploaded variables cannot be used to recover": from N, A and S of four samples they are."""
    images, y = digit_images()
    mine = images[1000:][y[1000:] == 3][:4]
    rows = conv_features(mine)
    found = recover(4, rows.sum(axis=0), rows.T @ rows, constraints=NONNEGATIVE, rng=np.random.default_rng(0))
    pictures = four_samples(decoder, rows, found.rows[match(rows, found.rows).order])
    for truth, wholly, partly in zip(mine, pictures.wholly, pictures.partly, strict=True):
        assert psnr(truth, wholly) > 20
        assert psnr(truth, partly) > 20
        assert psnr(truth, pictures.mean) < psnr(truth, partly) - 3
        assert psnr(truth, pictures.prior) < 16


@pytest.mark.parametrize(("rows", "penalty", "says"), [(3, 0.0, "penalty"), (2, 1.0, "equally many")])
def test_a_decoder_without_what_it_needs_is_refused(rows, penalty, says):
    refused(DataError, says, Decoder.fit, np.ones((rows, 2)), np.ones((3, 4, 4)), penalty=penalty)


@pytest.mark.ci
def test_a_net_that_saw_no_image_draws_what_features_show():
    torch = pytest.importorskip("torch")
    images, _ = digit_images()
    encoder = torch_features()
    truth = images[1000:1002]
    rows = conv_features(truth)
    assert np.allclose(encoder(torch.as_tensor(truth[:, None], dtype=torch.float32)).numpy(), rows, atol=1e-6)
    drawn = deep_images(rows, encoder, (8, 8), seed=0, width=12, iterations=120)
    assert drawn.shape == truth.shape
    assert np.mean([psnr(a, b) for a, b in zip(truth, drawn, strict=True)]) > 20
    first = deep_images(rows, encoder, (8, 8), seed=0, width=12, iterations=3)
    assert np.array_equal(first, deep_images(rows, encoder, (8, 8), seed=0, width=12, iterations=3))


def test_without_torch_the_deep_prior_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    refused(MissingExtraError, r"privstats\[torch\]", deep_images, np.ones((1, 4)), lambda batch: batch, (8, 8), seed=0)
