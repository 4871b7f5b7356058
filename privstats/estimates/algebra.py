"""Multiply and factor matrices on this machine's cores or, within :func:`algebra_on`, on a device of torch.

Only products and factorisations of matrices run there. Both kinds accept and return arrays of the host in float64, so
an estimate is one code, whichever kind is in force.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dsyrk

from privstats.errors import DataError
from privstats.optional_dependencies import load

Array: TypeAlias = NDArray[np.float64]

_TILE = 64
"""Rows and columns of a tile of :func:`mirrored`: two tiles of float64 are 64 KiB, the size of a core's first cache."""


class Algebra:
    """Products and factorisations by BLAS and LAPACK on this machine's cores.

    Example:
        >>> from privstats.estimates.algebra import Algebra
        >>> values, vectors = Algebra().eigh(np.diag([9.0, 1.0]))
        >>> values.tolist(), Algebra().composed(values, vectors).tolist()
        ([1.0, 9.0], [[9.0, 0.0], [0.0, 1.0]])
    """

    def product(self, *factors: Array) -> Array:
        """Return the matrix product of the factors, from left to right."""
        out, *others = factors
        for factor in others:
            out = out @ factor
        return out

    def composed(self, values: Array, vectors: Array) -> Array:
        """Return ``V diag(values) V'``, ``(d, d)``."""
        return (vectors * values) @ vectors.T

    def less_gram(self, matrix: Array, rows: Array) -> Array:
        """Return ``matrix - rows' rows``, exactly symmetric, from the matrix's upper triangle."""
        # BLAS subtracts in place, from one triangle. The transposes are in BLAS's column order without a strided copy.
        difference = dsyrk(-1.0, rows.T, beta=1.0, c=np.array(matrix.T, np.float64, order="F"), lower=1, overwrite_c=1)
        return mirrored(difference)

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Return ascending eigenvalues ``(d,)`` and eigenvectors ``(d, d)`` of a symmetric matrix."""
        values, vectors = np.linalg.eigh(matrix)
        return values, vectors

    def svd(self, matrix: Array) -> tuple[Array, Array]:
        """Return descending singular values and right singular vectors as rows."""
        _, values, right = np.linalg.svd(matrix, full_matrices=False)
        return values, right

    def solved(self, matrix: Array, right: Array) -> Array | None:
        """Return ``matrix^-1 right``, or None where the symmetric matrix is not positive definite."""
        try:
            # LAPACK factors a copy in column order. As the matrix is symmetric, its rows are its columns.
            columns = matrix if matrix.flags.f_contiguous else matrix.T
            factor = cho_factor(np.array(columns, order="F"), lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return None
        return np.asarray(cho_solve(factor, right, check_finite=False))


@dataclass(frozen=True)
class DeviceAlgebra(Algebra):
    """Products and factorisations by torch on one device, in float64.

    Attributes:
        name: the device, such as ``"cuda"``.
        torch: the package.
    """

    name: str
    torch: Any

    @classmethod
    def named(cls, name: object) -> Self:
        """Return the algebra of a device.

        Raises:
            DataError: torch knows no such device, this machine has none, or the device has no float64.
            MissingExtraError: torch is not installed.
        """
        if not isinstance(name, str):
            raise _unusable(name, "it is no text")
        torch = load("torch", by="device")
        try:
            torch.ones(1, dtype=torch.float64, device=name).item()
        except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
            raise _unusable(name, str(error).partition("\n")[0]) from None
        return cls(name, torch)

    def product(self, *factors: Array) -> Array:
        """Return the matrix product of the factors, from left to right."""
        out, *others = map(self._there, factors)
        for factor in others:
            out = out @ factor
        return self._here(out)

    def composed(self, values: Array, vectors: Array) -> Array:
        """Return ``V diag(values) V'``, ``(d, d)``."""
        columns = self._there(vectors)
        return self._here((columns * self._there(values)) @ columns.T)

    def less_gram(self, matrix: Array, rows: Array) -> Array:
        """Return ``matrix - rows' rows``, exactly symmetric, from the matrix's upper triangle."""
        there = self._there(rows)
        upper = self.torch.triu(self._there(matrix) - there.T @ there)
        return self._here(upper + self.torch.triu(upper, 1).T)

    def eigh(self, matrix: Array) -> tuple[Array, Array]:
        """Return ascending eigenvalues ``(d,)`` and eigenvectors ``(d, d)`` of a symmetric matrix."""
        values, vectors = self.torch.linalg.eigh(self._there(matrix))
        return self._here(values), self._here(vectors)

    def svd(self, matrix: Array) -> tuple[Array, Array]:
        """Return descending singular values and right singular vectors as rows."""
        _, values, right = self.torch.linalg.svd(self._there(matrix), full_matrices=False)
        return self._here(values), self._here(right)

    def solved(self, matrix: Array, right: Array) -> Array | None:
        """Return ``matrix^-1 right``, or None where the symmetric matrix is not positive definite."""
        factor, failed = self.torch.linalg.cholesky_ex(self._there(matrix))
        return None if failed.item() else self._here(self.torch.cholesky_solve(self._there(right), factor))

    def _there(self, array: Array) -> Any:
        return self.torch.as_tensor(np.require(array, np.float64, "W"), device=self.name)

    def _here(self, tensor: Any) -> Array:
        return np.asarray(tensor.cpu().numpy())


def _unusable(name: object, why: str) -> DataError:
    return DataError(
        f"device must name a device of torch with float64, such as 'cuda' or 'cpu', got {name!r:.40}: {why:.200}"
    )


_IN_FORCE: ContextVar[Algebra] = ContextVar("algebra", default=Algebra())  # noqa: B039  an instance without state


def algebra() -> Algebra:
    """Return the algebra in force: this machine's cores outside :func:`algebra_on`."""
    return _IN_FORCE.get()


@contextmanager
def algebra_on(device: str | None) -> Iterator[None]:
    """Multiply and factor matrices on a device within the block, or on this machine's cores for None.

    Estimates agree with the host's up to rounding of float64. Noise is in the sums already, sampled on the host.

    Raises:
        DataError: torch knows no such device, this machine has none, or the device has no float64.
        MissingExtraError: torch is not installed.

    Example:
        >>> from privstats.estimates.algebra import algebra, algebra_on
        >>> with algebra_on(None):
        ...     algebra().product(np.eye(2), np.ones((2, 1))).ravel().tolist()
        [1.0, 1.0]
    """
    token = _IN_FORCE.set(Algebra() if device is None else DeviceAlgebra.named(device))
    try:
        yield
    finally:
        _IN_FORCE.reset(token)


def mirrored(matrix: Array) -> Array:
    """Copy the lower triangle to the upper one, in place; tile by tile, because strided copies miss the cache."""
    for start in range(0, len(matrix), _TILE):
        rows = slice(start, start + _TILE)
        tile = matrix[rows, rows]
        tile[...] = np.tril(tile) + np.tril(tile, -1).T
        for before in range(0, start, _TILE):
            columns = slice(before, before + _TILE)
            matrix[columns, rows] = matrix[rows, columns].T
    return matrix
