"""A search over clients and newcomers against the sensitivity of within-client moments.

A random climb from the corners moves how many records a client has, where they lie and what enters or leaves, and keeps
a move where the weighted distance grows. Sums are built from their definition; no formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.kinds import WithinSchema
from privstats.randomness import Generator
from privstats.schema import narrowed
from threat_models.audits.climb import Search
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_MOST_RECORDS = 1e7

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Client:
    """A client and what changes.

    Attributes:
        records: how many it has beside the record in question, 0 to 1e7.
        mix: their label shares, ``(C,)``.
        mean: their mean in units of the clip norm, ``(d,)``.
        rows: the record, or the two that are exchanged, in units of the clip norm, ``(1 or 2, d)``.
        labels: their classes.
    """

    records: float
    mix: Vector
    mean: Vector
    rows: Vector
    labels: tuple[int, ...]


def audit_within(target: Target, rng: Generator, *, moves: int = 400, starts: int = 12) -> Report:
    """Search the worst client and record under both adjacencies against the claimed mu.

    Raises:
        PlanError: not a plan of within-client moments.
    """
    refusal = PlanError("this search is for within-client moments: give such a plan, or use `audit sensitivity`")
    schema = narrowed(target.schema, WithinSchema, refusal)
    levels = {**{s: {s: 1.0} for s in schema.statistics}, "joint": dict(target.sigma)}
    results = [
        Finding(name, adjacency, joint_mu(schema, noise, adjacency), best)
        for name, noise in levels.items()
        for adjacency in _ADJACENCIES
        for best in [max(worst_client(schema, noise, adjacency, rng, moves)[0] for _ in range(starts))]
    ]
    notes = (
        f"{starts} starts of {moves} moves over the client's size, mix and mean and the record that comes or goes",
    )
    return report_of("within", results, notes)


def _start(schema: WithinSchema, adjacency: Adjacency, chance: np.random.Generator) -> Client:
    count = 1 if adjacency == "add-remove" else 2
    x = _within_ball(chance.normal(size=schema.features) * 1e3)
    mix = np.eye(schema.classes)[int(chance.integers(schema.classes))]
    mean = x * chance.choice([-1.0, 0.0, 1.0])
    labels = tuple(int(label) for label in chance.integers(0, schema.classes, count))
    size = float(chance.choice([0.0, 1.0, schema.n_max - 1.0, schema.n_max, 30.0 * schema.n_max, _MOST_RECORDS]))
    return Client(size, mix, mean, np.stack([x, -x][:count]), labels)


def _moved(schema: WithinSchema, here: Client, chance: np.random.Generator) -> Client:
    """One of size, mix, mean, rows or labels, moved a little or a lot."""
    which, size = int(chance.integers(5)), 10.0 ** chance.uniform(-3, 1)
    if which == 0:
        return replace(here, records=float(np.clip(round((here.records + 1) * np.exp(size * chance.normal())), 0, 1e7)))
    if which == 1:
        mix = np.maximum(here.mix + size * chance.normal(size=here.mix.shape), 0.0)
        return replace(here, mix=mix / mix.sum()) if mix.sum() > 0 else here
    if which == 2:
        return replace(here, mean=_within_ball(here.mean + size * chance.normal(size=here.mean.shape)))
    if which == 3:
        rows = here.rows + size * chance.normal(size=here.rows.shape)
        return replace(here, rows=np.stack([_within_ball(row) for row in rows]))
    return replace(here, labels=tuple(int(label) for label in chance.integers(0, schema.classes, len(here.labels))))


def _within_ball(row: Vector) -> Vector:
    moved: Vector = row / max(1.0, float(np.linalg.norm(row)))
    return moved


def _distance(schema: WithinSchema, sigmas: Mapping[str, float], client: Client) -> float:
    """sqrt of the sum over statistics of (what the record, or the exchange of two, moves)^2 / sigma^2."""
    C, radius = schema.classes, schema.clip_norm
    crowd = client.records * np.concatenate([client.mix, radius * client.mean])
    z = [np.concatenate([np.eye(C)[c], radius * row]) for c, row in zip(client.labels, client.rows, strict=True)]
    with_one = _explained(schema, client.records + 1, crowd + z[0])
    if len(z) == 2:
        moved = (
            np.outer(z[0], z[0])
            - np.outer(z[1], z[1])
            - with_one
            + _explained(schema, client.records + 1, crowd + z[1])
        )
        counts = z[0][:C] - z[1][:C]
    else:
        moved = np.outer(z[0], z[0]) - with_one + _explained(schema, client.records, crowd)
        counts = z[0][:C]
    parts = {"N": counts, "L": moved[:C, :C], "A": moved[:C, C:], "B": moved[C:, C:]}
    return math.sqrt(sum(float(np.square(parts[name]).sum()) / sigma**2 for name, sigma in sigmas.items()))


def _explained(schema: WithinSchema, records: float, total: Vector) -> Vector:
    """Return the part that is subtracted from a client with this number of records and these sums."""
    under = records + schema.pull * max(1.0, records / schema.n_max)
    return np.outer(total, total) / under if under > 0 else np.zeros((len(total), len(total)))


worst_client = Search[WithinSchema, Client](_start, _moved, _distance).worst
"""One climb of this search; see :meth:`Search.worst`."""
