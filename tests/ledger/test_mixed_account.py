"""An account of pure and Gaussian releases: what it says, what fixed plans cost together, and why it does not say that.

The worst epsilon-DP release is randomised response (Kairouz, Oh and Viswanath 2015), so the joint privacy loss of fixed
plans is a sum of two-valued losses beside a Gaussian one.
"""

import math
from pathlib import Path

import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import privstats as ps
from privstats.dp import gaussian_mu
from tests import made

NARROW = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))


def gaussian(mu: float, epsilon: float) -> float:
    """delta of mu-GDP, at an epsilon of either sign."""
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def losses(pure: float) -> list[tuple[float, float]]:
    """The two privacy losses of randomised response, with their probabilities."""
    return [(pure, 1 / (1 + math.exp(-pure))), (-pure, 1 / (1 + math.exp(pure)))]


def response(pure: float, epsilon: float) -> float:
    return sum(chance * max(0.0, 1 - math.exp(epsilon - loss)) for loss, chance in losses(pure))


def joint(mu: float, pure: float, delta: float) -> float:
    """epsilon of a Gaussian release and a pure one, both fixed before."""
    spent = lambda epsilon: sum(chance * gaussian(mu, epsilon - loss) for loss, chance in losses(pure))  # noqa: E731
    return float(brentq(lambda epsilon: spent(epsilon) - delta, 0.0, 50.0))


@pytest.mark.parametrize(
    ("noisy", "pure", "told", "fixed"), [(0.9, 0.1, 1.054, 0.969), (0.5, 0.5, 2.94, 0.986), (1.0, 1.0, 6.339, 1.983)]
)
def test_a_mixed_account_says_an_upper_bound(
    noisy: float, pure: float, told: float, fixed: float, tmp_path: Path
) -> None:
    ledger = made.ledger(tmp_path / "ledger.db", epsilon=50.0, delta=1e-6)
    for run, privacy in (
        (b"a", made.promise(epsilon=noisy, delta=1e-6)),
        (b"b", made.promise(epsilon=pure, delta=0.0)),
    ):
        plan = made.plan(NARROW, ps.Cohort(5, 3, 100), privacy)
        known = {"schema": plan.schema, "privacy": plan.privacy, "noise": plan.noise}
        ledger.spend("ward", plan=plan.digest, run=run, **known)
    assert ledger.account("ward").spent == pytest.approx(told, abs=6e-4)
    assert joint(gaussian_mu(noisy, 1e-6), pure, 1e-6) == pytest.approx(fixed, abs=6e-4)


def test_the_joint_number_of_fixed_plans_is_no_rule_for_plans_that_are_chosen_by_what_was_seen() -> None:
    """After a pure release, each of two others fills it up to (1, 1e-5); choosing between them costs 1.42e-5."""
    epsilon, delta, before = 1.0, 1e-5, losses(0.01)
    pure = brentq(lambda e: sum(p * response(e, epsilon - seen) for seen, p in before) - delta, 1e-9, 4.0)
    mu = brentq(lambda m: sum(p * gaussian(m, epsilon - seen) for seen, p in before) - delta, 1e-3, 5.0)
    chosen = sum(p * max(response(pure, epsilon - seen), gaussian(mu, epsilon - seen)) for seen, p in before)
    assert chosen == pytest.approx(1.42e-5, rel=2e-3)
