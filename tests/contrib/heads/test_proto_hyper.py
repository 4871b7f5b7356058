"""ProtoHyper learns from its teacher, whatever base and teacher are."""

import numpy as np
import pytest

from privstats.errors import HeadError
from privstats.heads import ProtoHyper
from privstats.heads.fitting import class_covariance
from tests.heads.conftest import class_release

pytest.importorskip("torch")


@pytest.mark.ci
def test_distillation_moves_a_weak_base_toward_its_teacher(blobs):
    X, y = blobs(n=4000, d=8, classes=5, spread=1.0)
    base = ProtoHyper(base="nb", max_rounds=1, rank=4)
    taught = ProtoHyper(base="nb", teacher="rda", max_rounds=20, rank=4, per_class=1000)
    assert np.abs(taught.fit(X, y).residual_).max() > 0.01
    assert np.linalg.matrix_rank(taught.residual_, tol=1e-6) <= 4
    assert taught.score(X, y) >= base.fit(X, y).score(X, y) - 0.02


@pytest.mark.parametrize(("base", "teacher"), [("rda", "lda"), ("lda", "blend"), ("nb", "rda")])
def test_every_base_and_every_teacher_make_a_head(base, teacher, blobs):
    X, y = blobs()
    head = ProtoHyper(base=base, teacher=teacher, per_class=100, max_rounds=2).fit(X, y)
    assert head.score(X, y) > 0.7


def test_it_sees_in_which_directions_classes_vary_and_not_only_where_their_means_lie():
    """Means on a line and variances that tell classes apart off it: C - 1 dimensions cannot, all of them can."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.standard_normal((3000, 6)) * np.where(y[:, None] == 0, [1, 1, 1, 4, 4, 4], [1, 4, 4, 1, 1, 1])
    X[:, 0] += y
    narrow, wide = (ProtoHyper(dimension=k, per_class=200, max_rounds=3).fit(X, y) for k in (1, "auto"))
    assert wide.score(X, y) > narrow.score(X, y) + 0.1


def test_squares_teach_it_in_which_features_classes_vary():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    X = rng.standard_normal((3000, 6)) * np.where(y[:, None] == 0, [1, 1, 1, 4, 4, 4], [1, 4, 4, 1, 1, 1])
    pooled, squares = (
        ProtoHyper(dimension=6, per_class=200, max_rounds=3).fit_release(class_release(X, y, letters))
        for letters in ("NAB", "NAD")
    )
    assert squares.score(X, y) > pooled.score(X, y) + 0.1


def test_without_second_moments_per_class_the_means_span_the_subspace(blobs):
    X, y = blobs(d=8, classes=3)
    head = ProtoHyper(per_class=50, max_rounds=1).fit_release(class_release(X, y, "NAB"))
    assert head.residual_.shape == (3, 2)


@pytest.mark.parametrize("teacher", ["rda", "blend"])
@pytest.mark.parametrize("base", ["rda", "nb"])
def test_pooled_covariances_teach_as_many_identities_would(base, teacher, blobs, monkeypatch):
    """The short way of classes with one covariance yields the head of the general way, up to rounding."""
    X, y = blobs(d=8, classes=3)
    release, head = class_release(X, y, "NAB"), ProtoHyper(base=base, teacher=teacher, per_class=100, max_rounds=1)
    short = head.fit_release(release).decision_function(X)
    monkeypatch.setattr(class_covariance.ClassCovariances, "pooled", property(lambda _: False, lambda *_: None))
    np.testing.assert_allclose(short, head.fit_release(release).decision_function(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    ("letters", "said"), [("NAD", "GaussianProjection"), ("NAB", "give such a number as dimension")]
)
def test_more_work_than_anybody_waits_for_is_refused(letters, said, blobs, monkeypatch):
    X, y = blobs(d=8, classes=3)
    release, head = class_release(X, y, letters), ProtoHyper(per_class=20, max_rounds=1)
    assert head.fit_release(release).predict(X[:2]).shape == (2,)
    monkeypatch.setattr(class_covariance, "_MAX_OPERATIONS", 3 * 2**3 - 1)
    with pytest.raises(HeadError, match=said):
        head.fit_release(release)


def test_the_limit_is_two_minutes_of_work():
    for classes, features in ((16, 2_048), (128, 1_024), (2_000, 384)):
        class_covariance.ClassCovariances.require_bearable(classes, features, "")
    with pytest.raises(HeadError, match="1000 classes of 2048 features .* and 516 features are the most"):
        class_covariance.ClassCovariances.require_bearable(1_000, 2_048, "map")
