"""Counts, then rounds: the course of hazards, and the table that is read from it."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.course import document, verify_next
from privstats.course.base import as_next, mu_of
from privstats.course.promise import Promise, epsilon_of
from privstats.errors import PlanError, ReleaseError, SchemaError
from privstats.estimates.score import shrunk_hazards
from privstats.inference.hazard_ratios import _words
from privstats.inference.last_step import EARLY
from privstats.printable import at_most
from privstats.randomness import seeded
from tests.hazard.worlds import BETA, course_of, halves, played, promise, published, schema, world

EVEN = np.tile([1 << 14, 1 << 15, 3 << 14, 1 << 16], 6)


@pytest.fixture(scope="module")
def releases() -> list[Any]:
    return played(course_of(8_000, 8.0), world(8_000), 1)


def test_the_table_covers_and_says_what_a_ratio_is(releases: list[Any]) -> None:
    table = inf.hazards(releases)
    low, high = table.conf_int().T
    assert ((low < BETA) & (high > BETA)).all()
    assert table.reported.all()
    assert np.allclose(table.hazard_ratios, np.exp(table.params))
    assert np.allclose(table.ratio_int(), np.exp(table.conf_int()))
    text = str(table.summary())
    first = " ".join(line.strip() for line in text.splitlines()[2:6])
    assert "A hazard ratio is not a causal effect, even in a trial: it compares persons still at risk" in first
    assert "up to a cumulative hazard of 1" in text
    assert "not reached at the mean of the columns" in text
    assert "Not rejecting is no evidence" in " ".join(text.split())
    assert "epsilon 8, delta 1e-06, all 5 sessions, the counts among them" in " ".join(text.split())
    assert "significant" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_same_counts_give_curves_and_tests(releases: list[Any]) -> None:
    table = inf.hazards(releases)
    curves = table.kaplan_meier()
    assert set(curves) == {"0", "1"}
    assert curves["0"].reported_to == 18
    assert len(curves["0"].timeline) == 24  # four cells in a bin
    assert (curves["0"].survival_function_ > curves["1"].survival_function_).all()
    assert table.logrank().p_value < 1e-4
    assert str(table.logrank()) == "log-rank test, unadjusted for other columns: P <.0001"
    assert str(table.proportionality()).startswith("check of proportional curves over 24 bins, unadjusted for other")
    assert table.proportionality().p_value > 0.001
    assert table.proportionality("arm") == table.proportionality()
    with pytest.raises(ReleaseError, match="only 'arm' was crossed"):
        table.proportionality("age")


def test_ratios_that_change_with_time_are_found() -> None:
    """From 0 to a log ratio of .9 over follow-up; the size is a benchmark's."""
    rng = np.random.default_rng(3)
    arm, edges = rng.integers(0, 2, 6_000), np.arange(0, 21, 3.0)
    hazards = 0.07 * np.exp(np.linspace(0, 0.9, 6)[None] * arm[:, None])
    left, cumulative = rng.exponential(size=6_000), np.cumsum(hazards, axis=1)
    place = (cumulative < left[:, None]).sum(axis=1)
    table = world(6_000) | {"arm": arm, "months": edges[np.minimum(place, 6)] + 0.5, "died": (place < 6).astype(int)}
    found = inf.hazards(played(course_of(6_000, 3.0), table, 1)).proportionality()
    assert found.reported
    assert found.rises
    assert found.p_value < 0.01


def test_a_plan_that_does_not_say_what_a_bin_is_runs_as_it_did_and_its_table_says_so_first() -> None:
    whole = ps.Hazard.full_plan(schema=schema(), cohort=ps.Cohort(2, 2, 16_000), privacy=promise(8.0))
    course = ps.Hazard.within(whole, "arm")
    assert "times" not in whole.to_toml()
    assert (course.first.noise.mu / course.mu) ** 2 == pytest.approx(0.06, rel=1e-6)
    text = " ".join(str(inf.hazards(played(course, world(8_000), 1)).summary()).split())
    assert text.index("A record that left inside a bin counts as at risk for all of it: biased where") < text.index(
        "not a causal effect"
    )
    assert "nobody leaves inside a bin, or all groups leave alike" in text
    said = inf.hazards(played(course_of(8_000, 8.0), world(8_000), 1)).summary()
    assert "Who left inside" not in str(said)
    assert "hazards even inside a cell of the counts, or nobody leaves inside it" in " ".join(str(said).split())
    with pytest.raises(PlanError, match="times must be stated: .*'discrete' where a bin is one visit"):
        ps.Hazard.start(schema(), ps.Cohort(2, 2, 16_000), promise(8.0))


