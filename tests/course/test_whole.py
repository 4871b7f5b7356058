"""Whatever speaks of the promise of a course states that of all its sessions; what is of one session says so."""

import html
import json
import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.party_facts import _spending
from privstats.contrib.evidence import cbom, evidence_page
from privstats.contrib.evidence.table import evidence
from privstats.course import DisjointRounds, Single, spend, write
from privstats.course.promise import total_of
from privstats.heads.provenance import Provenance
from privstats.printable import at_most
from privstats.workflows.report import Finding, Statement, ethics_page, explanations, page_of
from tests import made
from tests.course.announced_samples import Samples
from tests.course.cases import COHORT, OF_CELLS, plan_of
from tests.course.test_kinds import ANNOUNCED, SAMPLES
from tests.without import present

COURSES = Samples({**SAMPLES, **{name: sample.private for name, sample in ANNOUNCED.items() if sample.private}})
"""Of every kind one with a promise."""
SEVERAL = [name for name, course in COURSES.items() if course.most > 1]
OF_ONE = ("session", "alone", "each of", "round")
"""Words that say of a number that it is of one session."""
PAGES = {"report.html": page_of, "ethics.html": ethics_page} | present({"evidence.html": evidence_page})


def lines(page: str) -> Iterator[str]:
    """Sentences and cells of a page, every cell with its row's name and its column's heading; files are left out."""
    page = re.sub(r"<(svg|style|pre)\b.*?</\1>", " ", page.partition("<body>")[2] or page, flags=re.S)
    for table in re.findall(r"<table.*?</table>", page, re.S):
        header, *rows = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in table.split("<tr>")[1:])
        for row in rows:
            yield from (f"{head} {row[0]} {cell}" for head, cell in zip(header, row, strict=True))
    page = re.sub(r"<table.*?</table>", " ", page, flags=re.S)
    yield from re.split(r"</?(?:p|li|h\d|dt|dd|div)\b", page)


