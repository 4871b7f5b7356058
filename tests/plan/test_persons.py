"""A plan that promises persons says so to officers, and whoever cannot keep the promise refuses it by name."""

from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.engines import loopback
from privstats.inference.counts.table import count_table
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import check
from privstats.schema.public_values import Published
from privstats.workflows import report
from privstats.workflows.report import sessions
from tests import made
from tests.made import refused
from tests.plan.devices import sample_devices
from tests.plan.random_plans import PANEL
from tests.schema.samples import SCHEMAS

COHORT = ps.Cohort(20, 15, 5000, 2)
NAMES = tuple(f"member {place}" for place in range(len(PANEL)))
DEVICES = sample_devices(organisations=NAMES)
PERSONS: dict[str, Any] = {"unit": "person", "max_records_per_person": 5, "person_clip": 2.0}
AVERAGED: dict[str, Any] = {"person_clip": "average", "max_records_per_person": None}
CLASSES = ps.ClassSchema(3, 4, "NAB", 1.0)
PROVED, AVERAGES = (
    {schema.task for schema in SCHEMAS if not schema.refuses_persons(averaged=averaged)} for averaged in (False, True)
)


def plan_of(schema: Any = CLASSES, model: str = "central", more: Any = None, **changes: Any) -> ps.Plan:
    published = Published("1" * 64) if schema.needs else None
    promise = made.promise(model, **{**PERSONS, **changes})
    return made.plan(schema, COHORT, promise, published=published, **(more or {}))


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.task)
def test_every_kind_certifies_persons_or_refuses_them_by_name(schema: Any) -> None:
    if schema.task not in PROVED or (schema.task == "classes" and "T" in schema.statistics):
        refused(ps.PlanError, "unit='person' is not offered for task|no sensitivity is proved for T", plan_of, schema)
        return
    for adjacency in ("add-remove", "replace-one"):
        plan = plan_of(schema, adjacency=adjacency)
        said = check(plan.to_toml(), certificate_text(plan))
        assert said.startswith("holds:")
        assert "for one person at one party (at two parties twice the mu), " in said
        assert ps.Plan.from_toml(plan.to_toml()).tables == plan.tables


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda schema: schema.task)
def test_every_kind_certifies_averages_or_refuses_them_by_name(schema: Any) -> None:
    """Effects too, whose intervals average what a person's rows say."""
    letters = "T" if schema.task == "classes" else "O"  # of which no averages are proved
    if schema.task not in AVERAGES or {*letters} & {*schema.statistics}:
        with pytest.raises(ps.PlanError, match="unit='person' is not offered for task|no sensitivity is proved for T"):
            plan_of(schema, **AVERAGED)
        return
    for adjacency in ("add-remove", "replace-one"):
        plan = plan_of(schema, adjacency=adjacency, **AVERAGED)
        assert check(plan.to_toml(), certificate_text(plan)).startswith("holds:")
        assert ps.Plan.from_toml(plan.to_toml()).tables == plan.tables


def test_officers_read_that_a_patient_counts_once() -> None:
    plan = plan_of(**AVERAGED)
    assert "one person with all rows at one party, counted by their average" in plan.budget().promise
    page = report.page_of(report.Statement(plan))
    assert "are averaged first" in page
    assert "all patients weigh the same" in page


