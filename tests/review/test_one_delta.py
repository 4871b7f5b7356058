"""On a random graph every document states one delta, which includes the exact failure of the masking."""

import json
import os
import re
from fractions import Fraction
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.cli.parts.party_facts import standing
from privstats.contrib.evidence.table import evidence_page
from privstats.course.promise import total_of
from privstats.errors import PlanError
from privstats.heads.provenance import Provenance
from privstats.inference.reporting import Source
from privstats.printable import delta_text
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check, draws_at_least
from privstats.secagg import Parameters
from privstats.secagg.interactive.random_graph import committee_size, largest_min_survivors
from privstats.workflows.report.ethics import ethics_page
from privstats.workflows.report.privacy_report import Statement, page_of
from tests import made
from tests.lengths import sized

_DELTA = re.compile(r"delta(?: =|:)? ([0-9][0-9.e-]*[0-9])")


@st.composite
def plans(draw: st.DrawFn, largest: int = 1_500) -> ps.Plan:
    """Plans on a random graph whose masking's failure is a visible part of a small delta."""
    clients = draw(st.integers(40, largest))
    colluders = draw(st.integers(0, clients // 25))
    graph = draw(st.sampled_from(["robust", "sparse"]))
    most = largest_min_survivors(clients, colluders=colluders, robust=graph == "robust")
    if most is None:
        raise PlanError("no graph has room for disputes")
    min_survivors = most - draw(st.integers(0, clients // 12))
    privacy = made.promise("distributed", delta=draw(st.sampled_from([4e-10, 1e-9, 3e-9, 1e-5 / 3])))
    cohort = ps.Cohort(clients, min_survivors, 100_000, colluders)
    schema = ps.ClassSchema(2, 2, "NA", 1.0)
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy, graph=graph)


def drawn(data: st.DataObject) -> ps.Plan:
    while True:
        try:
            return data.draw(plans())
        except PlanError:  # no graph of these numbers keeps the bounds
            continue


def failure_of(masking: Parameters) -> Fraction:
    """The masking's failure by definition, in integers."""
    n, c, k, t = masking.clients, masking.colluders, masking.neighbours, masking.threshold
    gone, s, q = n - masking.min_survivors, committee_size(n), masking.disputes

    def at_least(total: int, marked: int, count: int, least: int) -> Fraction:
        ways = (comb(marked, x) * comb(total - marked, count - x) for x in range(max(0, least), min(marked, count) + 1))
        return Fraction(sum(ways), comb(total, count))

    arc = Fraction(n)
    for i in range(k // 2):
        arc *= Fraction(max(0, c + gone - i), n - i)
    failure = arc + n * at_least(n - 1, c, k, 2 * t - k)
    if masking.server_may_lie:
        failure += n * at_least(n - 1, c, k // 2, t - q - k // 2)
        failure += at_least(n, c, s, 2 * masking.signatures - s)
    return failure


def stated(text: str) -> set[str]:
    return set(_DELTA.findall(re.sub(r"<[^>]*>", " ", text)))


@settings(max_examples=sized(12, 60), deadline=None)
@given(st.data())
def test_the_budgets_delta_includes_the_exact_failure_of_the_masking(data: st.DataObject) -> None:
    plan = drawn(data)
    exact = failure_of(plan.masking)
    assert exact <= Fraction(plan.masking.failure) <= exact * (1 + Fraction(1, 10**9))
    assert plan.budget().delta == plan.noise.delta + plan.masking.failure == total_of(plan).delta


def documents(plan: ps.Plan, account: ps.dp.Account) -> dict[str, str]:
    """What is printed about one release under the plan, which ``account`` was charged for."""
    survivors = tuple(range(plan.cohort.clients))
    left_for = plan.noise.levels[-1:] * len(survivors)
    release = ps.Release(plan, np.zeros(plan.layout.size, np.int64), survivors, left_for=left_for)
    table = Source(release, 0.05, "")
    statement = Statement(plan, accounts=(account,))
    return {
        "check": str(plan.budget()),
        "report": page_of(statement),
        "evidence": evidence_page(statement),
        "ethics": ethics_page(statement),
        "certificate": check(plan.to_toml(), certificate_text(plan)),
        "ledger": standing(account),
        "release": f"delta {release._repr_html_().partition(', delta of this release alone')[2].partition(', ')[2]}",
        "table's foot": "\n".join(table.foot),
        "table's methods": table.methods("Sums."),
        "head": str(Provenance.of([release])),
    }


@settings(max_examples=sized(5, 30), deadline=None)
@given(st.data())
def test_every_document_states_that_delta(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    plan = drawn(data)
    ledger = made.ledger(tmp_path_factory.mktemp("spent") / "ledger", delta=plan.noise.delta)
    ps.session.Charge(ledger, "ward").spend(plan, b"may")
    account = ledger.account("ward")
    assert account.total_delta == total_of(plan).delta
    one = delta_text(plan.budget().delta)
    for name, page in documents(plan, account).items():
        # A page with the plan's file or the cap of an account states the delta of the noise, too.
        assert stated(page) <= {one, repr(plan.noise.delta), delta_text(plan.noise.delta)}, name
        assert name == "ethics" or one in stated(page), name


def test_a_courses_ledger_states_the_delta_of_all_its_sessions(tmp_path: Path) -> None:
    cohort = ps.Cohort(300, 285, 100_000, 3)
    schema = ps.ClassSchema(3, 6, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
    plan = ps.Plan(schema=schema, cohort=cohort, privacy=made.promise("distributed", delta=4e-10))
    course = ps.Rounds.within(plan, rounds=2)
    keys = [ps.secagg.Identity.generate(os.urandom).public for _ in range(301)]
    roster = ps.secagg.Roster.numbered(keys[1:], server=keys[0], label="hips", counter=0)
    ledger = made.ledger(tmp_path / "ledger", delta=4e-10)
    ps.course.spend(course, ledger, "ward", roster)
    total, account = total_of(course), ledger.account("ward")
    assert total.sessions > 1
    assert account.masking_failure > course.first.masking.failure > 0
    assert stated(standing(account)) == {delta_text(total.delta)} == stated(total.claim)


@given(st.integers(1, 40), st.data())
def test_the_checkers_bound_is_the_hypergeometric(total: int, data: st.DataObject) -> None:
    marked, count = (data.draw(st.integers(0, total)) for _ in range(2))
    least = data.draw(st.integers(-2, count + 2))
    ways = sum(
        comb(marked, x) * comb(total - marked, count - x) for x in range(max(0, least), count + 1) if x <= marked
    )
    assert draws_at_least(total, marked, count, least) == Fraction(ways, comb(total, count))


@pytest.mark.parametrize("change", ["failure", "neighbours", "threshold", "signatures", "absent"])
def test_a_certificate_with_another_masking_is_refused(change: str) -> None:
    cohort = ps.Cohort(300, 285, 100_000, 3)
    plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=cohort, privacy=made.promise("distributed"))
    claims = json.loads(certificate_text(plan))
    if change == "absent":
        del claims["masking"]
    elif change == "failure":
        claims["masking"]["failure"] = str(Fraction(claims["masking"]["failure"]) / 2)
    else:
        claims["masking"][change] -= 2
    with pytest.raises(Refused, match="masking|form"):
        check(plan.to_toml(), json.dumps(claims))
