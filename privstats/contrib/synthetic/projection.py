"""Project a model to two variables, exactly, whether or not one clique holds both, with identical bits everywhere."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from privstats.contrib.synthetic.junction_tree import Array, Clique, JunctionTree
from privstats.contrib.synthetic.proportional import IMPOSSIBLE, Beliefs


def projected(beliefs: Beliefs, variables: Clique) -> Array:
    """Return the probabilities of one or two variables, along the path between their cliques.

    Example:
        >>> from privstats.contrib.synthetic.junction_tree import JunctionTree
        >>> from privstats.contrib.synthetic.projection import projected
        >>> from privstats.contrib.synthetic.proportional import Beliefs
        >>> alike = np.array([[0.4, 0.1], [0.1, 0.4]])
        >>> chain = Beliefs(JunctionTree((2, 2, 2), ((0, 1), (1, 2))), (alike, alike))
        >>> projected(chain, (0, 2)).round(2).tolist()
        [[0.34, 0.16], [0.16, 0.34]]
    """
    tree = beliefs.tree
    if tree.holds(variables):
        return beliefs.sums(tree.holding(variables), variables)
    path, start = _path(tree, *variables), variables[:1]
    shared = [tuple(sorted(set(tree.cliques[a]) & set(tree.cliques[b]))) for a, b in pairwise(path)]
    held = _union(start, shared[0])
    table = beliefs.sums(path[0], held)
    for place, before, after in zip(path[1:], shared, [*shared[1:], variables[1:]], strict=True):
        joint, wanted = _union(before, after), _union(start, after)
        full, given = _union(held, after), beliefs.sums(place, before)
        ratio = np.divide(1.0, given, out=np.zeros_like(given), where=given > IMPOSSIBLE)
        table = table * tree.widened(ratio, before, held)
        product = tree.widened(table, held, full) * tree.widened(beliefs.sums(place, joint), joint, full)
        table, held = np.asarray(product.sum(axis=tree.axes(full, wanted))), wanted
    return table


def _union(one: Clique, other: Clique) -> Clique:
    return tuple(sorted({*one, *other}))


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
