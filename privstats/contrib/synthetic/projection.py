"""Project a fitted model to two variables, exactly, whether or not one clique holds both."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree
from privstats.contrib.synthetic.model import Model


def projected(model: Model, variables: Clique) -> Array:
    """Return the probabilities of one or two variables, along the path between their cliques.

    Example:
        >>> from privstats.contrib.synthetic.junction_tree import JunctionTree
        >>> from privstats.contrib.synthetic.model import Model
        >>> alike = np.log([[0.4, 0.1], [0.1, 0.4]])
        >>> chain = Model(JunctionTree((2, 2, 2), ((0, 1), (1, 2))), (alike, alike), 1.0)
        >>> projected(chain, (0, 2)).round(2).tolist()
        [[0.34, 0.16], [0.16, 0.34]]
    """
    tree = model.tree
    if tree.holds(variables):
        return model.marginal(variables)
    path = _path(tree, *variables)
    axes = {each: place for place, each in enumerate(sorted({v for place in path for v in tree.cliques[place]}))}
    shared = [tuple(sorted(set(tree.cliques[a]) & set(tree.cliques[b]))) for a, b in pairwise(path)]
    held: Clique = tuple(sorted({variables[0], *shared[0]}))
    table = _sums(model, path[0], held)
    for place, before, after in zip(path[1:], shared, [*shared[1:], (variables[1],)], strict=True):
        joint: Clique = tuple(sorted({*before, *after}))
        own, given = _sums(model, place, joint), _sums(model, place, before)
        wanted: Clique = tuple(sorted({variables[0], *after}))
        ratio = np.divide(1.0, given, out=np.zeros_like(given), where=given > 0)
        operands = [(table, held), (ratio, before), (own, joint)]
        flat = [part for array, names in operands for part in (array, [axes[each] for each in names])]
        table, held = np.einsum(*flat, [axes[each] for each in wanted], optimize=True), wanted
    return table


def _path(tree: JunctionTree, a: int, b: int) -> list[int]:
    """Return the cliques from one that holds a to one that holds b; neither variable is held in between."""
    above = {link.child: link.parent for link in tree.links}

    def to_root(place: int) -> list[int]:
        return [place, *to_root(above[place])] if place in above else [place]

    def between(start: int, end: int) -> list[int]:
        up, down = to_root(start), to_root(end)
        top = next(place for place in up if place in down)
        return [*up[: up.index(top) + 1], *reversed(down[: down.index(top)])]

    starts = [place for place, clique in enumerate(tree.cliques) if a in clique]
    ends = [place for place, clique in enumerate(tree.cliques) if b in clique]
    return min((between(start, end) for start in starts for end in ends), key=len)


def _sums(model: Model, place: int, variables: Clique) -> Array:
    return np.asarray(model.beliefs[place].sum(axis=model.tree.axes(model.tree.cliques[place], variables)))
