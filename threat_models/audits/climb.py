"""Hill climbing for the audits that search: keep a move unless it makes the distance smaller.

Each audit defines its own moves and its own distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from privstats.dp.privacy import Adjacency
from privstats.encoding import layout_of
from privstats.randomness import Generator
from privstats.schema import Schema

S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True)
class Search(Generic[S, T]):
    """A search under a schema, from a random start, for the largest distance.

    Attributes:
        start: a first place, for a schema and an adjacency.
        moved: a place near another.
        distance: how far a place's neighbours are apart, in noise per statistic.
    """

    start: Callable[[S, Adjacency, np.random.Generator], T]
    moved: Callable[[S, T, np.random.Generator], T]
    distance: Callable[[S, Mapping[str, float], T], float]

    def worst(
        self, schema: S, sigmas: Mapping[str, float], adjacency: Adjacency, rng: Generator, moves: int
    ) -> tuple[float, T]:
        """The weighted distance that one climb reaches, and where.

        Args:
            schema: what is measured.
            sigmas: noise per statistic, in real units; statistics that are not named do not count.
            adjacency: what neighbours differ by.
            rng: where the start and the moves come from.
            moves: how many are tried.
        """
        chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
        return climb(
            self.start(schema, adjacency, chance),
            lambda here: self.moved(schema, here, chance),
            lambda here: self.distance(schema, sigmas, here),
            moves,
        )


def climb(here: T, moved: Callable[[T], T], distance: Callable[[T], float], moves: int) -> tuple[float, T]:
    """The largest distance that was reached, and where.

    Args:
        here: where it starts.
        moved: a place near another; drawn at random.
        distance: what is made large.
        moves: how many are tried.
    """
    best = distance(here)
    for _ in range(moves):
        there = moved(here)
        result = distance(there)
        if result >= best:
            best, here = result, there
    return best, here


def most_apart(schema: Schema, sigmas: Mapping[str, float], added: Sequence[NDArray[np.generic]]) -> float:
    """Return the largest distance of neighbours, in units of noise: of an exchange, or of one record alone.

    In an exchange the other record may be unreadable and so be in no sum.

    Args:
        schema: the schema of the vectors.
        sigmas: noise by statistic, in real units.
        added: contribution of one record, or of each of two that are exchanged, flattened as it is sent.
    """
    exchanged = [added[0] - added[1]] if len(added) == 2 else []  # type: ignore[operator]
    return max(in_sigmas(schema, sigmas, each) for each in (*exchanged, *added))


def in_sigmas(schema: Schema, sigmas: Mapping[str, float], shift: NDArray[np.generic]) -> float:
    """sqrt of the sum over statistics of shift^2 / sigma^2, of those with noise.

    Args:
        schema: of the vector.
        sigmas: noise by statistic, in real units.
        shift: what a record adds, or an exchange of two moves, flattened as it is sent.
    """
    layout, total, moved = layout_of(schema), 0.0, shift.astype(np.float64)
    for segment, where in zip(layout.segments, layout.slices, strict=True):
        if segment.statistic in sigmas:
            total += float(np.square(moved[where] / (segment.scale * sigmas[segment.statistic])).sum())
    return math.sqrt(total)
