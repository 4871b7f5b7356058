"""A search over pairs of records against the sensitivity of count tables.

Records are drawn cell by cell; one pair differs in every column where it can. Others are odd (a gap, a text, a fraction
in one column) and are counted as what they add to a table of ordinary ones: a column's type follows from all of its
values, and a library that reads by it lets one record move every other. The library's own measuring counts them,
because the cell of a record is what is searched; no formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.encoding import flatten, layout_of
from privstats.errors import PlanError
from privstats.kinds import CountSchema, ScoringSchema
from privstats.randomness import Generator
from privstats.schema import Bins, Categories, Schema, bare, narrowed
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_OTHERS = 40
_ODD: tuple[object, ...] = (None, math.nan, "", "x", "1", 0.5, True, 2**60, math.inf)
_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")


def audit_counts(target: Target, rng: Generator, *, starts: int = 12) -> Report:
    """Search the worst record and the worst pair, against the claimed mu.

    Args:
        starts: each draws 16 records; all pairs of them are compared.

    Raises:
        PlanError: not a plan of count tables.
    """
    schema = tables_in(target.schema)
    noise: list[tuple[str, dict[str, float]]] = [(letter, {letter: 1.0}) for letter in schema.statistics]
    if set(schema.statistics) <= set(target.sigma):
        noise.append(("joint", {letter: target.sigma[letter] for letter in schema.statistics}))
    vectors = moved_vectors(schema, rng, starts)
    results = [
        Finding(name, adjacency, joint_mu(schema, sigmas, adjacency), farthest(schema, vectors, sigmas)[adjacency])
        for name, sigmas in noise
        for adjacency in _ADJACENCIES
    ]
    notes = (
        f"{16 * starts + 2} records with every pair of them, the two that differ in every variable included",
        f"and {len(_ODD) * len(schema.read)} odd ones, each as what it adds to a table of {_OTHERS} others",
    )
    return report_of("sensitivity", results, notes)


def tables_in(schema: Schema) -> CountSchema:
    """The count tables of a schema: its own, or those in which the records of a score count.

    Raises:
        PlanError: it has none.
    """
    if isinstance(schema, ScoringSchema):
        return schema.counted
    refusal = PlanError("this search is for count tables: give such a plan, or use `audit sensitivity`")
    return narrowed(schema, CountSchema, refusal)


def moved_vectors(schema: CountSchema, rng: Generator, starts: int) -> NDArray[np.int64]:
    """Return the contributions of the search's records, in wire steps, ``(m, entries)``; one is unreadable."""
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    counted, odd = counted_vectors(schema, chance, starts), odd_vectors(schema, chance)
    return np.vstack([counted, odd, np.zeros_like(counted[:1])])


def farthest(schema: CountSchema, vectors: NDArray[np.int64], sigmas: Mapping[str, float]) -> dict[Adjacency, float]:
    """The farthest that one of them, or a pair, moves what is named, in units of its noise."""
    layout = layout_of(schema)
    parts = zip(layout.segments, layout.slices, strict=True)
    scaled = [vectors[:, at] / (each.scale * sigmas[each.name]) for each, at in parts if each.name in sigmas]
    moved = np.hstack(scaled)
    return {
        "add-remove": float(np.linalg.norm(moved, axis=1).max()),
        "replace-one": max(float(np.linalg.norm(moved - vector, axis=1).max()) for vector in moved),
    }


def counted_vectors(schema: CountSchema, chance: np.random.Generator, starts: int) -> NDArray[np.int64]:
    """Contributions of single records, in wire steps, ``(m, cells)``: 16 a start, and two that differ everywhere."""
    places = [chance.random(len(schema.read)) for _ in range(16 * starts)]
    places += [np.full(len(schema.read), corner) for corner in (0.0, 1.0 - 1e-9)]
    return np.stack([flatten(sums_of(bare(schema), records_at(schema, each[None]))) for each in places])


def odd_vectors(schema: CountSchema, chance: np.random.Generator) -> NDArray[np.int64]:
    """Return each odd record's contribution to the counts, in wire steps, ``(m, cells)``.

    Columns have the type that numpy gives all of their values.
    """

    def counted(columns: Mapping[str, list[object]]) -> NDArray[np.int64]:
        typed = {name: np.array(column) for name, column in columns.items()}
        return flatten(sums_of(schema, typed, unreadable="leave out"))

    schema = bare(schema)
    others = records_at(schema, chance.random((_OTHERS, len(schema.read))))
    before, result = counted(others), []
    for variable, odd in product(schema.read, _ODD):
        more = {name: [*column, odd if name == variable.name else column[0]] for name, column in others.items()}
        result.append(counted(more) - before)
    return np.stack(result)


def records_at(schema: CountSchema, points: NDArray[np.float64]) -> dict[str, list[object]]:
    """Records by column; ``points`` in [0, 1), ``(records, variables)``, choose their cells."""
    columns = zip(schema.read, points.T, strict=True)
    return {variable.name: [_value(variable, point) for point in column] for variable, column in columns}


def _value(variable: Any, point: float) -> object:
    """A value in one of the named cells; of a number each second one at an end."""
    if not isinstance(variable, Categories):
        low, high = variable.edges[0], variable.edges[-1]
        return low + (point if isinstance(variable, Bins) else min(max(2 * point - 0.5, 0), 1)) * (high - low)
    return variable.values[int(point * len(variable.values))]
