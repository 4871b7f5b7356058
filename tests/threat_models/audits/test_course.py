"""A server that lies wherever it can gets no more of a record than the course promises, and more where marks fail."""

from dataclasses import replace
from typing import Any

import pytest

import privstats as ps
from privstats.course.promise import Promise
from privstats.randomness import seeded
from privstats.session.charges import RoundCharge
from tests.course.cases import HELPERS, RIDGE, SOFTMAX, parties_plan, plan_of, rounds
from tests.lengths import checkered
from threat_models.audits.course import audit_course, joined

CLAIMED = 0.8
EPSILON = ps.dp.gaussian_epsilon(CLAIMED, 1e-5)


def lenient(charge: RoundCharge, plan: ps.Plan, run: bytes) -> Any:
    """The mutant: a party that takes part in a node as often as it is asked."""
    return charge.entry


def row(report: Any) -> dict[str, Any]:
    return dict(zip(report.columns, report.rows[0], strict=True))


@pytest.mark.ci
@pytest.mark.parametrize(
    ("schema", "terms"),
    [
        (SOFTMAX, {"model": "distributed"}),
        (RIDGE, {"model": "central", "adjacency": "replace-one"}),
        pytest.param(SOFTMAX, {"model": "local", "adjacency": "replace-one"}, marks=pytest.mark.nightly),
        pytest.param(RIDGE, {"model": "distributed"}, marks=pytest.mark.nightly),
    ],
)
def test_a_canary_over_a_whole_course_ends_at_or_below_the_claim(schema: Any, terms: dict[str, Any]) -> None:
    found = row(audit_course(rounds(schema, 2, epsilon=EPSILON, **terms), seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (3, 6)
    assert found["mu claimed"] == pytest.approx(CLAIMED, rel=1e-6)
    assert 0.75 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert 0.4 * CLAIMED < found["mu at least"] <= found["mu claimed"]
    assert found["verdict"] == "no evidence"


@pytest.mark.ci
@pytest.mark.parametrize(
    ("then", "terms"),
    [
        ("centred", {"model": "distributed"}),
        ("centred", {"model": "central", "adjacency": "replace-one"}),
        pytest.param("rounds", {"model": "local"}, marks=pytest.mark.nightly),
    ],
)
def test_a_canary_over_cut_points_and_what_follows_ends_at_or_below_the_claim(then: str, terms: dict[str, Any]) -> None:
    """One record's cells are at cuts of the server's choice; in all sessions together it shows no more."""
    cells = ps.Cells((ps.Numeric("age"), ps.Numeric("sodium")))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    course = ps.Binned.within(plan_of(schema, epsilon=EPSILON, **terms), then, expected_records=600)
    found = row(audit_course(course, seeded(1), asks=2, trials=200))
    assert (found["sessions"], found["mu claimed"]) == (course.most, pytest.approx(CLAIMED, rel=1e-6))
    assert 0.75 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert 0.4 * CLAIMED < found["mu at least"] <= found["mu claimed"]


@pytest.mark.ci
def test_a_calibration_is_inside_the_claim() -> None:
    """It is one more session, which the canary is in too."""
    course = rounds(SOFTMAX, 2, epsilon=EPSILON, calibrated=True)
    found = row(audit_course(course, seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (4, 8)
    assert 0.75 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("calibrated", [False, True])
def test_a_mean_first_is_inside_the_claim(calibrated: bool, adjacency: Any) -> None:
    """Whatever mean and sums the server invents, the canary is clipped behind the one and scored by the other."""
    course = ps.Centred.within(plan_of(SOFTMAX, epsilon=EPSILON, adjacency=adjacency), calibrated=calibrated)
    found = row(audit_course(course, seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (2 + calibrated, 4 + 2 * calibrated)
    assert 0.6 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_two_rounds_of_parties_are_inside_the_claim(adjacency: Any) -> None:
    """Whatever sum of directions the server invents."""
    course = ps.PartyRounds.within(parties_plan(epsilon=EPSILON, adjacency=adjacency))
    found = row(audit_course(course, seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (2, 4)
    assert 0.6 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_a_mean_before_the_rounds_is_inside_the_claim(adjacency: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server invents it too, every other time, so that the rounds' map follows from what it says."""
    course = rounds(RIDGE, 2, epsilon=EPSILON, adjacency=adjacency, expected_records=30)
    assert course.mean is not None
    told: list[bool] = []
    right = type(course).next
    monkeypatch.setattr(type(course), "next", lambda self, have: told.append(any(have[1:])) or right(self, have))
    found = row(audit_course(course, seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (4, 8)
    assert 0.6 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert any(told)


PERSONS = {"unit": "person", "max_records_per_person": 5, "person_clip": 2.0}
CELLS = ps.Cells((ps.Numeric("age"), ps.Numeric("sodium")))
OF_PERSONS = {
    "rounds": lambda **terms: rounds(SOFTMAX, 2, **terms),
    "ridge": lambda **terms: rounds(RIDGE, 2, **terms),
    "centred": lambda **terms: ps.Centred.within(plan_of(SOFTMAX, **terms), calibrated=True),
    "binned": lambda **terms: ps.Binned.within(
        plan_of(ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,)), **terms), expected_records=600
    ),
}


@pytest.mark.parametrize(("name", "adjacency"), checkered(list(OF_PERSONS), ["add-remove", "replace-one"]))
def test_a_person_over_a_whole_course_takes_all_of_the_claim_and_no_more(name: str, adjacency: Any) -> None:
    """Of many more rows than count in full, in every round that the server asks for, at values that it invents."""
    course = OF_PERSONS[name](epsilon=EPSILON, adjacency=adjacency, **PERSONS)
    report = audit_course(course, seeded(1), asks=2, trials=200)
    found = row(report)
    assert (found["sessions"], found["refused"]) == (course.most, course.most)
    assert found["mu claimed"] == pytest.approx(CLAIMED, rel=1e-6)
    least = 0.999 if adjacency == "add-remove" else 0.8
    assert least * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert 0.4 * CLAIMED < found["mu at least"] <= found["mu claimed"]
    assert "the canary is one person" in report.notes[1]


def test_a_person_who_is_averaged_takes_what_a_record_takes() -> None:
    course = rounds(SOFTMAX, 2, epsilon=EPSILON, unit="person", person_clip="average")
    found = row(audit_course(course, seeded(1), asks=2, trials=200))
    alike = row(audit_course(rounds(SOFTMAX, 2, epsilon=EPSILON), seeded(1), asks=2, trials=200))
    assert (found["sessions"], found["refused"]) == (3, 3)
    assert found["mu moved"] == pytest.approx(alike["mu moved"], rel=0.01)
    assert 0.75 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)


@pytest.mark.parametrize(("part", "violated"), [(1.0, False), (0.99, True)])
def test_nodes_that_cost_more_than_was_promised_as_a_whole_violate_it(part: float, violated: bool) -> None:
    """What a canary shows of the nodes is within their own promises either way."""
    course = rounds(epsilon=EPSILON)
    report = audit_course(course, seeded(1), promise=Promise(part * EPSILON, 1e-5), asks=1, trials=200)
    assert report.violated is violated
    assert (row(report)["mu promised"] < row(report)["mu claimed"] * (1 - 1e-9)) is violated


@pytest.mark.ci
@pytest.mark.parametrize(("extra", "moved"), [(1, 1.13), pytest.param(3, 1.61, marks=pytest.mark.nightly)])
def test_with_the_mark_disabled_every_extra_session_is_another_release(extra, moved, monkeypatch):
    """With as many extra sessions of every node: sqrt 2 and 2 times the claim."""
    monkeypatch.setattr(RoundCharge, "spend", lenient)
    course = rounds(rounds=2, epsilon=EPSILON, model="distributed")
    report = audit_course(course, seeded(2), asks=1 + extra, trials=250)
    found = row(report)
    assert report.violated
    assert (found["sessions"], found["mu moved"]) == (3 * (1 + extra), pytest.approx(moved, rel=0.02))
    assert CLAIMED < found["mu at least"] < moved * 1.02


def test_retries_that_the_budget_holds_are_inside_the_claim() -> None:
    """The server says that every round failed; it gets the rounds and retries that were paid for, each once."""
    course = rounds(rounds=1, retries=2, epsilon=EPSILON, model="distributed")
    sessions, refused = joined(course, seeded(3), 2)
    assert ([each.place for each in sessions], refused) == ([0, 1, 2, 3], 4)
    assert 0.9 * CLAIMED < sum(each.square for each in sessions) ** 0.5 <= course.mu


CLIENTS = [
    (SOFTMAX, {"max_records_per_client": 6}),
    pytest.param(RIDGE, {"max_records_per_client": 6}, marks=pytest.mark.nightly),
    pytest.param(SOFTMAX, {"max_records_per_client": 40, "client_clip": 3.0}, marks=pytest.mark.nightly),
]


@pytest.mark.ci
@pytest.mark.parametrize(("schema", "terms"), CLIENTS)
def test_a_whole_client_as_the_canary_ends_at_or_below_the_claim(schema: Any, terms: dict[str, Any]) -> None:
    course = rounds(schema, 2, epsilon=EPSILON, model="distributed", unit="client", **terms)
    report = audit_course(course, seeded(1), asks=3, trials=200)
    found = row(report)
    assert (found["sessions"], found["refused"]) == (3, 6)
    assert found["mu claimed"] == pytest.approx(CLAIMED, rel=1e-6)
    assert 0.5 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert 0.25 * CLAIMED < found["mu at least"] <= found["mu claimed"]
    assert "the canary is one client" in report.notes[1]


@pytest.mark.ci
def test_a_client_that_a_plan_does_not_clip_moves_more_than_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: forty records and a clip of three, and nobody clips. The audit sees it in what the canary moves."""
    monkeypatch.setattr("threat_models.audits.target.clip_client", lambda schema, privacy, vector: vector)
    course = rounds(epsilon=EPSILON, model="distributed", unit="client", max_records_per_client=40, client_clip=3.0)
    report = audit_course(course, seeded(1), asks=1, trials=200)
    assert report.violated
    assert row(report)["mu moved"] > 5 * CLAIMED


SPLIT = {"model": "distributed", "protocol": "split", "panel": HELPERS}


@pytest.mark.ci
@pytest.mark.parametrize("terms", [{}, {"unit": "client", "max_records_per_client": 6}], ids=["record", "client"])
def test_helpers_of_the_servers_own_give_it_no_second_upload(terms: dict[str, Any]) -> None:
    """It asks again under another run, with other offers of a panel that is all its own, and says nothing came."""
    found = row(audit_course(rounds(epsilon=EPSILON, **SPLIT, **terms), seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (3, 6)
    assert 0.5 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert found["verdict"] == "no evidence"


@pytest.mark.nightly
@pytest.mark.parametrize(
    "terms",
    [
        pytest.param({}, id="record", marks=pytest.mark.nightly),
        pytest.param({"unit": "client", "max_records_per_client": 6}, id="client"),
    ],
)
def test_with_the_mark_disabled_other_offers_are_another_release(terms, monkeypatch):
    monkeypatch.setattr(RoundCharge, "spend", lenient)
    report = audit_course(rounds(epsilon=EPSILON, **SPLIT, **terms), seeded(2), asks=4, trials=250)
    assert report.violated
    assert (row(report)["sessions"], row(report)["mu moved"]) == (12, pytest.approx(1.6, rel=0.15))


def test_a_course_without_a_promise_is_refused() -> None:
    with pytest.raises(ps.PlanError, match="without DP promises nothing"):
        audit_course(ps.course.Single(replace(plan_of(), privacy=ps.NoPrivacy())), seeded(1))


def test_the_command_reads_a_course_file(tmp_path: Any, privstats: Any) -> None:
    ps.course.write(tmp_path / "study.toml", rounds(rounds=1, model="distributed"))
    done = privstats("audit", "course", "study.toml", "--trials", "100", "--seed", "1", "--json", cwd=tmp_path, code=0)
    assert '"violated": false' in done.stdout
    assert "sessions" in done.stdout
