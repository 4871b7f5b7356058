"""Every document that states a plan's promise states its condition, for each trust model and each graph."""

import html
import io
import json
import math
import re
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.cli.course import _facts, _print_check
from privstats.cli.parts.head_files import HeadFile, facts_of
from privstats.cli.parts.party_facts import _spending, standing
from privstats.cli.parts.verifying import together
from privstats.cli.plan import _of_course
from privstats.contrib.evidence import evidence_page
from privstats.contrib.streams.command import _cost
from privstats.course import Single
from privstats.course.planned import course_html
from privstats.dp.privacy import MODELS
from privstats.heads.provenance import Provenance
from privstats.inference.reporting import Source
from privstats.review import certificate_checker
from privstats.review.certificate import certificate_text
from privstats.secagg.interactive.random_graph import COMMITTEE
from privstats.workflows.rehearsal import promised
from privstats.workflows.report import Statement, ethics_page, page_of
from tests import made
from tests.course.test_base import Listed
from tests.plan.random_plans import PANEL
from threat_models.audits.ledger import audit_ledger

GRAPHS = {
    "complete": {"cohort": ps.Cohort(12, 9, 1000, colluders=1)},
    "no colluders": {"cohort": ps.Cohort(12, 9, 1000)},
    "robust": {"cohort": ps.Cohort(300, 270, 3000, colluders=3)},
    "sparse": {"cohort": ps.Cohort(300, 270, 3000, colluders=3), "graph": "sparse"},
    "small random": {"cohort": ps.Cohort(100, 95, 1000, colluders=1), "graph": "robust"},
    "committee": {"cohort": ps.Cohort(1200, 1100, 3000, colluders=3)},
    "split": {"cohort": ps.Cohort(12, 9, 1000, colluders=1), "protocol": "split", "panel": PANEL},
}
SETTINGS = [
    *((model, "split" if model == "panel" else "complete") for model in (*MODELS, "none")),
    *(("distributed", graph) for graph in GRAPHS if graph != "complete"),
    ("central", "split"),
]
"""Each trust model on one graph, and each graph under one model; the server of a panel is its leader."""


@cache
def plan_of(model: str, graph: str) -> ps.Plan:
    more = dict(GRAPHS[graph])
    privacy = ps.NoPrivacy() if model == "none" else made.promise(model)
    return made.plan(ps.ClassSchema(2, 3, "NA", 1.0), more.pop("cohort"), privacy, **more)


def certified(plan: ps.Plan) -> str:
    return certificate_checker.check(plan.to_toml(), certificate_text(plan))


def twice(plan: ps.Plan) -> Any:
    """A course of two such sessions."""
    return Listed((plan, plan), 2, math.sqrt(2) * plan.budget().mu)


def party(course: Any) -> Any:
    """A party of this course with a ledger that has no account."""
    return SimpleNamespace(
        folder=SimpleNamespace(
            course=course, ledger=SimpleNamespace(accounts=tuple), roster=SimpleNamespace(run=b"a run")
        )
    )


def printed(command: Callable[..., None], *given: Any) -> str:
    with redirect_stdout(io.StringIO()) as said:
        command(*given)
    return said.getvalue()


DOCUMENTS: dict[str, Callable[[ps.Plan], str]] = {
    "budget": lambda plan: str(plan.budget()),
    "plan in a notebook": ps.Plan._repr_html_,
    "report": lambda plan: page_of(Statement(plan)),
    "ethics page": lambda plan: ethics_page(Statement(plan)),
    "evidence": lambda plan: evidence_page(Statement(plan)),
    "certificate": certified,
    "ledger": lambda plan: of_spend(plan, lambda ledger: standing(ledger.account("ward"))),
    "audit of a ledger": lambda plan: of_spend(plan, lambda ledger: str(audit_ledger(ledger))),
    "course check": lambda plan: printed(_print_check, Path("study.toml"), Single(plan), None),
    "course show": lambda plan: json.dumps(_facts(Single(plan), None)),
    "plan check of a course": lambda plan: " ".join(_of_course(plan, (Path("study.toml"), twice(plan)))),
    "a party's facts": lambda plan: str(_spending(party(twice(plan)), "ward")),
    "report of a course": lambda plan: page_of(Statement(plan, course=Single(plan))),
    "ethics page of a course": lambda plan: ethics_page(Statement(plan, course=Single(plan))),
    "evidence of a course": lambda plan: evidence_page(Statement(plan, course=Single(plan))),
    "course in a notebook": lambda plan: course_html(twice(plan)),
    "release": lambda plan: repr(release_of(plan)),
    "release in a notebook": lambda plan: release_of(plan)._repr_html_(),
    "release or head of a course": lambda plan: together(twice(plan)),
    "stream": lambda plan: _cost(twice(plan)),
    "rehearsal": lambda plan: promised(rehearsed(plan)),
    "head": lambda plan: repr(head_of(plan)),
    "head show": lambda plan: json.dumps(facts_of(HeadFile(head_of(plan), "3", False)), default=str),
    "model card": lambda plan: head_of(plan).card(),
    "foot of a table": lambda plan: " ".join(table_of(plan).foot),
    "caption of a table": lambda plan: table_of(plan).summary("A table", (), (), methods="").promise,
    "methods paragraph": lambda plan: table_of(plan).methods("Sums were read."),
}
UNPROMISED = {
    "certificate": "without a promise there is no certificate",
    "release or head of a course": "without a promise there is no sentence on all sessions",
    "rehearsal": "every rehearsal has a promise",
    **dict.fromkeys(("head", "head show", "model card"), "a head without a promise must stay where the records are"),
    **dict.fromkeys(
        ("foot of a table", "caption of a table", "methods paragraph"), "a table of exact sums states no promise"
    ),
}
"""Documents that claim nothing of a plan without a promise, each with the reason."""


