"""A server that lies wherever it can gets no more of a record than the course promises, and more where marks fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import privstats as ps
from privstats.charging import NodeCharge
from privstats.course import Single
from privstats.dp import gaussian_epsilon
from privstats.errors import PlanError
from privstats.randomness import seeded
from tests.course.cases import HELPERS, RIDGE, SOFTMAX, plan_of, rounds
from threat_models.audits.course import audit_course, joined

CLAIMED = 0.8
EPSILON = gaussian_epsilon(CLAIMED, 1e-5)


def lenient(charge: NodeCharge, plan: ps.Plan, run: bytes) -> Any:
    """The mutant: a party that takes part in a node as often as it is asked."""
    return charge.entry


def row(report: Any) -> dict[str, Any]:
    return dict(zip(report.columns, report.rows[0], strict=True))


@pytest.mark.parametrize(
    ("schema", "terms"),
    [
        (SOFTMAX, {"model": "distributed"}),
        (SOFTMAX, {"model": "local", "adjacency": "replace-one"}),
        (RIDGE, {"model": "central", "adjacency": "replace-one"}),
        (RIDGE, {"model": "distributed"}),
    ],
)
def test_a_canary_over_a_whole_course_ends_at_or_below_the_claim(schema: Any, terms: dict[str, Any]) -> None:
    course = rounds(schema, 2, epsilon=EPSILON, **terms)
    found = row(audit_course(course, seeded(1), asks=3, trials=200))
    assert (found["sessions"], found["refused"]) == (3, 6)
    assert found["mu claimed"] == pytest.approx(CLAIMED, rel=1e-6)
    assert 0.75 * CLAIMED < found["mu moved"] <= found["mu claimed"] * (1 + 1e-9)
    assert 0.4 * CLAIMED < found["mu at least"] <= found["mu claimed"]
    assert found["verdict"] == "no evidence"


@pytest.mark.parametrize(("extra", "moved"), [(1, 1.13), (3, 1.61)])
def test_with_the_mark_disabled_every_extra_session_is_another_release(
    extra: int, moved: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as many extra sessions of every node: sqrt 2 and 2 times the claim."""
    monkeypatch.setattr(NodeCharge, "spend", lenient)
    course = rounds(rounds=2, epsilon=EPSILON, model="distributed")
    report = audit_course(course, seeded(2), asks=1 + extra, trials=250)
    found = row(report)
    assert report.violated
    assert found["sessions"] == 3 * (1 + extra)
    assert found["mu moved"] == pytest.approx(moved, rel=0.02)
    assert CLAIMED < found["mu at least"] < moved * 1.02


def test_retries_that_the_budget_holds_are_inside_the_claim() -> None:
    """The server says that every round failed; it gets the rounds and retries that were paid for, each once."""
    course = rounds(rounds=1, retries=2, epsilon=EPSILON, model="distributed")
    sessions, refused = joined(course, seeded(3), 2)
    assert [each.place for each in sessions] == [0, 1, 2, 3]
    assert refused == 4
    assert 0.9 * CLAIMED < sum(each.square for each in sessions) ** 0.5 <= course.mu


def test_a_course_that_no_single_record_can_be_a_canary_of_is_refused() -> None:
    course = rounds(model="distributed", unit="client", max_records_per_client=9, epsilon=90.0)
    split = rounds(model="distributed", protocol="split", panel=HELPERS)
    for wrong in (course, split, Single(replace(plan_of(), privacy=ps.NoPrivacy()))):
        with pytest.raises(PlanError, match="one record in interactive sessions"):
            audit_course(wrong, seeded(1))


def test_the_command_reads_a_course_file(tmp_path: Any, privstats: Any) -> None:
    ps.course.write(tmp_path / "study.toml", rounds(rounds=1, model="distributed"))
    done = privstats("audit", "course", "study.toml", "--trials", "100", "--seed", "1", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"violated": false' in done.stdout
    assert "sessions" in done.stdout
