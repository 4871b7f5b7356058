"""Records that leave before they enter are in no sum of any kind, and each record decides by itself alone."""

import warnings
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.course.hazard import first_values
from privstats.dp import joint_mu
from privstats.encoding import PersonAverage
from privstats.errors import RecordError, SchemaError
from privstats.kinds import KINDS
from privstats.moments.measurement import noted_moments
from privstats.records.reasons import LATE, LATE_VISIT
from privstats.schema.public_values import Published
from tests import made
from tests.made import refused

EDGES = (0.0, 1.0, 2.0, 3.0, 6.0)
DIED = ps.Categories("died", (0, 1))
MODES = (("discrete", False), ("continuous", False), ("continuous", True))


def counts(times: str, rounded: bool = False, **bins: Any) -> ps.CountSchema:
    clocks = (ps.Bins(name, EDGES, **bins) for name in ("months", "enters"))
    late = ps.LateEntry("enters", "months", times, rounded=rounded)
    return ps.CountSchema((*clocks, DIED), (("months", "died"), ("enters",)), late_entry=late)


def hazards(times: str, rounded: bool = False, **bins: Any) -> ps.HazardSchema:
    return ps.HazardSchema(
        2,
        2.0,
        bins=ps.Bins("months", EDGES, **bins),
        event="died",
        entry="enters",
        feature_names=("arm",),
        transform=(ps.transforms.ConstantFeature(1.0),),
        times=times,
        time_unit=1.0 if rounded else None,
    )


def measured(schema: Any, records: dict[str, Any]) -> tuple[Any, Any]:
    """The sums without records that cannot be read, and those records."""
    values = Published.of(first_values(schema)) if schema.needs else None
    moments, notes = noted_moments(schema, records, published=values, unreadable="leave out")
    return moments, notes.left_out