def said(page: str) -> list[str]:
    return [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", line)).split()) for line in lines(page)]


def released(plan: ps.Plan) -> ps.Release:
    return ps.Release(plan, np.zeros(plan.layout.size, np.int64), tuple(range(plan.cohort.clients)))


def outputs(course: Any, privstats: Any, folder: Path) -> dict[str, list[str]]:
    """What each page, file and command says, line by line."""
    first = course.first
    release = released(first)
    release.save(folder / "first.release")
    write(folder / "study.toml", course)
    unit, adjacency = first.privacy.unit, first.privacy.adjacency
    ledger = made.ledger(folder / "l.db", epsilon=50.0, unit=unit, adjacency=adjacency, delta=first.privacy.delta)
    spend(course, ledger, "ward", b"may", sums_only=isinstance(course, DisjointRounds))
    finding = Finding(title="An audit", summary="Nothing was found.")
    statement = Statement(first, course=course, release=release, accounts=ledger.accounts(), findings=[finding])
    standing = SimpleNamespace(account="ward", begun=0, inside=0, gone=0, entering=0, leaving=0)
    roster = SimpleNamespace(run=b"may")
    home = SimpleNamespace(course=course, ledger=ledger, standing=standing, roster=roster)
    party: Any = SimpleNamespace(folder=home)
    commands = [("course", "check", "study.toml"), ("release", "show", "first.release", "--plan", "study.toml")]
    shown = json.loads(privstats("course", "show", "study.toml", cwd=folder).stdout)
    return {
        "course show": [json.dumps({name: shown[name] for name in shown.keys() - {"nodes", "digest", "first"}})],
        **{name: said(page(statement)) for name, page in PAGES.items()},
        "notebook": said(course._repr_html_()),
        "a party's facts": [str(_spending(party, "ward"))],
        **{" ".join(words): privstats(*words, cwd=folder).stdout.splitlines() for words in commands},
    }


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("name", SEVERAL)
def test_every_output_states_promise_and_bytes_of_the_whole_course(name: str, privstats: Any, tmp_path: Path) -> None:
    """Pages said "1.8 times as likely (epsilon 0.5899)" of a course that promises epsilon 3, and "sends 1,598 bytes" of
    one whose parties send 21,376.
    """
    course = COURSES[name]
    told_in = outputs(course, privstats, tmp_path)
    states_the_promise(course, told_in)
    states_the_bytes(course, told_in)


def states_the_promise(course: Any, told_in: dict[str, list[str]]) -> None:
    whole, part = total_of(course), course.first.budget().epsilon
    own, all_of_it = at_most(part), at_most(whole.epsilon)
    assert own != all_of_it
    found = explanations.hits(course.first.noise.guarantee)
    for output, told in told_in.items():
        text = " ".join(told)
        assert all_of_it in text or json.dumps(whole.epsilon) in text, output
        assert course.first.masking.condition.lower() in " ".join(text.lower().split()), output
        for line in told:
            if re.search(rf"(?<![\d.]){re.escape(own)}(?!\.?\d)", line) and "epsilon" in line.lower():
                assert any(word in line for word in OF_ONE), (output, line)
            assert f"{math.exp(part):.3g} times" not in line, (output, line)
            assert f"at most {found:g} of 100" not in line.lower(), (output, line)
    page = page_of(Statement(course.first, course=course))
    assert f"{at_most(math.exp(whole.epsilon), '.3g')} times as likely" in " ".join(said(page))


def states_the_bytes(course: Any, told_in: dict[str, list[str]]) -> None:
    total, first = total_of(course), course.first.masking.upload_bytes
    assert total.upload_bytes > first
    for output in ("report.html", "ethics.html", "notebook", "course check study.toml", "course show"):
        text = " ".join(told_in[output])
        assert f"{total.upload_bytes:,}" in text or f'"upload_bytes": {total.upload_bytes}' in text, output
    for output, lines in told_in.items():
        for line in lines:
            if re.search(rf"(?<![\d,.]){first:,} bytes|^bytes\b.* {first:,}$", line):
                assert any(word in line for word in OF_ONE), (output, line)


@pytest.mark.parametrize("name", SEVERAL)
def test_an_authority_reads_sums_and_noise_of_every_session(name: str) -> None:
    """The row of algorithms had the sums and the noise of the first session alone."""
    course = COURSES[name]
    rows = {row.question: row.answer for row in evidence(Statement(course.first, course=course))}
    for plan in course.priced:
        assert ", ".join(row.letter for row in plan.schema.sent) in rows["Which sums, which noise?"]
        for row in plan.noise.rows:
            assert f"{row.statistic} {row.sigma:.3g}" in rows["How wrong are the numbers?"]
    assert json.loads(cbom(course.first, course))["metadata"]["component"]["properties"][0]["value"] == course.digest


@pytest.mark.parametrize("name", COURSES)
@pytest.mark.parametrize("page", [page_of, ethics_page])
def test_a_page_says_once_what_a_record_is_and_names_the_outcome(name: str, page: Any) -> None:
    course = COURSES[name]
    text = " ".join(said(page(Statement(course.first, course=course))))
    assert text.count("A record is") == 1
    assert [plan.schema.record for plan in course.priced if plan.schema.record not in text] == []
    assert ("the outcome relapse from 0 to 1" in text) == (name == "effect")
    assert ("whether died happened" in text) == (name == "hazard")


@pytest.mark.parametrize("make", PAGES.values())
def test_no_page_is_made_of_a_plan_that_never_runs(make: Any) -> None:
    """One of open cut points could be signed: one session with another noise than that of every session that runs."""
    plan = plan_of(OF_CELLS)
    with pytest.raises(ps.PlanError, match="the cut points of age, sodium are open, so this plan never runs alone"):
        make(Statement(plan))
    course = SAMPLES["binned"]
    assert course.digest[:16] in make(Statement(course.first, course=course))


def test_a_check_of_a_plan_names_the_course_that_is_made_of_it(privstats: Any, tmp_path: Path) -> None:
    """It printed a digest that parties could sign, and never that of what runs."""
    for name in ("binned", "stream", "rounds"):
        course = COURSES[name]
        write(tmp_path / f"{name}.toml", course)
        innermost = max(tmp_path.glob(f"{name}.*.toml"), key=lambda path: len(path.name)).name
        told = privstats("plan", "check", innermost, cwd=tmp_path).stdout
        assert f"digest of the course in {name}.toml, built from this plan: {course.digest}" in told
        assert f"all its {course.most} sessions together: epsilon {at_most(total_of(course).epsilon)}" in told
        assert (
            json.loads(privstats("plan", "check", innermost, "--json", cwd=tmp_path).stdout)["course"] == course.digest
        )
    (tmp_path / "alone.toml").write_text(plan_of(OF_CELLS).to_toml())
    told = privstats("plan", "check", "alone.toml", cwd=tmp_path).stdout
    assert "this plan never runs alone: sign the digest of its course" in told
    assert json.loads(privstats("plan", "check", "alone.toml", "--json", cwd=tmp_path).stdout)["course"] is None


def test_a_finding_about_the_first_plan_says_so_and_one_about_a_model_does_not() -> None:
    """Audits and attacks take a plan, and what they hold it against is a part of what the course promises."""
    course = COURSES["rounds"]
    for whole in (False, True):
        finding = Finding(title="An audit", summary="Nothing was found.", whole=whole)
        text = " ".join(said(page_of(Statement(course.first, course=course, findings=[finding]))))
        assert ("An audit, of the first session" in text) != whole
        assert ("This covers the first session alone and its part of the promise, epsilon 1.376" in text) != whole
        assert "first session" not in " ".join(said(page_of(Statement(course.first, findings=[finding]))))


@pytest.mark.parametrize("name", SEVERAL)
def test_a_model_of_all_sessions_states_what_they_promise_together(name: str) -> None:
    course = COURSES[name]
    plans = [course.first] * course.most if isinstance(course, DisjointRounds) else course.priced
    if isinstance(course, DisjointRounds):
        pytest.skip("a total of a stream names no single release")
    promise = Provenance.of([released(plan) for plan in plans])
    assert f"epsilon {at_most(total_of(course).epsilon, '.6g')} at" in str(promise)


def test_a_plan_alone_keeps_its_own_numbers() -> None:
    for plan in (SAMPLES["single"].first, made.plan(ps.ClassSchema(2, 2, "NA", 1.0), COHORT, made.promise(delta=0.0))):
        whole, budget = total_of(plan), plan.budget()
        assert whole == total_of(Single(plan))
        assert (whole.epsilon, whole.delta, whole.guarantee) == (budget.epsilon, budget.delta, plan.noise.guarantee)
    bare = made.plan(ps.ClassSchema(2, 2, "NA", 1.0), COHORT)
    assert total_of(ps.Stream(bare, 4)).guarantee == ps.dp.Guarantee(math.inf)
    assert math.isinf(total_of(bare).epsilon)


def test_masks_of_every_session_can_fail() -> None:
    """The ethics page and the command counted one session's masks for a whole stream, and epsilon at a larger delta."""
    plan = replace(SAMPLES["stream"].plan, cohort=ps.Cohort(2_000, 1_500, 20_000), graph="sparse")
    stream = ps.Stream(plan, 4, "tree")
    failure = stream.first.masking.failure
    assert failure > 0
    whole = total_of(stream)
    assert whole.delta == plan.privacy.delta + stream.most * failure
    assert whole.epsilon == stream.epsilon(plan.privacy.delta)


@pytest.mark.parametrize("page", [page_of, ethics_page])
def test_an_officer_sees_the_name_of_every_column(page: Any) -> None:
    """Both pages ended in "and 1 more", and of a course they named the columns of its first session."""
    names = tuple(f"column {place}" for place in range(12))
    schema = ps.ClassSchema(2, 12, "NAB", 1.0, feature_names=names, class_names=tuple("ab"))
    plan = made.plan(schema, COHORT, made.promise("central", epsilon=3.0))
    course = ps.Centred.within(plan)
    for statement in (Statement(plan), Statement(course.first, course=course)):
        text = " ".join(said(page(statement)))
        assert [name for name in names if name not in text] == []
    binned = SAMPLES["binned"]
    text = " ".join(said(page(Statement(binned.first, course=binned))))
    assert "the columns age, sodium, ill, ward of a table and one of 2 classes" in text
