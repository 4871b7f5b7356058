"""Interim looks: published boundaries, the joint law under noise, one budget for all looks, errors at their level."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, multivariate_normal, norm

import privstats as ps
from benchmarks.inference import looks as bench
from privstats import inference as inf
from privstats.course import Analysis, Looks, Margin
from privstats.course.kinds import course_kind
from privstats.dp import joint_mu
from privstats.errors import PlanError, ReleaseError
from privstats.estimates.boundaries import at_least, boundaries, crossed, median_unbiased, next_boundary, shaped, spent
from privstats.randomness import seeded
from tests import made
from tests.made import refused

EQUAL = np.arange(1, 6) / 5
NONE = np.zeros(5)


@pytest.mark.parametrize(
    ("kind", "published"),
    [
        ("obrien-fleming", [4.562, 3.226, 2.634, 2.281, 2.040]),  # O'Brien and Fleming 1979
        ("pocock", [2.413] * 5),  # Pocock 1977
    ],
)
def test_classical_boundaries_are_the_published_ones(kind: str, published: list[float]) -> None:
    np.testing.assert_allclose(shaped(kind, EQUAL, 0.05), published, atol=5.1e-4)


@pytest.mark.parametrize(
    ("kind", "published"),
    [  # R's ldbounds, five equal looks at two-sided .05 (Reboussin, DeMets, Kim and Lan 2000)
        ("obrien-fleming", [4.8769, 3.3570, 2.6803, 2.2898, 2.0310]),
        ("pocock", [2.4380, 2.4268, 2.4101, 2.3966, 2.3859]),
    ],
)
def test_spending_functions_give_the_published_boundaries(kind: str, published: list[float]) -> None:
    found = boundaries(EQUAL, NONE, np.diff(spent(kind, EQUAL, 0.05), prepend=0))
    np.testing.assert_allclose(found, published, atol=2e-4)


@given(
    st.lists(st.floats(0.1, 3.0), min_size=2, max_size=4),
    st.lists(st.floats(0.0, 2.0), min_size=4, max_size=4),
    st.sampled_from(["obrien-fleming", "pocock"]),
)
def test_under_noise_the_first_crossings_are_those_of_the_joint_normal_law(
    steps: list[float], noise: list[float], kind: str
) -> None:
    v = np.cumsum(steps)
    w = np.array(noise[: len(v)])
    bounds = boundaries(v, w, np.diff(spent(kind, v / v[-1], 0.05), prepend=0))
    assert crossed(bounds, v, w) == pytest.approx(0.05, abs=1e-7)
    known = np.isfinite(bounds)
    error = np.sqrt(v + w)
    covariance = np.minimum.outer(v, v) / np.outer(error, error)
    np.fill_diagonal(covariance, 1.0)
    law = multivariate_normal(np.zeros(known.sum()), covariance[np.ix_(known, known)], allow_singular=True)
    inside = law.cdf(bounds[known], lower_limit=-bounds[known])
    assert 1 - inside == pytest.approx(0.05, abs=2e-3)


def test_boundaries_of_the_information_alone_are_too_low_under_noise() -> None:
    noise = np.full(5, 3.0)
    alphas = np.diff(spent("pocock", EQUAL, 0.05), prepend=0)
    naive = boundaries(EQUAL + noise, NONE, alphas)
    assert crossed(naive, EQUAL, noise) > 0.12
    assert (boundaries(EQUAL, noise, alphas)[1:] > naive[1:]).all()


def test_a_look_that_is_left_out_leaves_its_alpha_to_later_ones() -> None:
    alphas = spent("obrien-fleming", (0.5, 1.0), 0.05)
    alone = next_boundary([], [1.0], [0.0], float(alphas[1]))
    assert alone == pytest.approx(norm.isf(0.025), abs=1e-6)
    assert next_boundary([], [1.0], [0.0], 0.0) == math.inf


def course_of(looks: Looks | None, epsilon: float = 8.0, **more: Any) -> ps.Effect:
    names = {"recovered": (0, 1), "fall": (0, 1)}
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=names, probability=0.5)
    declared = Analysis(primary=("recovered",), secondary=("fall",), looks=looks)
    return ps.Effect.start(schema, ps.Cohort(2, 2, 20_000), made.promise(epsilon=epsilon), analysis=declared, **more)


def played(
    course: ps.Effect, n: int, effect: float, lost: tuple[int, ...] = (), seed: int = 0
) -> list[ps.Release | None]:
    rng = np.random.default_rng(seed)
    age, arm = rng.uniform(20, 90, n), rng.integers(0, 2, n)
    y = np.column_stack([rng.random(n) < 0.3 + effect * arm, rng.random(n) < 0.1])
    X, noise, releases = np.column_stack([age, arm]), seeded(seed), list[ps.Release | None]()
    for round_ in ps.course.iter_rounds(course, releases):
        so_far = n * ((course.look_of(round_.place) or 0) + 1) // course.looks
        shards = [(X[k:so_far:2], y[k:so_far:2]) for k in (0, 1)]
        releases.append(None if round_.place in lost else ps.simulate(round_.plan, shards, rng=noise))
    return releases


@pytest.mark.parametrize(
    ("variances", "noise"),
    [
        ([0.0], [0.0]),
        ([0.0, 1.0], [0.0, 0.0]),
        ([-1.0], [0.0]),
        ([math.nan], [0.0]),
        ([1.0], [-1.0]),
        ([1.0], [math.inf]),
    ],
)
def test_variances_without_a_boundary_are_one_clear_refusal(variances: list[float], noise: list[float]) -> None:
    words = "a boundary needs the first above 0 and the second at least 0"
    refused(ReleaseError, words, next_boundary, [2.0] * (len(variances) - 1), variances, noise, 0.01)
    refused(ReleaseError, words, crossed, [2.0] * len(variances), variances, noise)


def test_one_budget_covers_all_looks_before_the_first() -> None:
    course, single = course_of(Looks(4, "pocock")), course_of(None)
    assert course.labels == ("0: outcome lines", "1: look 1", "2: look 2", "3: look 3", "4: look 4")
    assert course.mu == pytest.approx(single.mu, rel=1e-6)
    squares = np.square([plan.noise.mu for plan in course.priced if plan.noise])
    np.testing.assert_allclose(squares / course.mu**2, [0.1, *[0.225] * 4], rtol=1e-3)
    for plan in course.priced:  # what a look costs is what its schema proves of one record, in every look
        assert plan.noise is not None
        assert joint_mu(plan.schema, plan.noise.sigma, "add-remove") <= plan.noise.mu * (1 + 1e-9)


def test_a_run_between_machines_ends_before_each_later_look() -> None:
    course, kind = course_of(Looks(3, "pocock")), course_kind(course_of(None))
    assert [kind.pauses(course, place) for place in range(4)] == [False, False, True, True]
    assert not any(kind.pauses(course_of(None), place) for place in range(2))
    sentence = kind.ended(course, [None, None], Path("run"))
    assert sentence.startswith("look 1 of 3 ")
    assert kind.ended(course, [None] * 4, Path("run")).endswith("without a sum")
    assert "All looks are charged before the first." in kind.why(course)


def test_looks_come_back_from_the_file_and_are_in_the_digest(tmp_path: Path) -> None:
    course, other = course_of(Looks(3, "obrien-fleming", (0.2, 0.6, 1))), course_of(Looks(3, "obrien-fleming"))
    ps.course.write(tmp_path / "course.toml", course)
    back = ps.course.read(tmp_path / "course.toml")
    assert (back, back.digest) == (course, course.digest)
    assert len({course.digest, other.digest, course_of(None).digest}) == 3
    assert "[analysis.looks]" in (tmp_path / "course.toml").read_text()


def test_a_large_effect_crosses_and_the_table_prints_it() -> None:
    course = course_of(Looks(3, "obrien-fleming"))
    releases = played(course, 9_000, 0.12)
    table = inf.looks(releases, course)
    assert [each.number for each in table] == [1, 2, 3]
    assert table.stopped is not None
    text = " ".join(str(table.summary()).split())
    assert all(fact in text for fact in ("3 of 3;", "boundary is crossed at look"))
    assert all(fact in text for fact in ("Alpha 0.05", "3 looks", "O'Brien and Fleming"))
    first, last = table.rounds[0], table.rounds[-1]
    assert first.boundary == pytest.approx(3.71, abs=0.01)
    assert (first.conf_low, first.conf_high) == tuple(first.table.conf_int(first.level))
    assert last.spent == pytest.approx(0.05)
    assert [row["crossed"] for row in table.to_rows()] == [each.crossed for each in table]
    assert len(inf.looks(releases[:2], course)) == 1
    assert table.at(2)["fall"].declared == "exploratory"


def test_without_noise_the_looks_are_those_of_the_spending_function() -> None:
    course = course_of(Looks(5, "pocock"), epsilon=100.0)
    found = [each.boundary for each in inf.looks(played(course, 20_000, 0.0), course)]
    expected = boundaries(EQUAL, NONE, np.diff(spent("pocock", EQUAL, 0.05), prepend=0))
    np.testing.assert_allclose(found, expected, atol=0.01)


@pytest.mark.parametrize("lost", [(0,), (2,), (0, 1)])
def test_sessions_without_a_sum_are_skipped(lost: tuple[int, ...]) -> None:
    course = course_of(Looks(3, "pocock"))
    table = inf.looks(played(course, 9_000, 0.0, lost), course)
    assert [each.number for each in table] == [place for place in (1, 2, 3) if place not in lost]
    assert table.rounds[-1].spent == pytest.approx(0.05)


def test_releases_of_looks_are_read_by_looks_alone() -> None:
    course, usual = course_of(Looks(2, "pocock")), course_of(None)
    releases = played(course, 4_000, 0.0)
    for some in (releases, [releases[0], releases[1]], [releases[0], None, releases[2]]):
        refused(ReleaseError, "this course has interim looks", inf.effects, some)
    refused(ReleaseError, "whose analysis declares looks", inf.looks, releases, usual)
    refused(ReleaseError, "not of this course", inf.looks, releases, course_of(Looks(2, "obrien-fleming")))
    refused(ReleaseError, "no look has a release", inf.looks, releases[:1], course)
    refused(ReleaseError, r"a look with a sum \(1, 2\)", inf.looks(releases, course).at, 3)


WRONG: list[tuple[Any, str]] = [
    (lambda: Looks(1, "pocock"), "integer from 2 to 10, the final look included, got 1"),
    (lambda: Looks(3, "haybittle"), "'obrien-fleming' or 'pocock'"),
    (lambda: Looks(3, "pocock", (0.5, 1.0)), "3 rising numbers above 0, the last one 1"),
    (lambda: Looks(2, "pocock", (0.5, 0.9)), "2 rising numbers above 0, the last one 1"),
    (lambda: Looks(2, "pocock", (0.0, 1.0)), "2 rising numbers above 0, the last one 1"),
    (lambda: Looks.of({"number": 2}), "holds number and spending"),
    (lambda: Analysis.of({"primary": ["a"], "looks": 3}), "holds number and spending"),
    (lambda: Analysis(("a", "b"), looks=Looks(2, "pocock")), "it needs one primary outcome"),
    (lambda: Analysis(("a",), margins=(Margin("a", high=1.0),), looks=Looks(2, "pocock")), "omit them"),
    (lambda: Analysis(("a",), looks=3), "must be Looks"),
    (lambda: course_of(Looks(2, "pocock"), retries=1), "retries must be 0 with looks"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_what_is_no_look_is_one_clear_sentence(call: Any, words: str) -> None:
    refused(PlanError, words, call)


def test_looks_are_for_trials() -> None:
    schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome={"a": (0, 1)}, trim=0.1)
    declared = Analysis(("a",), looks=Looks(2, "pocock"))
    refused(
        PlanError,
        "a difference in a randomised trial",
        ps.Effect.start,
        schema,
        ps.Cohort(2, 2, 100),
        made.promise(),
        analysis=declared,
    )


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_no_effect_rarely_crosses_any_boundary(epsilon: float) -> None:
    row = bench.looked(4, "pocock", 3_000, epsilon, 0.0, 300)
    assert row["missed"] <= 0.093  # 28 of 300: with probability 1e-3 at a rate of .05
    assert row["usual levels"] > row["crossed"]


def test_a_look_states_the_price_of_all_looks_which_was_charged_before_the_first() -> None:
    course = course_of(Looks(3, "obrien-fleming"), epsilon=3.0)
    table = inf.looks(played(course, 3_000, 0.1)[:2], course)
    whole = "Privacy: epsilon 3, delta 1e-05, all sessions of its course, those to come among them"
    for summary in (table.summary(), table.at(1).summary()):
        assert whole in summary.promise
        assert "All sessions of its course together are differentially private with epsilon = 3 " in summary.methods


def test_outcomes_by_arm_of_a_look_are_refused() -> None:
    """The outcome session holds the first look's records, whatever the look."""
    course = course_of(Looks(2, "obrien-fleming"))
    table = inf.looks(played(course, 3_000, 0.1), course)
    for number in (1, 2):
        refused(ReleaseError, "the first look's records alone", table.at(number).by_arm)


