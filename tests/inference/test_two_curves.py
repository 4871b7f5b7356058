"""Restricted mean survival in two groups, and follow-up: against lifelines without noise, and coverage with it."""

import numpy as np
import pytest
from scipy.stats import binom

import privstats as ps
from privstats import inference as inf
from tests.inference.test_counts import exact, noisy, people
from tests.lengths import sized

CURVE = {"time": "months", "event": "died", "times": "discrete"}


def test_without_noise_each_mean_and_their_contrasts_are_lifelines() -> None:
    lifelines = pytest.importorskip("lifelines", reason="compares with lifelines, which is not installed")
    from lifelines.utils import restricted_mean_survival_time

    data = people(800)
    means = inf.restricted_means(inf.kaplan_meier(exact(data), by="sex", **CURVE), 9.0)
    theirs = []
    for sex in ("f", "m"):
        own = data["sex"] == sex
        fitted = lifelines.KaplanMeierFitter().fit(data["months"][own], data["died"][own])
        theirs.append(restricted_mean_survival_time(fitted, 9.0))
    assert [mean.value for mean in means.means.values()] == pytest.approx(theirs, rel=1e-8)
    assert means.difference.value == pytest.approx(theirs[1] - theirs[0], rel=1e-7)
    assert means.ratio.value == pytest.approx(theirs[1] / theirs[0], rel=1e-8)
    assert means.ratio.low < means.ratio.value < means.ratio.high


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_differences_and_ratios_of_means_cover_under_noise(epsilon: float) -> None:
    """The truth is that of a very large sample."""
    big = inf.restricted_means(inf.kaplan_meier(exact(people(400_000, 9)), by="sex", **CURVE), 5.0)
    runs, missed, reported = sized(60, 1_000), np.zeros(2, int), 0
    for run in range(runs):
        curves = inf.kaplan_meier(noisy(people(3_000, 700 + run), epsilon, run), by="sex", **CURVE)
        found = inf.restricted_means(curves, 5.0)
        reported += found.difference.reported
        for place, (truth, own) in enumerate(((big.difference, found.difference), (big.ratio, found.ratio))):
            missed[place] += not own.low <= truth.value <= own.high
    assert reported > 0.9 * runs
    assert (missed <= binom.ppf(0.999, runs, 0.05)).all()


def test_means_that_noise_hides_have_no_contrast() -> None:
    curves = inf.kaplan_meier(noisy(people(1_000), 0.3, 0), by="sex", **CURVE)
    means = inf.restricted_means(curves, 11.0)
    assert not means.difference.reported
    assert (means.difference.low, means.difference.high, means.ratio.high) == (-11.0, 11.0, np.inf)
    assert [row["reported"] for row in means.to_rows()][2:] == [False, False]
    assert means.summary().rows[-1][1] == "-"


@pytest.mark.parametrize("curves", ["curves", {}])
def test_other_than_two_groups_are_refused(curves: object) -> None:
    one = inf.kaplan_meier(exact(people(300)), **CURVE) if curves == {} else curves
    with pytest.raises(ps.ReleaseError, match="restricted means compare two groups"):
        inf.restricted_means(one, 5.0)


def test_without_noise_follow_up_is_lifelines_with_the_event_exchanged() -> None:
    lifelines = pytest.importorskip("lifelines", reason="compares with lifelines, which is not installed")
    data = people(800)
    found = inf.follow_up(exact(data), by="sex", **CURVE)
    for sex in ("f", "m"):
        own = data["sex"] == sex
        theirs = lifelines.KaplanMeierFitter().fit(data["months"][own], ~data["died"][own])
        curve = found.curves[sex]
        assert np.allclose(curve.survival_function_, theirs.survival_function_.loc[0:].to_numpy()[-12:, 0], rtol=1e-9)
        assert found.medians[sex].value == theirs.median_survival_time_


def test_follow_up_is_the_time_of_censoring_and_not_of_the_event() -> None:
    """All are followed for 18 months: that many die before does not shorten the follow-up."""
    rng = np.random.default_rng(0)
    event = rng.exponential(15, 6_000)
    left = rng.uniform(12, 24, 6_000)
    schema = ps.CountSchema((ps.Bins("months", tuple(range(31))), ps.Categories("died", (0, 1))), (("months", "died"),))
    data = {"months": np.minimum(event, left), "died": (event < left).astype(int)}
    median = inf.follow_up(noisy(data, 8.0, 0, schema), **{**CURVE, "times": "continuous"}).medians[""]
    assert median.reported
    assert median.low < 18 < median.high
    assert median.value == pytest.approx(18, abs=0.6)
    assert np.median(data["months"]) < 13


def test_the_follow_up_of_a_group_without_records_is_hidden_and_not_unreached() -> None:
    arms = ps.CountSchema(
        (ps.Bins("months", (0, 1, 2, 3)), ps.Categories("died", (0, 1)), ps.Categories("arm", ("a", "b"))),
        (("months", "died", "arm"),),
    )
    records = {"months": [0, 1, 2, 2] * 9, "died": [0, 1, 0, 0] * 9, "arm": ["a"] * 36}
    release = ps.Release.exact(arms, ps.measure(arms, records))
    text = str(inf.follow_up(release, time="months", event="died", by="arm", times="discrete"))
    assert any(line.split() == ["b", "-", "0", "not", "reached"] for line in text.splitlines())


def test_the_table_of_follow_up_states_its_method() -> None:
    found = inf.follow_up(exact(people(800)), **CURVE)
    text = str(found)
    assert "Median follow-up from a release" in text
    assert "reverse Kaplan-Meier" in found.summary().methods
    assert found.to_rows()[0]["metric"] == "median follow-up"
