"""The search for a worst pair of records, by kind of schema, and what it leaves of a promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privstats.randomness import Generator
from privstats.schema import (
    Schema,
    bare,
)
from threat_models.audits.counts import farthest, moved_vectors, tables_in
from threat_models.audits.gradients import worst_attempt
from threat_models.audits.kinds import row_part
from threat_models.audits.sensitivity import PROMISE_TOLERANCE
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

_STEPS = 20


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
    return max(worst_attempt(plain, target.sigma, adjacency, rng, _STEPS)[0] for _ in range(starts))


def broken_promise(target: Target, rng: Generator) -> list[str]:
    """One sentence if the declared noise leaves more to a unit than epsilon and delta admit, else nothing."""
    result, promised = declared_mu(target, rng), target.promise.mu
    if result <= promised * (1 + PROMISE_TOLERANCE):
        return []
    return [f"the declared noise leaves mu {result:.6g} to a unit that was found, and the promise is {promised:.6g}"]
