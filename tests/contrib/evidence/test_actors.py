"""Each actor's row states what the actor sees, and a limit that follows from the plan's promise."""

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import NormalDist

import pytest

import privstats as ps
from privstats.contrib.evidence import evidence_page
from privstats.contrib.evidence.actors import SHOWN, actors, actors_table
from privstats.course.promise import total_of
from privstats.dp.privacy import MODELS
from privstats.workflows.report import Statement
from tests.course.cases import rounds
from tests.plan.devices import devices_plan
from tests.plan.random_plans import PANEL
from threat_models.attack import attacks

SCHEMA = ps.ClassSchema(3, 4, "NA", clip_norm=1.0)


def planned(model="central", adjacency="add-remove", colluders=1, **options):
    privacy = ps.Privacy(model=model, unit="record", adjacency=adjacency, epsilon=1.0, delta=1e-5)
    return ps.Plan(schema=SCHEMA, cohort=ps.Cohort(6, 5, 100, colluders=colluders), privacy=privacy, **options)


def by_name(plan, course=None):
    return {each.who: each for each in actors(plan, course)}


@pytest.mark.parametrize(("adjacency", "colluders"), [*product(["add-remove", "replace-one"], [0, 1])])
@pytest.mark.parametrize("model", MODELS)
def test_whoever_sees_releases_alone_is_limited_by_the_promise_and_whoever_sees_more_by_none(
    model, adjacency, colluders
):
    panel = {"protocol": "split", "panel": PANEL} if model == "panel" else {}
    plan = planned(model, adjacency, colluders, **panel)
    named = by_name(plan)
    reader = named["a reader of the release"]
    mu = total_of(plan).guarantee.mu
    if adjacency == "add-remove":
        assert reader.presence.mu == mu
        assert mu < reader.value.mu <= 2 * mu
    else:
        assert math.isinf(reader.presence.mu)
        assert reader.value.mu == mu
    operator = named["the leader" if panel else "the server"]
    assert math.isinf(operator.value.mu) == (model == "central")
    own = named["another party"]
    assert own.value.mu == pytest.approx(
        reader.value.mu * (math.sqrt(5 / 4) if model == "distributed" and not colluders else 1)
    )
    beyond = [
        each
        for each in named.values()
        if "more than" in each.who or "together" in each.who or " with a party" in each.who
    ]
    assert beyond
    assert all(math.isinf(each.presence.mu) and math.isinf(each.value.mu) for each in beyond)
    assert named["an observer of the network"].value.mu == 0


def test_without_noise_only_the_observer_is_limited():
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(6, 5, 100), privacy=ps.NoPrivacy())
    limited = [each.who for each in actors(plan) if not math.isinf(each.value.mu)]
    assert limited == ["an observer of the network"]


def test_a_course_is_limited_by_all_its_sessions_together():
    course = rounds()
    reader = by_name(course.first, course)["a reader of the release"]
    assert reader.presence.mu == total_of(course).guarantee.mu > course.first.noise.mu


def test_the_operator_of_a_page_could_read_answers():
    plan = devices_plan()
    named = by_name(plan)
    assert named[plan.devices.registrar].value.mu == 0
    assert any("serves the page" in who and math.isinf(each.value.mu) for who, each in named.items())


def test_the_table_is_on_the_page_for_an_authority():
    plan = planned()
    page = evidence_page(Statement(plan))
    assert "By which means each actor could identify a person" in page
    for who, *_ in actors_table(plan).rows:
        assert who in page
    # Between N(0, 1) and N(mu, 1) the best test has these hits at 1 % false alarms, pairs, and right answers.
    seen, normal = by_name(plan)["a reader of the release"], NormalDist()
    presence, value = seen.presence.mu, seen.value.mu
    shares = (normal.cdf(normal.inv_cdf(0.01) + presence), normal.cdf(presence / math.sqrt(2)), normal.cdf(value / 2))
    reader = next(row for row in actors_table(plan).rows if row[0] == "a reader of the release")
    for cell, share in zip(reader[2:5], shares, strict=True):
        assert f"at most {math.ceil(1000 * share) / 10:g} of 100" in cell


@pytest.mark.ci
def test_each_actor_names_pages_attacks_and_audits_that_exist(privstats, tmp_path):
    pages = {page for each in SHOWN.values() for page in each.pages}
    assert all((Path(__file__).parents[3] / "docs" / page).exists() for page in pages)
    assert {name for each in SHOWN.values() for name in each.attacks} <= {attack.name for attack in attacks()}
    for audit in {name for each in SHOWN.values() for name in each.audits}:
        privstats("audit", audit, "--help", cwd=tmp_path, code=0)
    assert all(row[-1] for row in actors_table(planned()).rows)


def test_participation_is_no_secret_of_a_party_and_a_patient_at_two_parties_has_less():
    plan = planned()
    client = replace(plan, privacy=replace(plan.privacy, unit="client", max_records_per_client=20))
    assert "participation aside" in actors_table(client).header[2]
    person = replace(plan.privacy, unit="person", max_records_per_person=2, person_clip=1.0)
    named = by_name(replace(plan, privacy=person))
    assert "each patient's rows are at one party" in named["a reader of the release"].condition


def test_devices_are_limited_over_all_their_runs():
    plan = devices_plan()
    reader = by_name(plan)["a reader of the release"]
    assert math.isinf(reader.presence.mu)
    assert reader.value == Statement(plan).promise
