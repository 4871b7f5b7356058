"""Clients with Gaussians of their own, and the plans of an alignment over them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import privstats as ps
from privstats.schema.public_values import Published, Values
from tests import made

CLIENTS, D, CLASSES, RADIUS = 13, 4, 3, 20.0
SCHEMA = ps.GaussianSchema(D, RADIUS, shrinkage="ledoit-wolf", rounds=2, grid_bits=16)
PUBLIC = ps.GaussianSchema(D, RADIUS, shrinkage=0.1, rounds=2)
COHORT = ps.Cohort(CLIENTS, 12, 3_000)
PROMISE = ps.Privacy(
    model="central",
    unit="client",
    adjacency="add-remove",
    epsilon=8.0,
    delta=1e-5,
    max_records_per_client=200,
    client_clip=60.0,
)


def shards(seed=0, clients=CLIENTS, features=D):
    rng = np.random.default_rng(seed)
    return [_shard(rng, features) for _ in range(clients)]


def _shard(rng, features):
    count = int(rng.integers(40, 90))
    shape = 0.6 * rng.standard_normal((features, features)) + np.eye(features)
    rows = rng.standard_normal((count, features)) @ shape + rng.standard_normal(features)
    return rows, rng.integers(0, CLASSES, count)


def first(schema=SCHEMA, privacy=None, cohort=COHORT):
    return made.plan(schema, cohort, privacy or ps.NoPrivacy())


def round_plan(reference, among=range(CLIENTS), schema=SCHEMA, cohort=COHORT):
    """A round at any reference, over any clients: what a lying server may ask for."""
    schema = replace(schema, reference=True, among=tuple(among))
    return made.plan(schema, cohort, published=Published.of({"S": Values.rounded(np.asarray(reference), 48)}))
