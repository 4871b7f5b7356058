"""The noise of a sum over several servers, measured: what helpers and leader add is what the release claims."""

import os
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.encoding import flatten
from privstats.engines import loopback
from privstats.secagg import Identity
from tests import made
from tests.lengths import sized

SCHEMA = ps.ClassSchema(2, 60, "NA", clip_norm=1.0)
RNG = np.random.default_rng(0)
PARTS = [ps.measure(SCHEMA, RNG.normal(size=(9, 60)), RNG.integers(0, 2, 9)) for _ in range(4)]


def plan_of(model: str, helpers: int) -> ps.Plan:
    panel = tuple(Identity.generate(os.urandom).public.hex() for _ in range(1 + helpers))
    promise = made.promise(model, epsilon=2.0)
    return made.plan(SCHEMA, ps.Cohort(4, 3, 100), promise, protocol="split", panel=panel)


def variances(plan: ps.Plan, gone: Any) -> tuple[float, float]:
    """The mean square of the noise in a release and in its unmasked sum, in units of the release's claim."""
    squares = []
    for _ in range(sized(12, 120)):
        parties = ps.session.local_parties(plan, PARTS)
        outcome = loopback.run(parties.server, parties.clients, helpers=parties.helpers, dropouts=gone)
        release = ps.session.release(plan, outcome.total, outcome.survivors, charge="uncharged")
        exact = np.sum([flatten(PARTS[client]) for client in outcome.survivors], axis=0)
        claimed = np.concatenate(
            [np.full(each.size, release.sigma[each.statistic] * each.scale) for each in plan.layout.segments]
        )
        both = (release.vector - exact, outcome.total.lift() - exact)
        squares.append([float(((part / claimed) ** 2).mean()) for part in both])
    released, unmasked = np.mean(squares, axis=0)
    return float(released), float(unmasked)


@pytest.mark.parametrize("gone", [{}, {"report": {3}}], ids=["all", "one is away"])
@pytest.mark.parametrize(
    ("model", "helpers", "held"),
    [("panel", 1, 1 / 2), ("panel", 2, 2 / 3), ("distributed", 2, 1.0), ("central", 1, 0.0)],
)
def test_the_noise_of_several_servers_is_what_the_release_claims(
    model: str, helpers: int, held: float, gone: Any
) -> None:
    """``held`` is the part that is in the sum before the leader adds its own: what helpers, or clients, have added."""
    released, unmasked = variances(plan_of(model, helpers), gone)
    spread = 5 * np.sqrt(2 / (sized(12, 120) * (2 + 2 * 60)))
    assert released == pytest.approx(1.0, abs=spread)
    assert unmasked == pytest.approx(held, abs=spread)


def test_each_member_of_a_panel_adds_the_noise_of_the_promise() -> None:
    """So whoever is honest among them hides a record from all others."""
    for helpers in (1, 2):
        plan = plan_of("panel", helpers)
        release = ps.Release(plan, np.zeros(plan.layout.size, np.int64), (0, 1, 2, 3))
        for letter in plan.noise.sigma:
            assert release.sigma[letter] == pytest.approx(np.sqrt(1 + helpers) * plan.noise.sigma[letter])
        assert ps.dp.joint_mu(SCHEMA, plan.noise.sigma, "add-remove") == pytest.approx(plan.noise.mu, rel=1e-6)
