"""Eigenvectors in two factors turn columns as the eigenvectors do, and a ridge has the same weights by both."""

import numpy as np
import pytest

from privstats.estimates.algebra import algebra
from privstats.estimates.eigenbasis import Eigenbasis, ReflectedBasis, eigenbasis
from privstats.heads.fitting.least_squares import GramSpectrum, gcv_penalty, penalty_grid


def gram(d: int, records: int, targets: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(d)
    X, Y = rng.normal(size=(records, d)) * np.geomspace(1, 1e-3, d), rng.normal(size=(records, targets))
    return X.T @ X, X.T @ (Y + X[:, :1])


@pytest.mark.parametrize(("d", "records"), [(5, 40), (70, 300), (70, 30), (200, 100)])
def test_two_factors_turn_columns_as_the_eigenvectors(d: int, records: int) -> None:
    G, h = gram(d, records)
    values, basis = eigenbasis(G, h.shape[1])
    assert isinstance(basis, ReflectedBasis)
    dense, vectors = algebra().eigh(G)
    np.testing.assert_allclose(values, dense, atol=1e-13 * dense[-1])
    V = basis.back(np.eye(d))
    np.testing.assert_allclose(V.T @ V, np.eye(d), atol=1e-12)
    np.testing.assert_allclose((V * values) @ V.T, G, atol=1e-12 * dense[-1])
    np.testing.assert_allclose(basis.into(h), V.T @ h, atol=1e-12 * np.abs(h).max())
    several = values > 1e-9 * values[-1]  # below, vectors of one eigenvalue may be turned among themselves
    np.testing.assert_allclose(
        np.square(basis.into(h))[several], np.square(vectors.T @ h)[several], rtol=1e-6, atol=1e-9 * np.square(h).max()
    )


@pytest.mark.parametrize(("d", "records"), [(5, 40), (70, 300), (200, 100)])
def test_penalty_and_weights_are_those_of_the_eigenvectors(d: int, records: int) -> None:
    G, h = gram(d, records)
    found, dense = GramSpectrum.of(G, h), GramSpectrum.of(G, h, columns=d)
    assert (type(found.basis), type(dense.basis)) == (ReflectedBasis, Eigenbasis)
    q = 1.1 * float(np.sum(h * np.linalg.lstsq(G, h)[0])) + records
    assert gcv_penalty(found, q, records, intercept=True) == gcv_penalty(dense, q, records, intercept=True)
    for penalty in penalty_grid(dense.values)[[60, 90, 130]]:
        expected = dense.weights(float(penalty))
        np.testing.assert_allclose(found.weights(float(penalty)), expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("d", "columns"), [(1, 1), (2, 1), (6, 3)])
def test_as_many_columns_as_half_the_features_take_the_eigenvectors(d: int, columns: int) -> None:
    G, _ = gram(d, 40)
    assert type(eigenbasis(G, columns)[1]) is Eigenbasis


def test_sums_without_a_finite_tridiagonal_form_take_the_eigenvectors(monkeypatch: pytest.MonkeyPatch) -> None:
    G = np.full((4, 4), np.inf)
    monkeypatch.setattr(type(algebra()), "eigh", lambda _, matrix: (np.full(4, np.nan), matrix))
    values, basis = eigenbasis(G, 1)
    assert np.isnan(values).all()
    assert type(basis) is Eigenbasis
