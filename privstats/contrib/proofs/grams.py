"""Matrices with a proved product: full ones that send it, and a triangular factor of the report's sums.

Floats compute a factor and integers verify it, so a machine's last bits do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privstats.contrib.proofs.field import (
    Field,
    Integers,
    add,
    dot,
    grouped,
    matmul,
    mul,
)
from privstats.contrib.proofs.statement import Gram

Entries = Callable[[Field, Field], Field]
"""Some entries of x and w, or linear forms of them."""
Indices = NDArray[np.intp]

Ints = NDArray[np.float64]
"""Integers below 2**53 stored as float64, so that products of matrices are exact and go through BLAS."""
_TRIES = 80  # each fails with about one half where the expected error is within its bound: see docs
_SMALLEST = 1e-11  # share of the largest eigenvalue below which a direction of integer sums is rounding
_RELATIVE, _ABSOLUTE = 2.0**-46, 2.0**-20
_FRACTION = 1.0 / (1 << 61)


@dataclass(frozen=True, eq=False)
class Full(Gram):
    """A matrix filled row by row, each part beginning a row; its product is sent."""

    name: str
    rows: int
    columns: int
    matrix: Entries
    sent: bool = field(default=True, init=False)

    def _matrix(self, x: Field, w: Field) -> Field:
        return self.matrix(x, w).reshape(self.rows, self.columns)

    def product(self, x: Field, w: Field) -> Field:
        """Return the lower triangle of X X'."""
        matrix = self._matrix(x, w)
        return np.asarray(matmul(matrix, matrix.T)[self._lower])

    def multiply(self, x: Field, w: Field, z: Field) -> Field:
        """Return X z."""
        return matmul(self._matrix(x, w), z[:, None]).ravel()

    def multiply_transposed(self, x: Field, w: Field, c: Field) -> Field:
        """Return X' c."""
        return matmul(c[None, :], self._matrix(x, w)).ravel()

    def form(self, x: Field, w: Field, product: Field, c: Field) -> int:  # noqa: ARG002
        """Return c' M c."""
        rows, columns = self._lower
        return dot(_doubled(mul(c[rows], c[columns]), rows != columns), product)

    @cached_property
    def _lower(self) -> tuple[Indices, Indices]:
        return np.tril_indices(self.rows)


