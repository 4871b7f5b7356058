"""Explain the cost of drop-outs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from privstats.dp import Noise
from privstats.plan.plan import Plan
from privstats.printable import at_most

_TENTHS = (0, 1, 2, 3)

REMEDY = "set cohort.colluders to at least 1 to keep the promise toward clients too"
"""The cure where another party can subtract its own noise."""


@dataclass(frozen=True)
class Dropout:
    """A session with drop-outs.

    Attributes:
        gone: clients that vanish.
        survivors: clients that stay.
        honest: clients in the sum with noise unknown to an attacker.
        epsilon: of the release at the plan's delta, without the colluders' noise; None without a release.

    Example:
        >>> row = ps.review.Dropout(gone=1, survivors=9, honest=8, epsilon=0.94)  # one of dropout_table(...)
        >>> row.gone + row.survivors
        10
    """

    gone: int
    survivors: int
    honest: int
    epsilon: float | None


def dropout_table(
    noise: Noise, *, clients: int, min_survivors: int, colluders: int, min_listed: int | None = None
) -> tuple[Dropout, ...]:
    """Return rows for 0, 10, 20 and 30 % of the clients gone, the maximum that may vanish, and one more.

    Percentages are rounded down. Beyond the maximum nothing is released.

    Args:
        colluders: clients with noise that an attacker knows.
        min_listed: ``plan.masking.min_listed``; ``min_survivors`` by default. A lying server can exclude the
            surplus, so its noise does not count.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(10, 8, 1_000), privacy=privacy)
        >>> rows = ps.review.dropout_table(plan.noise, clients=10, min_survivors=8, colluders=0)
        >>> [(row.survivors, row.epsilon and round(row.epsilon, 2)) for row in rows]
        [(10, 0.88), (9, 0.94), (8, 1.0), (7, None)]
    """
    min_listed = min_survivors if min_listed is None else min_listed
    return _table(noise.released_epsilon, clients, min_survivors, colluders, min_listed)


def _table(
    epsilon: Callable[[int], float], clients: int, min_survivors: int, colluders: int, min_listed: int
) -> tuple[Dropout, ...]:
    spare = clients - min_listed
    counts = {tenth * clients // 10 for tenth in _TENTHS} | {spare}
    rows = []
    for gone in (*sorted(count for count in counts if count <= spare), spare + 1):
        survivors = clients - gone
        honest = survivors - (min_listed - min_survivors) - colluders
        rows.append(Dropout(gone, survivors, honest, epsilon(honest) if gone <= spare else None))
    return tuple(rows)


def honest_parties(plan: Plan, survivors: int) -> int:
    """Return how many parties of a release certainly added noise that an attacker does not know.

    Colluders know theirs, and a lying server can exclude the clients that a list needs beyond ``min_survivors``
    (docs/proofs/random_graph.md, 8).

    Example:
        >>> cohort = ps.Cohort(clients=10, min_survivors=8, max_records=100, colluders=1)
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> from privstats.review.drop_outs import honest_parties
        >>> honest_parties(ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy()), 9)
        8
    """
    surplus = plan.masking.min_listed - plan.cohort.min_survivors
    return survivors - surplus - plan.cohort.colluders


def plan_dropouts(plan: Plan, noise: Noise) -> tuple[Dropout, ...]:
    """Return a plan's :func:`dropout_table`."""
    return _rows_of(plan, noise.released_epsilon)


def _rows_of(plan: Plan, epsilon: Callable[[int], float]) -> tuple[Dropout, ...]:
    cohort = plan.cohort
    return _table(epsilon, cohort.clients, cohort.min_survivors, cohort.colluders, plan.masking.min_listed)


def party_factor(plan: Plan) -> float:
    """Return how many times the promise's mu another party faces, which subtracts its own noise; 1 if it gains nothing.

    Each client knows its own share of divided noise; ``colluders`` of at least 1 accounts for that.

    Example:
        >>> privacy = ps.Privacy(model="distributed", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=privacy)
        >>> from privstats.review.drop_outs import party_factor
        >>> round(party_factor(plan) ** 2, 9)
        2.0
    """
    noise, cohort = plan.noise, plan.cohort
    if noise is None or not noise.trust.divided or cohort.colluders or cohort.min_survivors < 2:
        return 1.0
    return noise.released_mu(cohort.min_survivors - 1) / noise.mu


def drop_out_facts(plan: Plan, epsilon: Callable[[float], float] | None = None) -> list[str]:
    """Explain the promise under drop-outs and the cost of the margin, where noise is divided.

    Args:
        epsilon: computes epsilon from a multiple of the promise's mu, of a whole course for example; None: of the plan.
    """
    noise = plan.noise
    if noise is None or not noise.trust.divided:
        return []
    at = noise.released_epsilon if epsilon is None else _of_all(noise, epsilon)
    return [
        f"epsilon after dropouts of {plan.cohort.clients} clients, even if colluders subtract their noise: "
        + ", ".join(_in_words(row) for row in _rows_of(plan, at)),
        *_margin(plan, noise),
        *_insiders(plan, at),
    ]


def _of_all(noise: Noise, epsilon: Callable[[float], float]) -> Callable[[int], float]:
    return lambda survivors: epsilon(noise.released_mu(survivors) / noise.mu)


def _in_words(row: Dropout) -> str:
    epsilon = "no release" if row.epsilon is None else at_most(row.epsilon)
    return f"{epsilon} with {row.gone or 'none'} gone"


def _margin(plan: Plan, noise: Noise) -> list[str]:
    cohort = plan.cohort
    if cohort.min_survivors == cohort.clients:
        return []
    honest = cohort.min_survivors - cohort.colluders, cohort.clients - cohort.colluders
    factor = honest[1] / honest[0]
    margin = f"room for {cohort.clients - plan.masking.min_listed} of {cohort.clients} clients to vanish"
    cost = f"{factor:.3g} times the variance and {math.sqrt(factor):.3g} times the standard deviation"
    if noise.levels:
        return [
            f"{margin} costs no noise when all are there: clients open their surplus noise layers, which would be "
            f"{cost}; a client that vanishes between upload and last answer leaves its full share"
        ]
    return [
        f"{margin} costs {cost} of the noise when all are there, because each share is sized for "
        f'{cohort.min_survivors} survivors; excess_noise = "removed" removes it on a complete interactive graph, a '
        'larger min_survivors lowers it (who vanishes before the uploads costs no budget), and model = "panel" has none'
    ]


def _insiders(plan: Plan, epsilon: Callable[[int], float]) -> list[str]:
    if party_factor(plan) == 1:
        return []
    return [
        "a client that sees the release can subtract its own noise and faces epsilon "
        f"{at_most(epsilon(plan.cohort.min_survivors - 1))}; {REMEDY}"
    ]
