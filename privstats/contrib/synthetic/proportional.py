"""Fit tables of pairs by iterative proportional fitting, with identical bits on every machine.

Only sums, products and quotients of numpy's elementwise loops run, in a fixed order: no BLAS, exponential or logarithm,
whose last digits differ between processors.

Source: Jirousek and Preucil, On the effective implementation of the iterative proportional fitting procedure (1995).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree, Link

_SWEEPS, _CLOSE = 30, 1e-6
"""Maximum number of sweeps over all tables, and the change of a share at which they end."""
_PROJECTIONS = 40
IMPOSSIBLE = 1e-200
"""Probability below which a cell counts as empty, far above where quotients overflow."""
_LEAST = 1e-9
"""Smallest share of a cell: no cell becomes impossible."""


def consistent(table: Array, rows: Array, columns: Array) -> Array:
    """Return shares above 0 with these margins that are nearest to a noisy table, in squares.

    Source: Boyle and Dykstra (1986), alternating projections.

    Example:
        >>> from privstats.contrib.synthetic.proportional import consistent
        >>> half = np.array([0.5, 0.5])
        >>> consistent(np.array([[0.7, -0.1], [-0.2, 0.6]]), half, half).round(3).tolist()
        [[0.5, 0.0], [0.0, 0.5]]
    """
    shares, beyond = table, np.zeros_like(table)
    wide, high = table.shape[1], table.shape[0]
    for _ in range(_PROJECTIONS):
        left, above = (shares.sum(axis=1) - rows) / wide, (shares.sum(axis=0) - columns) / high
        moved = shares - left[:, None] - above + left.sum() / high + beyond
        shares = np.maximum(moved, 0.0)
        beyond = moved - shares
    positive = np.maximum(shares, _LEAST)
    return np.asarray(positive / positive.sum())


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Probabilities of each clique of a junction tree; neighbours agree on what they share."""

    tree: JunctionTree
    cliques: Sequence[Array]

    def sums(self, place: int, variables: Clique) -> Array:
        """Return probabilities of some variables of one clique."""
        return np.asarray(self.cliques[place].sum(axis=self.tree.axes(self.tree.cliques[place], variables)))


def proportional(alone: Sequence[Array], tables: Mapping[tuple[int, int], Array]) -> Beliefs:
    """Return the maximum-entropy model under shares of pairs, starting from independent columns.

    Args:
        alone: shares of each variable.
        tables: shares per pair, above 0, with about these margins.

    Example:
        >>> from privstats.contrib.synthetic.proportional import proportional
        >>> half, alike = np.array([0.5, 0.5]), np.array([[0.4, 0.1], [0.1, 0.4]])
        >>> proportional([half, half, half], {(0, 1): alike, (1, 2): alike}).cliques[0].round(3).tolist()
        [[0.4, 0.1], [0.1, 0.4]]
    """
    tree = JunctionTree(tuple(map(len, alone)), tuple(tables))
    fit = _Fit(tree, alone)
    homes: list[list[tuple[Clique, Array]]] = [[] for _ in tree.cliques]
    for pair, table in tables.items():
        homes[tree.holding(pair)].append((pair, table))
    for _ in range(_SWEEPS):
        if fit.sweep(0, homes) <= _CLOSE:
            break
    fit.sweep(0, [[] for _ in tree.cliques])
    return Beliefs(tree, fit.cliques)


class _Fit:
    """Beliefs of a fit that runs, and what neighbours share."""

    def __init__(self, tree: JunctionTree, alone: Sequence[Array]) -> None:
        self.tree = tree
        self.cliques = [self._independent(clique, alone) for clique in tree.cliques]
        self.shared = {link: self._independent(link.shared, alone) for link in tree.links}

    def _independent(self, variables: Clique, alone: Sequence[Array]) -> Array:
        out = np.ones([1] * len(variables))
        for each in variables:
            out = out * self.tree.widened(alone[each], (each,), variables)
        return out

    def sweep(self, place: int, homes: Sequence[Sequence[tuple[Clique, Array]]]) -> float:
        """Scale a clique, and all cliques behind it, to their tables; return the largest change of a share."""
        clique, change = self.tree.cliques[place], 0.0
        for pair, table in homes[place]:
            own = self.cliques[place].sum(axis=self.tree.axes(clique, pair))
            change = max(change, float(np.abs(table - own).max()))
            self._scale(place, pair, table, own)
        for link in self.tree.links:
            if link.parent == place:
                self._pass(link, link.parent, link.child)
                change = max(change, self.sweep(link.child, homes))
                self._pass(link, link.child, link.parent)
        return change

    def _pass(self, link: Link, giver: int, taker: int) -> None:
        sums = np.asarray(self.cliques[giver].sum(axis=self.tree.axes(self.tree.cliques[giver], link.shared)))
        self._scale(taker, link.shared, sums, self.shared[link])
        self.shared[link] = sums

    def _scale(self, place: int, variables: Clique, wanted: Array, own: Array) -> None:
        ratio = np.divide(wanted, own, out=np.zeros_like(own), where=own > IMPOSSIBLE)
        self.cliques[place] = self.cliques[place] * self.tree.widened(ratio, variables, self.tree.cliques[place])
