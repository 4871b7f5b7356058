"""What a person adds to a round of hazards: the definition, integers, and bounds that nothing passes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.dp import joint_mu
from privstats.errors import DataError, PlanError, RecordError, SchemaError
from privstats.estimates.score import damped_step
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests.hazard.worlds import BETA, NAMES, defined, halves, published, schema, world
from threat_models.audits.hazards import Trajectories, added_by, worst_trajectories

FINE = schema(grid_bits=20)
CONSTANT = ps.transforms.ConstantFeature(1.0)
INSIDE = schema(grid_bits=20, times="continuous")
CLOCK = np.tile([9_000, 9_000, 60_000, 1 << 16], 6)
W = np.concatenate([[0.4, -0.3, 0.2], np.full(6, math.log(0.07))])


def one(months: float, died: int, *, arm: float = 0.0, age: float = 0.0, dose: float = 0.0) -> dict[str, list[float]]:
    return {"arm": [arm], "age": [age], "dose": [dose], "months": [months], "died": [died]}


@pytest.mark.parametrize("clock", [None, CLOCK])
@pytest.mark.parametrize("hazard", [0.07, 0.4])
def test_sums_are_score_and_information_over_all_periods(hazard: float, clock: Any) -> None:
    """At .4 a bin most people pass the cap."""
    table, w = world(1_500, hazard=hazard), W + np.r_[0, 0, 0, np.full(6, math.log(hazard / 0.07))]
    plan = FINE if clock is None else INSIDE
    found = ps.measure(plan, table, published=published(w, clock))
    g, H = defined(plan, table, w, clock)
    assert np.abs(found.real().g - g).max() < (2e-6 if clock is None else 2e-5) * len(table["died"])  # f has 16 bits
    assert np.abs(found.real().H - H).max() < 2e-5 * np.abs(H).max()
    parts = [ps.measure(plan, part, published=published(w, clock)) for part in halves(table)]
    assert parts[0] + parts[1] == found
    assert found.records == 1_500


def test_the_data_holder_is_told_of_rows_that_are_clipped() -> None:
    table = world(400)
    report = ps.measure(FINE, table, published=published(W)).clip_report
    assert (report.records, report.clipped, report.targets_clipped) == (400, 0, 0)
    table["age"] = np.where(np.arange(400) < 380, 9.0, table["age"])
    with pytest.warns(ps.ClippedWarning, match="clip_norm shortens 95% of the rows of X"):
        report = ps.measure(FINE, table, published=published(W)).clip_report
    assert report.clipped == 380


def test_the_maximum_of_the_likelihood_is_that_of_a_glm_of_the_expanded_table() -> None:
    sm = pytest.importorskip("statsmodels.api", reason="compares with statsmodels, which is not installed")
    table, w = world(1_200, 3, hazard=0.05), W
    for _ in range(8):
        w = Values.rounded(w).real
        real = ps.measure(FINE, table, published=published(w)).real()
        before, w = w, w + damped_step(real.g, real.H, 0.0, 2.0)
    most = np.exp(np.column_stack([table[name] for name in NAMES]) @ w[:3]).max() * np.exp(w[3:]).sum()
    assert most < 1  # nobody passes the cap
    last = np.minimum(np.searchsorted(FINE.bins.edges, table["months"], side="right") - 1, 5)
    died = (table["died"] == 1) & (table["months"] < 18)
    X = np.column_stack([table[name] for name in NAMES])
    rows = [np.r_[x, np.eye(6)[j]] for x, k in zip(X, last, strict=True) for j in range(k + 1)]
    y = [float(d and j == k) for d, k in zip(died, last, strict=True) for j in range(k + 1)]
    family = sm.families.Binomial(sm.families.links.CLogLog())
    theirs = sm.GLM(np.array(y), np.array(rows), family=family).fit(tol=1e-15, maxiter=200)
    observed = -theirs.model.hessian(before, scale=1.0, observed=True)  # weights have 20 bits, so a step is left
    assert np.abs(before + np.linalg.solve(observed, real.g) - theirs.params).max() < 1e-8
    assert np.abs(w - theirs.params).max() < 1e-6 * theirs.bse.min()
    assert np.abs(np.sqrt(np.diag(np.linalg.inv(real.H))) / theirs.bse - 1).max() < 1e-5


def bounds_of(plan: ps.HazardSchema, moments: ps.moments.Moments) -> tuple[int, int]:
    """Squared norms of what was summed, in integers."""
    g, H = ([int(value) for value in np.asarray(array).ravel()] for array in (moments.g, moments.H))
    return sum(value**2 for value in g), sum(value**2 for value in H)


@given(st.data())
def test_a_person_keeps_the_bounds_whatever_is_published(data: st.DataObject) -> None:
    bits, a = data.draw(st.sampled_from([2, 6, 12, 20])), data.draw(st.sampled_from([0.5, 1.0, 1.25]))
    times, unit = data.draw(st.sampled_from([("continuous", None), ("continuous", 1.0), ("discrete", None)]))
    plan = schema(grid_bits=bits, transform=(ps.transforms.ConstantFeature(a),), times=times, time_unit=unit)
    whole = st.integers(-(1 << 19) + 1, (1 << 19) - 1)
    w = Values(np.array(data.draw(st.lists(whole, min_size=9, max_size=9)), np.int64), data.draw(st.integers(-8, 30)))
    entry = st.floats(-9, 9) | st.sampled_from([1e300, -1e300, 5e-324])
    person = {name: [data.draw(entry)] for name in NAMES}
    months = data.draw(st.floats(0, 19) | st.sampled_from([0.0, 4.0, 17.9, 18.0, 99.0, 1e308]))
    person |= {"months": [months], "died": [data.draw(st.integers(0, 1))]}
    values = {"w": w, **({"c": data.draw(clocks(plan))} if times == "continuous" else {})}
    added = ps.moments.exact_moments(plan, person, published=Published.of(values))
    g, H = bounds_of(plan, added)
    assert g <= 16**bits
    assert 16**bits >= H
    assert np.trace(np.asarray(added.H, np.float64)) <= 4.0**bits
    whole_bins = ps.moments.exact_moments(
        replace(plan, times=None, time_unit=None), person, published=Published.of({"w": w})
    )
    assert (np.abs(added.H) <= np.abs(whole_bins.H)).all()  # who is seen in part adds no more than seen whole


@st.composite
def clocks(draw: st.DrawFn, plan: ps.HazardSchema) -> Values:
    """Any that parties admit, corners among them."""
    steps = st.sampled_from([0, 1, (1 << 16) - 1, 1 << 16]) | st.integers(0, 1 << 16)
    sizes = np.bincount(plan.in_bin)
    parts = [[*sorted(draw(st.lists(steps, min_size=n - 1, max_size=n - 1))), 1 << 16] for n in sizes.tolist()]
    return Values(np.concatenate(parts).astype(np.int64), 16)


@pytest.mark.parametrize(
    "wrong",
    [CLOCK - 1, CLOCK[::-1], np.maximum(CLOCK - 9_001, 0) * 0 + (1 << 17), -CLOCK, np.tile([2, 1, 3, 65_536], 6)],
)
def test_a_clock_that_does_not_rise_from_0_to_1_in_every_bin_is_refused(wrong: Any) -> None:
    with pytest.raises(PlanError, match="must rise from 0 to 1 inside every bin"):
        ps.measure(INSIDE, world(20), published=published(W, wrong))
    with pytest.raises(PlanError, match="c of shape \\(24,\\)"):
        ps.measure(INSIDE, world(20), published=published(W, CLOCK[:-4]))


def test_the_score_is_unbiased_at_the_truth_however_columns_say_who_leaves() -> None:
    """Half leave within two months of an arm, in a twentieth of them of the other: whole bins are off by 30 errors."""
    rng = np.random.default_rng(2)
    table = world(60_000, 5, hazard=0.2, censored=1e9)
    leaves = rng.exponential(np.where(table["arm"] == 1, 3.0, 60.0))
    table |= {"months": np.minimum(table["months"], leaves), "died": (table["months"] <= leaves) * 1}
    w = np.concatenate([BETA, np.full(6, math.log(0.2))])
    even = np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], 6)
    off = []
    for plan, clock in ((schema(times="continuous"), even), (schema(), None)):
        found = ps.measure(plan, table, published=published(w, clock)).real()
        off.append(float(np.abs(found.g / np.sqrt(np.diag(found.H))).max()))
    assert off[0] < 3.5
    assert off[1] > 15


def test_times_in_whole_units_are_read_as_their_middles() -> None:
    plan = schema(times="continuous", time_unit=1.0, grid_bits=20)
    assert plan.marks == tuple(range(19))  # no mark falls between two units
    even = np.tile(np.rint(np.arange(1, 4) * 65_536 / 3), 6)
    exact = schema(times="continuous", grid_bits=20)
    quarters = np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], 6)
    of_unit = ps.measure(plan, one(4.0, 0), published=published(W, even)).real()
    of_middle = ps.measure(exact, one(4.5, 0), published=published(W, quarters)).real()
    assert np.abs(of_unit.g - of_middle.g).max() < 1e-5


def test_the_bounds_are_met_and_never_passed() -> None:
    """Many short periods that fill the cap: r and v of a bin are its hazard, in the limit."""
    edges = tuple(range(257))
    plan = schema(
        bins=ps.Bins("months", edges), transform=(ps.transforms.ConstantFeature(2.0**-5),), grid_bits=20, errors="model"
    )
    length = math.sqrt(4 - 2.0**-10) * (1 - 2.0**-14)
    w = np.concatenate([np.zeros(3), np.full(256, math.log((1 - 2.0**-14) / 256) * 2**5)])
    sigma = {"g": 2 / math.sqrt(0.7), "H": 4 / math.sqrt(0.3)}
    row = np.array([[length, 0.0, 0.0]])
    person = Trajectories(w, None, row, np.array([255.5]), np.array([0]))
    (moved,) = added_by(plan, person)
    twice = np.where(np.arange(259)[:, None] == np.arange(259), 1, 2)[np.triu_indices(259)]
    g = float(np.square(moved[:259] / plan.scale_of("g")).sum())
    H = float((np.square(moved[259:] / plan.scale_of("H")) * twice).sum())
    assert 0.998 * 4 <= g <= 4
    assert 0.994 * 16 <= H <= 16
    reached = math.sqrt(g / sigma["g"] ** 2 + H / sigma["H"] ** 2)
    claimed = joint_mu(plan, sigma, "add-remove")
    assert claimed == pytest.approx(1.0)
    assert 0.999 <= reached / claimed <= 1
    assert joint_mu(plan, sigma, "replace-one") ** 2 == pytest.approx(3.4)  # the Poisson row would say 3.1


@pytest.mark.parametrize("times", ["continuous", "discrete"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_the_audit_s_search_does_not_beat_the_bound(adjacency: ps.dp.Adjacency, times: str) -> None:
    plan = replace(schema(times=times, errors="model"), feature_names=("x0", "x1", "x2"))
    sigma = {"g": 2 / math.sqrt(0.7), "H": 4 / math.sqrt(0.3)}
    found = max(worst_trajectories(plan, sigma, adjacency, seeded(start), 30)[0] for start in range(6))
    assert 0.8 < found / joint_mu(plan, sigma, adjacency) <= 1


def test_who_passes_the_cap_leaves_with_the_event() -> None:
    """A hazard cut to the cap, with the event kept, would pull every coefficient down."""
    w = np.concatenate([np.zeros(3), [math.log(0.6), math.log(0.6), *[math.log(0.1)] * 4]])
    leaves = ps.measure(FINE, one(4.0, 1), published=published(w)).real()
    stays = ps.measure(FINE, one(1.0, 0), published=published(w)).real()
    assert leaves == stays  # of the second bin nothing counts, the event neither
    over = np.concatenate([np.zeros(3), [0.01, *[math.log(0.1)] * 5]])
    nothing = ps.measure(FINE, one(1.0, 1), published=published(over))
    assert not nothing.g.any()
    assert not nothing.H.any()


def test_the_score_is_unbiased_at_the_truth_where_most_pass_the_cap() -> None:
    table = world(60_000, 5, hazard=0.35, censored=90.0, whole=True)
    assert table["died"].mean() > 0.75
    w = np.concatenate([BETA, np.full(6, math.log(0.35))])
    found = ps.measure(schema(), table, published=published(w)).real()
    kept = np.diag(found.H) > 100  # few live to the last bins within the cap
    assert kept.sum() >= 7
    assert np.abs(found.g / np.sqrt(np.maximum(np.diag(found.H), 1)))[kept].max() < 3.5


def test_who_is_at_risk_follows_from_columns_and_weights_and_not_from_the_event() -> None:
    table = world(3_000, 7, hazard=0.3)
    flipped = table | {"died": 1 - table["died"]}
    w = W + np.r_[0, 0, 0, np.full(6, 1.5)]
    first, second = (ps.measure(FINE, each, published=published(w)) for each in (table, flipped))
    assert np.array_equal(first.H, second.H)
    assert not np.array_equal(first.g, second.g)


def test_who_is_seen_beyond_the_last_edge_is_censored_there() -> None:
    at = {months: ps.measure(FINE, one(months, 1), published=published(W)) for months in (17.9, 18.0, 40.0)}
    censored = ps.measure(FINE, one(17.9, 0), published=published(W))
    assert at[18.0] == at[40.0] == censored
    assert at[17.9] != censored
    closed = replace(FINE, bins=replace(FINE.bins, closed="right"))
    assert ps.measure(closed, one(18.0, 1), published=published(W)).g.tolist() == at[17.9].g.tolist()


def test_decimal_commas_are_named_with_what_to_do() -> None:
    table = world(40)
    table["age"] = np.where(np.arange(40) % 2, "0,5", "0.5").astype(object)
    with pytest.warns(ps.errors.UnreadableRecordsWarning) as told:
        ps.measure(FINE, table, published=published(W), unreadable="leave out")
    assert "'age': 20 hold a number with a decimal comma" in str(told[0].message)
    assert "read the file with --decimal , or write decimals with a point" in str(told[0].message)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"age": [math.nan]}, "no numbers, in 'age'"),
        ({"age": ["x"]}, "no numbers, in 'age'"),
        ({"months": [-1.0]}, "beyond the edges of its bins"),
        ({"months": [None]}, "missing values"),
        ({"died": [2]}, "not among the plan's"),
    ],
)
def test_a_person_who_cannot_be_read_is_refused_or_left_out(bad: dict[str, list[object]], words: str) -> None:
    table = world(20)
    both = {name: np.array([*table[name], *bad.get(name, one(2.0, 1)[name])], object) for name in table}
    with pytest.raises(RecordError, match=words):
        ps.measure(FINE, both, published=published(W))
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="1 of the records"):
        left = ps.measure(FINE, both, published=published(W), unreadable="leave out")
    assert left == ps.measure(FINE, table, published=published(W))


def test_columns_are_read_by_name_in_any_container() -> None:
    pandas = pytest.importorskip("pandas", reason="a table of pandas")
    table = world(50)
    expected = ps.measure(FINE, table, published=published(W))
    frame = pandas.DataFrame(table)[["died", "months", "dose", "age", "arm"]].assign(town="x")
    assert ps.measure(FINE, frame, published=published(W)) == expected
    texts = {name: [str(value) for value in column] for name, column in table.items()}
    assert ps.measure(FINE, texts, published=published(W)) == expected
    with pytest.raises(DataError, match="X lacks the column 'months'"):
        ps.measure(FINE, {name: table[name] for name in (*NAMES, "died")}, published=published(W))
    with pytest.raises(DataError, match="no y is read"):
        ps.measure(FINE, table, table["died"], published=published(W))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"cap": 0.5}, "cap must be 1, got 0.5: below 1 one event alone"),
        ({"cap": 2.0}, "cap must be 1, got 2: beyond 1 intervals have missed too often"),
        ({"transform": (ps.transforms.ConstantFeature(1.8),)}, "at most clip_norm / sqrt 2, got 1.8"),
        ({"transform": (ps.transforms.ConstantFeature(1e308),)}, "at most clip_norm / sqrt 2, got 1e\\+308"),
        ({"transform": ()}, "transform must end in ConstantFeature"),
        ({"transform": (ps.Cells((ps.Truth("arm"),)), CONSTANT)}, "must not start with Cells"),
        ({"bins": ps.Bins("months", (3, 6, 9))}, "left truncation"),
        ({"bins": ps.Bins("months", (0, 6, 9), missing=True)}, "missing or negative time has no bin"),
        ({"bins": ps.Bins("months", tuple(range(400)))}, "at most 256 bins"),
        ({"bins": ("months", (0, 6, 9))}, "bins must be Bins"),
        ({"event": "arm"}, "event names 'arm', a column too"),
        ({"bins": ps.Bins("age", (0, 6, 9))}, "bins names 'age', a column too"),
        ({"feature_names": None}, "feature_names must name the columns"),
        ({"expected_events": 50}, "6 bins for 50 expected events.* expect 60 or more, or fewer bins"),
        ({"expected_events": 0}, "expected_events must be at least 1"),
        ({"times": "daily"}, "times must be 'continuous' or 'discrete', got 'daily'"),
        ({"time_unit": 1.0}, "time_unit 1 needs times='continuous'"),
        ({"times": "continuous", "time_unit": 2.0}, "edges that are multiples of it"),
    ],
)
def test_what_no_sum_of_hazards_can_be_is_refused(changed: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        schema(**changed)
