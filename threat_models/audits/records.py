"""Synthetic records that an audit knows; their values do not matter.

Vectors are drawn behind the public transform, so no transform has to be inverted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.moments import exact_moments
from privstats.randomness import Generator
from privstats.schema import ClassSchema, CountSchema, PartySchema, of_records
from threat_models.audits.counts import records_at
from threat_models.audits.target import Moments, Target, moments_of

__all__ = ["copies_of", "known_parties", "known_records"]

_RECORDS_PER_CLIENT = 8


def known_records(target: Target, count: int, rng: Generator) -> tuple[NDArray[np.float64], NDArray[np.generic]]:
    """Features ``(count, d)`` and labels or targets within the schema's bounds."""
    schema = target.schema
    if type(schema) is not PartySchema:
        schema = of_records(schema)
    X = _uniform(rng, count, schema.features) * schema.clip_norm
    if isinstance(schema, ClassSchema | PartySchema):
        return X, (rng.uint64(count) % np.uint64(schema.classes)).astype(np.int64)
    return X, _uniform(rng, count, schema.targets) * schema.target_bound


def known_parties(target: Target, rng: Generator) -> list[Moments]:
    """The moments of a few records for every client, as many as the plan admits."""
    cohort = target.plan.cohort
    each = min(_RECORDS_PER_CLIENT, cohort.max_records // cohort.clients)
    each = min(each, target.privacy.max_records_per_client or each)
    return [_party(target, each, rng) for _ in range(cohort.clients)]


def _party(target: Target, count: int, rng: Generator) -> Moments:
    schema = target.schema
    if isinstance(schema, CountSchema):
        columns = len(schema.variables)
        places = (rng.uint64(count * columns) >> np.uint64(11)).reshape(count, columns).astype(np.float64) * 2.0**-53
        return exact_moments(schema, records_at(schema, places))
    return moments_of(schema, *known_records(target, count, rng))


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
