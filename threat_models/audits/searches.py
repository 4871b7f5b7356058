"""The search for a worst pair of records, by kind of schema, and what it leaves of a promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privstats.randomness import Generator
from privstats.schema import (
    Schema,
    bare,
    row_of,
)
from threat_models.audits.counts import audit_counts, longest
from threat_models.audits.gradients import audit_gradients, worst_attempt
from threat_models.audits.sensitivity import PROMISE_TOLERANCE, audit_sensitivity, worst_mu
from threat_models.audits.sites import audit_sites
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report
from threat_models.audits.within import audit_within

__all__ = ["broken_promise", "declared_mu", "search_of"]

_STEPS = 20

_SEARCHES: Mapping[str, Callable[..., Report]] = {
    "classes": audit_sensitivity,
    "ridge": audit_sensitivity,
    "gradients": audit_gradients,
    "calibration": audit_gradients,
    "mean": audit_sensitivity,
    "party-softmax": audit_gradients,
    "party-update": audit_gradients,
    "within": audit_within,
    "counts": audit_counts,
    "sites": audit_sites,
    "score": audit_gradients,
}


def search_of(schema: Schema) -> Callable[..., Report]:
    """The audit of the sensitivity of such a schema, a function of target, generator and ``starts``.

    Raises:
        SchemaError: no search is written for schemas of this kind.
    """
    return row_of(_SEARCHES, schema, "search for a worst pair")


def declared_mu(target: Target, rng: Generator, starts: int = 6) -> float:
    """mu that the declared noise leaves to the worst unit that a search finds; the promise must not be below it.

    Raises:
        SchemaError: no search is written for schemas of this kind.
    """
    return row_of(_DECLARED, target.schema, "search for the worst unit")(target, rng, starts)


def _of_tables(target: Target, rng: Generator, starts: int) -> float:
    schema: Any = target.schema  # of counts, by its row
    return target.promise.records * longest(schema, rng, starts)[target.privacy.adjacency] / target.sigma["T"]


def _of_parties(target: Target, rng: Generator, starts: int) -> float:
    """Of which a party is one record."""
    plain: Any = bare(target.schema)  # of parties, by its row
    adjacency = target.privacy.adjacency
    return max(worst_attempt(plain, target.sigma, adjacency, rng, _STEPS)[0] for _ in range(starts))


_DECLARED: Mapping[str, Callable[[Target, Generator, int], float]] = {
    "classes": worst_mu,
    "ridge": worst_mu,
    "mean": worst_mu,
    "counts": _of_tables,
    "party-softmax": _of_parties,
    "party-update": _of_parties,
}


def broken_promise(target: Target, rng: Generator) -> list[str]:
    """One sentence if the declared noise leaves more to a unit than epsilon and delta admit, else nothing."""
    found, promised = declared_mu(target, rng), target.promise.mu
    if found <= promised * (1 + PROMISE_TOLERANCE):
        return []
    return [f"the declared noise leaves mu {found:.6g} to a unit that was found, and the promise is {promised:.6g}"]
