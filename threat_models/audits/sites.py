"""A search over sites and records against the sensitivity of sums within sites.

A random climb from the corners moves how many records one or two sites have, where their means lie and what enters,
leaves or changes sites, and keeps a move where the weighted distance grows. Sums are built from their definition; no
formula is shared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.dp import joint_mu
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.kinds import SitesSchema
from privstats.randomness import Generator
from privstats.schema import narrowed
from threat_models.audits.climb import climb
from threat_models.audits.sensitivity import Finding, report_of
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

_ADJACENCIES: tuple[Adjacency, ...] = ("add-remove", "replace-one")
_MOST_RECORDS = 1e7

Array: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sites:
    """One or two sites and what changes; vectors in units of the clip norm.

    Attributes:
        records: how many each has beside the record in question, ``(k,)``.
        means: their means, ``(k, p)``.
        rows: the record that comes, and under replace-one the one that goes, ``(1 or 2, p)``; with two sites one goes
            from the first and the other comes to the second. One row under replace-one takes the place of a record
            that cannot be read, which is in no sum.
    """

    records: Array
    means: Array
    rows: Array


def audit_sites(target: Target, rng: Generator, *, moves: int = 400, starts: int = 12) -> Report:
    """Search the worst site and record under both adjacencies against the claimed mu.

    Raises:
        PlanError: not a plan of sums within sites.
    """
    refusal = PlanError("this search is for sums within sites: give such a plan, or use `audit sensitivity`")
    schema = narrowed(target.schema, SitesSchema, refusal)
    results = [
        Finding(name, adjacency, joint_mu(schema, noise, adjacency), best)
        for name, noise in {"N": {"N": 1.0}, "Q": {"Q": 1.0}, "joint": dict(target.sigma)}.items()
        for adjacency in _ADJACENCIES
        for best in [max(worst_sites(schema, noise, adjacency, rng, moves, corner=not k)[0] for k in range(starts))]
    ]
    notes = (f"{starts} starts of {moves} moves over one or two sites' sizes and means and the records that change",)
    return report_of("sites", results, notes)


def worst_sites(
    schema: SitesSchema,
    sigmas: Mapping[str, float],
    adjacency: Adjacency,
    rng: Generator,
    moves: int,
    *,
    corner: bool = False,
) -> tuple[float, Sites]:
    """The weighted distance that one climb reaches, and where.

    Args:
        sigmas: noise per statistic, in real units; statistics that are not named do not count.
        moves: how many are tried.
        corner: start from large sites that the records are opposed to, two of them where two records change.
    """
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    return climb(
        _start(schema, adjacency, chance, corner),
        lambda here: _moved(here, chance),
        lambda here: _distance(schema, sigmas, here),
        moves,
    )


def worst_site(schema: SitesSchema, sigmas: Mapping[str, float], adjacency: Adjacency, records: int) -> float:
    """The weighted distance of a complete site from none, or from the one that takes its place, at the corners: rows
    at one place, or in two opposed parts."""
    first, second = schema.clip_norm * np.eye(max(2, schema.features))[:2, : schema.features]
    sizes = [(size, opposed) for size in sorted({1, records}) for opposed in (0, size // 2)]
    ones = [_of_site(schema, first, *each) for each in sizes]
    others = [*ones, *(_of_site(schema, second, *each) for each in sizes)] if adjacency == "replace-one" else []
    none = _of_site(schema, first, 0, 0)
    return max(_site_distance(sigmas, one, other) for one in ones for other in (none, *others))


def _of_site(schema: SitesSchema, row: Array, records: int, opposed: int) -> tuple[int, list[Array]]:
    """The records of a site and its Q for each pull: so many at ``row``, of which some are opposed."""
    total = (records - 2 * opposed) * row
    return records, [records * np.outer(row, row) - _taken(records, total, pull) for pull in schema.pulls]


def _site_distance(sigmas: Mapping[str, float], one: tuple[int, list[Array]], other: tuple[int, list[Array]]) -> float:
    moved = sum(float(np.square(a - b).sum()) for a, b in zip(one[1], other[1], strict=True))
    return math.sqrt((one[0] - other[0]) ** 2 / sigmas.get("N", math.inf) ** 2 + moved / sigmas.get("Q", math.inf) ** 2)


def _start(schema: SitesSchema, adjacency: Adjacency, chance: np.random.Generator, corner: bool) -> Sites:
    """Corners: full or empty sites, records opposed to their site, orthogonal to each other or alike."""
    p = schema.features
    several = adjacency == "replace-one" and (corner or chance.random() < 0.5)
    rows = np.eye(p)[chance.permutation(p)[: 1 + several]]
    if corner:
        return Sites(np.full(len(rows), _MOST_RECORDS), -rows, rows)
    sites = 1 if len(rows) == 1 else int(chance.integers(1, 3))
    side, size = chance.choice([-1.0, -1.0, 0.0, 1.0]), chance.choice([0.0, 30.0, 1e4, _MOST_RECORDS])
    return Sites(np.full(sites, size), side * rows[:sites], rows)


def _moved(here: Sites, chance: np.random.Generator) -> Sites:
    """Sizes, means or rows, moved a little or a lot."""
    which, size = int(chance.integers(3)), 10.0 ** chance.uniform(-3, 1)
    if which == 0:
        records = np.round((here.records + 1) * np.exp(size * chance.normal(size=here.records.shape)))
        return replace(here, records=np.clip(records, 0, _MOST_RECORDS))
    if which == 1:
        return replace(here, means=_within_ball(here.means + size * chance.normal(size=here.means.shape)))
    return replace(here, rows=_within_ball(here.rows + size * chance.normal(size=here.rows.shape)))


def _within_ball(rows: Array) -> Array:
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True)))


def _distance(schema: SitesSchema, sigmas: Mapping[str, float], here: Sites) -> float:
    """sqrt of the sum over statistics of (what the change moves)^2 / sigma^2."""
    z = schema.clip_norm * here.rows
    crowds = here.records[:, None] * schema.clip_norm * here.means
    moved = 0.0
    for pull in schema.pulls:
        grown = [
            np.outer(row, row) - _taken(n + 1, crowd + row, pull) + _taken(n, crowd, pull)
            for n, crowd, row in zip(here.records, crowds, z, strict=False)
        ]
        if len(z) == 2 and len(grown) == 1:  # both at one site
            row = z[1]
            grown.append(
                np.outer(row, row) - _taken(here.records[0] + 1, crowds[0] + row, pull)
                + _taken(here.records[0], crowds[0], pull)
            )  # fmt: skip
        moved += float(np.square(grown[0] - (grown[1] if len(z) == 2 else 0.0)).sum())
    counts = 1.0 if len(z) == 1 else 0.0
    return math.sqrt(counts / sigmas.get("N", math.inf) ** 2 + moved / sigmas.get("Q", math.inf) ** 2)


def _taken(records: float, total: Array, pull: float) -> Array:
    """The part of a site's second moments that its mean explains."""
    under = records + pull
    return np.outer(total, total) / under if under > 0 else np.zeros((len(total), len(total)))
