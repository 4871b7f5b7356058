"""Strategies for records and for ways to cut them: adversarial values, partitions over clients, chunkings.

Values are drawn at the edges of bounds: zeros of both signs, the clip norm itself and its neighbours, half steps of the
grid, subnormal and huge numbers.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.schema import ClassSchema, RecordSchema
from privstats.testing.extra import arrays
from privstats.testing.extra import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["Records", "chunkings", "entries", "partitions", "records"]

Records: TypeAlias = tuple[NDArray[np.float64], NDArray[Any]]


def entries(bound: float, step: float) -> SearchStrategy[float]:
    """Floats that are awkward for a clip at ``bound`` on a grid of ``step``: edges, ties, subnormals, huge, -0.0."""
    edges = [0.0, -0.0, bound, -bound, bound / math.sqrt(2), math.nextafter(bound, math.inf), math.nextafter(bound, 0)]
    ties = st.integers(-9, 9).map(lambda k: (k + 0.5) * step)
    tiny, huge = [5e-324, -2.2e-308, 1e-300], [1.7e308, -1.7e308, 1e200]
    return st.one_of(st.sampled_from(edges), ties, st.sampled_from(tiny + huge), st.floats(-2 * bound, 2 * bound))


def records(schema: RecordSchema, *, min_records: int = 0, max_records: int = 12) -> SearchStrategy[Records]:
    """``(X, y)`` that ``measure(schema, X, y)`` must accept: float64 ``(n, features)``, labels or targets.

    For schemas without a transform: rows have the schema's number of features.
    """

    @st.composite
    def build(draw: st.DrawFn) -> Records:
        count = draw(st.integers(min_records, max_records))
        X = draw(_rows(count, schema.features, schema.clip_norm, schema.steps))
        if isinstance(schema, ClassSchema):
            return X, draw(arrays.arrays(np.int64, count, elements=st.integers(0, schema.classes - 1)))
        return X, draw(_rows(count, schema.targets, schema.target_bound, schema.steps))

    return build()


def chunkings(count: int) -> SearchStrategy[list[slice]]:
    """Ways to cut ``count`` records into one or more consecutive batches, empty ones among them."""

    def cut(ends: list[int]) -> list[slice]:
        edges = [0, *sorted(ends), count]
        return [slice(a, b) for a, b in pairwise(edges)]

    return st.lists(st.integers(0, count), max_size=8).map(cut)


def partitions(count: int, clients: int) -> SearchStrategy[list[NDArray[np.intp]]]:
    """Ways to give ``count`` records to ``clients`` clients: index arrays, disjoint, complete, some empty."""
    owners = arrays.arrays(np.intp, count, elements=st.integers(0, clients - 1))
    return owners.map(lambda owner: [np.flatnonzero(owner == client) for client in range(clients)])


def _rows(count: int, columns: int, bound: float, steps: int) -> SearchStrategy[NDArray[np.float64]]:
    return arrays.arrays(np.float64, (count, columns), elements=entries(bound, bound / steps))