def test_a_look_without_its_release_is_named() -> None:
    course = course_of(Looks(3, "obrien-fleming"))
    releases = played(course, 3_000, 0.1)
    assert inf.looks(releases, course).lacking == ()
    table = inf.looks([*releases[:1], None, *releases[2:]], course)
    assert table.lacking == (1,)
    assert "look 1 has no release" in table.summary().caution
    assert "look 1 has no release" in str(table)


def results(slope: float, bounds: Any, v: Any, w: Any, trials: int, seed: int) -> tuple[Any, Any]:
    """Return each trial's place in the stagewise ordering and statistic, and the look at which it stopped."""
    rng = np.random.default_rng(seed)
    steps = np.sqrt(np.diff(v, prepend=0.0))
    sums = np.cumsum(rng.normal(size=(trials, len(v))) * steps, axis=1) + slope * v
    Z = (sums + rng.normal(size=sums.shape) * np.sqrt(w)) / np.sqrt(v + w)
    over = np.abs(Z) >= bounds
    over[:, -1] = True
    look = over.argmax(axis=1)
    z = Z[np.arange(trials), look]
    return np.stack([np.sign(z) * (len(v) - 1 - look), z], axis=1), look


def designed(steps: list[float], noise: list[float], kind: str) -> tuple[Any, Any, Any]:
    v = np.cumsum(steps)
    w = np.array(noise[: len(v)])
    return boundaries(v, w, np.diff(spent(kind, v / v[-1], 0.05), prepend=0)), v, w


