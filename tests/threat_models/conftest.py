"""Small plans and pools that the attack tests share."""

import numpy as np
import pytest

from privstats import ClassSchema, Cohort, Privacy, RidgeSchema
from privstats.randomness import seeded
from privstats.secagg import Identity
from privstats.secagg.interactive import checks
from tests import made
from threat_models import world
from threat_models.attack import attacks_named
from threat_models.world import Pool

PANEL = {"protocol": "split", "panel": [Identity.generate(seeded(s).bytes).public.hex() for s in range(3)]}


def plan_of(privacy=None, *, statistics="NAS", features=6, classes=2, cohort=None, **more):
    schema = ClassSchema(classes, features, statistics, clip_norm=1.0, grid_bits=12)
    more = {**(PANEL if isinstance(privacy, Privacy) and privacy.trust.drawn_by == "member" else {}), **more}
    return made.plan(schema, cohort or Cohort(4, 3, 200, 1), privacy, **more)


promise = made.promise


def ridge_plan(privacy=None):
    return made.plan(RidgeSchema(4, clip_norm=1.0, target_bound=1.0), Cohort(4, 3, 200, 1), privacy)


def examined(name, plan, trials):
    """Rows of an attack that examines plans."""
    (attack,) = attacks_named([name])
    assert attack.refusal(plan) is None
    return attack.examine(plan, seeded(1), trials=trials, confidence=0.95)


def records(count, features, classes=2, seed=0):
    X = np.random.default_rng(seed).standard_normal((count, features)) / np.sqrt(features) * 0.7
    return X, np.arange(count) % classes


@pytest.fixture
def a_third_of_the_noise(monkeypatch):
    """The weakened double of a release, with a third of its noise."""
    honest = world.session.release

    def weak(plan, total, survivors, rng, **how):
        noisy, exact = honest(plan, total, survivors, rng, **how), total.lift()
        return type(noisy)(plan, exact + (noisy.vector - exact) // 3, survivors)

    monkeypatch.setattr(world.session, "release", weak)


@pytest.fixture
def neighbours_alone(monkeypatch):
    """The weakened double of clients on a random graph: each counts its neighbours among the signers."""

    def quorum(message, graph, index, _):
        checks._check_quorum(len(set(message.signers).intersection(graph.neighbours(index))), graph, "signed")

    monkeypatch.setattr(checks, "check_agreement", quorum)


@pytest.fixture
def pool():
    return Pool.split(*records(160, 6), seeded(0))
