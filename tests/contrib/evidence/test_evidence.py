"""The table for an authority, and the bill of the cryptography behind it."""

import ast
import math
import re
from dataclasses import replace
from pathlib import Path
from statistics import NormalDist

import msgspec
import pytest

import privstats as ps
from privstats.contrib.evidence import cbom, evidence_page
from privstats.contrib.evidence.actors import actors_table, released_limits
from privstats.contrib.evidence.bill_of_materials import algorithms
from privstats.contrib.evidence.table import SIGNERS, TEXTS, evidence
from privstats.printable import at_most
from privstats.secagg.masking_facts import CLASSICAL_UNTIL
from privstats.secagg.protocols import PROTOCOLS
from privstats.workflows.report import Finding, Statement
from privstats.workflows.report.explanations import both_broken
from privstats.workflows.report.sessions import sessions_in
from tests import made
from tests.course.cases import rounds
from tests.plan.devices import devices_plan
from tests.plan.random_plans import PANEL
from tests.schema.samples import PROMISED
from tests.schema.test_contract import plan_of
from tests.workflows.report.conftest import PLAN

BELIEF = "What may a recipient come to believe?"
EXACT = made.plan(PLAN.schema, PLAN.cohort)
ROOT = Path(ps.__file__).parent


def answers(plan: ps.Plan, *findings: Finding) -> dict[str, str]:
    return {row.question: row.answer for row in evidence(Statement(plan, findings=findings))}


@pytest.mark.parametrize("schema", PROMISED, ids=lambda schema: schema.task)
def test_every_kind_answers_every_text_and_leaves_the_same_lines_to_people(schema: ps.schema.Schema) -> None:
    rows = evidence(Statement(plan_of(schema)))
    assert {row.sources[0] for row in rows} == set(TEXTS)
    assert {row.signer for row in rows} == set(SIGNERS)
    assert all(row.proof for row in rows if not row.open)
    assert not [row for row in rows if row.open and row.signer == "software"], "no command fills a line in"
    assert sum(row.open for row in rows) == 16


@pytest.mark.parametrize("plan", [PLAN, EXACT, devices_plan()], ids=["promised", "exact", "devices"])
def test_the_page_says_who_fills_in_and_is_the_same_for_everybody(plan: ps.Plan) -> None:
    page = evidence_page(Statement(plan))
    assert page == evidence_page(Statement(plan))
    assert "16 lines are for people" in page
    assert plan.digest in page


def test_a_course_is_answered_for_as_a_whole() -> None:
    course = rounds()
    told = {row.question: row.answer for row in evidence(Statement(course.first, course=course))}
    assert told["What is revealed about one unit?"].startswith(
        f"All releases of the course together: mu {at_most(course.mu)}"
    )
    assert course.digest[:16] in evidence_page(Statement(course.first, course=course))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_the_belief_is_bayes_rule_on_the_curve_of_the_promise(epsilon: float) -> None:
    plan = replace(PLAN, privacy=made.promise(epsilon=epsilon, model="distributed"))
    mu, count = Statement(plan).guarantee.mu, plan.cohort.max_records
    hits = NormalDist().cdf(mu + NormalDist().inv_cdf(0.01))
    after = (hits / count) / (hits / count + 0.01 * (1 - 1 / count))
    likely = math.exp(plan.budget().epsilon)
    most = likely / count / (likely / count + 1 - 1 / count)
    said = re.fullmatch(r"1 in 1,000 before: at most 1 in ([\d.,]+), but .*, 1 in ([\d.,]+)\.", answers(plan)[BELIEF])
    assert said is not None
    assert [float(text.replace(",", "")) for text in said.groups()] == pytest.approx([1 / most, 1 / after], rel=1e-3)


def test_the_ceiling_of_an_inference_is_of_an_exchange_of_values() -> None:
    """An exchanged record costs at most twice what an added one does, and both tables of the page state one limit."""
    exchanged = replace(PLAN, privacy=made.promise(adjacency="replace-one", model="distributed"))
    for plan, times in ((PLAN, 2), (exchanged, 1)):
        mu, (_, limit) = Statement(plan).guarantee.mu, released_limits(plan)
        assert mu <= limit.mu <= times * mu
        most = NormalDist().cdf(limit.mu / 2)
        (right,) = re.findall(r"at most ([\d.]+) of 100", answers(plan)["Inference"])
        assert most <= float(right) / 100 < most + 1e-3
        reader = next(row for row in actors_table(plan).rows if row[0] == "a reader of the release")
        assert f"at most {right} of 100;" in reader[4]


@pytest.mark.parametrize("plan", [PLAN, EXACT, devices_plan()], ids=["promised", "exact", "devices"])
def test_both_tables_of_the_page_state_one_limit_on_a_value(plan: ps.Plan) -> None:
    reader = next(row for row in actors_table(plan).rows if row[0] == "a reader of the release")
    assert answers(plan)["Inference"].lower().startswith(str(reader[4]).lower())