DESIGN = (
    st.lists(st.floats(0.1, 3.0), min_size=1, max_size=4),
    st.lists(st.floats(0.0, 2.0), min_size=4, max_size=4),
    st.sampled_from(["obrien-fleming", "pocock"]),
)


@given(*DESIGN, st.floats(-3, 3), st.integers(0, 1_000))
def test_a_result_is_exceeded_as_often_as_in_drawn_trials(
    steps: list[float], noise: list[float], kind: str, slope: float, seed: int
) -> None:
    bounds, v, w = designed(steps, noise, kind)
    order, look = results(slope, bounds, v, w, 20_000, seed)
    for place in range(3):
        rank, z = order[place]
        as_large = (order[:, 0] > rank) | ((order[:, 0] == rank) & (order[:, 1] >= z))
        found = at_least(slope, bounds[: look[place]], z, v[: look[place] + 1], w[: look[place] + 1])
        assert found == pytest.approx(as_large.mean(), abs=0.02)  # 5.6 standard errors


@pytest.mark.parametrize("slope", [-0.4, 0.0, 0.9, 2.5])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["obrien-fleming", "pocock"])
def test_estimates_are_too_large_in_half_of_trials_and_intervals_miss_in_alpha(
    kind: str, noise: float, slope: float
) -> None:
    """At the true slope the chance of a result as large is even on 0 to 1, so both follow whatever the slope is."""
    bounds, v, w = designed([1.0, 1.0, 1.0, 1.0], [noise] * 4, kind)
    order, look = results(slope, bounds, v, w, 400, 5)
    chances = [at_least(slope, bounds[:k], z, v[: k + 1], w[: k + 1]) for (_, z), k in zip(order, look, strict=True)]
    assert kstest(chances, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["obrien-fleming", "pocock"])