def release_of(plan: ps.Plan) -> ps.Release:
    """Sums of zero that all parties of a plan released."""
    return ps.Release(plan, np.zeros(plan.layout.size, np.int64), tuple(range(plan.cohort.clients)))


def rehearsed(plan: ps.Plan) -> Any:
    """Files that were opened for a rehearsal of two such sessions."""
    return SimpleNamespace(privacy=plan.privacy, asked=SimpleNamespace(persons=None), course=twice(plan))


def head_of(plan: ps.Plan) -> Any:
    """A head with the provenance of two such releases."""
    head = ps.heads.LDA().fit(np.eye(3)[[0, 1, 2, 0]], [0, 1, 0, 1])
    head.provenance_ = Provenance.of([release_of(plan)] * 2)
    return head


def table_of(plan: ps.Plan) -> Source:
    """The source of a table that read two such releases."""
    return Source(release_of(plan), 0.05, "independent records", (plan, plan))


def of_spend(plan: ps.Plan, document: Callable[[ps.dp.Ledger], str]) -> str:
    """A document of a ledger that paid for one release of a plan."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = ps.dp.Ledger.create(f"{folder}/ledger.sqlite")
        if isinstance(plan.privacy, ps.Privacy):
            unit, adjacency = plan.privacy.unit, plan.privacy.adjacency
            ledger.set_cap("ward", unit=unit, adjacency=adjacency, epsilon=100.0, delta=1e-5)
        ps.session.Charge(ledger, "ward").spend(plan, b"june")
        return document(ledger)


def told(document: str) -> str:
    text = html.unescape(re.sub(r"<(script|style).*?</\1>", " ", document, flags=re.DOTALL))
    return " ".join(re.sub(r"<[^>]*>", " ", text).split()).lower()


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize(("model", "graph"), SETTINGS)
def test_no_document_states_a_promise_without_its_condition(model: str, graph: str, document: str) -> None:
    if model == "none" and document in UNPROMISED:
        pytest.skip(UNPROMISED[document])
    plan = plan_of(model, graph)
    text = told(DOCUMENTS[document](plan))
    assert plan.masking.condition in text
    if plan.noise and plan.noise.trust.condition:
        assert plan.noise.trust.condition in text or plan.noise.trust.trusted.lower() in text


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("complete", "at most 1 of 12 parties work with the server"),
        ("no colluders", "no party works with the server"),
        ("robust", "at most 3 of 300 parties work with the server, chosen without knowledge of the random graph"),
        (
            "committee",
            "at most 3 of 1200 parties work with the server, chosen without knowledge of the random graph and its "
            "committee",
        ),
        (
            "sparse",
            "the server follows the protocol, dropouts do not depend on the random graph, and at most 3 of 300 parties "
            "work with the server, chosen without",
        ),
        ("split", "leader and helpers do not all work together and at most 1 of 12 parties work with them"),
    ],
)
def test_the_condition_names_who_may_lie_and_work_together(graph: str, words: str) -> None:
    plan = plan_of("distributed", graph)
    assert plan.condition.startswith(words)
    assert f", while {words}" in certified(plan)


@pytest.mark.parametrize("page", ["README.md", "SECURITY.md", "docs/threat_model.md", "docs/between_machines.md"])
def test_every_page_that_states_the_masks_promise_names_the_colluders_condition(page: str) -> None:
    """README stated the random graph's probability without the condition that it holds under."""
    text = told((Path(__file__).parents[2] / page).read_text("utf-8"))
    assert re.search("chosen without knowledge of the (random )?graph", text)
    if page != "docs/between_machines.md":
        assert re.search("dropouts (must|do) not depend on the (random )?graph", text)


def test_the_security_page_names_each_part_of_every_condition() -> None:
    page = told((Path(__file__).parents[2] / "SECURITY.md").read_text("utf-8"))
    said = {
        "chosen without knowledge of the random graph": "chosen without knowledge of the random graph",
        "and its committee": f"and, above {COMMITTEE:,} clients, of its committee",
        "the server follows the protocol": "the server must follow the protocol",
        "dropouts do not depend on the random graph, and": "dropouts must not depend on the random graph",
        "leader and helpers do not all work together and": "leader and helpers must not all work together",
        "at most # of # parties work with the server": "at most `colluders` clients help it",
        "at most # of # parties work with them": "at most `colluders` clients help it",
        "no party works with the server": "at most `colluders` clients help it",
    }
    for graph in GRAPHS:
        condition = re.sub(r"\d+", "#", plan_of("distributed", graph).masking.condition)
        for part in [part for part in said if part in condition]:
            assert said[part] in page, graph
            condition = condition.replace(part, "")
        assert not condition.strip(" ,"), "state here where the page says this part"
