"""Synthetic records that an audit knows; their values do not matter.

Vectors are drawn behind the public transform, so no transform has to be inverted.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema, CountSchema, PartySchema, RidgeSchema
from privstats.moments import Moments
from privstats.randomness import Generator
from privstats.schema import Schema, bare
from threat_models.audits.counts import records_at, tables_in
from threat_models.audits.kinds import Outcome, as_declared, columns_of, in_arms, outcome_of, row_part
from threat_models.audits.target import Target, moments_of, of_single_rows
from threat_models.made_up import sums_of

_RECORDS_PER_CLIENT = 8


def known_records(target: Target, count: int, rng: Generator) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Features ``(count, d)`` and labels or targets within the schema's bounds."""
    schema = target.schema
    beside = row_part("beside", schema, "record beside a canary")
    return _uniform(rng, count, schema.features) * schema.clip_norm, beside(schema, count, rng)


def labels(schema: ClassSchema | PartySchema, count: int, rng: Generator) -> NDArray[np.generic]:
    """Return so many labels."""
    return (rng.uint64(count) % np.uint64(schema.classes)).astype(np.int64)


def targets(schema: RidgeSchema, count: int, rng: Generator) -> NDArray[np.generic]:
    """Return so many targets, within the bound's cube."""
    return _uniform(rng, count, schema.targets) * schema.target_bound


def known_parties(target: Target, rng: Generator) -> list[Moments]:
    """The moments of a few records for every client, as many as the plan admits."""
    cohort = target.plan.cohort
    records = min(_RECORDS_PER_CLIENT, cohort.max_records // cohort.clients)
    records = min(records, target.privacy.max_records_per_client or records)
    party = row_part("party", target.schema, "party of known records")
    return [of_single_rows(target.plan, party(target, records, rng)) for _ in range(cohort.clients)]


def drawn_records(schema: Schema, count: int, chance: np.random.Generator) -> tuple[Any, Any]:
    """Return random records as a file states them: rows or columns by name, and labels or targets, or None.

    Rows are about as long as the clip, so that some are clipped.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    counted = isinstance(schema, CountSchema)
    if isinstance(schema, CountSchema) and not schema.transform:
        return records_at(schema, chance.random((count, len(schema.read)))), None
    columns = columns_of(schema)
    outcome = Outcome(1) if counted else outcome_of(schema)  # counts of declared columns read no outcome
    X = chance.normal(size=(count, columns)) * (schema.clip_norm / math.sqrt(columns))
    return as_declared(schema, in_arms(schema, X), outcome.drawn(count, chance))


def of_tables(target: Target, count: int, rng: Generator) -> Moments:
    """Return the moments of a client with ``count`` records of count tables."""
    schema = tables_in(target.schema)
    columns = len(schema.read)
    places = (rng.uint64(count * columns) >> np.uint64(11)).reshape(count, columns).astype(np.float64) * 2.0**-53
    counted: Any = sums_of(bare(schema), records_at(schema, places))
    return replace(counted, schema=target.schema)  # type: ignore[no-any-return]


def of_rows(target: Target, count: int, rng: Generator) -> Moments:
    """Return the moments of a client with ``count`` records of rows."""
    return moments_of(target.schema, *known_records(target, count, rng))


def copies_of(moments: Moments, count: int) -> Moments:
    """The moments of the same records ``count`` times over, ``count`` at least 1, by doubling."""
    total, power = None, moments
    while True:
        if count & 1:
            total = power if total is None else total + power
        count >>= 1
        if not count:
            break
        power = power + power
    return total if total is not None else moments


def _uniform(rng: Generator, rows: int, columns: int) -> NDArray[np.float64]:
    return (rng.uint64(rows * columns).astype(np.float64) * 2.0**-63 - 1).reshape(rows, columns)
