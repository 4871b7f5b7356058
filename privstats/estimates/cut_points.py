"""Compute a column's cut points from noisy counts alone.

Released integers are processed in exact fractions, so every machine computes equal edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heapreplace
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import TypeAlias

Cell: TypeAlias = tuple[Fraction, Fraction]
"""Low and high end."""

_LEAST, _MOST = -20, 40
"""Powers of two: values nearer 0 than the one share a cell, and so do those beyond the other."""
_BLOCKS = (1, 2, 4)
_GROWS, _STANDS_OUT = 2, 4
"""Noise deviations that a block next to the run must exceed to join it, and a single cell to be selected."""
_SIGMA_PARTS, _MASS_PARTS = 1 << 16, 1 << 10
_SMALL = 4
_FINER = 16
"""Cut points are rounded to less than this part of the distance to their neighbours."""
FINER_ENDS = 4
"""Number of cut points that divide the two outer parts of a column with finer ends."""


@dataclass(frozen=True)
class Occupied:
    """Cells that hold records: ends from left to right, and noisy records above 0."""

    cells: tuple[Cell, ...]
    mass: tuple[Fraction, ...]


def first_edges(spacing: int, most: int = _MOST) -> tuple[float, ...]:
    """Return the first grid: all ``+-2**k`` for k from -20 to one ``spacing`` beyond ``most``, ``spacing`` apart."""
    above = [2.0**k for k in range(_LEAST, most + spacing + 1, spacing)]
    return (*(-edge for edge in reversed(above)), *above)


def scanned(edges: Sequence[float], counts: Sequence[int], sigma: float) -> Occupied | None:
    """Return the cells that hold a column's records; None where noisy counts show none.

    The scan selects the run with the largest ``sum / sqrt(length)``, which grows while 1, 2 or 4 cells next to it
    exceed two deviations of their sum. Any cell above four deviations is selected too. Counts are projected onto
    ``{x >= 0, sum x = their noisy sum}``, which does not bias the sum.

    ``edges`` increase, ``(M + 1,)``; ``sigma`` is the noise standard deviation of ``counts``, ``(M,)``.

    Source: the scan statistic (Glaz, Naus, Wallenstein 2001, chapter 2); the projection of Michelot (1986).
    """
    selected = _selected(counts, _square(sigma))
    mass = _projected([Fraction(counts[place]) for place in selected])
    return None if mass is None else _held(edges, selected, mass)


def updated(occupied: Occupied | None, edges: Sequence[float], counts: Sequence[int], sigma: float) -> Occupied | None:
    """Return the estimate after one more count session; unchanged where its counts show none.

    Two estimates of the noiseless counts compete by estimated risk (Stein 1981):

    - *spread*: the earlier estimate, even within each cell, moved toward the counts by
      ``1 - (k - 2) sigma^2 / |way|^2`` (James and Stein 1961).
    - *gathered*: the counts of the cells that :func:`scanned` selects; the rest is spread as before. Its risk is that
      of the selected counts, the squared errors elsewhere, and ``4 sigma^2 log k`` for the choice of a run.
    """
    if occupied is None:
        return scanned(edges, counts, sigma)
    square, k = _square(sigma), len(counts)
    known = _spread(occupied, edges)
    way = [count - mass for count, mass in zip(counts, known, strict=True)]
    length = sum((each * each for each in way), Fraction(0))
    explained = (k - 2) * square
    part = 1 - explained / length if length > explained else Fraction(0)
    risk = k * square - explained**2 / length if part else length - k * square
    gathered, off, selected = _gathered(known, counts, square)
    if off + (2 * selected - k + 4 * _log(k)) * square < risk:
        mass = _projected(gathered)
    else:
        mass = _projected([mass + part * each for mass, each in zip(known, way, strict=True)])
    if mass is None:
        return occupied
    return _held(edges, range(k), [Fraction(round(each * _MASS_PARTS), _MASS_PARTS) for each in mass])


def _gathered(
    known: Sequence[Fraction], counts: Sequence[int], square: Fraction
) -> tuple[list[Fraction], Fraction, int]:
    selected = set(_selected(counts, square))
    rest = max(sum(known, Fraction(0)) - sum(counts[place] for place in selected), Fraction(0))
    elsewhere = sum((mass for place, mass in enumerate(known) if place not in selected), Fraction(0))
    thinner = min(rest / elsewhere, Fraction(1)) if elsewhere else Fraction(0)
    results = [
        Fraction(count) if place in selected else mass * thinner
        for place, (mass, count) in enumerate(zip(known, counts, strict=True))
    ]
    off = sum(((mass - count) ** 2 for mass, count in zip(results, counts, strict=True)), Fraction(0))
    return results, off, len(selected)


def refined(occupied: Occupied, cells: int) -> tuple[float, ...]:
    """Return edges of exactly ``cells`` cells: occupied cells are divided evenly, the fuller ones into more parts.

    A gap between occupied cells is one cell. Neighbours that together hold less than an even part are merged; cells
    with less than a quarter of it are dropped, and the emptiest if too many remain. The number of cells depends on no
    count, so no upload's size does.
    """
    held = _fitting(occupied, cells)
    parts = [1] * len(held)
    densest = [(-mass, place) for place, (_, mass) in enumerate(held)]
    heapify(densest)
    for _ in range(cells - len(held) - _gaps(held)):
        _, place = densest[0]
        parts[place] += 1
        heapreplace(densest, (-held[place][1] / parts[place], place))
    points = [
        low + (high - low) * Fraction(part, into)
        for ((low, high), _), into in zip(held, parts, strict=True)
        for part in range(into + 1)
    ]
    return _rounded(sorted(set(points)), alone=Fraction(1))


def ranks(signs: int, *, finer_ends: bool = False) -> tuple[Fraction, ...]:
    """Return the quantiles of cut points: ``k / (signs + 1)``.

    With ``finer_ends``, which needs five signs or more, four of them divide the two outer parts at 1/4 and 1/2.

    Example:
        >>> from privstats.estimates.cut_points import ranks
        >>> [str(rank) for rank in ranks(3)], [str(rank) for rank in ranks(11, finer_ends=True)][:4]
        (['1/4', '1/2', '3/4'], ['1/32', '1/16', '1/8', '1/4'])
    """
    even = signs - FINER_ENDS * finer_ends
    part = Fraction(1, even + 1)
    ends = (part / 4, part / 2) if finer_ends else ()
    return (*ends, *(k * part for k in range(1, even + 1)), *(1 - rank for rank in reversed(ends)))


def cut_points(occupied: Occupied | None, signs: int, *, finer_ends: bool = False) -> tuple[float, ...]:
    """Return 1 to ``signs`` increasing cut points: the column's quantiles at :func:`ranks`.

    Several quantiles in one cell become its two ends. Each is rounded to a multiple of the power of two at or below
    1/16 of the distance to its nearest neighbour. Without an estimate, :func:`public_cuts` are returned.
    """
    if occupied is None:
        return public_cuts(signs)
    total, below = sum(occupied.mass, Fraction(0)), Fraction(0)
    points, places = set[Fraction](), ranks(signs, finer_ends=finer_ends)
    for (low, high), mass in zip(occupied.cells, occupied.mass, strict=True):
        inside = [rank for each in places if below < (rank := total * each) <= below + mass]
        if len(inside) > 1:
            points |= {low, high}
        elif inside:
            points.add(low + (high - low) * (inside[0] - below) / mass)
        below += mass
    return _rounded(sorted(points), alone=min(high - low for low, high in occupied.cells))


def public_cuts(signs: int) -> tuple[float, ...]:
    """Return default cut points: 0, then magnitudes of both signs, 64 times apart."""
    above = [64.0**k for k in range(signs // 2)]
    return (*(-cut for cut in reversed(above[: (signs - 1) // 2])), 0.0, *above)


def _square(sigma: float) -> Fraction:
    return Fraction(round(sigma * _SIGMA_PARTS), _SIGMA_PARTS) ** 2


def _log(number: int) -> Fraction:
    """Return the natural logarithm to a sixteenth, equal on every machine."""
    return Fraction(round(16 * math.log(number)), 16)


def _selected(counts: Sequence[int], square: Fraction) -> list[int]:
    sums = [0, *accumulate(counts)]
    low, high = _grown(sums, *_run(sums), square)
    return [
        place
        for place, count in enumerate(counts)
        if low <= place < high or _exceeds(count, 1, square, deviations=_STANDS_OUT)
    ]


def _held(edges: Sequence[float], places: Iterable[int], mass: Iterable[Fraction]) -> Occupied:
    held = [
        ((Fraction(edges[place]), Fraction(edges[place + 1])), records)
        for place, records in zip(places, mass, strict=True)
        if records
    ]
    return Occupied(tuple(cell for cell, _ in held), tuple(records for _, records in held))


def _spread(occupied: Occupied, edges: Sequence[float]) -> list[Fraction]:
    below, before, place = [], Fraction(0), 0
    for edge in map(Fraction, edges):
        while place < len(occupied.cells) and occupied.cells[place][1] <= edge:
            before += occupied.mass[place]
            place += 1
        low, high = occupied.cells[place] if place < len(occupied.cells) else (edge, edge)
        below.append(before + (occupied.mass[place] * (edge - low) / (high - low) if edge > low else 0))
    below[0], below[-1] = Fraction(0), sum(occupied.mass, Fraction(0))
    return [right - left for left, right in pairwise(below)]


def _run(sums: Sequence[int]) -> tuple[int, int]:
    """Return the run with the largest sum / sqrt(length); ties go to the shorter, then the left."""
    best, result = None, (0, 1)
    for length in range(1, len(sums)):
        for low in range(len(sums) - length):
            total = sums[low + length] - sums[low]
            signed = total * abs(total)
            if best is None or signed * best[1] > best[0] * length:
                best, result = (signed, length), (low, low + length)
    return result


def _grown(sums: Sequence[int], low: int, high: int, square: Fraction) -> tuple[int, int]:
    def joins(start: int, end: int) -> bool:
        return start >= 0 and end < len(sums) and _exceeds(sums[end] - sums[start], end - start, square, _GROWS)

    while size := next((size for size in _BLOCKS if joins(low - size, low)), 0):
        low -= size
    while size := next((size for size in _BLOCKS if joins(high, high + size)), 0):
        high += size
    return low, high


def _exceeds(total: int, length: int, square: Fraction, deviations: int) -> bool:
    return total > 0 and total * total > deviations**2 * square * length


def _projected(counts: Sequence[Fraction]) -> list[Fraction] | None:
    """Return the nearest point of ``{x >= 0, sum x = sum of counts}``; None if the sum is not above 0."""
    total = sum(counts, Fraction(0))
    if total <= 0:
        return None
    excess = Fraction(0)
    for many, top in enumerate(accumulate(sorted(counts, reverse=True)), 1):
        excess = max(excess, (top - total) / many)
    return [max(Fraction(0), count - excess) for count in counts]


def _fitting(occupied: Occupied, cells: int) -> list[tuple[Cell, Fraction]]:
    even, held = sum(occupied.mass, Fraction(0)) / cells, list[tuple[Cell, Fraction]]()
    for (low, high), mass in zip(occupied.cells, occupied.mass, strict=True):
        if held and held[-1][0][1] == low and held[-1][1] + mass <= even:
            (start, _), before = held.pop()
            low, mass = start, before + mass
        held.append(((low, high), mass))
    held = [each for each in held if _SMALL * each[1] >= even] or held
    while len(held) + _gaps(held) > cells:
        held.remove(min(held, key=itemgetter(1)))
    return held


def _gaps(held: Sequence[tuple[Cell, Fraction]]) -> int:
    return sum(one[1] != next_[0] for (one, _), (next_, _) in pairwise(held))


def _rounded(points: Sequence[Fraction], alone: Fraction) -> tuple[float, ...]:
    apart = [right - left for left, right in pairwise(points)] or [alone]
    near = [min(pair) for pair in pairwise([apart[0], *apart, apart[-1]])] if len(points) > 1 else apart
    return tuple(
        float(_to_multiple(point, _power_below(least / _FINER))) for point, least in zip(points, near, strict=True)
    )


def _to_multiple(point: Fraction, spacing: Fraction) -> Fraction:
    return math.floor(point / spacing + Fraction(1, 2)) * spacing


def _power_below(number: Fraction) -> Fraction:
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length())
    return power if power <= number else power / 2
