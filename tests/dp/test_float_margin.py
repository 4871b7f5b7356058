"""Rounding of floating point never makes a plan promise more than it keeps: held against forty digits."""

import itertools
from typing import get_args

import mpmath
import pytest

import privstats as ps
from privstats.dp.privacy import MODELS, Model

SCHEMA = ps.ClassSchema(3, 5, "NAB", clip_norm=1.5)
EPSILONS = (0.01, 0.1, 0.3, 0.7, 1.0, 1.7, 3.0, 5.3, 8.0, 10.0, 30.0)
DELTAS = (1e-12, 3e-8, 1e-6, 1e-5, 7e-5, 1e-3, 0.05)


def exact_delta(mu: mpmath.mpf, epsilon: float | mpmath.mpf) -> mpmath.mpf:
    """Dong, Roth and Su 2022, corollary 1: Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2)."""
    e = mpmath.mpf(epsilon)
    return mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)


def sized_mu(epsilon: float, delta: float, near: mpmath.mpf) -> mpmath.mpf:
    """The mu that a plan is sized for: of epsilon and delta less the margin."""
    m = 1 - mpmath.mpf(2) ** -40
    return mpmath.findroot(lambda mu: exact_delta(mu, m * epsilon) - m * delta, (near, near * (1 + mpmath.mpf(1e-9))))


def exact_mu(sigma: dict[str, float]) -> mpmath.mpf:
    """Of the noise as it stands in the plan: one record added moves N by 1, A by c and B by c squared."""
    moves = {"N": mpmath.mpf(1), "A": mpmath.mpf(SCHEMA.clip_norm), "B": mpmath.mpf(SCHEMA.clip_norm) ** 2}
    return mpmath.sqrt(mpmath.fsum((moves[s] / mpmath.mpf(level)) ** 2 for s, level in sigma.items()))


@pytest.mark.parametrize("model", get_args(Model))
def test_no_plan_exceeds_its_promise_in_the_last_digits(model: Model) -> None:
    with mpmath.workdps(40):
        for epsilon, delta in itertools.product(EPSILONS, DELTAS):
            privacy = ps.Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=delta)
            noise = ps.dp.calibrate(SCHEMA, privacy, honest_shares=5, members=2 if model == "panel" else 1)
            mu = exact_mu(dict(noise.sigma))
            spent = exact_delta(mu, epsilon)
            assert spent <= mpmath.mpf(delta), (epsilon, delta, float(spent / delta - 1))
            promised = sized_mu(epsilon, delta, mu)
            assert abs(mu / promised - 1) < 1e-15, "docs/proofs/noise.md: plans have an r below 1e-15"
            assert spent >= mpmath.mpf(delta) * (1 - mpmath.mpf(1e-9)), "the margin costs more than rounding does"


def test_the_margin_covers_twice_the_rounding_it_is_for() -> None:
    """A relative error r of mu is covered by a margin of K r on epsilon and delta, K <= 2: see ``MARGIN``."""
    worst = mpmath.mpf(0)
    with mpmath.workdps(40):
        for epsilon, delta in itertools.product(EPSILONS, DELTAS):
            mu = mpmath.mpf(ps.dp.gaussian_mu(epsilon, delta))
            a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
            gain = epsilon * mills(b) + mills(a) - mills(b)
            worst = max(worst, mu / gain)
    assert 1 < worst <= 2


def mills(t: mpmath.mpf) -> mpmath.mpf:
    """(1 - Phi(t)) / phi(t)."""
    return mpmath.ncdf(-t) / mpmath.npdf(t)


def test_every_model_has_the_margin() -> None:
    assert {row.margin for row in MODELS.values()} == {1 - 2.0**-40}