def diagonal(rows: int) -> Indices:
    """Return diagonal indices in a row-wise lower triangle."""
    every = np.arange(rows)
    return np.asarray(every * (every + 3) // 2)


def rectangle(size: int) -> tuple[int, int]:
    """Return rows and columns for ``size`` entries, for short answers and a small M."""
    rows = max(1, round((4 * size) ** (1 / 3)))
    return rows, -(-size // rows)


@dataclass(frozen=True, eq=False)
class Pattern:
    """Entries that may be nonzero in a lower triangular matrix of equal blocks, in the order of a witness.

    In a block: the corner's diagonal, the columns below it, then the triangle row by row.

    Args:
        blocks: along the diagonal.
        classes: leading rows of a block, with a diagonal corner.
        features: the rows below them.
    """

    blocks: int
    classes: int
    features: int

    @property
    def width(self) -> int:
        """Rows of a block."""
        return self.classes + self.features

    @property
    def rows(self) -> int:
        """Rows of the full matrix."""
        return self.blocks * self.width

    @cached_property
    def inner(self) -> tuple[Indices, Indices]:
        """Row and column of a block's entries."""
        classes, below = np.arange(self.classes), self.classes + np.arange(self.features)
        row, column = np.tril_indices(self.features)
        rows = np.concatenate([classes, np.tile(below, self.classes), self.classes + row])
        columns = np.concatenate([classes, np.repeat(classes, self.features), self.classes + column])
        return rows, columns

    @cached_property
    def places(self) -> tuple[Indices, Indices]:
        """Row and column of all entries."""
        shifts = self.width * np.arange(self.blocks)[:, None]
        rows, columns = self.inner
        return (shifts + rows).ravel(), (shifts + columns).ravel()

    @property
    def size(self) -> int:
        """Number of entries sent."""
        return self.blocks * len(self.inner[0])

    @cached_property
    def diagonal(self) -> Indices:
        """Indices of diagonal entries, by row."""
        rows, columns = self.places
        return np.flatnonzero(rows == columns)

    @cached_property
    def by_row(self) -> tuple[Indices, Indices]:
        """Order by row, and each row's start."""
        return _sorted(self.places[0])

    @cached_property
    def by_column(self) -> tuple[Indices, Indices]:
        """Order by column, and each column's start."""
        return _sorted(self.places[1])


def _sorted(keys: Indices) -> tuple[Indices, Indices]:
    order = np.argsort(keys, kind="stable")
    return order, np.flatnonzero(np.diff(keys[order], prepend=-1))


@dataclass(frozen=True, eq=False)
class Factor(Gram):
    """A triangular factor L in a pattern; L L' has the lower entries ``product_of``, none of which is sent."""

    name: str
    pattern: Pattern
    lower: Entries
    product_of: Entries
    sent: bool = field(default=False, init=False)

    @property
    def rows(self) -> int:  # type: ignore[override]
        """Rows of the full pattern."""
        return self.pattern.rows

    @property
    def columns(self) -> int:  # type: ignore[override]
        """Columns of the full pattern."""
        return self.pattern.rows

    def product(self, x: Field, w: Field) -> Field:  # noqa: ARG002
        """Return no entries."""
        return np.zeros(0, np.uint64)

    def multiply(self, x: Field, w: Field, z: Field) -> Field:
        """Return L z."""
        order, starts = self.pattern.by_row
        return grouped(mul(self.lower(x, w), z[self.pattern.places[1]])[order], starts)

    def multiply_transposed(self, x: Field, w: Field, c: Field) -> Field:
        """Return L' c."""
        order, starts = self.pattern.by_column
        return grouped(mul(self.lower(x, w), c[self.pattern.places[0]])[order], starts)

    def form(self, x: Field, w: Field, product: Field, c: Field) -> int:  # noqa: ARG002
        """Return c' M c."""
        rows, columns = self.pattern.places
        return dot(_doubled(mul(c[rows], c[columns]), rows != columns), self.product_of(x, w))


def _doubled(values: Field, where: NDArray[np.bool_]) -> Field:
    return np.where(where, add(values, values), values)


def candidates(
    blocks: Ints, nonzero: NDArray[np.bool_], coins: Callable[[int, int], Field]
) -> Iterator[tuple[Integers, Integers]]:
    """Yield L and E = T - L L', int64, ``(blocks, width, width)``, at most 81 times: L rounded to nearest first, then
    up or down at random, without bias.

    Args:
        blocks: symmetric integer blocks, ``(blocks, width, width)``; all partial sums of their factors' products must
            be below 2**53.
        nonzero: where a factor may be nonzero, ``(width, width)``.
        coins: uniform elements for the k-th random rounding.
    """
    factor = np.where(nonzero, _factor(blocks), 0.0)
    yield _held(blocks, np.rint(factor))
    down = np.floor(factor)
    for number in range(_TRIES):
        drawn = coins(number, factor.size).reshape(factor.shape) * _FRACTION
        yield _held(blocks, down + (drawn < factor - down))


def completed(known: Ints, across: Ints) -> Ints:
    """Return the smallest H that makes [[known, across'], [across, H]] positive: across known^-1 across'."""
    values, vectors = np.linalg.eigh(known)
    selected = values > _SMALLEST * max(values.max(), 1.0)
    half = across @ vectors[:, selected] / np.sqrt(values[selected])
    product: Ints = half @ half.T
    return product


def _held(blocks: Ints, lower: Ints) -> tuple[Integers, Integers]:
    remainder = blocks - lower @ lower.transpose(0, 2, 1)
    return lower.astype(np.int64), remainder.astype(np.int64)


def _factor(blocks: Ints) -> Ints:
    """Lift the blocks a little; where Cholesky still fails, use a triangle of the nearest positive ones."""
    width = blocks.shape[-1]
    traces = np.trace(blocks, axis1=1, axis2=2)[:, None, None]
    try:
        return np.linalg.cholesky(blocks + (_RELATIVE * traces + _ABSOLUTE) * np.eye(width))
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(blocks)
        roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        upper: Ints = np.linalg.qr(roots.transpose(0, 2, 1)).R
        return np.tril(upper.transpose(0, 2, 1))
