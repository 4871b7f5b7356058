"""The sharp attacks find a planted fault in seconds, and nothing in sound software."""

import numpy as np
import pytest

from tests.threat_models.quick_check import SHARP, violations
from threat_models import world
from threat_models.attack import attacks_named

from .conftest import plan_of, promise, ridge_plan

PLANS = {
    "central": plan_of(promise(epsilon=4.0)),
    "distributed": plan_of(promise("distributed", epsilon=4.0)),
    "ridge": ridge_plan(promise(epsilon=4.0)),
    "none": plan_of(),
}


READERS = SHARP[:-1]
"""Those who read releases only: a lying server, which takes most of the time, sees none of these faults."""


@pytest.mark.ci
@pytest.mark.parametrize(
    "name", ["central", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("distributed", "ridge"))]
)
def test_sound_software_violates_nothing(name):
    assert violations(PLANS[name], trials=40, names=READERS) == ()


@pytest.mark.nightly
def test_a_lying_server_gets_nothing_out_of_sound_software():
    """The one attack that has a ceiling where nothing is promised."""
    assert violations(PLANS["none"], trials=30, names=SHARP[-1:]) == ()


@pytest.mark.nightly
def test_a_third_of_the_noise_is_seen_by_those_who_read_releases(a_third_of_the_noise):
    assert {"informed", "float-digits"} <= set(violations(PLANS["central"], trials=80, names=READERS))


@pytest.mark.ci
def test_noise_that_is_left_out_is_seen(monkeypatch):
    honest = world.session.release

    def bare(plan, total, survivors, rng, **how):
        return type(honest(plan, total, survivors, rng, **how))(plan, np.array(total.lift()), survivors)

    monkeypatch.setattr(world.session, "release", bare)
    assert {"informed", "differencing"} <= set(violations(PLANS["central"], trials=80, names=READERS))


def test_the_sharp_attacks_are_attacks():
    assert [attack.name for attack in attacks_named(SHARP)] == list(SHARP)
