"""Audits of streams: a correct one keeps its claim whatever its records do; noise that is old or too little is seen."""

from typing import Any

import pytest

import privstats as ps
from privstats.contrib.streams import Stream
from privstats.randomness import seeded
from tests import made
from tests.contrib.streams.streams import careless
from tests.made import refused
from tests.mutation import stream_bugs
from tests.mutation.persons_catalogue import PERSONS_MUTANTS
from tests.mutation.planting import planted
from tests.mutation.stream_catalogue import STREAM_MUTANTS
from threat_models.audits.course import audit_course
from threat_models.audits.epochs import audit_epochs
from threat_models.audits.stream import audit_stream
from threat_models.audits.verdict import Report

SMALL = ps.ClassSchema(2, 2, "NA", 1.0)
PERSONS: dict[str, Any] = {"unit": "person", "max_records_per_person": 3, "person_clip": 2.0}
MECHANISMS = ["increments", "tree", "square-root"]


def stream_of(mechanism: Any, epochs: int = 4, *, deletions: bool = True, **terms: Any) -> Stream:
    plan = made.plan(SMALL, ps.Cohort(3, 2, 500), made.promise(**{"delta": 1e-6, **terms}))
    return Stream(plan, epochs, mechanism, deletions)


def rows(report: Report) -> list[dict[str, Any]]:
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


@pytest.mark.ci
@pytest.mark.parametrize("epochs", [2, pytest.param(8, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_correct_stream_is_not_accused_and_its_price_is_nearly_spent(mechanism: str, epochs: int) -> None:
    """Before, every stream was said to violate its claim, because nothing kept the canary out of later epochs."""
    report = audit_stream(stream_of(mechanism, epochs), seeded(1), asks=2, trials=100)
    assert not report.violated
    found = {row["what"]: row for row in rows(report)}
    assert {"stays", "late", "leaves"} <= set(found)
    assert all(row["refused"] == row["sessions"] > 0 for row in found.values())
    assert 0.99 < max(row["mu moved"] / row["mu claimed"] for row in found.values()) <= 1 + 1e-6
    assert all(0.3 < row["ratio"] <= 1 for row in found.values())


@pytest.mark.ci
@pytest.mark.parametrize(
    "terms",
    [
        pytest.param({"adjacency": "replace-one"}, id="replace-one"),
        pytest.param({**PERSONS}, id="person"),
        pytest.param({**PERSONS, "adjacency": "replace-one"}, id="persons", marks=pytest.mark.nightly),
        pytest.param({**PERSONS, "model": "distributed"}, id="shares of persons", marks=pytest.mark.nightly),
        pytest.param({"model": "distributed", "adjacency": "replace-one"}, id="shares", marks=pytest.mark.nightly),
        pytest.param({"model": "distributed", "unit": "client", "max_records_per_client": 5}, id="client",
            marks=pytest.mark.nightly),
        pytest.param({"model": "local", "epsilon": 8.0}, id="local", marks=pytest.mark.nightly),
    ],
)  # fmt: skip
def test_every_model_unit_and_adjacency_is_audited(terms: dict[str, Any]) -> None:
    report = audit_stream(stream_of("increments", 2, **terms), seeded(2), asks=1, trials=100)
    assert not report.violated
    assert all(0 < row["mu moved"] <= row["mu claimed"] * (1 + 1e-6) for row in rows(report))
    named = {row["what"] for row in rows(report)}
    assert ("replaced in another epoch" in named) == (terms.get("adjacency") == "replace-one")


def test_a_party_that_takes_silence_for_proof_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    careless(monkeypatch)
    report = audit_stream(stream_of("increments", 2, deletions=False), seeded(3), asks=1, trials=100)
    assert report.violated
    assert rows(report)[0]["mu moved"] > 1.4 * rows(report)[0]["mu claimed"]


@pytest.mark.ci
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_person_who_comes_and_goes_nearly_spends_the_price(mechanism: str) -> None:
    report = audit_stream(stream_of(mechanism, 2, **PERSONS), seeded(1), asks=2, trials=100)
    assert not report.violated
    assert 0.99 < max(row["mu moved"] / row["mu claimed"] for row in rows(report)) <= 1 + 1e-6


def test_a_person_whose_rows_all_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with planted(PERSONS_MUTANTS["person clip skipped"].edits):
        assert audit_stream(stream_of("increments", 2, **PERSONS), seeded(3), asks=1, trials=100).violated


def test_a_price_that_forgets_what_deletions_cost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stream, "multiplicity", lambda stream, adjacency: 1.0)
    assert audit_stream(stream_of("increments", 2), seeded(4), asks=1, trials=100).violated


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_noise_of_a_correct_stream_is_whole_and_new_in_every_epoch(mechanism: str) -> None:
    report = audit_epochs(stream_of(mechanism), seeded(5), trials=60)
    assert not report.violated
    assert all(0.9 < row["found"] / row["claimed"] < 1.1 for row in rows(report))


@pytest.mark.parametrize("mutant", [name for name, bug in STREAM_MUTANTS.items() if "square-root" in name])
def test_planted_bugs_of_correlated_noise_are_found(mutant: str) -> None:
    with planted(STREAM_MUTANTS[mutant].edits):
        report = audit_epochs(stream_of("square-root"), seeded(6), trials=100)
    assert report.violated


@pytest.mark.parametrize("mechanism", ["increments", "tree"])
def test_one_noise_for_all_nodes_is_found(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privstats.dp.mechanisms._sample", stream_bugs.first_draw_again())
    assert audit_epochs(stream_of(mechanism), seeded(7), trials=60).violated


def test_streams_without_a_promise_and_other_doors_are_refused() -> None:
    plan = ps.Plan(schema=SMALL, cohort=ps.Cohort(3, 2, 500), privacy=ps.NoPrivacy())
    for audit in (audit_stream, audit_epochs):
        refused(ps.PlanError, "no claim to audit", audit, Stream(plan, 2), seeded(1))
    refused(ps.PlanError, "audit it with audit_stream", audit_course, stream_of("tree"), seeded(1))


@pytest.mark.ci
def test_the_command_audits_a_streams_file(tmp_path: Any, privstats: Any) -> None:
    ps.course.write(tmp_path / "ward.toml", stream_of("tree", 2))
    done = privstats("audit", "course", "ward.toml", "--trials", "100", "--seed", "1", "--json", cwd=tmp_path, code=0)
    assert done.stdout.count('"violated": false') == 2
    assert all(name in done.stdout for name in ('"audit": "stream"', '"audit": "epochs"', '"late"'))
