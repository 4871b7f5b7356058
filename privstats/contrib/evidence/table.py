"""One table that an authority can sign: question, answer, where it is proved, who answers for it.

Sources are NIST SP 800-226 (March 2025), ISO/IEC 27559:2022, HIPAA's expert determination (45 CFR 164.514(b)(1)),
Regulation (EU) 2025/327 on the European Health Data Space, tested by Opinion 05/2014 of the Article 29 Working Party,
and for medical devices Regulation (EU) 2024/1689 and the FDA's guidance on predetermined change control plans. Needs
the ``report`` extra (jinja2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from privstats.contrib.evidence.actors import actors_table, inferred, linked, released_limits, singled_out
from privstats.course import Course
from privstats.dp import Guarantee, NoPrivacy
from privstats.extend.courses import Total, total_of
from privstats.extend.support import at_most
from privstats.plan import Plan
from privstats.plan.conditions import of_packages
from privstats.printable import at_least, delta_text
from privstats.workflows.report import Cell, Statement, Table, explanations, render

Signer: TypeAlias = Literal["software", "data holder", "coordinator", "officer", "expert"]

SIGNERS: Mapping[Signer, str] = {
    "software": "no one: the named proof can be repeated",
    "data holder": "each party",
    "coordinator": "who wrote the plan",
    "officer": "the data protection officer",
    "expert": "a statistician, as HIPAA asks for",
}
"""The role that answers for a row."""

TEXTS: Mapping[str, str] = {
    "N": "NIST SP 800-226, by factor",
    "I": "ISO/IEC 27559:2022, by clause",
    "H": "HIPAA, 45 CFR 164.514(b)(1)",
    "E": "Regulation (EU) 2025/327, by article, and by the tests of Opinion 05/2014",
    "A": "Regulation (EU) 2024/1689, by article, where the model becomes a part of a medical device",
    "F": "FDA, predetermined change control plans for AI-enabled device software (December 2024)",
}
"""The texts, by the letter that a row has."""

FILL_IN = "\N{HORIZONTAL ELLIPSIS}" * 4
"""Blank for an answer that only people know."""

_FALSE_ALARMS = 0.01


@dataclass(frozen=True)
class Row:
    """One question, its answer and its proof.

    Attributes:
        sources: letters of :data:`TEXTS`, each with a clause.
        answer: empty where only a person knows it.
        proof: a documentation page, a command, or a file next to this page.
        signer: a key of :data:`SIGNERS`.
    """

    sources: str
    question: str
    answer: str
    proof: str
    signer: Signer

    @property
    def open(self) -> bool:
        """Whether a person has to answer."""
        return not self.answer


def evidence(statement: Statement) -> list[Row]:
    """Return the rows, from the promise to the base that it rests on.

    Args:
        statement: a plan, its course, and measurements by attacks.
    """
    plan, course = statement.plan, statement.course
    guarantee, total = statement.promise, total_of(course or plan)
    measured = {goal: text for finding in statement.findings for goal, text in finding.measured.items()}
    return [
        *_promise(plan, course, total, guarantee),
        *_three_tests(plan, guarantee, released_limits(plan, course)[1], measured),
        *_algorithms(statement),
        *_implementation(plan),
        *_trust(plan),
        *_security(plan),
        *_governance(plan),
        *_permit(statement),
        *_medical_device(course),
    ]


def evidence_page(statement: Statement) -> str:
    """Return the page as one self-contained HTML file, deterministically.

    Example:
        >>> from privstats.contrib.evidence import evidence_page
        >>> from privstats.workflows.report import Statement
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> "Linkability" in evidence_page(Statement(plan))
        True
    """
    rows = evidence(statement)
    header = ("asked by", "question", "answer", "where it is proved", "who signs")
    cells = [
        (each.sources, each.question, each.answer or Cell(FILL_IN, ("to fill in",)), each.proof, each.signer)
        for each in rows
    ]
    return render(
        __package__,
        "evidence.html",
        plan=statement.plan,
        course=statement.course,
        headline=explanations.headline(statement.plan, statement.guarantee),
        shown=Table("evidence", header, cells, words=True),
        actors=actors_table(statement.plan, statement.course),
        open=sum(each.open for each in rows),
        texts=TEXTS,
        signers=SIGNERS,
        violated=statement.violated,
    )


def _promise(plan: Plan, course: Course | None, total: Total, kept: Guarantee) -> Iterator[Row]:
    bound, together = _epsilon(plan, course, total), "Each ledger adds them up, to its cap."
    yield Row("N epsilon; I 8.2.2", "What is revealed about one unit?", bound, "plan certify", "software")
    yield Row("N epsilon", "Why this epsilon, and who chose it?", "", "sweep.md: accuracy beside it", "officer")
    yield Row("H (i)", "What may a recipient come to believe?", _posterior(plan, total, kept), "epsilon.md", "expert")
    yield Row("N unit of privacy; I 7.2.2", "Whom does it hold for?", _unit(plan), "epsilon.md", "software")
    yield Row("N unit of privacy", "How many units has one person, at how many parties?", "", "records", "data holder")
    if plan.noise is None:
        together = "Everything: nothing bounds it."
    yield Row("N epsilon; I 9.3", "What do several releases reveal?", together, "audit ledger", "software")


def _epsilon(plan: Plan, course: Course | None, total: Total) -> str:
    if math.isinf(total.guarantee.mu):
        return "Without bound: the exact total is released."
    releases = "One release" if course is None else "All releases of the course together"
    curve = "Laplace noise, without exception" if plan.noise is not None and plan.noise.pure else "Gaussian noise"
    return (
        f"{releases}: mu {at_most(total.guarantee.mu)}, epsilon {at_most(total.epsilon)} at delta "
        f"{delta_text(total.delta)} ({curve})."
    )


def _posterior(plan: Plan, total: Total, kept: Guarantee) -> str:
    """Return the largest belief in one person's presence, by Bayes' rule, after a prior of 1 in n."""
    if math.isinf(kept.mu):
        return "Anything: nothing bounds it."
    count = plan.cohort.max_records
    hits = kept.tpr(_FALSE_ALARMS)
    after = hits / (hits + (count - 1) * _FALSE_ALARMS)
    likely = math.exp(min(total.epsilon, 700))
    bound = likely / (likely + count - 1)
    before, unless = f"1 in {count:,} before", explanations.unless(total.delta)
    return (
        f"{before}: at most 1 in {at_least(1 / bound, ',.4g')}{unless}; by a test with 1 false alarm and at most "
        f"{explanations.hits(kept):g} hits in 100, 1 in {at_least(1 / after, ',.4g')}."
    )


def _unit(plan: Plan) -> str:
    privacy = plan.privacy
    if isinstance(privacy, NoPrivacy):
        return "Nobody."
    unit = privacy.unit_words
    held = f"{unit[:1].upper()}{unit[1:]}"
    more = {"record": " A person with several records has less.", "person": " At two parties the person has mu twice."}
    return f"{held}, {explanations.CHANGES[privacy.adjacency]}.{more.get(privacy.unit, '')}"


def _three_tests(plan: Plan, kept: Guarantee, exchanged: Guarantee, measured: Mapping[str, str]) -> Iterator[Row]:
    tests = (  # each with the goal of the attacks of ``threat_models`` that try it
        ("Singling out", "reconstruction", singled_out(kept, explanations.whom(plan))),
        ("Linkability", "membership", linked(kept)),
        ("Inference", "inference", inferred(exchanged)),
    )
    for test, goal, limit in tests:
        tried = measured.get(goal)
        beside = f"Measured: {tried}." if tried else "Not measured (--attack)."
        answer = f"{limit[:1].upper()}{limit[1:]}. {beside}"
        yield Row(f"E {test.lower()}; I 8.2.3", test, answer, "attacks.md", "expert")


def _algorithms(statement: Statement) -> Iterator[Row]:
    plan, noise = statement.plan, statement.plan.noise
    letters = _listed(statement, lambda each: ", ".join(row.letter for row in each.schema.sent))
    sigmas = _listed(statement, _deviations)
    brought = " and ".join(statement.by_session(of_packages))
    assumed = f", while {brought}" if brought else ""
    sized = f"noise sized by the {'' if brought else 'proved '}joint sensitivity{assumed}" if noise else "without noise"
    summed = f"{letters}; {sized}."
    yield Row("N algorithms; I 7.3.4", "Which sums, which noise?", summed, "proofs/sensitivity.md", "software")
    yield Row(
        "N algorithms",
        "Does a record decide anything besides its sums?",
        f"Not in the software{assumed}; bounds, classes and columns must be public.",
        "audit sensitivity",
        "data holder",
    )
    yield Row(
        "N accuracy",
        "How wrong are the numbers?",
        "Exact." if noise is None else f"Standard deviations {sigmas}.",
        "plan check",
        "software",
    )
    yield Row("N accuracy", "Which error matters to the use?", "", "sweep, rehearsal", "coordinator")
    rare = " ".join(explanations.suppressed(plan))
    blurred = "No noise is added." if noise is None else "Small groups are blurred as much as large ones."
    yield Row("N bias", "Who is served worse?", f"{blurred} {rare}".strip(), "proofs/noise.md", "software")
    yield Row("N bias; I 6.3.3", "Which groups are small, and what does an error cost them?", "", "", "coordinator")


def _deviations(plan: Plan) -> str:
    return "" if plan.noise is None else ", ".join(f"{row.statistic} {row.sigma:.3g}" for row in plan.noise.rows)


def _listed(statement: Statement, phrase: Callable[[Plan], str]) -> str:
    named = statement.by_session(lambda plan: [phrase(plan)])
    return "; ".join(f"in session {where} {text}" if where else text for text, where in named.items())


def _implementation(plan: Plan) -> Iterator[Row]:
    drawn = "No noise." if plan.noise is None else "Discrete noise on integers; nothing is rounded after it."
    yield Row("N implementation", "Floating point", drawn, "audit noise", "software")
    yield Row(
        "N implementation",
        "Randomness",
        "AES-256-CTR, from the operating system's seed.",
        "proofs/noise.md",
        "software",
    )
    yield Row(
        "N implementation",
        "Side channels",
        "Not protected: time and memory, towards the same machine; refusals.",
        "threat_model.md",
        "data holder",
    )
    yield Row("N implementation", "Which version ran?", "", "identity verify", "coordinator")


def _trust(plan: Plan) -> Iterator[Row]:
    cohort = plan.cohort
    trusted = "M" + explanations.masked(plan)[1:] if plan.noise is None else explanations.rests_on(plan, plan.noise)
    yield Row("N trust model; I 6.2", "Whom must one trust?", f"{trusted}.", "threat_model.md", "software")
    yield Row(
        "N trust model; I 6.2.3",
        "Why would they not work together?",
        "",
        f"at most {cohort.colluders} may",
        "coordinator",
    )


def _security(plan: Plan) -> Iterator[Row]:
    yield Row(
        "N security",
        "Who sees one party's sums?",
        f"No one: {explanations.opened(plan)}.",
        "proofs/masking.md",
        "software",
    )
    yield Row("N security", "Which algorithms?", "Listed in cbom.json.", "wire/interactive.md", "software")
    yield Row(
        "N security",
        "Recorded today, opened later?",
        f"Yes, {explanations.both_broken(plan)}",
        "threat_model.md",
        "software",
    )
    yield Row(
        "N security; I 9.2",
        "Keys and their life",
        "Session keys end with the session, in no backup; signing keys stay with their owner.",
        "wire/interactive.md",
        "software",
    )
    yield Row("N security", "Who holds keys and ledgers, and may start a session?", "", "operating.md", "data holder")


def _governance(plan: Plan) -> Iterator[Row]:
    yield Row("N data collection; I 7.2", "How were records collected, with which consent?", "", "", "data holder")
    yield Row("I 6.3.2", "Who can look this up?", "Anyone with the plan can remake this page.", "report", "software")
    yield Row("H (i); I 6.2.2", "Recipients of the release", "", "contract", "coordinator")
    retention = "As its contract says: it is exact." if plan.noise is None else "Without limit, at no further cost."
    yield Row("I 9.3", "Retention of the release", retention, "ledger.md", "software")
    yield Row("I 9.3", "Retention of records, journals and ledgers", "", "operating.md", "data holder")
    yield Row("I 9.3", "Incidents: who informs whom, within which time?", "", "operating.md", "officer")
    yield Row("H (ii); I 8.3.4", "Methods and results, and when to look again", "", "this page, signed", "expert")


def _permit(statement: Statement) -> Iterator[Row]:
    yield Row("E Art. 53, 68", "Purpose, and the data permit's number and end", "", "data permit", "coordinator")
    purpose = _listed(statement, lambda plan: plan.schema.purpose)
    yield Row("E Art. 66", "What is computed for it?", f"{purpose[:1].upper()}{purpose[1:]}.", "ethics", "software")
    yield Row("E Art. 71", "Were people who opted out excluded before the run?", "", "records", "data holder")
    stays = "With the party that holds them; masked sums leave it."
    yield Row("E Art. 73", "Where do records stay?", stays, "threat_model.md", "software")


def _medical_device(course: Course | None) -> Iterator[Row]:
    yield Row("A Art. 10, 15", "How does the model perform by sex, age and site?", "", "score", "coordinator")
    planned = "One release. Another one is another plan, with another digest."
    if course is not None:
        planned = f"At most {course.most} releases, all in this course. Any other is another plan, with another digest."
    yield Row("A Art. 43(4); F", "Which releases may change the model?", planned, "plan diff", "software")
    yield Row("F", "By which test is a changed model accepted, and when is it withdrawn?", "", "", "coordinator")
