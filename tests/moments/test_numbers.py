"""Bounded numbers beside count tables: sums, one sensitivity that no pair of records beats, certificate, intervals."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats import inference, session
from privstats.errors import PlanError, RecordError, ReleaseError, SchemaError
from privstats.randomness import seeded
from privstats.review.certificate import certificate_text
from privstats.review.certificate_checker import Refused, check
from privstats.review.worst_cases import worst_case
from tests import made
from tests.lengths import sized
from tests.plan.devices import devices_plan
from tests.review.certified import plan_of
from tests.threat_models.audits.plans import target
from threat_models.audits.counts import audit_counts

SEX = ps.Categories("sex", ("f", "m"))
ILL = ps.Categories("ill", ("no", "yes"))
HOURS = ps.Number("hours", 0, 80, by=("sex",), missing=True)
SCHEMA = ps.CountSchema((SEX,), (("sex",),), numbers=(HOURS, ps.Number("km", -1, 3)))
LONE = ps.CountSchema((), (), numbers=(ps.Number("km", 0, 10),))


def test_sums_are_whole_steps_from_the_middle_by_group():
    found = ps.measure(SCHEMA, {"sex": ["f", "m", "f"], "hours": [80, None, 30], "km": [1, -1, 3]})
    assert found.T.tolist() == [2, 1, 2, 0, 0, 1, 3]
    assert found.x.tolist() == [4096 - 1024, 0, 0]
    assert found.q.tolist() == [4096**2 + 1024**2, 0, 2 * 4096**2]
    parts = [
        ps.measure(SCHEMA, {"sex": [s], "hours": [h], "km": [k]})
        for s, h, k in zip("fmf", [80, None, 30], [1, -1, 3], strict=True)
    ]
    assert sum(parts) == found


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.01, 10.01, "many", 1e300, None])
def test_a_value_beyond_its_bounds_or_none_is_refused_or_left_out_and_never_counted(value):
    records = {"km": np.array([5.0, value], object)}
    with pytest.raises(RecordError, match="km"):
        ps.measure(LONE, records)
    left = ps.measure(LONE, records, unreadable="leave out")
    assert (left.T.tolist(), left.x.tolist(), left.q.tolist()) == ([1], [0], [0])
    gaps = replace(LONE, numbers=(ps.Number("km", 0, 10, missing=True),), tables=())
    found = ps.measure(gaps, records, unreadable="leave out")
    assert (found.T.tolist(), found.x.tolist(), found.q.tolist()) == ([1, 1], [0], [0])


def test_a_plan_with_numbers_is_the_same_from_its_file_and_one_without_has_no_key_for_them():
    plan = made.plan(SCHEMA, ps.Cohort(2, 2, 100))
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    assert plan.tables["schema"]["tables"] == [["sex"]]
    assert "numbers" not in made.plan(ps.CountSchema((SEX,), (("sex",),)), ps.Cohort(2, 2, 100)).tables["schema"]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ([], "at least one"),
        ([{"name": "x", "low": 0}], "name, low and high"),
        ([{"name": "x", "low": 0, "high": 1, "step": 2}], "name, low and high"),
        ([{"name": "x", "low": 1, "high": 1}], "low and high of x"),
        ([{"name": "x", "low": True, "high": 2}], "low and high of x"),
        ([{"name": "x", "low": 0, "high": float("inf")}], "low and high of x"),
        ([{"name": "x", "low": 1e9, "high": 1e9 + 0.5}], "low and high of x"),
        ([{"name": "x", "low": 0, "high": 1, "by": ["age"]}], "age"),
        ([{"name": "sex", "low": 0, "high": 1}], "twice"),
        ([7], "name, low and high"),
    ],
)
def test_a_number_that_cannot_be_is_refused(numbers, words):
    with pytest.raises(SchemaError, match=words):
        ps.CountSchema((SEX,), (("sex",),), numbers=numbers)


@st.composite
def cases(draw):
    """A schema with up to three numbers, weights of what is released, and two records, one perhaps unreadable."""
    by, gap = st.sampled_from([(), ("sex",)]), st.booleans()
    numbers = tuple(ps.Number(f"n{i}", -1, 2, draw(by), draw(gap)) for i in range(draw(st.integers(1, 3))))
    tables = draw(st.sampled_from([(), (("sex",),), (("ill",),), (("sex", "ill"),)]))
    schema = ps.CountSchema((SEX, ILL), tables, numbers=numbers)
    weights = {letter: 10 ** draw(st.floats(-2, 2)) for letter in "Txq"}
    ends = st.sampled_from([-1.0, 2.0, 0.5, 1e300]) | st.floats(-1, 2)
    records = [
        {
            "sex": [draw(st.sampled_from("fm"))],
            "ill": [draw(st.sampled_from(("no", "yes")))],
            **{n.name: [draw(ends | st.none() if n.missing else ends)] for n in numbers},
        }
        for _ in range(2)
    ]
    return schema, weights, records


@pytest.mark.ci
@settings(deadline=None, max_examples=sized(30, 600))
@given(cases())
def test_no_pair_of_records_moves_more_than_the_one_sensitivity(case):
    schema, weights, records = case
    sums = [ps.measure(schema, record, unreadable="leave out").real() for record in records]
    parts = [np.concatenate([weights[s] ** 0.5 * getattr(each, s) for s in "Txq"]) for each in sums]
    wire = {s: w / schema.scale_of(s) ** 2 for s, w in weights.items()}
    sigma = {s: w**-0.5 for s, w in weights.items()}
    for adjacency, gap in (("add-remove", parts[0]), ("replace-one", parts[0] - parts[1])):
        most = ps.dp.joint_mu(schema, sigma, adjacency) ** 2
        worst = worst_case(schema, made.promise(adjacency=adjacency), wire)
        reached = sum(wire[s] * moved for s, moved in worst.moves.items())
        assert max(gap @ gap, reached) <= most * (1 + 1e-9)
        apart = weights["x"] > weights["T"] + weights["q"] and any(n.by for n in schema.numbers)
        torn = apart and ("sex",) in schema.tables[: -len(schema.numbers)]  # two records in one group share its cell
        assert reached >= most * (0.8 if torn and adjacency == "replace-one" else 1 - 1e-6)


def test_the_worst_pair_shares_a_number_s_group_and_no_other_cell():
    schema = ps.CountSchema((SEX, ILL), (("ill",),), numbers=(ps.Number("hours", 0, 80, by=("sex",)),))
    wire = {"T": 1 / 4096**2, "x": 100 / 4096**2, "q": 1 / 4096**4}
    worst = worst_case(schema, made.promise(adjacency="replace-one"), wire)
    assert (worst.gone[0]["values"], worst.come[0]["values"]) == (
        {"sex": 0, "ill": 0, "hours": 0},
        {"sex": 0, "ill": 1, "hours": 0},
    )
    assert worst.moves == {"T": 2 * 4096**2, "x": (2 * 4096) ** 2, "q": 0}


@pytest.mark.parametrize("shares", [None, {"T": 0.9, "x": 0.05, "q": 0.05}])
@pytest.mark.parametrize("schema", [SCHEMA, LONE], ids=["beside a table", "alone"])
def test_the_search_of_the_audit_comes_near_the_bound_and_never_passes_it(schema, shares):
    report = audit_counts(target(schema, shares=shares), seeded(2), starts=4)
    ratios = [row[report.columns.index("ratio")] for row in report.rows]
    assert (len(ratios), report.violated) == (8, False)
    assert min(ratios) > 0.9


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("shares", [None, {"T": 0.9, "x": 0.05, "q": 0.05}, {"T": 0.3, "x": 0.1, "q": 0.6}])
@pytest.mark.parametrize("schema", [SCHEMA, LONE], ids=["beside a table", "alone"])
def test_the_checker_agrees_on_the_bound_and_refuses_a_smaller_one(schema, shares, adjacency):
    plan = plan_of("central", schema, adjacency=adjacency, **({"shares": shares} if shares else {}))
    text = certificate_text(plan)
    assert check(plan.to_toml(), text).startswith("holds")
    claims = json.loads(text)
    claims["joint"]["mu_squared"] = claims["statistics"]["x"]["sensitivity_squared"]
    with pytest.raises(Refused, match="mu"):
        check(plan.to_toml(), json.dumps(claims))


def test_means_hold_the_truth_as_often_as_they_say():
    rng, hits, runs = np.random.default_rng(3), 0, 60
    truth = np.clip(rng.normal(35, 12, 100_000), 0, 80)
    schema = ps.CountSchema((), (), numbers=(ps.Number("hours", 0, 80),))
    plan = made.plan(schema, ps.Cohort(2, 2, 500), made.promise(epsilon=1.0, delta=1e-6))
    for run in range(runs):
        hours = rng.choice(truth, 400)
        parts = [ps.measure(schema, {"hours": half}) for half in (hours[:200], hours[200:])]
        found = inference.averages(session.aggregate_unmasked(plan, parts, seeded(run)), "hours")[()]
        mean, variance = found.mean, found.variance
        hits += mean.low <= truth.mean() <= mean.high and variance.low <= truth.var() <= variance.high
    assert hits >= 53  # 60 of a 95 % interval twice: 54 on average at least; P(fewer than 53) is below 1 %
    assert found.mean.high - found.mean.low < 15


@pytest.mark.parametrize(("n", "share"), [(1_000, 0.005), (300, 0.01)])
@pytest.mark.parametrize("end", ["high", "low"])
def test_rare_values_at_an_end_of_the_range_are_covered(n, share, end):
    schema = ps.CountSchema((), (), numbers=(ps.Number("days", 0, 10),))
    rng, missed, runs = np.random.default_rng(0), np.zeros(2), 200
    for _ in range(runs):
        rare = rng.random(n) < share
        days = 10.0 * (rare if end == "high" else ~rare)
        found = inference.averages(ps.Release.exact(schema, ps.measure(schema, {"days": days})), "days")[()]
        truths = 10 * (share if end == "high" else 1 - share), 100 * share * (1 - share)
        ends = found.mean, found.variance
        missed += [not each.low <= truth <= each.high for each, truth in zip(ends, truths, strict=True)]
    assert (missed <= 0.05 * runs).all(), "a Fieller interval alone misses both in 14 and 21 % of 1,000 runs"


def test_a_number_without_spread_has_wilsons_mean():
    schema = ps.CountSchema((), (), numbers=(ps.Number("days", 0, 10),))
    release = ps.Release.exact(schema, ps.measure(schema, {"days": [0.0] * 1_000}))
    mean = inference.averages(release, "days")[()].mean
    wilson = 1.959964**2 / (1_000 + 1.959964**2)
    assert (mean.value, mean.low) == (0.0, 0.0)
    assert mean.high == pytest.approx(10 * wilson, rel=1e-4)


def test_two_hundred_devices_give_a_mean_beside_the_truth(tmp_path, privstats):
    """Each device sends one message; leader and helper draw noise, and the table has the interval."""
    hours = np.random.default_rng(0).normal(35, 12, 200).clip(0, 80)
    schema = ps.CountSchema((SEX,), (), numbers=(ps.Number("hours", 0, 80),))
    plan = devices_plan(schema=schema, clients=200)
    release = ps.simulate(plan, [({"sex": ["f"], "hours": [float(each)]}, None) for each in hours])
    mean, sure = (inference.averages(release, "hours", alpha=alpha)[()].mean for alpha in (0.05, 1e-6))
    assert release.survivors == tuple(range(200))
    assert mean.reported
    assert sure.low <= hours.mean() <= sure.high  # noise is drawn anew: a miss in a million runs
    assert mean.high - mean.low < 15
    release.save(tmp_path / "release.safetensors")
    shown = privstats("table", "release.safetensors", cwd=tmp_path).stdout
    assert f"  {mean.value:.5g}  {mean.low:.5g}  {mean.high:.5g}" in shown


def test_without_noise_the_mean_is_the_mean_and_the_groups_are_named():
    records = {"sex": ["f", "m"] * 50, "hours": [40, 20, 30, 30] * 25, "km": [1] * 100}
    found = inference.averages(ps.Release.exact(SCHEMA, ps.measure(SCHEMA, records)), "hours")
    assert {group: round(each.mean.value, 2) for group, each in found.items()} == {("f",): 35.0, ("m",): 25.0}
    assert found["f",].variance.value == pytest.approx(25.0, rel=1e-3)
    with pytest.raises(ReleaseError, match="no number"):
        inference.averages(ps.Release.exact(SCHEMA, ps.measure(SCHEMA, records)), "sex")


def test_what_is_not_proved_of_numbers_is_refused():
    with pytest.raises(PlanError, match="delta = 0"):
        made.plan(SCHEMA, ps.Cohort(2, 2, 100), made.promise(epsilon=1.0, delta=0.0))