@pytest.mark.parametrize("model", ["distributed", "panel"])
def test_other_trust_models_run_through_the_protocol(model: Any) -> None:
    table = world(6_000, 2)
    panel: dict[str, Any] = {}
    if model == "panel":
        members = tuple(ps.secagg.Identity(bytes([place + 1]) * 32).public.hex() for place in range(3))
        panel = {"protocol": "split", "panel": members}
    cohort, privacy = ps.Cohort(2, 2, 12_000), promise(20.0, model=model)
    whole = ps.Hazard.full_plan(schema=schema(times="continuous"), cohort=cohort, privacy=privacy, **panel)
    course = ps.Hazard.within(whole, "arm")
    found = inf.hazards(ps.simulate(course, [(part, None) for part in halves(table)], rng=seeded(3)))
    low, high = found.conf_int(0.001).T
    assert ((low < BETA) & (high > BETA)).all()
    assert found.reported.all()


def test_a_masked_course_is_read_the_same_from_files_and_from_the_command_line(
    releases: list[Any], tmp_path: Any, privstats: Any
) -> None:
    names = [f"{place}.privstats" for place in range(5)]
    for name, release in zip(names, releases, strict=True):
        release.save(tmp_path / name)
    loaded = [ps.Release.load(tmp_path / name) for name in names]
    assert np.array_equal(inf.hazards(loaded).params, inf.hazards(releases).params)
    done = privstats("table", *names, "--reader", "hazards", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert [row["term"] for row in rows] == ["arm", "age", "dose"]
    assert rows[0]["hazard_ratio"] == pytest.approx(float(inf.hazards(releases).hazard_ratios[0]))
    assert rows[0]["ratio_low"] < rows[0]["hazard_ratio"] < rows[0]["ratio_high"]
    again = privstats("table", *names[1:], names[0], "--reader", "hazards", cwd=tmp_path)
    assert again.returncode == 2
    assert "release 4 is not the next of its course" in again.stderr


def test_the_table_says_which_share_of_the_events_counts() -> None:
    """A hazard of .4 in six bins: most events come after the cap; of .07 nearly none does."""
    shares = {}
    for hazard in (0.07, 0.4):
        people = world(8_000, hazard=hazard)
        table = inf.hazards(played(course_of(8_000, 8.0), people, 1))
        X = np.column_stack([people[name] for name in ("arm", "age", "dose")])
        last = np.floor(1 / (hazard * np.exp(X @ BETA)))  # bins before the cap
        died = (people["died"] == 1) & (people["months"] < 18)
        shares[hazard] = (table.events_within, float((people["months"][died] < 3 * last[died]).mean()))
        assert ("cover the first part of the follow-up" in " ".join(str(table.summary()).split())) == (hazard == 0.4)
    for said, true in shares.values():
        assert said == pytest.approx(true, abs=0.06)
    assert shares[0.4][0] < 0.8


def test_where_the_cap_binds_every_way_to_read_a_ratio_says_so() -> None:
    """A star in the table and the figures and its sentence, first below the rows; the share in frames and csv."""
    table = inf.hazards(played(course_of(8_000, 30.0), world(8_000, hazard=0.2), 1))
    assert table.reported.all()
    share = f"{table.events_within:.0%}"
    said = table.summary()
    assert all(row[1].endswith("*") and row[-1] == share for row in said.rows)
    assert said.foot[0] == f"* {table.remark}."
    assert table.remark in said.methods
    rows = list(csv.DictReader(io.StringIO(said.as_csv())))
    assert [float(row["ratio"]) for row in rows] == pytest.approx(table.hazard_ratios, rel=1e-3)
    assert {row["counted"] for row in rows} == {share}
    assert {row["counted"] for row in table.to_rows()} == {table.events_within}
    figure = inf.plot_forest(table)
    assert table.remark in " ".join(figure.get_supxlabel().split())
    assert all("*" in each.get_text() for each in figure.axes[-1].get_yticklabels())
    free = inf.hazards(played(course_of(8_000, 30.0), world(8_000), 1))
    assert free.remark == ""
    assert "*" not in str(free)
    assert "counted" in free.to_rows()[0]


def test_hidden_ratios_are_not_told() -> None:
    table = inf.hazards(played(course_of(400, 0.5), world(400), 1))
    assert not table.reported.any()
    assert np.isnan(table.hazard_ratios).all()
    assert table.ratio_int().tolist() == [[0.0, math.inf]] * 3
    assert "too few are at risk from bin" in str(table.summary())


@pytest.mark.parametrize("rounds", [4, 6])
def test_rounds_are_no_advice_where_noise_hides_the_last_step(rounds: int) -> None:
    table = inf.hazards(played(course_of(400, 0.5, rounds=rounds), world(400), 1))
    text = " ".join(str(table.summary()).split())
    assert "noise hides the last step, and more rounds would not mend that: plan for more events" in text
    assert "six rounds" not in text


def test_more_rounds_are_the_advice_where_they_would_help() -> None:
    steep = {"beta": np.array([2.5, 0.0, 0.0]), "hazard": 0.01}
    two = inf.hazards(played(course_of(20_000, 100.0, rounds=1), world(20_000, **steep), 1))
    assert not two.reported.all()
    assert "plan six rounds where a ratio above 2 or below .5 is expected" in " ".join(str(two.summary()).split())
    assert "six rounds" not in _words(6)[EARLY]
    assert _words(7)[EARLY] == "the rounds ended before they converged: plan more rounds"


def test_counts_without_a_sum_leave_the_ratios() -> None:
    course = course_of(8_000, 8.0, rounds=6, retries=4)
    real = played(course, world(8_000), 1)
    without: list[Any] = [None]
    rng = seeded(4)
    while (plan := course.next(tuple(without))) is not None:
        parts = [ps.measure(plan.schema, part, published=plan.published) for part in halves(world(8_000))]
        without.append(as_next(course, without, ps.session.aggregate_unmasked(plan, parts, rng)))
    table = inf.hazards(without)
    assert np.abs(table.params - inf.hazards(real).params).max() < 4 * table.bse.max()
    with pytest.raises(ReleaseError, match="the counts ended without a sum"):
        table.kaplan_meier()
    with pytest.raises(ReleaseError, match="the counts ended without a sum"):
        table.proportionality()
    assert "proportional, arm" not in str(table.summary())
    assert table.lost == 1
    assert mu_of(course.first) > mu_of(course.plan)
    spent = math.hypot(mu_of(course.first), *[mu_of(course.plan)] * 6)
    assert spent < course.mu
    epsilon = at_most(epsilon_of(spent, 1e-6))
    for releases in (without, without[1:]):
        text = " ".join(str(inf.hazards(releases).summary()).split())
        assert f"epsilon {epsilon}, delta 1e-06, all {len(without)} sessions" in text
        methods = inf.hazards(releases).summary().methods
        assert f"All {len(without)} sessions together are differentially private with epsilon = {epsilon}" in methods


def test_the_check_of_curves_is_named_unadjusted_beside_other_columns(releases: list[Any]) -> None:
    """Proportional given the columns, and the curves are not: the strong column's persons leave the risk set first."""
    strong = world(40_000, beta=np.array([0.8, 3.0, 0.0]), censored=1e9)
    found = inf.hazards(played(course_of(40_000, 8.0), strong, 1))
    assert found.proportionality().p_value < 0.001
    text = " ".join(str(found.summary()).split())
    assert "proportional, arm (curves, unadjusted)" in text
    assert "unadjusted for" in text
    assert "no finding about this table's ratios" in text
    assert "average over time" not in text


def test_a_ratio_that_changes_with_time_is_read_as_an_average_over_time() -> None:
    """Three times the hazard in the first half, none more in the second: rejected, and the ratio lies between."""
    one = ps.HazardSchema(
        2,
        clip_norm=2.0,
        bins=ps.Bins("months", (0, 3, 6, 9, 12, 15, 18)),
        event="died",
        feature_names=("arm",),
        transform=(ps.transforms.ConstantFeature(1.0),),
        times="continuous",
    )
    course = ps.Hazard.start(one, ps.Cohort(2, 2, 40_000), promise(8.0), by="arm")
    rng, arm = np.random.default_rng(0), np.arange(20_000) % 2
    cumulative = rng.exponential(size=20_000)
    early, late = np.where(arm, 0.06, 0.02), 0.02
    died = np.where(cumulative < 9 * early, cumulative / early, 9 + (cumulative - 9 * early) / late)
    table = {"arm": arm, "months": np.minimum(died, 19.0), "died": (died <= 19.0) * 1}
    parts = [({name: column[k::2] for name, column in table.items()}, None) for k in (0, 1)]
    found = inf.hazards(ps.simulate(course, parts, rng=seeded(1)))
    assert found.proportionality().p_value < 0.001
    assert "a rejection does not make the ratio wrong: it is then an average over time" in " ".join(
        str(found.summary()).split()
    )
    events = (died < 18).astype(float)
    first = (events * (died < 9)).sum() / events.sum()
    assert found.params[0] == pytest.approx(first * math.log(3), abs=0.15)  # weighted by where the events are


def test_a_round_without_a_sum_publishes_its_weights_again(releases: list[Any]) -> None:
    course = course_of(8_000, 8.0, retries=1)
    counts, first, *_ = played(course, world(8_000), 1)
    again, now = course.next((counts, None)), course.next((counts,))
    assert again.published.sha256 == now.published.sha256
    assert course.next((counts, first, None)).published.sha256 == course.next((counts, first)).published.sha256
    assert course.next((counts, None, None, None, None, None)) is None
    with pytest.raises(PlanError, match="not of this course"):
        course.next((counts, releases[1]))
    with pytest.raises(PlanError, match="release 0 is not of this course's session 'counts'"):
        course.next((first,))


def test_parties_verify_the_weights(releases: list[Any]) -> None:
    course = course_of(8_000, 8.0)
    plan = course.next(tuple(releases[:2]))
    assert verify_next(course, plan, releases[:2]).place == 2
    held = plan.published.read()
    w, clock = held["w"].real, held["c"].integers
    other = np.where(clock < 1 << 16, clock // 2, clock)
    for off in (published(w + 0.01, clock), published(w, other)):
        with pytest.raises(PlanError, match="not the one that follows"):
            verify_next(course, replace(plan, published=off), releases[:2])


def test_all_sessions_together_keep_the_promise() -> None:
    course = course_of(1_000, 3.0)
    assert course.epsilon(1e-6) <= 3.0
    assert course.mu == pytest.approx(math.hypot(*(plan.noise.mu for plan in course.priced)))
    assert (course.first.noise.mu / course.mu) ** 2 == pytest.approx(0.12, rel=1e-6)
    for changed in ({"rounds": 40}, {"retries": 1}, {"promise": Promise(2.999, 1e-6)}):
        with pytest.raises(PlanError, match="promise says epsilon .* and all rounds together cost epsilon"):
            replace(course, **changed)


def test_a_course_is_the_same_from_its_file(tmp_path: Any, privstats: Any) -> None:
    course = course_of(1_000, 3.0, rounds=5)
    document.write(tmp_path / "study.toml", course)
    again = document.read(tmp_path / "study.toml")
    assert (again, again.digest) == (course, course.digest)
    (tmp_path / "plan.toml").write_text(replace(course.plan, privacy=promise(3.0)).to_toml())
    done = privstats("course", "init", "made.toml", "--plan", "plan.toml", "--by", "arm", "--rounds", "5", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert document.read(tmp_path / "made.toml") == course


def test_records_that_a_round_refuses_are_refused_before_the_counts() -> None:
    course = course_of(20, 3.0)
    table = world(20) | {"dose": ["x"] * 20}
    with pytest.raises(ps.errors.DataError, match="'dose'"):
        course.admits(table, None)
    assert course.admits(world(20), None) is None


def test_hazards_start_where_the_counts_are_clear_and_together_where_they_are_not() -> None:
    events, at_risk = np.array([50.0, 20.0, 5.0]), np.array([1_000.0, 900.0, 800.0])
    clear, hidden = (shrunk_hazards(events, at_risk, sigma) for sigma in (0.1, 1e4))
    assert np.abs(clear - events / at_risk).max() < 0.006
    assert hidden.max() / hidden.min() < 1.01
    assert (shrunk_hazards(-events, at_risk, 1.0) > 0).all()


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: course_of(100, 1.0, by="age_"), "by must be one of the columns arm, age, dose, got 'age_'"),
        (lambda: course_of(100, 1.0, rounds=0), "rounds must be an integer"),
        (
            lambda: ps.Hazard.start(schema(times="continuous"), ps.Cohort(2, 2, 9), ps.NoPrivacy()),
            "need differential privacy",
        ),
        (
            lambda: ps.Hazard.start(schema(times="continuous"), ps.Cohort(2, 2, 9), promise(1.0, delta=0.0)),
            "delta = 0|Laplace",
        ),
        (lambda: ps.Hazard.full_plan(schema=ps.MeanSchema(2, 1.0), cohort=ps.Cohort(2, 2, 9)), "takes a HazardSchema"),
        (lambda: ps.Hazard(course_of(100, 1.0).first), "plan must be a Plan of a HazardSchema"),
        (
            lambda: ps.Hazard(replace(course_of(100, 1.0).plan, published=published(np.ones(9), EVEN))),
            "publishes other weights than its schema starts from",
        ),
        (
            lambda: ps.Plan(
                schema=schema(), cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy(), published=published(np.zeros(9))
            ),
            "one record alone counts",
        ),
    ],
)
def test_what_is_no_course_is_refused(build: Any, words: str) -> None:
    with pytest.raises((PlanError, SchemaError), match=words):
        build()


def test_what_is_no_list_of_releases_is_refused(releases: list[Any]) -> None:
    for wrong, words in (
        ([], "nothing to read"),
        ([None, None], "nothing to read"),
        (releases[:1], "nothing to read"),
        (releases[0], "pass the list"),
        ([releases[0], *releases[2:]], "other weights"),
        ([releases[0], releases[2], releases[1], *releases[3:]], "is not the next of its course"),
        ([*releases[1:], releases[0]], "is not the next of its course"),
    ):
        with pytest.raises(ReleaseError, match=words):
            inf.hazards(wrong)
