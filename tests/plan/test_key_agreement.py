"""The plan's ``key_agreement``: left out at ``x25519``, refused where a protocol has no such version, in the digest."""

import dataclasses
from typing import Any

import pytest

import privstats as ps
from privstats.review import facts
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from privstats.secagg.keys import CLASSICAL, HYBRID, KEY_AGREEMENTS
from privstats.secagg.masking_facts import KEY_FACTS, RECORDED
from privstats.secagg.protocols import PROTOCOLS
from privstats.workflows.report import Statement, ethics_page
from tests import made
from tests.plan.devices import devices_plan
from tests.plan.random_plans import PANEL

COHORT = ps.Cohort(6, 5, 500)
SCHEMA = ps.ClassSchema(3, 4, "NA", 2.0)
FIELDS: dict[str, dict[str, Any]] = {"interactive": {}, "split": {"protocol": "split", "panel": PANEL}}


@pytest.fixture(params=FIELDS)
def fields(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Fields of a plan of each protocol, with a version of it for each key agreement."""
    row = PROTOCOLS[request.param]
    if HYBRID not in row.key_agreements:

        class Both:
            @staticmethod
            def solve(*, key_agreement: str = CLASSICAL, **options: Any) -> Any:
                return row.parameters.solve(**options)

        offered: Any = dataclasses.replace(row, parameters=Both, key_agreements=(CLASSICAL, HYBRID))
        monkeypatch.setitem(PROTOCOLS, request.param, offered)  # type: ignore[arg-type]
    return FIELDS[request.param]


def plan_of(fields: dict[str, Any], **changed: Any) -> ps.Plan:
    return made.plan(SCHEMA, COHORT, made.promise(), **fields, **changed)


def test_it_is_in_file_and_digest_only_where_it_is_not_x25519(fields: dict[str, Any]) -> None:
    old, new = plan_of(fields), plan_of(fields, key_agreement=HYBRID)
    assert "key_agreement" not in old.to_toml()
    assert plan_of(fields, key_agreement=CLASSICAL).digest == old.digest != new.digest
    assert ps.Plan.from_toml(new.to_toml()) == new
    spelled_out = new.to_toml().replace(HYBRID, CLASSICAL)
    assert spelled_out != new.to_toml()
    assert ps.Plan.from_toml(spelled_out).digest == old.digest


def test_the_ethics_page_says_what_a_recorder_reads(fields: dict[str, Any]) -> None:
    old, new = (ethics_page(Statement(plan_of(fields, **more))) for more in ({}, {"key_agreement": HYBRID}))
    recorder = "breaks X25519 later, as a large quantum computer would"
    assert recorder in old
    assert recorder not in new
    assert "X25519 and ML-KEM-768 both" in new


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_without_such_a_version_refuses_it_by_name(name: str) -> None:
    for key_agreement in KEY_AGREEMENTS:
        if key_agreement in PROTOCOLS[name].key_agreements:
            made_plan = plan_of(FIELDS[name], key_agreement=key_agreement)
            assert KEY_FACTS[key_agreement] in facts(made_plan)
            verdict = check(made_plan.to_toml(), certificate_text(made_plan))
            assert ("; finding: " in verdict) == (KEY_FACTS[key_agreement] == RECORDED)
        else:
            with pytest.raises(ps.PlanError, match=f"protocol='{name}' has no version with key_agreement='{HYBRID}'"):
                plan_of(FIELDS[name], key_agreement=key_agreement)


def test_the_classical_sentence_is_a_finding_of_every_plan_that_leaves_it_out() -> None:
    assert all(RECORDED in facts(plan_of(fields)) for fields in FIELDS.values())


def test_people_who_answer_on_a_page_may_have_either() -> None:
    """The page brings ML-KEM where the plan says so."""
    old, new = devices_plan(), dataclasses.replace(devices_plan(), key_agreement=HYBRID)
    assert ps.Plan.from_toml(new.to_toml()) == new
    assert new.digest != old.digest
