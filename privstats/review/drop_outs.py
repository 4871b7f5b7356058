"""Explain the cost of allowing drop-outs: noise sized for the fewest survivors, too much with more survivors."""

from __future__ import annotations

import math

from privstats.dp import Noise
from privstats.plan.cohort import Cohort
from privstats.review.budget import Dropout, dropout_table


def drop_out_facts(noise: Noise | None, cohort: Cohort) -> list[str]:
    """Explain the promise under drop-outs and the cost of the margin; no sentences where noise is not divided."""
    if noise is None or not noise.trust.divided:
        return []
    table = dropout_table(noise, clients=cohort.clients, min_survivors=cohort.min_survivors, colluders=cohort.colluders)
    return [
        f"epsilon that dropouts leave of {cohort.clients} clients, with all colluders' noise taken off: "
        + ", ".join(_in_words(row) for row in table),
        *_margin(noise, cohort),
        *_insiders(noise, cohort),
    ]


def _in_words(row: Dropout) -> str:
    epsilon = "no release" if row.epsilon is None else f"{row.epsilon:.4g}"
    return f"{epsilon} with {row.gone or 'none'} gone"


def _margin(noise: Noise, cohort: Cohort) -> list[str]:
    """Compare the noise of a sum over all clients with that of a plan without drop-outs."""
    if cohort.min_survivors == cohort.clients:
        return []
    honest = cohort.min_survivors - cohort.colluders, cohort.clients - cohort.colluders
    factor = honest[1] / honest[0]
    margin = f"room for {cohort.clients - cohort.min_survivors} of {cohort.clients} clients to vanish"
    cost = f"{factor:.3g} times the variance and {math.sqrt(factor):.3g} times the standard deviation"
    if noise.levels:
        return [
            f"{margin} costs no noise when all are there: clients open what is too much of theirs, which would be "
            f"{cost}; who vanishes between upload and last answer leaves its share whole"
        ]
    return [
        f"{margin} costs {cost} of the noise when all are there, because each share is sized for "
        f'{cohort.min_survivors} survivors; excess_noise = "removed" takes it back, a larger min_survivors lowers it '
        '(a client that vanishes before the uploads costs a new session and no budget), and model = "panel" has none'
    ]


def _insiders(noise: Noise, cohort: Cohort) -> list[str]:
    """Return the cost that each client knows its own noise share; ``colluders`` of at least 1 accounts for that."""
    if cohort.colluders or cohort.min_survivors < 2:
        return []
    epsilon = noise.released_epsilon(cohort.min_survivors - 1)
    return [
        f"a client that sees the release can take its own noise off and faces epsilon {epsilon:.4g}; "
        "set cohort.colluders to at least 1 to keep the promise toward clients too"
    ]
