"""The most that a guarantee allows against what an adversary sees; the report compares measurements with it.

``dp.Guarantee`` has the closed forms, and covers everything that the adversary sees: several releases compose.
"""

from __future__ import annotations

from privstats.dp import Guarantee, NoPrivacy, Privacy
from privstats.plan import Plan
from threat_models.adversary import BARE, Adversary


def reconstruction(guarantee: Guarantee, kappa: float) -> float:
    """Highest chance to reconstruct a record that the best guess without a release hits with chance kappa.

    It is the highest true positive rate at a false positive rate of kappa, because a guess is a test with that rate
    (Hayes, Mahloujifar and Balle 2023).
    """
    return guarantee.tpr(kappa)


def guaranteed(plan: Plan, adversary: Adversary) -> Guarantee | None:
    """Return the plan's guarantee for one record against the adversary's view; None without a guarantee.

    Guarantee:
        None for a plan without DP, for an adversary that sees sums the plan never meant to be unmasked (unless noise
        is local), for one inside the server under central noise, and for more colluders than the plan counts with. The
        leader of a panel that draws lacks one member's noise, which keeps the promise. Under a client-level promise
        (always add-remove) a record is at most one client removed and another added, which is a group of two. Sessions
        compose.
    """
    privacy, noise = plan.privacy, plan.noise
    if isinstance(privacy, NoPrivacy) or noise is None or not isinstance(privacy, Privacy):
        return None
    if adversary.sees in BARE[noise.trust.drawn_by]:
        return None
    if noise.trust.divided and (adversary.sees == "cohort" or adversary.colluders > plan.cohort.colluders):
        return None
    return noise.guarantee.of_group(2 if privacy.unit == "client" else 1).repeated(adversary.releases)