def test_the_effect_read_where_a_boundary_was_crossed_is_too_far_from_no_effect(kind: str) -> None:
    bounds, v, w = designed([1.0, 1.0, 1.0, 1.0], [0.5] * 4, kind)
    (_, z), look = (each.T for each in results(0.9, bounds, v, w, 20_000, 5))
    stopped = np.abs(z) >= bounds[look]
    read = (z * np.sqrt(v + w)[look] / v[look])[stopped]
    assert 0.3 < stopped.mean() < 0.9
    assert read.mean() > 1.15 * 0.9


@given(*DESIGN, st.floats(-6, 6), st.integers(0, 3))
def test_the_interval_excludes_no_effect_exactly_where_a_boundary_is_crossed(
    steps: list[float], noise: list[float], kind: str, z: float, last: int
) -> None:
    bounds, v, w = designed(steps, noise, kind)
    k = min(last, len(v) - 1)
    stopped = abs(z) >= bounds[k]
    if math.isfinite(bounds[k]) and (stopped or k == len(v) - 1) and abs(abs(z) - bounds[k]) > 1e-3:
        estimate, low, high = median_unbiased(bounds[:k], z, v[: k + 1], w[: k + 1], 0.05)
        assert low < estimate < high
        assert (low > 0 or high < 0) is bool(stopped)


