"""Compute exact marginals of a graphical model by belief propagation over a junction tree.

Source: Koller and Friedman, Probabilistic Graphical Models (2009), chapters 9 and 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Clique = tuple[int, ...]


@dataclass(frozen=True)
class Link:
    """A clique, its parent (indices), and the variables they share."""

    child: int
    parent: int
    shared: Clique


@dataclass(frozen=True)
class JunctionTree:
    """Cliques that hold every edge, joined so that each variable's cliques are connected.

    Attributes:
        sizes: cells of each variable.
        edges: pairs of variables.

    Example:
        >>> from privstats.contrib.synthetic.junction_tree import JunctionTree
        >>> tree = JunctionTree((2, 3, 4), ((0, 1), (1, 2)))
        >>> tree.cliques, tree.cells
        (((0, 1), (1, 2)), 18)
    """

    sizes: tuple[int, ...]
    edges: tuple[tuple[int, int], ...]

    @cached_property
    def cliques(self) -> tuple[Clique, ...]:
        """Maximal cliques of the triangulated graph, smallest eliminated first."""
        near: dict[int, set[int]] = {vertex: set() for vertex in range(len(self.sizes))}
        for a, b in self.edges:
            near[a].add(b)
            near[b].add(a)
        cliques: list[Clique] = []
        while near:
            vertex = min(near, key=lambda each: (self._cells((each, *near[each])), each))
            around = near.pop(vertex)
            cliques.append(tuple(sorted((vertex, *around))))
            for a, b in combinations(sorted(around), 2):
                near[a].add(b)
                near[b].add(a)
            for each in around:
                near[each].discard(vertex)
        return tuple(each for each in cliques if not any(set(each) < set(other) for other in cliques))

    @property
    def cells(self) -> int:
        """Cells of all cliques."""
        return sum(map(self._cells, self.cliques))

    def _cells(self, variables: Iterable[int]) -> int:
        return math.prod(self.sizes[each] for each in variables)

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Each clique but the first with its parent, parents first, by largest separators."""
        joined, out = [0], list[Link]()
        remaining = list(range(1, len(self.cliques)))
        while remaining:
            _, child, parent = max(
                (len(self._shared(child, parent)), -child, -parent) for child in remaining for parent in joined
            )
            out.append(Link(-child, -parent, self._shared(-child, -parent)))
            joined.append(-child)
            remaining.remove(-child)
        return tuple(out)

    def _shared(self, one: int, other: int) -> Clique:
        return tuple(sorted(set(self.cliques[one]) & set(self.cliques[other])))

    def holds(self, variables: Sequence[int]) -> bool:
        """Return whether a clique holds all these variables."""
        return any(set(variables) <= set(clique) for clique in self.cliques)

    def holding(self, variables: Sequence[int]) -> int:
        """Return the smallest clique that holds these variables."""
        places = [place for place, clique in enumerate(self.cliques) if set(variables) <= set(clique)]
        return min(places, key=lambda place: self._cells(self.cliques[place]))

    def axes(self, clique: Clique, variables: Sequence[int]) -> tuple[int, ...]:
        """Return the axes of a clique's array without these variables."""
        return tuple(axis for axis, each in enumerate(clique) if each not in variables)

    def widened(self, table: Array, variables: Clique, clique: Clique) -> Array:
        """Shape a table to broadcast over a clique's array."""
        return table.reshape([self.sizes[each] if each in variables else 1 for each in clique])

    def marginals(self, potentials: Sequence[Array]) -> tuple[list[Array], float]:
        """Return each clique's probabilities from log-potentials, and the log normaliser."""
        beliefs = [np.array(each) for each in potentials]
        sums: dict[int, Array] = {}
        for link in reversed(self.links):
            clique, above = self.cliques[link.child], self.cliques[link.parent]
            sums[link.child], logs = _exponentials(beliefs[link.child], self.axes(clique, link.shared))
            beliefs[link.parent] += self.widened(logs, link.shared, above)
        root, normaliser = _exponentials(beliefs[0], tuple(range(beliefs[0].ndim)))
        beliefs[0] /= root
        for link in self.links:
            clique, above = self.cliques[link.child], self.cliques[link.parent]
            ratio = beliefs[link.parent].sum(axis=self.axes(above, link.shared)) / sums[link.child]
            beliefs[link.child] *= self.widened(ratio, link.shared, clique)
        return beliefs, float(normaliser)


def _exponentials(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Replace values by exponentials over the largest one; return sums and log sums over some axes."""
    largest = values.max(axis=axes, keepdims=True)
    values -= largest
    np.exp(values, out=values)
    sums = np.asarray(values.sum(axis=axes))
    return sums, np.log(sums) + largest.reshape(sums.shape)
