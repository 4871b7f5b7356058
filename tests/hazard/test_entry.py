"""Late entry in hazards: near Cox's model with entry, the same bounds wherever persons enter, and clear refusals."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.duration.hazard_regression import PHReg

import privstats as ps
from benchmarks.inference import late_entry as bench
from privstats import course as courses
from privstats import inference as inf
from privstats import session
from privstats.dp import joint_mu
from privstats.errors import RecordError, ReleaseError, SchemaError
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.schema.public_values import Published, Values
from privstats.transforms import ConstantFeature
from tests import made
from tests.made import refused
from threat_models.audits.hazard_worlds import audit_hazard_intervals
from threat_models.audits.hazards import worst_trajectories

SCHEMA = ps.HazardSchema(
    3,
    3**0.5,
    bins=ps.Bins("months", (0, 4, 8, 12, 16, 20, 24)),
    event="died",
    feature_names=("arm", "age"),
    transform=(ConstantFeature(1.0),),
    times="continuous",
    entry="enters",
)


PERSONS = 8_000
"""Of the module's table: Cox's likelihood with entry takes a second for these."""


def persons(n: int, seed: int = 0) -> dict[str, Any]:
    return bench._entering(n, np.random.default_rng(seed))


def played(course: ps.Hazard, table: dict[str, Any], seed: int = 0) -> list[ps.Release | None]:
    rng = seeded(seed)

    def release(node: courses.Round) -> ps.Release:
        parts = [{name: column[k::2] for name, column in table.items()} for k in (0, 1)]
        how: Any = {"published": node.plan.published, "unreadable": node.plan.unreadable}
        moments = [exact_moments(node.plan.schema, part, **how) for part in parts]
        return session.aggregate_unmasked(node.plan, moments, rng)

    return courses.run(course, release)


@pytest.fixture(scope="module")
def table() -> inf.HazardRatios:
    course = ps.Hazard.start(SCHEMA, ps.Cohort(2, 2, 2 * PERSONS), made.promise(epsilon=60.0), by="arm", rounds=6)
    return inf.hazards(played(course, persons(PERSONS)))


def test_ratios_are_near_coxs_with_entry(table: inf.HazardRatios) -> None:
    records = persons(PERSONS)
    end, died = np.minimum(records["months"], 24.0), records["died"] * (records["months"] <= 24)
    X = np.column_stack([records["arm"], records["age"]])
    near = {"start_params": table.params}  # a fit has one optimum, and needs few steps from there
    peer = PHReg(end, X, died, entry=records["enters"], ties="efron").fit(**near)
    assert (np.abs(table.params - peer.params) < 0.5 * peer.bse).all()
    ignored = PHReg(end, X, died, ties="efron").fit(**near)
    assert abs(table.params[0] - ignored.params[0]) > 5 * peer.bse[0]


def test_the_table_names_the_entry_and_what_it_assumes(table: inf.HazardRatios) -> None:
    text = " ".join(str(table.summary()).split())
    assert "at enters: a person is at risk from then on" in text
    assert "censoring and entry independent of the event given the columns" in text
    curves = table.kaplan_meier(start=6)
    assert curves["1"].late
    assert curves["1"].survival_function_[0] < curves["0"].survival_function_[0]
    assert table.logrank(start=6).p_value < 0.001
    refused(ReleaseError, "records enter late", table.proportionality)


def test_who_is_there_from_the_start_adds_what_it_adds_without_entry() -> None:
    """In integers: at entry 0 every hazard and part is the same."""
    records = persons(2_000)
    plain = replace(SCHEMA, entry=None)
    values = ps.Hazard.full_plan(schema=plain, cohort=ps.Cohort(2, 2, 10), privacy=made.promise()).published
    own = {**records, "enters": np.zeros(len(records["enters"]))}
    late, early = (ps.measure(schema, own, published=values) for schema in (SCHEMA, plain))
    for letter in "gHJ":
        np.testing.assert_array_equal(np.asarray(getattr(late, letter)), np.asarray(getattr(early, letter)))


def _one(schema: ps.HazardSchema, w: list[float], person: dict[str, float]) -> Any:
    clock = {} if schema.times != "continuous" else {"c": Values(_even(schema), 16)}
    values = Published.of({"w": Values.rounded(np.array(w)), **clock})
    table = {name: np.array([value]) for name, value in person.items()}
    return exact_moments(schema, table, published=values, unreadable="leave out")


def _even(schema: ps.HazardSchema) -> Any:
    return np.concatenate([np.arange(1, n + 1) * (1 << 16) // n for n in np.bincount(schema.in_bin)])


_TIMES = st.floats(0.0, 30.0)


@given(
    st.lists(st.floats(-8.0, 1.0), min_size=6, max_size=6),
    st.tuples(_TIMES, _TIMES, st.sampled_from([0, 1])),
    st.floats(-1.5, 1.5),
    st.sampled_from(["continuous", "discrete"]),
)
def test_wherever_a_person_enters_its_sums_are_within_the_bounds(
    bins: list[float], ends: tuple[float, float, int], age: float, times: str
) -> None:
    schema = replace(SCHEMA, times=times)
    enters, months, died = ends
    person = {"arm": 1.0, "age": age, "enters": enters, "months": months, "died": died}
    moments = _one(schema, [0.3, -0.2, *bins], person)
    g, H = np.asarray(moments.g, object), np.asarray(moments.H, object)
    assert (g**2).sum() <= 16**schema.grid_bits
    assert np.trace(H) <= 4**schema.grid_bits
    assert moments.records == 1 or not g.any()
    if enters >= months:
        assert not g.any()


@pytest.mark.parametrize("times", ["continuous", "discrete"])
def test_nothing_counts_before_the_entry(times: str) -> None:
    schema = replace(SCHEMA, times=times)
    w = [0.0, 0.0, *[-2.0] * 6]
    person = {"arm": 1.0, "age": 0.5, "enters": 13.0, "months": 3.0, "died": 1}
    assert not np.asarray(_one(schema, w, person).g, object).any()  # its time ends before it enters
    there = np.asarray(_one(schema, w, {**person, "months": 21.0}).g, object)[2:]
    assert (there[:3] == 0).all()
    assert (there[3] < 0) == (times == "continuous")  # the rest of the bin of the entry
    assert there[4] < 0 < there[5]


def test_half_a_bin_has_half_its_hazard() -> None:
    w = [0.0, 0.0, *[-2.0] * 6]
    person = {"arm": 1.0, "age": 0.5, "months": 23.0, "died": 0}
    whole, half = (np.asarray(_one(SCHEMA, w, {**person, "enters": each}).g, object)[2] for each in (0.0, 2.0))
    assert half / whole == pytest.approx(0.5, abs=1e-4)
    both = {**person, "months": 3.0}  # enters at half of the bin, and leaves at three fourths
    part = np.asarray(_one(SCHEMA, w, {**both, "enters": 2.0}).g, object)[2]
    assert part / whole == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize(
    ("changes", "enters", "months", "counts"),
    [
        ({}, 3.0, 2.0, False),  # before the entry, in one bin
        ({}, 3.0, 3.0, False),
        ({}, 2.0, 3.0, True),
        ({"time_unit": 1.0}, 3.0, 2.0, False),
        ({"time_unit": 1.0}, 3.0, 3.0, True),  # both rounded down: the person left later within the unit
        ({"times": "discrete"}, 1.0, 3.0, False),  # one visit
        ({"times": "discrete"}, 3.0, 4.0, True),
        ({"times": "discrete"}, 0.0, 3.0, False),
        ({"times": "discrete"}, 26.0, 27.0, True),  # beyond the last edge: readable, and at risk nowhere
    ],
)
@pytest.mark.parametrize("died", [0, 1])
def test_who_leaves_before_the_entry_is_left_out(
    changes: dict[str, Any], enters: float, months: float, counts: bool, died: int
) -> None:
    """In integers, by the record alone: with its neighbour, the sums are those of the neighbour."""
    schema, w = replace(SCHEMA, **changes), [0.3, 0.1, *[-2.0] * 6]
    other = {"arm": 0.0, "age": 0.2, "enters": 2.0, "months": 11.0, "died": 1}
    own = {"arm": 1.0, "age": 0.5, "enters": enters, "months": months, "died": died}
    alone, first = _one(schema, w, own), _one(schema, w, other)
    assert alone.records == counts
    assert not counts or enters > 24 or enters == months or np.asarray(alone.g, object).any()
    clock = {} if schema.times != "continuous" else {"c": Values(_even(schema), 16)}
    both = exact_moments(
        schema,
        {name: np.array([value, other[name]]) for name, value in own.items()},
        published=Published.of({"w": Values.rounded(np.array(w)), **clock}),
        unreadable="leave out",
    )
    for letter in "gHJ":
        total = np.asarray(getattr(first, letter), object) + np.asarray(getattr(alone, letter), object)
        np.testing.assert_array_equal(np.asarray(getattr(both, letter), object), total)
    assert counts or not np.asarray(alone.g, object).any()


def test_half_a_unit_is_added_at_both_ends() -> None:
    schema, w = replace(SCHEMA, time_unit=1.0), [0.0, 0.0, *[-2.0] * 6]
    person = {"arm": 1.0, "age": 0.5, "months": 3.0, "died": 0}
    whole = np.asarray(_one(schema, w, {**person, "enters": 0.0, "months": 23.0}).g, object)[2]
    # From 2.5 to 3.5 of four months; an entry of 0 is the origin itself.
    for enters, part in ((2.0, 0.25), (0.0, 0.875)):
        own = np.asarray(_one(schema, w, {**person, "enters": enters}).g, object)[2]
        assert own / whole == pytest.approx(part, abs=0.02)


def test_events_at_the_visit_of_the_entry_count_nowhere() -> None:
    """At discrete times nobody is at risk in the first bin: counts and rounds exclude the same records."""
    schema = replace(SCHEMA, times="discrete", bins=ps.Bins("months", (0, 1, 2, 3, 4)), feature_names=("arm", "age"))
    assert any("nobody is at risk in the first bin, under 1" in fact for fact in schema.facts)
    assert not any("nobody is at risk" in fact for fact in SCHEMA.facts)
    rng = np.random.default_rng(0)
    arm, age, visit = rng.integers(0, 2, 20_000), rng.uniform(-1, 1, 20_000), rng.geometric(0.15, 20_000) - 1
    table = {"arm": arm, "age": age, "enters": 0 * arm, "months": np.minimum(visit, 4), "died": (visit < 4) * 1}
    values = ps.Hazard.full_plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=made.promise()).published
    with pytest.warns(UserWarning, match=r"time of entry in the visit of the exit.* number visits from 1"):
        ps.measure(schema, table, published=values, unreadable="leave out")
    refused(RecordError, "number visits from 1", ps.measure, schema, table, published=values)
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 40_000), made.promise(epsilon=30.0), by="arm", rounds=4)
    found = inf.hazards(played(course, table))
    assert found.events_within > 0.9
    curves = found.kaplan_meier(start=1)
    at_risk, events = ((table["months"] >= 1) & (arm == 1)).sum(), ((table["months"] == 1) & (arm == 1)).sum()
    assert curves["1"].survival_function_[0] == pytest.approx(1 - events / at_risk, abs=0.005)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_search_does_not_pass_the_bound(adjacency: Any) -> None:
    schema, sigma = replace(SCHEMA, transform=SCHEMA.transform[-1:], grid_bits=16), {"g": 1.0, "H": 1.0, "J": 1.0}
    claimed = joint_mu(schema, sigma, adjacency)
    assert claimed == joint_mu(replace(schema, entry=None), sigma, adjacency)
    found = max(worst_trajectories(schema, sigma, adjacency, seeded(start), 30)[0] for start in range(4))
    assert 0.4 < found / claimed <= 1


def test_a_certificate_holds_with_an_entry() -> None:
    plan = ps.Hazard.start(SCHEMA, ps.Cohort(2, 2, 900), made.promise()).plan
    assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")
    refused(Refused, "", check, plan.to_toml().replace("enters", "enter"), certificate_text(plan))


@pytest.mark.ci
def test_the_audit_of_intervals_draws_persons_who_enter_late() -> None:
    course = ps.Hazard.start(SCHEMA, ps.Cohort(2, 2, 12_000), made.promise(epsilon=30.0), by="arm", rounds=6)
    report = audit_hazard_intervals(course, seeded(1), runs=10)
    assert not report.violated
    assert min(row[3] for row in report.rows[:2]) > 0.8  # reported


def test_entries_have_a_table_and_the_plan_file_keeps_the_column(tmp_path: Path) -> None:
    course = ps.Hazard.start(SCHEMA, ps.Cohort(2, 2, 100), made.promise(), by="arm")
    counts = course.first.schema
    assert isinstance(counts, ps.CountSchema)
    assert counts.tables == (("months", "died", "arm"), ("enters", "arm"))
    assert counts.move({"T": 1.0}, "add-remove") == 2
    ps.course.write(tmp_path / "course.toml", course)
    back = ps.course.read(tmp_path / "course.toml")
    assert (back, back.digest) == (course, course.digest)
    assert ps.Plan.from_toml(course.plan.to_toml()).schema == SCHEMA
    assert "the time of entry enters" in SCHEMA.record
    assert replace(SCHEMA, entry=None).record != SCHEMA.record


def test_strata_and_texts_go_with_an_entry() -> None:
    records = persons(8_000)
    site = np.where(np.arange(len(records["arm"])) % 2, "north", "south")
    schema = replace(SCHEMA, strata=ps.Categories("site", ("north", "south")))
    course = ps.Hazard.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=30.0), by="arm", rounds=6)
    table = inf.hazards(played(course, {**records, "site": site}))
    low, high = table.conf_int()[0]
    assert low < 0.5 < high
    assert table.logrank(start=6).reported


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"entry": "age"}, "entry names 'age', a column too"),
    ({"entry": "died"}, "entry names 'died', which has another role"),
    ({"entry": "months"}, "entry names 'months', which has another role"),
    ({"entry": 3}, "must be the name of a column of times"),
    ({"times": None}, "entry needs times='continuous' or 'discrete'"),
]


@pytest.mark.parametrize(("changes", "words"), WRONG)
def test_what_is_no_entry_is_one_clear_sentence(changes: dict[str, Any], words: str) -> None:
    refused(SchemaError, words, replace, SCHEMA, **changes)


def test_a_record_without_its_entry_is_refused_or_left_out() -> None:
    records = persons(200)
    gone = {**records, "enters": np.where(np.arange(len(records["enters"])) == 3, np.nan, records["enters"])}
    refused(RecordError, "enters", ps.measure, SCHEMA.counted(), gone)
    values = ps.Hazard.full_plan(schema=SCHEMA, cohort=ps.Cohort(2, 2, 10), privacy=made.promise()).published
    kept = ps.measure(SCHEMA, gone, published=values, unreadable="leave out")
    assert kept.records == len(records["enters"]) - 1


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_intervals_of_ratios_keep_their_level() -> None:
    row = bench.ratios(20_000, 8.0, 200)
    assert row["reported"] > 0.9
    assert row["worst row"] <= 0.11  # 22 of 200: with probability 4e-4 at a rate of .05
    assert row["entry ignored misses"] > 0.9
