"""Samples have their world's moments; heads trained on them repeat under a seed, survive noise, and load torch late."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privstats.contrib.heads.synthetic import draw, wider_directions
from privstats.errors import DataError, MissingExtraError
from privstats.heads import LDA, FisherMix, ProtoHyper
from privstats.heads.evidence import records_evidence
from privstats.heads.fitting.class_covariance import ClassCovariances
from tests.cards import NEEDS_CARD
from tests.heads.conftest import class_release

torch = pytest.importorskip("torch")
HEADS = [FisherMix(per_class=200), ProtoHyper(per_class=200)]


@pytest.mark.parametrize("head", HEADS, ids=repr)
def test_same_seed_same_head_other_seed_other_head(head, blobs):
    X, y = blobs()
    first, again = head.fit(X, y)._scores(X), head.fit(X, y)._scores(X)
    np.testing.assert_array_equal(first, again)
    other = type(head)(per_class=200, random_state=1).fit(X, y)._scores(X)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("head", HEADS, ids=repr)
@pytest.mark.parametrize("statistics", ["NAS", "NAB"])
def test_release_is_enough(head, statistics, blobs):
    X, y = blobs(n=2000)
    released = head.fit_release(class_release(X, y, statistics))
    assert released.score(X, y) > LDA().fit(X, y).score(X, y) - 0.03
    assert released.convergence_.rounds >= 1


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.floats(-2, 5), st.sampled_from(["NAS", "NAB"]))
def test_scores_are_finite_at_every_noise_level(seed, level, statistics):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 5)) * rng.integers(0, 2, size=5)
    y = np.r_[np.arange(3), rng.integers(3, size=17)]
    release = class_release(X, y, statistics, dict.fromkeys("NABS", 10.0**level), rng)
    for head in (FisherMix(per_class=20, max_rounds=1), ProtoHyper(per_class=20, max_rounds=1)):
        assert np.isfinite(head.fit_release(release).predict_proba(X)).all()


def test_missing_torch_names_the_extra(monkeypatch, blobs):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"privstats\[torch\]"):
        FisherMix().fit(*blobs())


def test_progress_bar_does_not_change_the_result(blobs):
    X, y = blobs()
    quiet = FisherMix(per_class=50, max_rounds=2).fit(X, y)
    loud = FisherMix(per_class=50, max_rounds=2, progress=True).fit(X, y)
    np.testing.assert_array_equal(quiet.coef_, loud.coef_)


@pytest.mark.skipif(torch.cuda.is_available(), reason="checks the refusal where there is no GPU")
def test_cuda_without_a_gpu_is_refused(blobs):
    with pytest.raises(DataError, match="cuda"):
        FisherMix(device="cuda").fit(*blobs())


@NEEDS_CARD
@pytest.mark.parametrize("head", [FisherMix, ProtoHyper])
def test_cuda_gives_the_same_head_up_to_rounding(head, blobs):
    X, y = blobs()
    on_gpu, on_cpu = (head(device=device, per_class=200).fit(X, y) for device in ("cuda", "cpu"))
    assert (on_gpu.predict(X) == on_cpu.predict(X)).mean() > 0.99


def test_samples_have_the_moments_they_were_drawn_from():
    rng = np.random.default_rng(0)
    means = rng.standard_normal((2, 3)) * 5
    vectors = np.stack([np.linalg.qr(rng.standard_normal((3, 3)))[0] for _ in range(2)])
    values = rng.uniform(0.5, 2, (2, 3))
    samples = draw(means, ClassCovariances(np.eye(3), values, vectors), 40_000, 1.5, seed=1)
    for c in range(2):
        rows = samples.rows[samples.labels == c]
        np.testing.assert_allclose(rows.mean(axis=0), means[c], atol=0.05)
        np.testing.assert_allclose(np.cov(rows.T), 1.5**2 * (vectors[c] * values[c]) @ vectors[c].T, atol=0.15)


def test_pooled_covariances_yield_the_samples_of_as_many_identities():
    means, eyes = np.random.default_rng(0).standard_normal((3, 4)), np.broadcast_to(np.eye(4), (3, 4, 4))
    pooled, each = (
        draw(means, ClassCovariances(np.eye(4), np.ones((3, 4)), eyes, pooled=pooled), 50, 1.5, seed=1)
        for pooled in (True, False)
    )
    np.testing.assert_array_equal(pooled.rows, each.rows)


def test_dispersion_widens_classes_that_do_not_overlap(blobs):
    assert FisherMix(per_class=50, max_rounds=1).fit(*blobs(spread=30.0)).dispersion_ > 1
    assert FisherMix(per_class=50, max_rounds=1).fit(*blobs(spread=0.3)).dispersion_ == 1


def test_wider_directions_find_where_covariances_differ():
    X = np.random.default_rng(0).standard_normal((4000, 5))
    y = np.repeat([0, 1], 2000)
    X[y == 1, 0] += 3  # means differ along the first feature
    X[y == 1, 3] *= 4  # spreads differ along the fourth
    covariances = ClassCovariances.of(records_evidence(X, y, 2, "NAS"), 0.0, None)
    first = np.linalg.pinv(covariances.basis)[:, :1]
    first /= np.linalg.norm(first)
    wide = wider_directions(first, covariances, np.array([2000.0, 2000.0]), 2)
    np.testing.assert_allclose(wide.T @ wide, np.eye(2), atol=1e-10)
    second = covariances.basis @ wide[:, 1]
    assert np.abs(second).argmax() == 3
