"""Apply a symmetric matrix's eigenvectors to a few columns without computing the eigenvectors themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.linalg.lapack import dormqr, dsytrd, dsytrd_lwork

from privstats.estimates.algebra import Array, DeviceAlgebra, algebra

_BLOCK = 64
"""Maximum number of reflections that LAPACK's ``dormqr`` applies at once."""


@dataclass(frozen=True)
class Eigenbasis:
    """Orthonormal eigenvectors V, ``(d, d)``, applied to columns ``(d, k)``.

    Example:
        >>> from privstats.estimates.eigenbasis import Eigenbasis
        >>> Eigenbasis(np.eye(2)[:, ::-1]).into(np.array([[3.0], [4.0]])).ravel().tolist()
        [4.0, 3.0]
    """

    vectors: Array

    def into(self, columns: Array) -> Array:
        """Return ``V' columns``, the columns in the eigenbasis."""
        return algebra().product(self.vectors.T, columns)

    def back(self, columns: Array) -> Array:
        """Return ``V columns``, from the eigenbasis."""
        return algebra().product(self.vectors, columns)


@dataclass(frozen=True)
class ReflectedBasis(Eigenbasis):
    """Eigenvectors ``V = Q U``: ``vectors`` is U, of a tridiagonal matrix, and Q is the product of d - 1 reflections.

    Attributes:
        reflections, factors: as LAPACK's ``dsytrd`` returns them without the first row, ``(d - 1, d - 1)`` and
            ``(d - 1,)``. Q leaves the first coordinate unchanged.
    """

    reflections: Array
    factors: Array

    def into(self, columns: Array) -> Array:
        """Return ``U' Q' columns``."""
        return super().into(self._reflected(columns, "T"))

    def back(self, columns: Array) -> Array:
        """Return ``Q U columns``."""
        return self._reflected(super().back(columns), "N")

    def _reflected(self, columns: Array, trans: str) -> Array:
        work = _BLOCK * (columns.shape[1] + _BLOCK + 1)
        rest, _, _ = dormqr("L", trans, self.reflections, self.factors, np.asfortranarray(columns[1:]), work)
        return np.vstack([columns[:1], rest])


def eigenbasis(matrix: Array, columns: int) -> tuple[Array, Eigenbasis]:
    """Return ascending eigenvalues ``(d,)`` and the eigenvectors of a symmetric matrix.

    V takes 2 d^3 operations more than its factors Q and U, and a column 2 d^2 more through both factors than through V.
    Two turns of k columns are cheaper through the factors where k is below d / 2.

    Example:
        >>> from privstats.estimates.eigenbasis import eigenbasis
        >>> values, basis = eigenbasis(np.diag([9.0, 4.0, 1.0]), columns=1)
        >>> values.tolist(), np.abs(basis.into(np.array([[0.0], [2.0], [0.0]]))).ravel().tolist()
        ([1.0, 4.0, 9.0], [0.0, 2.0, 0.0])
    """
    if 2 * columns < len(matrix) and not isinstance(algebra(), DeviceAlgebra):
        size, _ = dsytrd_lwork(len(matrix), lower=1)
        reduced, diagonal, beside, factors, _ = dsytrd(
            np.array(matrix.T, np.float64, order="F"), lower=1, lwork=int(size), overwrite_a=1
        )
        if np.isfinite(diagonal).all() and np.isfinite(beside).all():
            found, inner = eigh_tridiagonal(diagonal, beside, check_finite=False)
            below = np.asfortranarray(reduced[1:, :-1])
            return np.asarray(found, np.float64), ReflectedBasis(np.asarray(inner, np.float64), below, factors)
    values, vectors = algebra().eigh(matrix)
    return values, Eigenbasis(vectors)
