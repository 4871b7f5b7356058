"""The plan's ``key_agreement``: one way, which earlier versions name in files; X25519 alone is refused."""

from typing import Any

import pytest

import privstats as ps
from privstats.review import facts
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from privstats.secagg.masking_facts import RECORDED, UNNAMED
from privstats.secagg.protocols import PROTOCOLS
from privstats.workflows.report import Statement, ethics_page
from tests import made
from tests.plan.devices import devices_plan
from tests.plan.random_plans import PANEL

COHORT = ps.Cohort(6, 5, 500)
SCHEMA = ps.ClassSchema(3, 4, "NA", 2.0)
NAMED = "mlkem768-x25519"
FIELDS: dict[str, dict[str, Any]] = {"interactive": {}, "split": {"protocol": "split", "panel": PANEL}}
REMEDY = (
    'write key_agreement = "mlkem768-x25519" in every party\'s file and renew the roster: the plan then has another '
    "digest, to be approved again. Under X25519 alone, anyone who records all messages and breaks it later reads each "
    "party's sums$"
)
every_protocol = pytest.mark.parametrize("fields", FIELDS.values(), ids=FIELDS)


def plan_of(fields: dict[str, Any], **changed: Any) -> ps.Plan:
    return made.plan(SCHEMA, COHORT, made.promise(), **fields, **changed)


def test_every_protocol_is_here() -> None:
    assert set(FIELDS) == set(PROTOCOLS)


@every_protocol
@pytest.mark.parametrize("value", ["x25519", "X25519", "mlkem1024", ""])
def test_a_plan_that_names_another_way_is_refused_with_what_to_write(fields: dict[str, Any], value: str) -> None:
    with pytest.raises(ps.PlanError, match=f"^key_agreement must be one of {NAMED}, got '{value}'; {REMEDY}"):
        plan_of(fields, key_agreement=value)
    text = plan_of(fields, key_agreement=NAMED).to_toml()
    with pytest.raises(ps.PlanError, match=f"^key_agreement must be one of {NAMED}, got '{value}'; {REMEDY}"):
        ps.Plan.from_toml(text.replace(NAMED, value))


@every_protocol
def test_a_file_that_names_the_one_way_keeps_its_line_and_its_digest(fields: dict[str, Any]) -> None:
    """Earlier versions wrote it, so parties agreed on these digests; a plan that omits it has its own."""
    named, plain = plan_of(fields, key_agreement=NAMED), plan_of(fields)
    assert f'key_agreement = "{NAMED}"' in named.to_toml()
    assert "key_agreement" not in plain.to_toml()
    for plan in (named, plain):
        again = ps.Plan.from_toml(plan.to_toml())
        assert (again, again.digest) == (plan, plan.digest)
    assert named.digest != plain.digest
    assert type(named.masking) is type(plain.masking)
    assert named.masking.upload_bytes == plain.masking.upload_bytes


@every_protocol
def test_every_document_of_a_plan_without_the_line_says_what_earlier_versions_do_under_its_digest(
    fields: dict[str, Any],
) -> None:
    for plan, named in ((plan_of(fields), False), (plan_of(fields, key_agreement=NAMED), True)):
        assert RECORDED in facts(plan)
        assert (UNNAMED in facts(plan)) is not named
        page, verdict = ethics_page(Statement(plan)), check(plan.to_toml(), certificate_text(plan))
        assert "X25519 and ML-KEM-768 both" in page
        assert ("Sessions of versions until 2026-11-30 under this plan" in page) is not named
        assert verdict.startswith(f"holds: plan {plan.digest}, epsilon 1")
        assert verdict.endswith("run a plan without key_agreement under X25519 alone") is not named


def test_people_who_answer_on_a_page_may_have_either_file() -> None:
    named = devices_plan(key_agreement=NAMED)
    assert ps.Plan.from_toml(named.to_toml()) == named
    assert named.digest != devices_plan().digest