@pytest.mark.parametrize("clip", [2.0, "average"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_one_person_at_two_hospitals_moves_the_total_by_up_to_twice_the_bound_of_one(adjacency: Any, clip: Any) -> None:
    """Run: the same five rows at two of three parties, in sessions that end in the masked total."""
    more = AVERAGED if clip == "average" else {"person_clip": clip}
    plan = made.plan(CLASSES, ps.Cohort(3, 3, 500), made.promise(adjacency=adjacency, **{**PERSONS, **more}))
    rng, rows = np.random.default_rng(3), np.tile([1.0, 0.0, 0.0, 0.0], (5, 1))
    others = [(rng.normal(size=(8, 4)) / 4, rng.integers(0, 3, 8)) for _ in range(3)]
    changed = 1 if adjacency == "replace-one" else None

    def total(label: int | None, hospitals: tuple[int, ...]) -> Any:
        parts = []
        for place, (X, y) in enumerate(others):
            own = 5 if label is not None and place in hospitals else 0
            persons = [*(f"{place}-{row % 4}" for row in range(8)), *["anna"] * own]
            rows_here, labels = np.vstack([X, rows[:own]]), [*y, *[label] * own]
            parts.append(ps.measure(CLASSES, rows_here, labels, persons=persons, person_clip=plan.person_clip))
        parties = ps.session.local_parties(plan, parts)
        return loopback.run(parties.server, parties.clients).total.lift().astype(float)

    one, two = (made.worth(plan, total(0, at) - total(changed, at)) for at in ((0,), (0, 2)))
    assert one <= 1 + 1e-9
    assert 1 < two <= 2 + 1e-9
    assert two == pytest.approx(2 * one, rel=1e-3)


def test_a_reader_of_before_refuses_a_key_that_it_does_not_know() -> None:
    """A plan of persons has keys of its own; no other plan has them, so no digest has changed."""
    assert {"max_records_per_person", "person_clip"} <= set(plan_of().tables["privacy"])
    for unit in ({"unit": "record"}, {"unit": "client", "max_records_per_client": 3}):
        kept = made.plan(CLASSES, COHORT, made.promise(**unit)).tables["privacy"]
        assert not {"max_records_per_person", "person_clip"} & set(kept)


def test_officers_read_whom_it_is_made_to_and_where_it_ends() -> None:
    budget = plan_of().budget()
    said = "one person with all rows at one party, weighed as at most 2 rows, add-remove"
    assert budget.promise.startswith(f"central noise, {said}, while the server adds its noise and keeps the exact sum ")
    assert "at two parties, or under two ids, has twice the mu" in budget.conditions[0]
    one = plan_of(max_records_per_person=1, person_clip=1).privacy.unit_words  # also of a patient with seven rows
    assert one == "one person with all rows at one party, weighed as at most 1 row"
    page = report.page_of(report.Statement(plan_of()))
    assert "patients (each with all rows at one party)" in page
    assert "parties at which a patient is" in page
    assert "one factor clips all of them, so that no patient weighs more" in page
    comes = sessions.persons_in_sessions(ps.Stream(plan_of(), 4, deletions=True))
    assert "Later rows are excluded; a patient who leaves is removed with all rows that entered." in comes[0]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: plan_of(more={"protocol": "split", "panel": PANEL, "validity": ps.plan.Validity("moments", 500)})
            .claim, "no statement covers sums of persons"),
        (lambda: plan_of(SCHEMAS[3], "panel", {"protocol": "split", "panel": PANEL, "devices": DEVICES}),
            "so unit='client' covers that person's complete answer: write it with max_records_per_client"),
        (lambda: plan_of(ps.ClassSchema(3, 4, "NAB", 1.0, transform=(ps.transforms.Transport(4, "ab" * 32, 0.4),))),
            "fitted on each client's own records"),
    ],
)  # fmt: skip
def test_what_has_no_proof_for_persons_is_refused_by_name(build: Any, words: str) -> None:
    refused(ps.PlanError, words, build)


def test_no_interval_is_told_of_rows_that_are_not_independent() -> None:
    counts = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
    plan = plan_of(counts)
    sums = ps.measure(counts, {"sex": ["f", "m", "m"]}, persons=[1, 1, 2], person_clip=plan.person_clip)
    release = ps.simulate(plan, [sums] * COHORT.clients)
    refused(ps.ReleaseError, "clips persons with several rows, which are not independent", count_table, release, "sex")


def test_a_ledger_keeps_persons_in_an_account_of_their_own(tmp_path: Any) -> None:
    ledger, plan = ps.dp.Ledger.create(tmp_path / "ledger.sqlite"), plan_of()
    terms = {"adjacency": "add-remove", "epsilon": 3.0, "delta": 1e-5}
    for unit in ("person", "record", "client"):
        ledger.set_cap(unit, unit=unit, **terms)
    ledger.spend("person", schema=plan.schema, privacy=plan.privacy, noise=plan.noise, plan=plan.digest, run=b"one")
    assert next(each for each in ledger.accounts() if each.dataset == "person").mu == pytest.approx(plan.noise.mu)
    for unit, words in {"record": "the plan weighs whole persons", "client": "is kept per client"}.items():
        with pytest.raises(ps.LedgerError, match=words):
            ledger.spend(unit, schema=plan.schema, privacy=plan.privacy, noise=plan.noise, plan=plan.digest, run=b"one")
    record = made.plan(CLASSES, COHORT, made.promise())
    given = {"schema": CLASSES, "privacy": record.privacy, "noise": record.noise, "plan": record.digest}
    refused(ps.LedgerError, "is kept per person", ledger.spend, "person", **given, run=b"two")
