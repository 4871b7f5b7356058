"""A person counts in every round for no more than that round says, so in all of them for no more than the course."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course import Single
from privstats.course.alone import single_party_plan
from privstats.course.base import as_next
from privstats.encoding import flatten
from privstats.errors import DataError, PlanError
from privstats.moments import PersonMoments, exact_moments
from privstats.randomness import seeded
from privstats.workflows import simulate as simulation
from privstats.workflows.report import Statement, ethics_page, page_of
from tests.course.cases import CLIENTS, COHORT, OF_CELLS, RIDGE, C, D, N, plan_of, rounds, table
from tests.course.test_kinds import HAZARDS, OBSERVED, SCORES, ranged_plan
from tests.made import promise, refused
from threat_models.audits.course import invented

pytestmark = pytest.mark.filterwarnings(
    "ignore::privstats.errors.UnreadableRecordsWarning", "ignore::privstats.errors.ClippedWarning"
)
PERSONS: dict[str, Any] = {"unit": "person", "max_records_per_person": 5, "person_clip": 2.0}
NAMES = (
    "softmax", "softmax of more sessions", "module", "ridge", "ridge after a mean", "newton", "standardised", "centred",
    "centred and calibrated", "binned", "binned rounds",
)  # fmt: skip
AVERAGE = {"unit": "person", "person_clip": "average"}
AVERAGED = (*NAMES, "effect", "effect of a trial")


def course_of(name: str, **changes: Any) -> Any:
    """A small course of every kind and variant whose plans can promise persons."""
    terms = AVERAGE | changes if changes.get("person_clip") == "average" else PERSONS | changes
    match name:
        case "softmax":
            return rounds(**terms)
        case "softmax of more sessions":
            return rounds(calibrated=True, retries=1, **terms)
        case "module":
            return rounds(module="adapter/4", **terms)
        case "ridge":
            return rounds(RIDGE, **terms)
        case "ridge after a mean":
            weight = 1.0 if terms["person_clip"] == "average" else terms["person_clip"]
            epsilon = ps.dp.gaussian_epsilon(0.8 * weight, 1e-5)  # few records, each with much noise
            course = rounds(RIDGE, epsilon=epsilon, expected_records=30, **terms)
            assert course.mean is not None
            return course
        case "newton":
            return ps.Newton.start(SCORES, COHORT, promise(epsilon=3.0, **terms), 2)
        case "standardised":
            return ps.Standardised.within(replace(ranged_plan(), cohort=COHORT, privacy=promise(epsilon=4.0, **terms)))
        case "effect" | "effect of a trial":
            known = {} if name == "effect" else {"probability": 0.5}
            ranges: dict[str, Any] = {"treatment": "arm", "outcome": {"relapse": (0, 1)}}
            schema = ps.EffectSchema.of({"age": (20, 90)}, **ranges, **(known or {"trim": 0.1}))
            return ps.Effect.start(schema, COHORT, promise(epsilon=3.0, **terms), retries=1)
        case "centred" | "centred and calibrated":
            return ps.Centred.within(plan_of(**terms), calibrated=name != "centred")
        case _:
            then = "centred" if name == "binned" else "rounds"
            return ps.Binned.within(plan_of(OF_CELLS, **terms), then, expected_records=N, sessions=2)


def records(name: str, n: int, seed: int, length: float = 1.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    if name.startswith("binned"):
        X, y = table(max(n, 10), seed)
        return {column: np.array(values, object)[:n] for column, values in X.items()}, y[:n]
    if name.startswith("effect"):
        return np.column_stack([rng.uniform(0, 99, n), rng.integers(0, 2, n)]), rng.uniform(-1, 2, n)
    columns = {"ridge": D - 1, "newton": SCORES.features - 1, "standardised": 2}.get(name.split()[0], D)
    X = rng.standard_normal((n, columns)) * length
    goal = rng.standard_normal(n) * length if name.split()[0] in ("ridge", "standardised") else None
    return X, rng.integers(0, C if columns == D else 2, n) if goal is None else goal


def some(X: Any, where: Any) -> Any:
    return {name: column[where] for name, column in X.items()} if isinstance(X, dict) else X[where]


def joined(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {name: np.concatenate([one[name], other[name]]) for name in one}
    return np.concatenate([one, other])


def summed(plan: ps.Plan, X: Any, y: Any, ids: Any) -> PersonMoments:
    given: Any = {"published": plan.published, "unreadable": plan.unreadable}
    found = exact_moments(plan.schema, X, y, persons=ids, person_clip=plan.person_clip, **given)
    assert isinstance(found, PersonMoments)
    return found


def asked(course: Any, seed: int) -> Iterator[ps.Plan]:
    """The plans by which a server asks that invents every release, or says that there was none."""
    told: list[ps.Release | None] = []
    rng, chance = seeded(seed), np.random.default_rng(seed)
    plan: ps.Plan | None = course.first
    while plan is not None:
        yield plan
        release: ps.Release | None = invented(plan, rng)
        if release is not None and chance.random() < 0.5:  # sums of no records at all
            vector = np.rint(release.vector * chance.choice([-1.0, 0.0, 1e-3, 3.0], len(release.vector)))
            release = replace(release, vector=vector.astype(np.int64))
        told.append(
            as_next(course, told, release) if release is not None and (not told or chance.random() < 0.8) else None
        )
        plan = course.next(tuple(told))


def steps(plan: ps.Plan, moved: np.ndarray) -> float:
    """The square of a change of the sums over the plan's noise: the square of the mu that it is worth."""
    parts = zip(plan.layout.segments, plan.layout.slices, strict=True)
    return math.fsum(float(((moved[place] / plan.noise.grid_sigma(each)) ** 2).sum()) for each, place in parts)


