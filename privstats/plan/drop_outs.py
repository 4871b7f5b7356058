"""What it costs that clients may vanish: noise for the fewest survivors, of which more survivors add too much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privstats.dp import Noise, NoPrivacy, Privacy
from privstats.errors import PlanError
from privstats.plan.cohort import Cohort

if TYPE_CHECKING:
    from privstats.plan.budget import Dropout

__all__ = ["EXCESS", "KEPT", "check_excess", "drop_out_facts"]

KEPT = "kept"
EXCESS = KEPT, "removed"
"""What a plan can say of the noise that more survivors than the fewest add."""


def check_excess(excess_noise: object, privacy: Privacy | NoPrivacy, cohort: Cohort, agrees: bool) -> None:
    """Refuse to remove excess noise where there is none, or where clients do not know how many are in the sum.

    Raises:
        PlanError: naming the field and the remedy.
    """
    if excess_noise not in EXCESS:
        raise PlanError(f"excess_noise must be one of {', '.join(EXCESS)}, got {excess_noise!r}")
    if excess_noise == KEPT:
        return
    if isinstance(privacy, NoPrivacy) or not privacy.trust.divided:
        raise PlanError("excess_noise='removed' needs shares of noise: choose model='distributed', or leave it out")
    if not agrees:
        raise PlanError(
            "excess_noise='removed' needs clients that agree on who is in the sum: choose protocol='interactive', or "
            "model='panel', whose noise does not depend on how many clients stay"
        )
    if cohort.min_survivors == cohort.clients:
        raise PlanError(
            "excess_noise='removed' has nothing to remove: all clients must survive, so no share is sized for fewer; "
            "leave it out, or lower cohort.min_survivors"
        )


def drop_out_facts(noise: Noise | None, cohort: Cohort) -> list[str]:
    """What drop-outs leave of the promise, and what the margin for them costs; nothing where noise is not divided."""
    if noise is None or not noise.trust.divided:
        return []
    from privstats.plan.budget import dropout_table

    table = dropout_table(noise, clients=cohort.clients, min_survivors=cohort.min_survivors, colluders=cohort.colluders)
    return [
        f"epsilon that dropouts leave of {cohort.clients} clients, with all colluders' noise taken off: "
        + ", ".join(_in_words(row) for row in table),
        *_margin(noise, cohort),
        *_insiders(noise, cohort),
    ]


def _in_words(row: Dropout) -> str:
    left = "no release" if row.epsilon is None else f"{row.epsilon:.4g}"
    return f"{left} with {row.gone or 'none'} gone"


def _margin(noise: Noise, cohort: Cohort) -> list[str]:
    """The noise of a sum over all clients beside that of a plan that no client may leave."""
    if cohort.min_survivors == cohort.clients:
        return []
    honest = cohort.min_survivors - cohort.colluders, cohort.clients - cohort.colluders
    factor = honest[1] / honest[0]
    margin = f"room for {cohort.clients - cohort.min_survivors} of {cohort.clients} clients to vanish"
    kept = f"{factor:.3g} times the variance and {math.sqrt(factor):.3g} times the standard deviation"
    if noise.levels:
        return [
            f"{margin} costs no noise when all are there: clients open what is too much of theirs, which would be "
            f"{kept}; who vanishes between upload and last answer leaves its share whole"
        ]
    return [
        f"{margin} costs {kept} of the noise when all are there, because each share is sized for "
        f'{cohort.min_survivors} survivors; excess_noise = "removed" takes it back, a larger min_survivors lowers it '
        '(a client that vanishes before the uploads costs a new session and no budget), and model = "panel" has none'
    ]


def _insiders(noise: Noise, cohort: Cohort) -> list[str]:
    """A client knows its own share of the noise; ``colluders`` of at least 1 accounts for that."""
    if cohort.colluders or cohort.min_survivors < 2:
        return []
    epsilon = noise.released_epsilon(cohort.min_survivors - 1)
    return [
        f"a client that sees the release can take its own noise off and faces epsilon {epsilon:.4g}; "
        "set cohort.colluders to at least 1 to keep the promise toward clients too"
    ]