TIMES = st.one_of(st.integers(0, 8).map(float), st.floats(0.0, 8.0), st.sampled_from([2.0, 2.5, 3.0, 6.0]))
PERSONS = st.lists(st.tuples(TIMES, TIMES, st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=12)


def table_of(persons: list[tuple[float, float, int, int]]) -> dict[str, Any]:
    enters, months, died, arm = map(np.array, zip(*persons, strict=True))
    return {"enters": enters, "months": months, "died": died, "arm": arm}


def is_late(enters: float, months: float, times: str, rounded: bool, closed: str) -> bool:
    """Never at risk, in other words: at visits until the open bin, the exit's is not after the entry's."""
    if times == "continuous":
        return months < enters if rounded else months <= enters
    side: Any = "right" if closed == "left" else "left"
    since, until = (np.searchsorted(EDGES[1:], each, side=side) for each in (enters, months))
    return months <= enters or bool(until <= since < len(EDGES) - 1)


def test_every_kind_that_reads_entries_is_tried_here() -> None:
    names = {"entry", "late_entry"}
    reading = {task for task, kind in KINDS.items() if names & {field.name for field in fields(kind)}}
    assert reading == {"counts", "hazard"}


@pytest.mark.parametrize("closed", ["left", "right"])
@pytest.mark.parametrize(("times", "rounded"), MODES)
@given(persons=PERSONS)
def test_every_kind_excludes_who_is_never_at_risk_and_counts_why(
    times: str, rounded: bool, closed: str, persons: list[Any]
) -> None:
    records, schema = table_of(persons), hazards(times, rounded, closed=closed)
    late = [is_late(enters, months, times, rounded, closed) for enters, months, *_ in persons]
    reason = LATE_VISIT if times == "discrete" else LATE
    for each in (schema, schema.counted("arm"), schema.counted()):
        moments, left_out = measured(each, records)
        assert moments.records == len(persons) - sum(late)
        counted = {why: count for (_, why), count in left_out.why.items() if count}
        assert counted == ({reason: sum(late)} if any(late) else {})


@pytest.mark.parametrize("ends", ["both", "above", "below", "none"])
@pytest.mark.parametrize(("times", "rounded"), MODES)
@given(persons=PERSONS)
def test_what_a_record_adds_follows_from_that_record_alone(
    times: str, rounded: bool, ends: str, persons: list[Any]
) -> None:
    schema = counts(times, rounded, open=ends)
    together, left_out = measured(schema, table_of(persons))
    alone = [measured(schema, table_of([each])) for each in persons]
    np.testing.assert_array_equal(together.T, sum(np.asarray(moments.T) for moments, _ in alone))
    assert left_out.records == sum(each.records for _, each in alone)
    for (moments, _), person in zip(alone, persons, strict=True):
        plain, _ = measured(replace(schema, late_entry=None), table_of([person]))
        assert np.asarray(moments.T).tolist() in (np.asarray(plain.T).tolist(), np.zeros_like(plain.T).tolist())


@given(persons=PERSONS)
def test_persons_of_several_rows_exclude_the_same_rows(persons: list[Any]) -> None:
    schema, records = counts("continuous"), table_of(persons)
    ids = np.arange(len(persons)) % 3
    clip = ps.dp.person_clip(schema, made.promise(unit="person", max_records_per_person=12, person_clip=12.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.errors.UnreadableRecordsWarning)
        of_persons = ps.measure(schema, records, unreadable="leave out", persons=ids, person_clip=clip)
    sums, _ = measured(schema, records)
    np.testing.assert_array_equal(of_persons.wire()["T"], sums.wire()["T"])
    named: Any = {"persons": ids, "person_clip": PersonAverage()}
    assert (
        noted_moments(schema, records, unreadable="leave out", **named)[1].left_out.records
        == len(persons) - sums.records
    )


def test_without_a_promise_such_a_record_is_refused_in_one_sentence() -> None:
    table = table_of([(0.0, 1.0, 1, 0), (2.0, 2.0, 1, 0)])
    words = "entry that is not before the exit, in 'enters'; correct or omit"
    refused(RecordError, words, ps.measure, counts("continuous"), table)
    refused(RecordError, "number visits from 1", ps.measure, counts("discrete"), table)
    assert ps.measure(counts("continuous", rounded=True), table).records == 2


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("times", ["discrete", "continuous"])
def test_the_bound_is_that_of_the_tables_alone(times: str, adjacency: Any) -> None:
    schema = counts(times)
    plain = replace(schema, late_entry=None)
    assert joint_mu(schema, {"T": 1.0}, adjacency) == joint_mu(plain, {"T": 1.0}, adjacency)


def test_a_plan_without_it_keeps_its_digest_and_one_with_it_is_read_from_its_file() -> None:
    schema = counts("continuous", rounded=True)
    plan, plain = (made.plan(each, ps.Cohort(2, 2, 100)) for each in (schema, replace(schema, late_entry=None)))
    assert "late_entry" not in plain.to_toml()
    assert plan.digest != plain.digest
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    assert ps.Plan.from_toml(plan.to_toml()).schema == schema


BINS = tuple(ps.Bins(name, EDGES) for name in ("months", "enters"))
WRONG: list[tuple[Any, str]] = [
    (lambda: ps.LateEntry("", "months", "discrete"), "entry of late_entry must be the name of a variable, got ''"),
    (lambda: ps.LateEntry("months", "months", "discrete"), "names 'months' as entry and as time; name two"),
    (lambda: ps.LateEntry("enters", "months", "monthly"), "times of late_entry must be 'discrete' or 'continuous'"),
    (lambda: ps.LateEntry("enters", "months", "discrete", rounded=True), "rounded of late_entry is for continuous"),
    (lambda: ps.LateEntry("enters", "months", "continuous", rounded=1), "rounded of late_entry must be"),  # type: ignore[arg-type]
    (lambda: replace(counts("continuous"), late_entry=3), "late_entry has entry, time and times"),
    (lambda: replace(counts("continuous"), late_entry={"entry": "enters"}), "late_entry has entry, time and times"),
    (lambda: replace(counts("continuous"), late_entry=ps.LateEntry("died", "months", "discrete")), "must be Bins"),
    (lambda: counts("continuous", missing=True), "must be Bins of the plan, without missing=True"),
    (
        lambda: replace(counts("continuous"), variables=(BINS[0], replace(BINS[1], edges=(0, 3, 6)), DIED)),
        "bins of 'enters' must have the edges of 'months'",
    ),
    (
        lambda: replace(counts("discrete"), variables=(*(replace(each, edges=(0, 3, 6)) for each in BINS), DIED)),
        "'months' has 2 bins, and at discrete times nobody is at risk in the first one: give 3 or more",
    ),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_is_no_late_entry_is_one_clear_sentence(call: Any, words: str) -> None:
    refused(SchemaError, words, call)
