"""The search for a worst pair of records, by kind of schema, and what it leaves of a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from privstats.dp import clip_client
from privstats.dp.privacy import Adjacency
from privstats.encoding import flatten
from privstats.randomness import Generator
from privstats.schema import Schema, bare
from privstats.schema.public_values import Published, Values
from threat_models.audits import effect, hazards, sites, within
from threat_models.audits.climb import in_sigmas
from threat_models.audits.counts import farthest, moved_vectors, tables_in
from threat_models.audits.gradients import behind_the_transform, worst_attempt
from threat_models.audits.kinds import row_part
from threat_models.audits.sensitivity import PROMISE_TOLERANCE
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

_Search: TypeAlias = Callable[[Mapping[str, float], Adjacency, Generator], float]

_MOVES = 20
_ROUND_MOVES = 60
_WITHIN_MOVES = 400


def search_of(schema: Schema) -> Callable[..., Report]:
    """The audit of the sensitivity of such a schema, a function of target, generator and ``starts``.

    Raises:
        SchemaError: no search is written for schemas of this kind.
    """
    result: Callable[..., Report] = row_part("search", schema, "search for a worst pair")
    return result


def declared_mu(target: Target, rng: Generator, starts: int = 6) -> float:
    """mu that the declared noise leaves to the worst unit that a search finds; the promise must not be below it.

    Raises:
        SchemaError: no search is written for schemas of this kind.
    """
    return float(row_part("declared", target.schema, "search for the worst unit")(target, rng, starts))


def of_tables(target: Target, rng: Generator, starts: int) -> float:
    """Search count tables."""
    schema = tables_in(target.schema)
    found = farthest(schema, moved_vectors(schema, rng, starts), target.sigma)
    return target.promise.records * found[target.privacy.adjacency]


def of_parties(target: Target, rng: Generator, starts: int) -> float:
    """Search parties, each of which is one record."""
    plain: Any = bare(target.schema)  # of parties, by its row
    adjacency = target.privacy.adjacency
    return max(worst_attempt(plain, target.sigma, adjacency, rng, _MOVES)[0] for _ in range(starts))


def _most_of_records(target: Target, rng: Generator, starts: int, worst: _Search) -> float:
    """Return what the worst unit of ``promise.records`` worst records moves: the sums are linear in records."""
    found = max(worst(target.sigma, target.privacy.adjacency, rng) for _ in range(starts))
    return target.promise.records * found


def _of_search(
    search: Callable[..., tuple[float, object]], moves: int, plain: Callable[[Any], Any] = lambda schema: schema
) -> Callable[[Target, Generator, int], float]:
    """Return the function of target, generator and starts that repeats a climb and returns its largest mu.

    Args:
        search: one climb, of schema, noise, adjacency, generator and moves.
        plain: the schema that is searched.
    """

    def declared(target: Target, rng: Generator, starts: int) -> float:
        schema = plain(target.schema)
        return _most_of_records(
            target, rng, starts, lambda noise, how, chance: search(schema, noise, how, chance, moves)[0]
        )

    return declared


of_rounds = _of_search(worst_attempt, _ROUND_MOVES, behind_the_transform)
"""Search records and published values of a round of gradients, scores or calibrations."""

of_hazards = _of_search(hazards.worst_trajectories, _ROUND_MOVES, hazards.behind_the_transform)
"""Search persons, published weights and clocks of a round of hazards."""

of_effects = _of_search(effect.worst_attempt, _ROUND_MOVES)
"""Search records, arms and published lines of a treatment effect."""

of_within = _of_search(within.worst_client, _WITHIN_MOVES)
"""Search a client and the record that comes or goes."""


def of_sites(target: Target, rng: Generator, starts: int) -> float:
    """Search a site and the record that comes or goes, or all records of one site."""
    schema: Any = target.schema
    if target.privacy.unit == "client" and target.privacy.client_clip is None:
        return sites.worst_site(schema, target.sigma, target.privacy.adjacency, int(target.promise.records))
    starts = max(2, starts)  # the first is a corner
    corners = iter([True] + [False] * starts)

    def climbed(noise: Mapping[str, float], how: Adjacency, chance: Generator) -> float:
        return sites.worst_sites(schema, noise, how, chance, _WITHIN_MOVES, corner=next(corners))[0]

    return _most_of_records(target, rng, starts, climbed)


def of_aligned(target: Target, rng: Generator, starts: int) -> float:
    """Search clients of an alignment, whose sums the clip of a client bounds: rows on one side, opposed, and spread."""
    schema: Any = target.schema
    rows = int(target.privacy.max_records_per_client or 1)
    published = None
    if schema.needs:
        published = Published.of({"S": Values.rounded(np.eye(schema.features) * schema.clip_norm**2 / 2)})
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    clients = []
    for start in range(max(3, starts)):
        x = chance.normal(size=(rows if start % 3 == 2 else 1, schema.features))
        x *= 4 * schema.clip_norm / np.linalg.norm(x, axis=1, keepdims=True)
        x = np.resize(np.vstack([x, -x]) if start % 3 == 1 else x, (rows, schema.features))
        vector = flatten(sums_of(bare(schema), x, np.zeros(rows), published=published))
        clients.append(clip_client(schema, target.privacy, vector))
    gone = clients if target.privacy.adjacency == "replace-one" else []
    shifts = [*clients, *(one - other for one in gone for other in gone)]
    return max(in_sigmas(schema, target.sigma, shift) for shift in shifts)


def broken_promise(target: Target, rng: Generator) -> list[str]:
    """One sentence if the declared noise leaves more to a unit than epsilon and delta admit, else nothing."""
    result, promised = declared_mu(target, rng), target.promise.mu
    if result <= promised * (1 + PROMISE_TOLERANCE):
        return []
    return [f"the declared noise leaves mu {result:.6g} to a unit that was found, and the promise is {promised:.6g}"]
