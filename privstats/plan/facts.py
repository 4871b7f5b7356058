"""What follows from a plan, in sentences: weak promises, the masking's own facts, dropouts and minimum counts.

For the person who reviews a plan; everything here is computed from the plan and nothing is decided.
"""

from __future__ import annotations

import math

from privstats.dp import doubtful_counts
from privstats.plan.dropouts import Dropout, dropout_table
from privstats.plan.plan import Plan
from privstats.schema import ClassSchema, CountSchema, SitesSchema

__all__ = ["facts"]

_WEAK_EPSILON = 10.0


def facts(plan: Plan) -> list[str]:
    """One sentence per fact, in the order in which a reviewer asks."""
    return [
        *_warnings(plan),
        *plan.masking.facts(),
        *_groups(plan),
        *_trust(plan),
        *_dropouts(plan),
        *_minimum_count(plan),
    ]


def _warnings(plan: Plan) -> list[str]:
    """Promises that hold and yet say little."""
    budget, records = plan.budget(), plan.cohort.max_records
    if plan.noise is None:
        return [*_exact_tables(plan), *_exact_sites(plan)]
    out = []
    if budget.delta * records > 1:
        out.append(
            f"WARNING: delta {budget.delta:g} lets {budget.delta * records:.0f} of {records} records be exposed "
            f"outright; choose less than 1 / max_records = {1 / records:.2g}"
        )
    if budget.epsilon > _WEAK_EPSILON:
        out.append(
            f"WARNING: epsilon {budget.epsilon:g} promises almost nothing; `privstats audit budget` shows how little"
        )
    return out


def _exact_tables(plan: Plan) -> list[str]:
    if not isinstance(plan.schema, CountSchema):
        return []
    return [
        "WARNING: exact count tables show every cell of one record as it is, and suppressing small cells does not help "
        "where totals give them back; release them with a Privacy"
    ]


def _exact_sites(plan: Plan) -> list[str]:
    """Another exact release of the same records is one more pull."""
    if not isinstance(plan.schema, SitesSchema):
        return []
    return [
        "WARNING: exact sums within sites beside exact plain sums of the same records (a RidgeSchema) are one more "
        "pull, and few sites can then be solved for; do not release both exactly (`privstats attack run --attack "
        "site-means` shows how)"
    ]


def _groups(plan: Plan) -> list[str]:
    if not isinstance(plan.schema, SitesSchema) or plan.schema.groups == 1:
        return []
    groups, sites = plan.schema.groups, plan.cohort.clients / plan.schema.groups
    return [
        f"each of the {groups} groups is a sum of its own over about {sites:.3g} sites, among which alone the protocol "
        f"hides one; what all groups say together carries sqrt({groups}) times the noise of one"
    ]


def _trust(plan: Plan) -> list[str]:
    return [] if plan.noise is None else [f"trust in the {plan.noise.model} model: {plan.noise.trust.trusted}"]


def _dropouts(plan: Plan) -> list[str]:
    """Where the noise is divided, every honest survivor beyond the fewest makes the release more private."""
    noise, cohort = plan.noise, plan.cohort
    if noise is None or not noise.trust.divided:
        return []
    table = dropout_table(noise, clients=cohort.clients, min_survivors=cohort.min_survivors, colluders=cohort.colluders)
    return [
        f"epsilon that dropouts leave of {cohort.clients} clients, with all colluders' noise taken off: "
        + ", ".join(_told(row) for row in table),
        *_insiders(plan),
    ]


def _told(row: Dropout) -> str:
    left = "no release" if row.epsilon is None else f"{row.epsilon:.4g}"
    return f"{left} with {row.gone or 'none'} gone"


def _insiders(plan: Plan) -> list[str]:
    """A client knows its own share of the noise; with ``colluders`` of at least 1 the promise has paid for that."""
    if plan.noise is None or plan.cohort.colluders or plan.cohort.min_survivors < 2:
        return []
    epsilon = plan.noise.released_epsilon(plan.cohort.min_survivors - 1)
    return [
        f"a client that sees the release can take its own noise off and faces epsilon {epsilon:.4g}; "
        "set cohort.colluders to at least 1 to keep the promise toward clients too"
    ]


def _minimum_count(plan: Plan) -> list[str]:
    if not plan.min_count or not isinstance(plan.schema, ClassSchema):
        return []
    sigma = 0.0 if plan.noise is None else plan.noise.released_sigma(plan.cohort.clients)["N"]
    low, high = doubtful_counts(plan.min_count, sigma)
    per_dimension = plan.min_count / plan.schema.features
    chance = f"in at least 99 % of releases (noise of {sigma:.3g} on a count with everybody's share) " if sigma else ""
    goes = f"and one of fewer than {math.floor(low)} goes" if low >= 1 else "but noise may keep any smaller one"
    return [
        f"{chance}a class of at least {math.ceil(high)} records stays {goes}",
        f"min_count is {per_dimension:.2g} records per dimension, which hides nobody by itself",
    ]
