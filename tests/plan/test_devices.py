"""The table ``[devices]``: what it says, every refusal, and what a person is told."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.plan.device_rules import min_stated_epsilon
from privstats.plan.settings import EXACT, PER_RECORD, TRUSTED_REGISTRAR
from privstats.schema.public_values import Published
from tests.plan.devices import COUNTS, PANEL, PERSON, devices_plan, sample_devices
from threat_models.audits.target import target_of

RECORD = ps.Privacy(model="panel", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
EXACT_COHORT = ps.Cohort(20, 10, 20, colluders=1)


def exact_plan(**changes: Any) -> ps.Plan:
    around = {"privacy": ps.NoPrivacy(), "cohort": EXACT_COHORT, "devices": sample_devices(exact=EXACT)}
    return devices_plan(**{**around, **changes})


def test_a_plan_with_devices_survives_its_file_and_a_plan_without_has_its_old_digest():
    plan = devices_plan()
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    without = replace(plan, devices=None)
    assert "devices" not in without.to_toml()
    assert without.digest == "f5a95dac4a67f1981fe60e245a159535f323d59b155a907e96e15a635e4377be"
    assert plan.digest != without.digest


REFUSED = {
    # of the table itself; values out of range are in test_settings.py
    "one organisation": (lambda: sample_devices(organisations=("Ulm",)), "must name at least two, because one could"),
    "two places under one name": (
        lambda: sample_devices(organisations=("Ulm", "ulm ")),
        r"organisations\[1\] is 'ulm ' again: two panel members under one name are one party",
    ),
    "the registrar in the panel": (
        lambda: sample_devices(registrar="BONN"),
        "registrar is 'Bonn', a member of the panel, which would also hold every person's code",
    ),
    "the leader serves the page": (lambda: sample_devices(page="Ulm"), "page is served by 'Ulm', a member of the"),
    "a helper serves the page": (lambda: sample_devices(page="bonn"), "page is served by 'Bonn', a member of the"),
    "the registrar serves the page unsaid": (
        lambda: sample_devices(page="trier"),
        "served by the registrar, which can then read every answer: write devices.page = 'the registrar is trusted",
    ),
    "a key of low order": (lambda: sample_devices(registrar_key="01" + "00" * 31), "devices.registrar_key"),
    # of the plan
    "another type": (lambda: devices_plan(devices={"page": "Kiel"}), "devices must be a Devices or None, got dict"),
    "six messages": (
        lambda: devices_plan(
            protocol="interactive", panel=(), privacy=replace(PERSON, model="local"), cohort=ps.Cohort(20, 15, 20)
        ),
        "one message and are gone, which protocol='interactive' cannot do: choose protocol='split'",
    ),
    "a place without a name": (
        lambda: devices_plan(panel=(*PANEL, "d" * 64)),
        "organisations names 2 and the panel has 3 members: list one name for each",
    ),
    "the registrar's key in the panel": (
        lambda: devices_plan(devices=sample_devices(registrar_key=PANEL[1], stated_epsilon=1.6)),
        "registrar_key is a panel member's key, and that member would also hold every person's code",
    ),
    "distributed noise": (
        lambda: devices_plan(privacy=replace(PERSON, model="distributed")),
        "devices add no noise, because no party can verify a device's noise, or knows how many",
    ),
    "local noise": (lambda: devices_plan(privacy=replace(PERSON, model="local")), "devices add no noise"),
    "central noise unsaid": (
        lambda: devices_plan(privacy=replace(PERSON, model="central")),
        "the leader sees the exact sum of all devices: choose model='panel', or write devices.exact",
    ),
    "no noise unsaid": (
        lambda: exact_plan(devices=sample_devices()),
        "the leader sees the exact sum of all devices: choose model='panel', or write devices.exact",
    ),
    "no code in wrong hands": (
        lambda: exact_plan(cohort=ps.Cohort(20, 10, 20)),
        "colluders must be at least 1 with devices.exact",
    ),
    "exact with noise of the panel": (
        lambda: devices_plan(devices=sample_devices(stated_epsilon=1.6, exact=EXACT)),
        "devices.exact is for plans without panel noise, and this plan has some: omit it",
    ),
    "several records unsaid": (
        lambda: devices_plan(privacy=RECORD),
        "unit='record' promises less to a device that holds several records: choose unit='client'",
    ),
    "per record of a client": (
        lambda: devices_plan(devices=sample_devices(stated_epsilon=1.6, words=PER_RECORD)),
        "devices.words is for unit='record' only: omit it",
    ),
    "no number for a person": (
        lambda: devices_plan(devices=sample_devices()),
        "missing, and 1 run of this plan cost epsilon 1.45[0-9]* if one answer is exchanged: write 1.46",
    ),
    "too small a number for a person": (
        lambda: devices_plan(devices=sample_devices(most_runs=4, stated_epsilon=1.6)),
        "stated_epsilon is 1.6, and 4 runs of this plan cost epsilon 3.[0-9]* if one answer is exchanged: write 3.",
    ),
    "a promise of nothing": (
        lambda: exact_plan(devices=sample_devices(exact=EXACT, stated_epsilon=9.0)),
        "stated_epsilon is a promise, and this plan makes none: omit it",
    ),
    "a round of a course": (
        lambda: devices_plan(
            schema=ps.ScoreSchema(4, 2.0, transform=(ps.transforms.ConstantFeature(1.0),)),
            privacy=RECORD,
            published=Published("1" * 64),
            devices=sample_devices(words=PER_RECORD, stated_epsilon=9.0),
        ),
        "and a round of a course needs the same devices again",
    ),
    "spare bits": (lambda: devices_plan(spare_bits=2), "and a round of a course needs the same devices again"),
    "proofs": (
        lambda: devices_plan(validity=ps.plan.Validity("moments", 1)),
        "validity cannot be combined with devices, because no privacy proof covers",
    ),
}


@pytest.mark.filterwarnings("ignore:validity is experimental")
@pytest.mark.parametrize("case", REFUSED)
def test_what_no_device_can_be_asked_is_refused_in_a_sentence(case):
    make, told = REFUSED[case]
    with pytest.raises(ps.PlanError, match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


@given(name=st.sampled_from(["Ulm", "Bonn"]), data=st.data())
def test_no_spelling_of_a_members_name_serves_the_page_or_invites(name, data):
    """Case, blanks and forms of width do not make another organisation."""
    wide = {ord("U"): "\uff35", ord("B"): "\uff22", ord("n"): "\uff4e"}
    spelt = data.draw(st.sampled_from([name.upper(), name.lower(), f"  {name} ", name.translate(wide)]))
    for role in ("page", "registrar"):
        with pytest.raises(ps.PlanError, match="a member of the panel"):
            sample_devices(**{role: spelt})


def test_a_course_is_refused_and_its_plan_alone_is_not():
    ridge = ps.RidgeSchema(4, clip_norm=1.0, target_bound=1.0)
    privacy = replace(RECORD, epsilon=4.0)
    plan = devices_plan(schema=ridge, privacy=privacy, devices=sample_devices(words=PER_RECORD, stated_epsilon=90.0))
    assert ps.course.Single(plan).first == plan
    with pytest.raises(ps.PlanError, match="a device sends one message and is gone, and a round of a course needs"):
        ps.Rounds.within(plan, expected_records=20)
    with pytest.raises(ps.PlanError, match="a device sends one message and is gone, and a course asks the same ones"):
        ps.Stream(exact_plan(schema=ridge), 2)


@given(st.integers(4, 10**6), st.integers(2, 10**6), st.integers(1, 5 * 10**8), st.integers(0, 10**6))
def test_the_noise_of_a_panel_does_not_follow_from_who_is_on_the_roster(clients, survivors, records, colluders):
    """The last step of the theorem: sigma is sized by one unit, whatever the cohort is."""
    least = min(survivors, clients)
    cohort = ps.Cohort(clients, least, records, min(colluders, least - 2))
    noise = replace(devices_plan(), cohort=cohort).noise
    assert (noise.rows, noise.mu) == (devices_plan().noise.rows, devices_plan().noise.mu)


SCHEMAS = {
    "counts": COUNTS,
    "one variable": ps.CountSchema((ps.Categories("smokes", ("yes", "no")),), (("smokes",),)),
    "a number": ps.CountSchema((), (), numbers=(ps.Number("hours", 0, 80),)),
    "numbers by group": ps.CountSchema(
        COUNTS.variables, COUNTS.tables, numbers=(ps.Number("hours", 0, 80, by=("smokes",)), ps.Number("km", -1, 1))
    ),
    "classes": ps.ClassSchema(2, 3, "NAB", 1.0),
    "nonnegative": ps.ClassSchema(2, 3, "NA", 1.0, nonnegative=True),
    "ridge": ps.RidgeSchema(3, clip_norm=1.0, target_bound=1.0),
}


@pytest.mark.parametrize("kind", SCHEMAS)
@pytest.mark.parametrize("most", [1, 3])
def test_a_person_is_told_at_least_what_one_answer_against_another_costs(kind, most):
    """By sums of answers that were drawn, and the noise of the plan: no two are further apart than a person is told."""
    schema, runs = SCHEMAS[kind], 3
    privacy = replace(PERSON, max_records_per_client=most)
    noise = ps.dp.calibrate(schema, privacy, honest_shares=1, members=2)
    told = min_stated_epsilon(schema, privacy, noise, runs)
    levels = np.concatenate(
        [np.full(each.size, noise.grid_sigma(each)) for each in ps.encoding.layout_of(schema).segments]
    )
    sums = np.array([ps.encoding.flatten(answer_of(schema, most, seed)) / levels for seed in range(60)])
    farthest = max(np.linalg.norm(sums[:, None] - sums[None], axis=2).max(), 1e-9)
    assert ps.dp.gaussian_epsilon(math.sqrt(runs) * farthest, privacy.delta) <= told
    assert told <= ps.dp.gaussian_epsilon(2 * math.sqrt(runs) * noise.mu, privacy.delta) + 1e-9
    assert told > privacy.epsilon


@pytest.mark.parametrize(
    ("schema", "clip"),
    [(SCHEMAS["classes"], None), (SCHEMAS["classes"], 2.0), (COUNTS, 1.5), (SCHEMAS["numbers by group"], 1.5)],
)
def test_the_unit_that_stands_for_a_person_promises_the_whole_answer_of_a_device(schema, clip):
    """What unit='person' is refused with: up to so many rows of one device, and with client_clip any so many."""
    privacy = replace(PERSON, max_records_per_client=5, client_clip=clip)
    plan = devices_plan(schema=schema, privacy=privacy, cohort=ps.Cohort(20, 10, 200), devices=sample_devices(
        stated_epsilon=9.0))  # fmt: skip
    target, reached = target_of(plan), 0.0
    for rows in (1, 3, 5):
        for seed in range(12):
            moved = np.linalg.norm(target.exact(answer_of(schema, rows, seed)) / target.levels())
            reached = max(reached, float(moved / plan.noise.mu))
    assert 0.98 < reached <= 1
    with pytest.raises(ps.DataError, match="more records than privacy.max_records_per_client=5"):
        ps.session.contribution(plan, answer_of(schema, 6, 0))


def answer_of(schema, most, seed):
    """A person's records at the schema's bounds, often opposed to another person's."""
    rng = np.random.default_rng(seed)
    if isinstance(schema, ps.CountSchema):
        rows = {"smokes": ["yes", "no"][seed % 2], "age": [20.0, 50.0, 70.0][seed % 3]}
        rows |= {each.name: [each.low, each.high, each.middle][seed // 2 % 3] for each in schema.numbers or ()}
        return ps.measure(schema, {each.name: [rows[each.name]] * most for each in schema.read})
    x = np.eye(3)[seed % 3] * (1 if schema.nonnegative or seed % 2 else -1) * 4
    X = np.tile(x, (most, 1)) + (0 if seed % 5 else np.abs(rng.normal(size=(most, 3))))
    y = np.full(most, seed % 2) if isinstance(schema, ps.ClassSchema) else np.full(most, (-1.0) ** (seed % 2))
    return ps.measure(schema, X, y)


def test_an_officer_reads_what_devices_mean():
    told = "\n".join(ps.review.facts(devices_plan(devices=sample_devices(most_runs=4, stated_epsilon=3.4))))
    assert "devices of invited people send one message each, to 'Ulm', with 'Bonn' as helper; 'Trier' invites" in told
    assert "'Kiel', which serves the page, could read every answer by serving another script" in told
    assert "the promise rests on one honest member of the panel and on the page, and not on the list of the" in told
    assert "the page tells a person epsilon 3.4 for at most 4 runs, one answer against another" in told
    assert "a sent answer cannot be called back: to honour a withdrawal, give the run up before any helper" in told
    registrar = devices_plan(devices=sample_devices(page=TRUSTED_REGISTRAR, stated_epsilon=1.6))
    assert "the registrar, which serves the page, could read every answer" in "\n".join(ps.review.facts(registrar))
    exact = "\n".join(ps.review.facts(exact_plan()))
    assert "the leader sees the exact sum, and single answers too where more than colluders=1 codes are in" in exact
    assert "and is promised no epsilon" in exact
    record = devices_plan(privacy=RECORD, devices=sample_devices(words=PER_RECORD, stated_epsilon=1.6))
    assert "one answer of each record against another" in "\n".join(ps.review.facts(record))
    assert not any("device" in fact for fact in ps.review.facts(replace(exact_plan(), devices=None)))


def test_a_change_of_devices_is_told():
    plain, plan = replace(devices_plan(), devices=None), devices_plan()
    other = devices_plan(devices=sample_devices(page="Bern", stated_epsilon=1.6))
    more = devices_plan(devices=sample_devices(most_runs=2, stated_epsilon=9.0))
    told = {
        (plain, plan): "devices of invited people send now",
        (plan, plain): "devices of invited people no longer answer",
        (plan, other): "the named organisations change",
        (plan, more): "the page's numbers change",
    }
    for (before, after), words in told.items():
        assert ps.review.difference(before, after).notes[-1].startswith(words)
    assert "device" not in "".join(ps.review.difference(plan, devices_plan(clients=22)).notes)
