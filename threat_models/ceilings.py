"""The most that a guarantee allows: closed forms of the trade-off curve of mu-GDP.

Arithmetic only; the report compares measurements with these. mu covers everything that the adversary sees: several
releases compose to mu sqrt(T).
"""

from __future__ import annotations

import math

from scipy.special import ndtr, ndtri

from privstats.dp import NoPrivacy, Privacy
from privstats.plan import Plan
from threat_models.adversary import BARE, Adversary

__all__ = ["advantage", "auc", "guaranteed_mu", "reconstruction", "tpr"]


def tpr(mu: float, fpr: float) -> float:
    """Highest true positive rate at a false positive rate: Phi(Phi^-1(FPR) + mu) (Dong, Roth and Su 2022)."""
    return float(ndtr(ndtri(fpr) + mu))


def auc(mu: float) -> float:
    """Highest area under the ROC: Phi(mu / sqrt 2)."""
    return float(ndtr(mu / math.sqrt(2)))


def advantage(mu: float) -> float:
    """Highest TPR - FPR over all thresholds: 2 Phi(mu / 2) - 1."""
    return float(2 * ndtr(mu / 2) - 1)


def reconstruction(mu: float, kappa: float) -> float:
    """Highest chance to reconstruct a record that the best guess without a release hits with chance kappa.

    Phi(Phi^-1(kappa) + mu): a guess is a test with false positive rate kappa (Hayes, Mahloujifar and Balle 2023).
    """
    return tpr(mu, kappa)


def guaranteed_mu(plan: Plan, adversary: Adversary) -> float | None:
    """mu of the plan's promise toward one record, against what the adversary sees; None where nothing is promised.

    Guarantee:
        None for a plan without DP, for an adversary that sees sums the plan never meant to be unmasked (unless noise
        is local), for one inside the server under central noise, and for more colluders than the plan counts with. The
        leader of a panel that draws lacks one member's noise, which keeps the promise. Under a client-level promise
        (always add-remove) a record is at most one client removed and another added, which is twice mu. Sessions
        compose.
    """
    privacy, noise = plan.privacy, plan.noise
    if isinstance(privacy, NoPrivacy) or noise is None or not isinstance(privacy, Privacy):
        return None
    if adversary.sees in BARE[noise.trust.drawn_by]:
        return None
    if noise.trust.divided and (adversary.sees == "cohort" or adversary.colluders > plan.cohort.colluders):
        return None
    return (2.0 if privacy.unit == "client" else 1.0) * noise.mu * math.sqrt(adversary.releases)
