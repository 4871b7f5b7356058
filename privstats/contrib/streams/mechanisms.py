"""The mechanisms of a stream as matrices: which epochs each release covers, what a record costs, how totals follow.

The square-root mechanism's integer coefficients leave the noise independent and the sampler exact; they need extra ring
bits (``Plan.spare_bits``), because weighing precedes the lift.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PlanError

MechanismName: TypeAlias = Literal["increments", "tree", "square-root"]
Reals: TypeAlias = NDArray[np.float64]

FIXED_BITS = 10
"""Binary digits behind the point of the coefficients of the square-root factorisation, which are integers."""


@dataclass(frozen=True)
class Node:
    """A release of a stream.

    Attributes:
        epoch: from 0; the release follows it.
        level: 0, or in a tree the level of nodes that span 2**level epochs.
        since: the first epoch that it spans.
    """

    epoch: int
    level: int = 0
    since: int = 0


@dataclass(frozen=True)
class Mechanism:
    """One way to release running sums.

    Attributes:
        nodes: function from the number of epochs to the nodes, in order.
        matrix: function from the number of epochs to every node's weights, ``(nodes, epochs)``.
        correlated: releases weigh earlier epochs, so only a server that sees exact sums can form them.
        private: requires noise.
    """

    name: MechanismName
    nodes: Callable[[int], tuple[Node, ...]]
    matrix: Callable[[int], Reals]
    correlated: bool = False
    private: bool = True

    def parts(self, epochs: int, *, deletions: bool = False, opposed: bool = False) -> float:
        """Return the largest squared norm of one record's contribution to all nodes, over the record's own.

        A record adds its entering epoch's column, less its leaving epoch's. A late record is in another node of its
        level, which changes no norm.

        Args:
            epochs: T.
            deletions: records may leave.
            opposed: two records of opposite sums, each entering and leaving at the worst epochs: four columns at most.
        """
        columns = self.matrix(epochs)
        gram = columns.T @ columns
        squares = np.diagonal(gram)
        most = float(squares.max())
        if deletions:
            most = max(most, float((squares[:, None] + squares[None, :] - 2 * gram).max()))
        return 4 * most if opposed else most


def coefficients(epochs: int) -> tuple[int, ...]:
    """Return binom(2k, k) / 4**k for k < epochs, in units of 2**-FIXED_BITS: the square root of 1 / (1 - x).

    Their Toeplitz matrix squares to the lower triangular matrix of ones (Fichtenberger, Henzinger and Upadhyay 2023).
    Costs and weights use the rounded values.
    """
    exact, coefficients = 1.0, []
    for k in range(epochs):
        coefficients.append(round(exact * (1 << FIXED_BITS)))
        exact *= (2 * k + 1) / (2 * k + 2)
    return tuple(coefficients)


def total_weights(matrix: Reals, have: Sequence[int], at: Sequence[int]) -> Reals:
    """Return least-squares weights of the released nodes, for the sum so far.

    w = M (M'M)^+ 1 over the released rows ``have`` of M and the epochs ``at`` that have a sum: the unbiased estimate of
    minimum variance where all nodes carry the same noise.
    """
    rows = matrix[np.ix_(list(have), list(at))]
    solved: Reals = rows @ np.linalg.lstsq(rows.T @ rows, np.ones(len(at)), rcond=None)[0]
    return solved


def _each(epochs: int) -> tuple[Node, ...]:
    return tuple(Node(epoch, since=epoch) for epoch in range(epochs))


def _tree(epochs: int) -> tuple[Node, ...]:
    if epochs & (epochs - 1):
        raise PlanError(f"epochs of a tree must be a power of two, got {epochs}; take the next one")
    levels = epochs.bit_length()
    return tuple(
        Node(epoch, level, epoch + 1 - (1 << level))
        for epoch in range(epochs)
        for level in range(levels)
        if (epoch + 1) % (1 << level) == 0
    )


@lru_cache(maxsize=16)
def _tree_matrix(epochs: int) -> Reals:
    return np.array([[float(node.since <= t <= node.epoch) for t in range(epochs)] for node in _tree(epochs)])


@lru_cache(maxsize=16)
def _root_matrix(epochs: int) -> Reals:
    row = coefficients(epochs)
    fixed = [[row[t - s] if s <= t else 0 for s in range(epochs)] for t in range(epochs)]
    return np.ldexp(np.array(fixed, np.float64), -FIXED_BITS)


_ROWS = (
    Mechanism("increments", _each, np.eye, private=False),
    Mechanism("tree", _tree, _tree_matrix),
    Mechanism("square-root", _each, _root_matrix, correlated=True),
)
MECHANISMS: Mapping[str, Mechanism] = MappingProxyType({row.name: row for row in _ROWS})
"""The mechanisms by name."""


def spare_bits(epochs: int) -> int:
    """Return the extra ring bits of weighted square-root sums."""
    return math.ceil(math.log2(sum(coefficients(epochs))))
