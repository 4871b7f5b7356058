"""One device and one honest member against everybody else: the plan holds, and a member without noise is caught."""

from dataclasses import replace

import numpy as np
import pytest

import privstats as ps
from privstats.randomness import seeded
from tests.lengths import sized
from tests.plan.devices import PERSON, devices_plan, sample_devices
from threat_models.audits.devices import audit_devices
from threat_models.audits.target import target_of

FEW = 80
NOISY = devices_plan(privacy=replace(PERSON, epsilon=0.5))
PLANS = {
    "a survey": NOISY,
    "replaced": devices_plan(
        privacy=ps.Privacy(model="panel", unit="record", adjacency="replace-one", epsilon=1.0, delta=1e-6),
        devices=sample_devices(words="per record", stated_epsilon=1.1)),
    "two helpers": devices_plan(panel=tuple(letter * 64 for letter in "abd"),
        devices=sample_devices(organisations=("Ulm", "Bonn", "Bern"), stated_epsilon=1.6)),
    "several answers, clipped": devices_plan(schema=ps.ClassSchema(2, 3, "NAB", 1.0),
        privacy=replace(PERSON, max_records_per_client=3, client_clip=2.0), devices=sample_devices(stated_epsilon=9.0)),
}  # fmt: skip


def column(report, name):
    return [row[report.columns.index(name)] for row in report.rows]


@pytest.mark.ci
@pytest.mark.parametrize("name", PLANS)
def test_no_roster_of_an_adversary_breaks_the_promise(name):
    report = audit_devices(target_of(PLANS[name]), seeded(7), runs=FEW)
    assert not report.violated
    assert column(report, "honest") == ["a helper", "the leader"]
    assert column(report, "runs") == [FEW // 2, FEW // 2]
    assert max(column(report, "mu at least")) <= min(column(report, "mu claimed"))


def test_a_helper_without_noise_is_caught():
    silent = np.zeros(NOISY.layout.size, np.int64)
    report = audit_devices(target_of(NOISY), seeded(7), runs=FEW, draw=lambda _: silent)
    assert report.violated
    assert report.shown[0] == ("honest", "runs", "mu claimed", "mu at least", "eps claimed", "eps at least")
    assert column(report, "verdict") == ["violates", "no evidence"]
    assert column(report, "by one device")[0] > 0.5


def test_a_leader_without_noise_is_caught(monkeypatch):
    monkeypatch.setattr(ps.dp, "draw_member", lambda noise, layout, rng: np.zeros(layout.size, np.int64))
    assert column(audit_devices(target_of(NOISY), seeded(7), runs=FEW), "verdict") == ["violates", "violates"]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["a survey", "replaced"])
def test_thousands_of_runs_stay_below_the_promise_and_half_the_noise_does_not(name):
    target = target_of(PLANS[name])
    report = audit_devices(target, seeded(7), runs=sized(4_000, 10_000), confidence=0.9999)
    assert not report.violated
    assert min(column(report, "mu at least")) > 0.7 * max(column(report, "mu claimed"))
    whole = ps.session.helper_noise(target.plan)
    halved = audit_devices(target, seeded(7), runs=2_000, draw=lambda seed: whole(seed).lift() // 2)
    assert column(halved, "verdict") == ["violates", "no evidence"]


REFUSED = {
    "central noise": (lambda: target_of(devices_plan(privacy=replace(PERSON, model="central"), devices=None)), 400,
        "no member of a panel adds noise under model='central'"),
    "few runs": (lambda: target_of(NOISY), 10, "runs must be at least 80, got 10"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_measure_is_refused(case):
    make, runs, told = REFUSED[case]
    with pytest.raises(ps.PlanError, match=told):
        audit_devices(make(), seeded(7), runs=runs)