@given(st.floats(0.1, 10), st.floats(0, 5), st.floats(-8, 8), st.floats(0.01, 0.3))
def test_after_one_look_the_estimate_is_the_usual_one(v: float, w: float, z: float, alpha: float) -> None:
    error = math.sqrt(v + w) / v
    usual = (z * error, (z - norm.isf(alpha / 2)) * error, (z + norm.isf(alpha / 2)) * error)
    assert median_unbiased((), z, (v,), (w,), alpha) == pytest.approx(usual, abs=1e-6 * error)


def test_a_trial_that_stopped_prints_the_median_unbiased_effect_next_to_the_one_read() -> None:
    course = course_of(Looks(3, "pocock"))
    releases = played(course, 9_000, 0.06)
    table = inf.looks(releases, course)
    assert (table.stopped, table.final) != (None, None)
    final, read = table.final, table.stopped.table
    assert 0 < final.conf_low < final.estimate < final.conf_high
    assert final.estimate <= read.estimate + 1e-9
    rows = [(row["look"], row["final_estimate"], row["final_low"], row["final_high"]) for row in table.to_rows()]
    assert tuple(final) in rows
    assert sum(not math.isnan(row[1]) for row in rows) == 1
    text = " ".join(str(table.summary()).split())
    assert f"median-unbiased effect {final.estimate:.4g} [{final.conf_low:.4g}, {final.conf_high:.4g}]" in text
    assert f"at look {final.number} {read.estimate:.4g}" in text
    assert "too far from 0" in text
    assert "Median-unbiased effect" in table.summary().methods


def test_a_trial_that_goes_on_has_no_final_effect_and_one_that_ended_has() -> None:
    course = course_of(Looks(3, "obrien-fleming"))
    releases = played(course, 6_000, 0.0)
    going, ended = inf.looks(releases[:2], course), inf.looks(releases, course)
    assert going.final is None
    assert all(math.isnan(row["final_estimate"]) for row in going.to_rows())
    assert "median-unbiased" not in str(going.summary())
    assert (ended.stopped, ended.final.number) == (None, 3)
    assert ended.final.conf_low < 0 < ended.final.conf_high


def test_a_trial_that_stopped_at_its_first_look_keeps_the_effect_read_there() -> None:
    """Nothing was chosen before it: the estimate is the usual one, whatever the degrees of its P value."""
    course = course_of(Looks(3, "pocock"))
    table = inf.looks(played(course, 9_000, 0.3), course)
    assert table.stopped.number == 1
    assert table.final.estimate == pytest.approx(table.stopped.table.estimate, rel=1e-6)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock"])
def test_over_trials_the_final_effect_is_too_large_in_half_and_its_interval_misses_in_alpha(spending: Any) -> None:
    course, trials = course_of(Looks(4, spending)), 150
    finals = [inf.looks(played(course, 1_200, 0.07, seed=seed), course).final for seed in range(trials)]
    known = [each for each in finals if each is not None]
    assert len(known) == trials
    assert sum(not each.conf_low <= 0.07 <= each.conf_high for each in known) <= 19  # 1e-4 at a rate of .05
    assert 0.35 < np.mean([each.estimate > 0.07 for each in known]) < 0.65
