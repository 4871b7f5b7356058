"""Merge a variable's fine cells by noisy one-way counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from privstats.contrib.synthetic.columns import OPEN_EDGES
from privstats.contrib.synthetic.junction_tree import Array
from privstats.contrib.synthetic.model import Codes
from privstats.estimates.cut_points import scanned
from privstats.schema import Bins, Variable

_FEWEST = 2
_CLEAR = 3.0  # standard deviations of noise above which a category is counted by itself


def occupied(variable: Variable, counts: Array, sigma: float) -> tuple[Array, float]:
    """Return noisy counts and their sigma; for a number without edges 0 where noise explains a count.

    Most cells of such a number are empty, and their noise together would hide its records.

    Example:
        >>> from privstats.contrib.synthetic.cells import occupied
        >>> from privstats.contrib.synthetic.columns import schema_of
        >>> (age,) = schema_of((ps.Numeric("age"),)).variables
        >>> counts = np.random.default_rng(0).normal(0, 5, len(age.cells)).round()
        >>> counts[200:208] += 100
        >>> np.flatnonzero(occupied(age, counts, 5.0)[0])[:-1].tolist()
        [200, 201, 202, 203, 204, 205, 206, 207]
    """
    if not isinstance(variable, Bins) or variable.edges != OPEN_EDGES:
        return counts, sigma
    bins = len(OPEN_EDGES) - 1
    out, found = counts.copy(), scanned(OPEN_EDGES, [round(count) for count in counts[:bins].tolist()], sigma)
    out[:bins] = 0.0
    if found is not None:
        places = {Fraction(edge): place for place, edge in enumerate(OPEN_EDGES)}
        for (low, _), mass in zip(found.cells, found.mass, strict=True):
            out[places[low]] = float(mass)
    return out, 0.0


def merged(variable: Variable, counts: Array, sigma: float, levels: int) -> Variable:
    """Return a variable with at most ``levels`` cells besides ``other`` and ``missing``.

    Neighbouring bins are merged to hold similar counts. Frequent categories stay; the rest share ``other``. ``counts``
    have noise ``sigma``.

    Example:
        >>> from privstats.contrib.synthetic.cells import merged
        >>> merged(ps.Bins("age", (0, 20, 40, 60, 80)), np.array([1.0, 1.0, 40.0, 42.0]), 0.5, 2).edges
        (0.0, 60.0, 80.0)
    """
    if isinstance(variable, Bins):
        held = np.maximum(counts[: len(variable.edges) - 1], 0.0)
        return variable if len(held) <= levels else replace(variable, edges=_edges(variable.edges, held, levels))
    if len(variable.values) < _FEWEST or (not variable.other and len(variable.values) <= levels):
        return variable
    order = np.argsort(-counts[: len(variable.values)], kind="stable")[:levels]
    clear = [place for at, place in enumerate(order) if at < _FEWEST or counts[place] > _CLEAR * sigma]
    return replace(variable, values=tuple(variable.values[place] for place in sorted(clear)), other=True)


def _edges(edges: tuple[float, ...], held: Array, levels: int) -> tuple[float, ...]:
    weights = held + max(held.sum(), 1.0) * 1e-6 / len(held)
    below = np.cumsum(weights)[:-1] / weights.sum()
    inner = {int(np.argmin(np.round(np.abs(below - part / levels), 9))) + 1 for part in range(1, levels)}
    full = np.flatnonzero(held)
    if len(full):  # empty ends join their neighbour, else noise would draw rows there
        low, high = int(full[0]), int(full[-1]) + 1
        inner = inner & set(range(low + 1, high)) or {high if high < len(held) else low}
    return tuple(edges[place] for place in (0, *sorted(inner), len(edges) - 1))


def lump(fine: Variable, coarse: Variable) -> Codes:
    """Return each fine cell's coarse cell."""
    if isinstance(fine, Bins) and isinstance(coarse, Bins):
        known = np.searchsorted(np.array(coarse.edges), np.array(fine.edges[:-1]), side="right") - 1
        return np.append(known, len(coarse.edges) - 1) if fine.missing else known
    assert not isinstance(fine, Bins)  # noqa: S101
    assert not isinstance(coarse, Bins)  # noqa: S101  both are of one column
    own = {value: place for place, value in enumerate(coarse.values)}
    other = len(coarse.values)
    extra = [other] * bool(fine.other) + [len(coarse.cells) - 1] * bool(fine.missing)
    return np.array([*(own.get(value, other) for value in fine.values), *extra], np.intp)