def test_nothing_bounds_what_is_exact() -> None:
    told = answers(EXACT)
    assert told[BELIEF] == "Anything: nothing bounds it."
    assert all(told[test].startswith("No limit is proved.") for test in ("Singling out", "Linkability", "Inference"))


def test_what_attacks_reached_stands_beside_the_ceiling() -> None:
    tried = Finding(title="T", summary="S.", measured={"membership": "informed, AUC .55"})
    told = answers(PLAN, tried)
    assert told["Linkability"].endswith("Measured: informed, AUC .55.")
    assert told["Inference"].endswith("Not measured (--attack).")


@pytest.mark.parametrize(("protocol", "more"), [("interactive", set()), ("split", {"X-Wing", "SHAKE256"})])
def test_a_recording_is_said_to_stay_closed_by_what_the_bill_lists(protocol: str, more: set[str]) -> None:
    plan = of_protocol(protocol)
    named = replace(plan, key_agreement="mlkem768-x25519")
    for each, of_before in ((plan, True), (named, False)):
        said = answers(each)["Recorded today, opened later?"]
        assert said == f"Yes, {both_broken(each)}"
        assert (CLASSICAL_UNTIL in said) == of_before
    assert {"X25519", "ML-KEM-768"} | more <= {each.name for each in algorithms(plan)}


def of_protocol(protocol: str) -> ps.Plan:
    return PLAN if protocol == "interactive" else replace(PLAN, protocol=protocol, panel=PANEL)


@pytest.mark.ci
@pytest.mark.parametrize("protocol", sorted(PROTOCOLS))
def test_the_bill_is_cyclonedx_and_the_same_for_everybody(protocol: str) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    plan = of_protocol(protocol)
    text = cbom(plan)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert text == cbom(plan)
    bill = msgspec.json.decode(text)
    listed = {each["name"] for each in bill["components"] if each["type"] == "cryptographic-asset"}
    assert listed == {each.name for each in algorithms(plan)}
    assert plan.digest in text


USES = {
    "Ed25519PrivateKey": "Ed25519", "X25519PrivateKey": "X25519", "HKDF": "HKDF-SHA256", "AESGCM": "AES-256-GCM",
    "sha256": "SHA-256", "SHA256": "SHA-256", "scrypt": "scrypt", "Scrypt": "scrypt", "CTR": "AES-256-CTR",
    "CBC": "AES-256-CBC", "Ed25519PublicKey": "Ed25519", "X25519PublicKey": "X25519", "InvalidTag": "AES-256-GCM",
    "InvalidSignature": "Ed25519", "MLKEM768PrivateKey": "ML-KEM-768", "MLKEM768PublicKey": "ML-KEM-768",
    "GCM": "AES-256-GCM", "sha512": "SHA-512", "hpke": "X-Wing", "shake_256": "SHAKE256",
}  # fmt: skip
BESIDE = {
    *("Cipher", "CipherContext", "PKCS7", "serialization", "algorithms", "modes", "UnsupportedAlgorithm"),
    *("AES", "compare_digest", "new", "digest", "HMAC", "hashes", "InvalidKey"),
}
"""Names that choose no algorithm, or one with another that is listed."""


def test_what_a_course_computes_names_the_purpose_of_every_session() -> None:
    """Of a course that begins with counts the row named counts alone, and not the model."""
    course = ps.Binned.within(
        ps.Plan(
            schema=ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(ps.Cells((ps.Numeric("age"),)),)),
            cohort=ps.Cohort(clients=3, min_survivors=3, max_records=10_000),
            privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-6),
        ),
        "rounds",
        expected_records=3_000,
    )
    told = {row.question: row.answer for row in evidence(Statement(course.first, course=course))}
    purposes = {session.plan.schema.purpose for session in sessions_in(course.first, course)}
    assert len(purposes) > 1
    assert [each for each in purposes if each.lower() not in told["What is computed for it?"].lower()] == []


def test_the_page_of_laws_quotes_questions_of_this_table() -> None:
    page = (ROOT.parent / "docs" / "gdpr_and_hipaa.md").read_text("utf-8")
    quoted = set(re.findall(r"\*([A-Z][^*]+\?)\*", page))
    assert len(quoted) >= 4
    assert quoted <= {row.question for row in evidence(Statement(PLAN))}


def test_no_algorithm_of_the_core_is_missing_from_the_bill() -> None:
    """All that ``secagg``, ``files`` and ``randomness`` take from ``cryptography`` and ``hashlib`` is named here."""
    used = set()
    for path in [*(ROOT / "secagg").rglob("*.py"), *(ROOT / "files").rglob("*.py"), ROOT / "randomness.py"]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("cryptography", "hashlib"):
                used |= {alias.name for alias in node.names}
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("hashlib", "modes", "hashes"):
                used.add(node.attr)
    plans = [of_protocol(protocol) for protocol in PROTOCOLS]
    listed = {each.name for plan in plans for each in algorithms(plan)}
    assert used - BESIDE <= set(USES)
    assert {USES[name] for name in used - BESIDE} <= listed
