"""The Fisher subspace solves the generalised eigenproblem, and heads live in it."""

import numpy as np
import pytest
from scipy.linalg import eigh, subspace_angles

from privstats import heads
from privstats.errors import HeadError, MissingStatisticError
from privstats.heads import LDA, QDA, RDA, NaiveBayes, fisher_subspace
from privstats.heads.registry import HEADS
from tests.heads.conftest import class_release
from tests.made import refused


def scatters(X, y):
    grand = X.mean(axis=0)
    within = sum(len(X[y == c]) * np.cov(X[y == c].T, bias=True) for c in np.unique(y)) / len(X)
    between = sum(
        len(X[y == c]) * np.outer(X[y == c].mean(axis=0) - grand, X[y == c].mean(axis=0) - grand) for c in np.unique(y)
    )
    return between / len(X), within


def test_it_solves_the_generalised_eigenproblem(blobs):
    X, y = blobs(n=20_000)  # so many that shrinkage vanishes
    fisher = fisher_subspace(class_release(X, y))
    values, vectors = eigh(*scatters(X, y))
    np.testing.assert_allclose(fisher.eigenvalues, values[::-1][:3], rtol=0.01)
    assert subspace_angles(fisher.basis, vectors[:, ::-1][:, :3]).max() < 0.02
    np.testing.assert_allclose(fisher.basis.T @ fisher.basis, np.eye(3), atol=1e-12)
    assert fisher.explained_energy == pytest.approx(1.0)


def test_dimension_by_count_and_by_energy(blobs):
    release = class_release(*blobs())
    two = fisher_subspace(release, 2)
    assert two.basis.shape == fisher_subspace(release, two.explained_energy).basis.shape == (6, 2)
    assert fisher_subspace(release, 1.0).basis.shape == fisher_subspace(release, 6).basis.shape == (6, 3)
    refused(HeadError, "dimension=7 is more than the 6 features; give at most 6", fisher_subspace, release, 7)
    for wrong in (0, -1, 1.5, 0.0, "most", True):
        refused(ValueError, "dimension must be", fisher_subspace, release, wrong)


def test_second_moments_are_needed(blobs):
    refused(MissingStatisticError, "B", fisher_subspace, class_release(*blobs(), "NAD"))


def test_lda_loses_nothing_in_all_fisher_directions(blobs):
    X, y = blobs(n=3000)
    full, low = LDA(shrinkage=None).fit(X, y), LDA(shrinkage=None, subspace="auto").fit(X, y)
    assert (full.predict(X) == low.predict(X)).mean() > 0.99
    assert low.coef_.shape == full.coef_.shape


OF_CLASSES = (LDA, QDA, RDA, NaiveBayes, *([heads.LowRankQDA] if "LowRankQDA" in HEADS else []))


@pytest.mark.parametrize("head", OF_CLASSES)
@pytest.mark.parametrize("subspace", ["auto", 2, 0.9])
def test_heads_live_in_it(blobs, head, subspace):
    X, y = blobs()
    fitted = head(subspace=subspace).fit(X, y)
    assert fitted.score(X, y) > 0.6
    released = head(subspace=subspace).fit_release(class_release(X, y, "NAS"))
    np.testing.assert_allclose(released.predict_proba(X), fitted.predict_proba(X), atol=1e-6)
    assert 0 < fitted.fisher_.explained_energy <= 1


def test_projected_rule_is_the_rule_of_projected_rows(blobs):
    X, y = blobs()
    for head in (each for each in OF_CLASSES if each is not RDA):
        fitted = head(subspace=2).fit(X, y)
        low = X @ fitted.fisher_.basis
        direct = head().fit(low, y)
        np.testing.assert_allclose(fitted.predict_proba(X), direct.predict_proba(low), atol=1e-6)


def test_equal_means_leave_a_defined_subspace():
    half = np.random.default_rng(0).standard_normal((50, 4))
    X, y = np.r_[half, half], np.repeat([0, 1], 50)
    assert np.isfinite(fisher_subspace(class_release(X, y)).basis).all()
    assert np.isfinite(LDA(subspace="auto").fit(X, y).predict_proba(X)).all()