@pytest.mark.ci
@given(
    name=st.sampled_from(AVERAGED),
    adjacency=st.sampled_from(["add-remove", "replace-one"]),
    sizes=st.tuples(st.integers(0, 40), st.integers(0, 40)),
    clip=st.sampled_from([1.0, math.sqrt(5), 5.0, "average", "average"]),
    length=st.sampled_from([0.01, 1.0, 100.0]),
    alike=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_person_moves_all_rounds_together_by_no_more_than_the_course_promises(
    name: str, adjacency: Any, sizes: tuple[int, int], clip: Any, length: float, alike: bool, seed: int
) -> None:
    """Whatever was published between them: the data are the same but for one person, who is there or is another."""
    course = course_of(name, person_clip=clip if name in NAMES else "average", adjacency=adjacency)
    others, theirs = records(name, 30, seed)
    owners = np.random.default_rng(seed).integers(1, 8, 30)
    worlds = []
    for size, draw in zip(sizes, (1, 2), strict=True):
        X, y = records(name, size, seed ^ draw, length)
        if alike and size:
            X, y = some(X, np.zeros(size, int)), y[np.zeros(size, int)]
        worlds.append((joined(X, others), np.concatenate([y, theirs]), np.concatenate([np.zeros(size, int), owners])))
    if adjacency == "add-remove":
        worlds[1] = (others, theirs, owners)
    moved = [
        steps(plan, flatten(summed(plan, *worlds[0])) - flatten(summed(plan, *worlds[1]))) / plan.noise.mu**2
        for plan in asked(course, seed)
    ]
    assert len(moved) > 1
    assert max(moved) <= 1 + 1e-12
    squares = [plan.noise.mu**2 for plan in asked(course, seed)]
    spent = math.fsum(each * square for each, square in zip(moved, squares, strict=True))
    assert spent <= course.mu**2 * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_person_of_many_rows_takes_all_that_the_course_promises(name: str) -> None:
    """So no round could do with less noise: what is promised for all of them is what one person can take."""
    course = course_of(name)
    X, y = records(name, 1, 5, 100.0)
    X, y = some(X, np.zeros(60, int)), y[np.zeros(60, int)]
    plans = list(asked(course, 9))
    spent = math.fsum(steps(plan, flatten(summed(plan, X, y, np.zeros(60, int)))) for plan in plans)
    assert 0.95 < math.sqrt(spent / math.fsum(plan.noise.mu**2 for plan in plans)) <= 1


SLOW = ("module", "binned rounds", "softmax of more sessions")
SUMMED = [
    *(pytest.param(name, 2.0, marks=[pytest.mark.nightly] * (name in SLOW)) for name in NAMES),
    *(pytest.param(name, "average", marks=[pytest.mark.nightly] * (name in NAMES[1:])) for name in AVERAGED),
]


@pytest.mark.parametrize(("name", "clip"), SUMMED)
def test_every_round_sums_what_one_party_with_all_persons_sums(name: str, clip: Any, monkeypatch: pytest.MonkeyPatch):
    """Bit for bit: ids reach the sums of every round, which are those of the whole data under the round's own plan."""
    course = course_of(name, person_clip=clip)
    X, y = records(name, N // 8, 3, 9.0)
    ids = np.repeat(np.arange(N // 8), 4)  # of each person four rows, all alike
    X, y = some(X, ids), y[ids]
    mine = [np.flatnonzero(ids % CLIENTS == party) for party in range(course.first.cohort.clients)]
    seen: list[tuple[ps.Plan, Any]] = []
    right = simulation.summed
    monkeypatch.setattr(
        simulation, "summed", lambda plan, moments, *more: seen.append((plan, moments)) or right(plan, moments, *more)
    )
    releases = ps.simulate(course, [(some(X, rows), y[rows], ids[rows]) for rows in mine], rng=seeded(1))
    assert all(release is not None for release in releases)
    assert len(seen) == len(releases) > 1
    for plan, parts in seen:
        whole = summed(plan, X, y, ids)
        assert sum(parts[1:], parts[0]) == whole
        assert not np.array_equal(flatten(whole), flatten(summed(plan, X, y, np.arange(len(ids)))))


@pytest.mark.parametrize("clip", [2.0, "average"])
@pytest.mark.parametrize("name", ["centred", "binned", "ridge"])
def test_one_party_alone_sums_its_persons_in_every_round(name, clip, monkeypatch, tmp_path):
    course, ledger = course_of(name, person_clip=clip), ps.dp.Ledger.create(tmp_path / "ledger.db")
    ledger.set_cap("ward", unit="person", adjacency="add-remove", epsilon=9.0, delta=1e-5)
    X, y = records(name, 60, 3, 9.0)
    ids = np.arange(60) // 4
    seen: list[tuple[ps.Plan, Any]] = []
    right = ps.session.contribution
    monkeypatch.setattr(
        ps.session,
        "contribution",
        lambda plan, sums, *more, **how: seen.append((plan, sums)) or right(plan, sums, *more, **how),
    )
    releases = ps.private_releases(course, X, y, persons=ids, ledger=ledger)
    assert ledger.account("ward").mu == pytest.approx(course.mu)
    assert len(releases) == len(seen) == course.most
    assert all(sums == summed(plan, X, y, ids) for plan, sums in seen)


def test_one_party_alone_reads_ids_where_persons_are_promised_and_nowhere_else() -> None:
    X, y = records("softmax", 60, 3)
    schema, promised = ps.ClassSchema(C, D, "NA", 1.0), promise(unit="person", person_clip="average", epsilon=90.0)
    found = ps.private_release(schema, promised, X, y, persons=np.arange(60) // 4, ledger="uncharged")
    assert found.moments.N.sum() == pytest.approx(15, abs=8)  # of 60 rows
    for privacy, ids, words in (
        (promised, None, "give persons=, an id for each row"),
        (promise(), y, "leave persons out"),
    ):
        refused(DataError, words, ps.private_release, schema, privacy, X, y, persons=ids, ledger="uncharged")
        with pytest.raises(DataError, match=words):
            ps.private_releases(Single(single_party_plan(schema, privacy)), X, y, persons=ids, ledger="uncharged")


@pytest.mark.parametrize("name", NAMES)
def test_a_course_is_paid_from_an_account_kept_per_person(name: str, tmp_path: Any) -> None:
    course, ledger = course_of(name), ps.dp.Ledger.create(tmp_path / "ledger.db")
    terms: Any = {"adjacency": "add-remove", "epsilon": 9.0, "delta": 1e-5}
    for unit in ("person", "record", "client"):
        ledger.set_cap(unit, unit=unit, **terms)
    ps.course.spend(course, ledger, "person", b"may")
    assert ledger.account("person").mu == pytest.approx(course.mu, rel=1e-12)
    for unit, words in (("record", "the plan weighs whole persons"), ("client", "is kept per client")):
        refused(ps.errors.LedgerError, words, ps.course.spend, course, ledger, unit, b"may")
        assert ledger.account(unit).mu == 0


@pytest.mark.parametrize("page", [page_of, ethics_page])
def test_officers_read_that_every_session_bounds_a_patient(page: Any) -> None:
    said = "Every session clips the rows of a patient anew"
    course = course_of("softmax")
    assert said in page(Statement(course.first, course=course))
    assert said not in page(Statement(course.first))
    assert said not in page(Statement(rounds().first, course=rounds()))


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda terms: ps.Hazard.start(HAZARDS, **terms, by="arm"), "is a person already, over all periods"),
        (lambda terms: ps.Effect.start(OBSERVED, **terms), "one row a person"),
        (lambda terms: ps.Plan(schema=ps.PartySchema(C, D), **terms), "is not offered for task="),
        (lambda terms: ps.Plan(schema=ps.GaussianSchema(3, 1.0, shrinkage=0.5, rounds=2), **terms), "task='gaussians'"),
    ],
)  # fmt: skip
def test_a_course_that_does_not_bound_a_person_is_refused_by_name(build: Any, words: str) -> None:
    """A person over all periods, independent rows, a direction of a whole party, a covariance of a whole party."""
    refused(PlanError, words, build, {"cohort": COHORT, "privacy": promise(**PERSONS)})
