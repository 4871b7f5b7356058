"""The most that a guarantee allows against what an adversary sees; the report compares measurements with it.

``dp.Guarantee`` has the closed forms, and covers everything that the adversary sees: several releases compose.
"""

from __future__ import annotations

from dataclasses import replace

from privstats.dp import Guarantee, NoPrivacy, Privacy
from privstats.plan import Plan
from threat_models.adversary import BARE, Adversary


def reconstruction(guarantee: Guarantee, kappa: float) -> float:
    """Highest chance to reconstruct a record that the best guess without a release hits with chance kappa.

    It is the highest true positive rate at a false positive rate of kappa, because a guess is a test with that rate
    (Hayes, Mahloujifar and Balle 2023).
    """
    return guarantee.tpr(kappa)


def guaranteed(plan: Plan, adversary: Adversary, letter: str = "") -> Guarantee | None:
    """Return the plan's guarantee for the adversary's unit against its view; None without a guarantee.

    Args:
        letter: the one statistic that the adversary looks at; all of them if empty.

    Guarantee:
        None for a plan without DP, for an adversary that sees sums the plan never meant to be unmasked (unless noise
        is local), for one inside the server under central noise, and for more colluders than the plan counts with. The
        leader of a panel that draws lacks one member's noise, which keeps the promise. Under a client-level promise
        (always add-remove) a record is at most one client removed and another added, which is a group of two; an
        adversary that asks about a client asks about one unit. Sessions compose. One statistic alone has the smaller mu
        of its row in the plan's budget.
    """
    privacy, noise = plan.privacy, plan.noise
    if isinstance(privacy, NoPrivacy) or noise is None or not isinstance(privacy, Privacy):
        return None
    if adversary.sees in BARE[noise.trust.drawn_by]:
        return None
    if noise.trust.divided and (adversary.sees == "cohort" or adversary.colluders > plan.cohort.colluders):
        return None
    kept, group = noise.guarantee, 2 if privacy.unit == "client" and adversary.unit == "record" else 1
    if letter and not noise.pure:
        kept = replace(kept, mu=min(kept.mu, *(row.mu for row in noise.rows if row.statistic == letter)))
    return kept.of_group(group).repeated(adversary.releases)
