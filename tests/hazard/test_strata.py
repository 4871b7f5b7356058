"""Cox's model stratified by a declared column: a baseline for each value, at the same bound and the same noise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats import inference as inf
from privstats.course import document
from privstats.course.hazard import first_values
from privstats.dp import joint_mu
from privstats.errors import PlanError, SchemaError
from privstats.plan import Plan
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.schema.public_values import Published, Values
from tests.hazard.worlds import NAMES, halves, played, promise, published, schema, world
from threat_models.audits.hazard_worlds import audit_hazard_intervals
from threat_models.audits.hazards import worst_trajectories

SITE = ps.Categories("site", ("north", "south", "west"))
STRATIFIED = schema(grid_bits=20, times="continuous", strata=SITE)
PAIR = ps.Categories("site", ("north", "south"))
WHOLE = schema(grid_bits=20, times="continuous")
WEIGHTS = np.array([0.4, -0.3, 0.2])
BASES = np.log(np.array([0.02, 0.07, 0.15]))[:, None] + np.linspace(0, 0.2, 6)
CLOCKS = np.stack([np.tile([1 << 13, place << 13, 60_000, 1 << 16], 6) for place in (2, 3, 4)])


def people(count: int, seed: int = 0) -> dict[str, Any]:
    """A world of worlds.py, with a site."""
    table = world(count, seed)
    return table | {"site": np.array(SITE.values)[np.random.default_rng(seed).integers(0, 3, count)]}


def test_sums_are_those_of_every_stratum_alone_beside_each_other() -> None:
    table = people(900)
    found = ps.measure(STRATIFIED, table, published=published(np.r_[WEIGHTS, BASES.ravel()], CLOCKS.ravel()))
    g, H = np.zeros(21), np.zeros((21, 21))
    for place, site in enumerate(SITE.values):
        part = {name: column[table["site"] == site] for name, column in table.items() if name != "site"}
        values = {"w": Values(_all_weights().integers[_own(place)], _all_weights().exponent)}
        values["c"] = Values(CLOCKS[place].astype(np.int64), 16)
        alone = ps.measure(WHOLE, part, published=Published.of(values))
        g[_own(place)] += np.asarray(alone.g)
        H[np.ix_(_own(place), _own(place))] += np.asarray(alone.H)
    assert np.array_equal(np.asarray(found.g), g)
    assert np.array_equal(np.asarray(found.H), H)
    parts = [ps.measure(STRATIFIED, part, published=_said()) for part in halves(table)]
    assert parts[0] + parts[1] == ps.measure(STRATIFIED, table, published=_said())


def _all_weights() -> Values:
    return Values.rounded(np.r_[WEIGHTS, BASES.ravel()])


def _own(place: int) -> list[int]:
    return [0, 1, 2, *range(3 + 6 * place, 9 + 6 * place)]


def _said() -> Published:
    return published(np.r_[WEIGHTS, BASES.ravel()], CLOCKS.ravel())


@given(st.data())
def test_a_person_keeps_the_bounds_in_every_stratum_whatever_is_published(data: st.DataObject) -> None:
    bits = data.draw(st.sampled_from([2, 6, 12, 20]))
    plan = replace(STRATIFIED, grid_bits=bits)
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    w = Values(np.array(data.draw(st.lists(whole, min_size=21, max_size=21)), np.int64), data.draw(st.integers(-8, 30)))
    steps = st.integers(0, 1 << 16)
    clock = [each for _ in range(18) for each in [*sorted(data.draw(st.tuples(steps, steps, steps))), 1 << 16]]
    entry = st.floats(-9, 9) | st.sampled_from([1e300, -1e300])
    person: dict[str, Any] = {name: [data.draw(entry)] for name in NAMES}
    person |= {"months": [data.draw(st.floats(0, 19))], "died": [data.draw(st.integers(0, 1))]}
    person |= {"site": [data.draw(st.sampled_from(SITE.values))]}
    values = Published.of({"w": w, "c": Values(np.array(clock, np.int64), 16)})
    added = ps.moments.exact_moments(plan, person, published=values)
    assert sum(int(value) ** 2 for value in np.asarray(added.g).ravel()) <= 16**bits
    assert sum(int(value) ** 2 for value in np.asarray(added.H).ravel()) <= 16**bits
    others = [place for place in range(3, 21) if place not in _own(SITE.values.index(person["site"][0]))]
    assert not np.asarray(added.g)[others].any()
    assert not np.asarray(added.H)[others].any()


@pytest.mark.ci
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_audit_s_search_does_not_beat_the_bound_in_strata(adjacency: ps.dp.Adjacency) -> None:
    plan = replace(STRATIFIED, grid_bits=12, feature_names=("x0", "x1", "x2"))
    sigma = {"g": 2 / math.sqrt(0.7), "H": 4 / math.sqrt(0.3)}
    claimed = joint_mu(plan, sigma, adjacency)
    assert claimed == joint_mu(replace(plan, strata=None), sigma, adjacency)
    found = max(worst_trajectories(plan, sigma, adjacency, seeded(start), 30)[0] for start in range(6))
    assert 0.8 < found / claimed <= 1


def test_strata_cost_no_noise() -> None:
    """A person is in one cell of the counts and in one stratum of the rounds."""
    one, several = (_course(5_000, 3.0, strata) for strata in (None, SITE))
    assert [plan.noise.sigma for plan in one.priced] == [plan.noise.sigma for plan in several.priced]  # type: ignore[union-attr]


def _course(records: int, epsilon: float, strata: ps.Categories | None = SITE) -> ps.Hazard:
    each = schema(times="continuous", strata=strata)
    return ps.Hazard.start(each, ps.Cohort(2, 2, 2 * records), promise(epsilon), by="arm")


RATIO = 0.5


def confounded(count: int, seed: int) -> dict[str, Any]:
    """Two sites whose hazards differ threefold and run oppositely in time; the arm depends on the site."""
    rng = np.random.default_rng(seed)
    site = rng.integers(0, 2, count)
    arm = (rng.random(count) < np.array([0.2, 0.8])[site]) * 1
    shape = np.array([1.5, 0.7])[site]
    cumulative = np.array([0.15, 0.45])[site] * np.exp(RATIO * arm)
    event = 18 * (rng.exponential(size=count) / cumulative) ** (1 / shape)
    left = np.minimum(rng.exponential(1 / np.array([0.04, 0.01])[arm]), 30.0)
    table = {"arm": arm, "age": rng.uniform(-1, 1, count), "dose": rng.uniform(-1, 1, count)}
    table |= {"months": np.minimum(event, left), "died": (event <= left) * 1}
    return table | {"site": np.array(PAIR.values)[site]}


@pytest.fixture(scope="module")
def table() -> inf.HazardRatios:
    return inf.hazards(played(_course(16_000, 30.0, PAIR), confounded(16_000, 1), 1))


def test_the_ratio_is_that_within_strata(table: inf.HazardRatios) -> None:
    low, high = table.conf_int()[0]
    assert low < RATIO < high
    assert table.reported[0]


def test_the_tests_of_the_counts_compare_within_strata(table: inf.HazardRatios) -> None:
    assert table.proportionality().reported
    assert table.proportionality().p_value > 0.001
    names = {"time": "months", "event": "died", "by": "arm", "times": "continuous"}
    across = inf.logrank_test(table.counted, **names)
    within = inf.logrank_test(table.counted, strata="site", **names)
    assert table.logrank() == within
    assert across.test_statistic > 2 * within.test_statistic
    assert set(table.kaplan_meier()) == {"0", "1"}


def test_the_table_states_its_baselines(table: inf.HazardRatios) -> None:
    text = " ".join(str(table.summary()).split())
    assert "one for each site: north and south" in text
    assert "proportional hazards given the columns and site" in text
    assert "stratified by site (a baseline for each)" in inf.methods(table)


def test_stratified_ratios_are_those_of_a_stratified_cox_model() -> None:
    lifelines = pytest.importorskip("lifelines", reason="compares with lifelines, which is not installed")
    pandas = pytest.importorskip("pandas", reason="lifelines needs it")
    data = confounded(3_000, 4)
    plan = schema(times="continuous", strata=PAIR, bins=ps.Bins("months", tuple(np.linspace(0, 18, 13))), grid_bits=20)
    values = first_values(plan, ps.Release.exact(plan.counted(), ps.measure(plan.counted(), data)))
    for _ in range(8):
        real = ps.measure(plan, data, published=Published.of(values)).real()
        values["w"] = Values.rounded(values["w"].real + np.linalg.solve(real.H, real.g))
    frame = pandas.DataFrame(data)
    frame["died"] *= frame["months"] < 18
    frame["months"] = frame["months"].clip(upper=18)
    theirs = lifelines.CoxPHFitter().fit(frame, "months", "died", strata=["site"])
    far = (values["w"].real[:3] - theirs.params_[list(NAMES)]) / theirs.standard_errors_[list(NAMES)]
    assert np.abs(far).max() < 0.15


@pytest.mark.ci
def test_intervals_of_stratified_ratios_keep_their_claim() -> None:
    report = audit_hazard_intervals(_course(6_000, 30.0, PAIR), seeded(1), runs=20)
    assert not report.violated
    assert min(row[3] for row in report.rows[:3]) > 0.8  # reported


def test_a_stratified_course_is_the_same_from_its_file(tmp_path: Any) -> None:
    course = _course(1_000, 3.0)
    document.write(tmp_path / "study.toml", course)
    again = document.read(tmp_path / "study.toml")
    assert (again, again.digest) == (course, course.digest)
    assert again.schema == course.schema
    assert Plan.from_toml(course.plan.to_toml()).schema == course.schema
    old = _course(1_000, 3.0, None)
    assert "strata" not in old.plan.to_toml()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"strata": ps.Categories("arm", ("a", "b"))}, "strata names 'arm', a column too: a stratum has no ratio"),
        ({"strata": ps.Categories("site", tuple("abcde"))}, "strata must be Categories of two to 4 declared values"),
        ({"strata": ps.Bins("age", (0, 40, 60))}, "strata must be Categories"),
        ({"strata": ps.Categories("site", ("a", "b"), other=True)}, "strata must be Categories"),
        ({"strata": SITE, "expected_events": 150}, "6 bins in each of 3 strata for 150 expected .* expect 180 or more"),
        ({"strata": "site"}, "strata must be Categories .*got str"),
    ],
)
def test_what_are_no_strata_is_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        schema(**changed)


def test_a_person_of_no_stratum_is_refused_or_left_out() -> None:
    table = people(20)
    both = {name: np.append(column.astype(object), [column[0]]) for name, column in table.items()}
    both["site"][-1] = "east"
    with pytest.raises(ps.errors.RecordError, match="not among the plan's"):
        ps.measure(STRATIFIED, both, published=_said())
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records"):
        left = ps.measure(STRATIFIED, both, published=_said(), unreadable="leave out")
    assert left == ps.measure(STRATIFIED, table, published=_said())


def test_a_clock_that_does_not_rise_in_one_stratum_is_refused() -> None:
    wrong = CLOCKS.copy()
    wrong[2, :4] = [5, 4, 6, 1 << 16]
    with pytest.raises(PlanError, match="must rise from 0 to 1 inside every bin"):
        ps.measure(STRATIFIED, people(20), published=published(np.r_[WEIGHTS, BASES.ravel()], wrong.ravel()))


def test_a_certificate_holds_for_strata() -> None:
    plan = _course(900, 3.0).plan
    assert check(plan.to_toml(), certificate_text(plan)).startswith("holds")
    with pytest.raises(Refused):
        check(plan.to_toml().replace("north", ""), certificate_text(plan))
