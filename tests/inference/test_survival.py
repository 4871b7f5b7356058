"""Survival curves: against lifelines' numbers without noise, and coverage with it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import privstats as ps
from privstats import inference as inf
from privstats.errors import ReleaseError
from tests.inference.test_counts import SCHEMA, exact, noisy, people

CURVE = {"time": "months", "event": "died"}


def by_hand(months, died):
    """Kaplan-Meier and Greenwood from their definitions."""
    survival, sums, out = 1.0, 0.0, []
    for month in range(int(months.max()) + 1):
        at_risk, events = (months >= month).sum(), ((months == month) & died).sum()
        survival *= 1 - events / at_risk
        sums += events / (at_risk * (at_risk - events)) if at_risk > events else math.nan
        out.append((survival, survival * math.sqrt(sums)))
    return np.array(out).T


def test_without_noise_the_curve_is_kaplan_and_meier_s_with_greenwood_s_error():
    data = people(800)
    found = inf.kaplan_meier(exact(data), **CURVE)
    survival, error = by_hand(data["months"], data["died"])
    assert np.allclose(found.survival_function_, survival, rtol=1e-12)
    margin = 1.959963984540054 * error / (survival * np.log(survival))
    assert np.allclose(found.confidence_interval_[:, 0], survival ** np.exp(-margin), rtol=1e-9)
    assert np.allclose(found.confidence_interval_[:, 1], survival ** np.exp(margin), rtol=1e-9)
    assert found.timeline.tolist() == list(range(12))


def test_without_noise_it_is_lifelines():
    lifelines = pytest.importorskip("lifelines", reason="compares with lifelines, which is not installed")
    from lifelines.statistics import logrank_test
    from lifelines.utils import restricted_mean_survival_time

    data = people(800)
    theirs = lifelines.KaplanMeierFitter().fit(data["months"], data["died"])
    ours = inf.kaplan_meier(exact(data), **CURVE)
    assert np.allclose(ours.survival_function_, theirs.survival_function_.loc[0:].to_numpy()[-12:, 0], rtol=1e-9)
    assert np.allclose(ours.confidence_interval_, theirs.confidence_interval_.to_numpy()[-12:], rtol=1e-8)
    assert ours.median_survival_time_ == theirs.median_survival_time_
    assert ours.restricted_mean(9.0).value == pytest.approx(restricted_mean_survival_time(theirs, 9.0), rel=1e-8)
    men = data["sex"] == "m"
    test = logrank_test(data["months"][men], data["months"][~men], data["died"][men], data["died"][~men])
    found = inf.logrank_test(exact(data), by="sex", **CURVE)
    assert (found.test_statistic, found.p_value) == pytest.approx((test.test_statistic, test.p_value), rel=1e-8)


def test_groups_have_a_curve_each():
    data = people(800)
    curves = inf.kaplan_meier(exact(data), by="sex", **CURVE)
    assert set(curves) == {"f", "m"}
    women = data["sex"] == "f"
    survival, _ = by_hand(data["months"][women], data["died"][women])
    assert np.allclose(curves["f"].survival_function_, survival)


def test_continuous_times_count_half_of_the_censored():
    counts = np.array([[2.0, 1.0], [0.0, 1.0], [2.0, 0.0]])  # censored, events
    schema = ps.CountSchema((ps.Bins("t", (0, 1, 2, 3)), ps.Categories("e", (0, 1))), (("t", "e"),))
    records = [(t, e) for t, row in enumerate(counts) for e, n in enumerate(row) for _ in range(int(n))]
    data = {"t": [t + 0.5 for t, _ in records], "e": [e for _, e in records]}
    curve = inf.kaplan_meier(exact(data, schema), time="t", event="e", times="continuous")
    assert curve.survival_function_ == pytest.approx([1 - 1 / 5, (1 - 1 / 5) * (1 - 1 / 3), (1 - 1 / 5) * (1 - 1 / 3)])
    assert curve.timeline.tolist() == [1.0, 2.0, 3.0]
    area = (1 + 0.8) / 2 + (0.8 + 0.8 * 2 / 3) / 2 / 2 * 1.0
    half = 0.8 + (0.8 * 2 / 3 - 0.8) * 0.5
    assert curve.restricted_mean(1.5).value == pytest.approx((1 + 0.8) / 2 + (0.8 + half) / 2 * 0.5)
    assert area > 0


@pytest.mark.parametrize(("n", "epsilon"), [(1_000, 1.0), (4_000, 0.5)])
def test_curves_and_restricted_means_cover_under_noise(n, epsilon):
    """The truth is the curve of a very large sample."""
    big = inf.kaplan_meier(exact(people(300_000, 9)), **CURVE)
    truth, area = big.survival_function_, big.restricted_mean(5.0).value
    missed, told, areas = 0, 0, 0
    for run in range(80):
        curve = inf.kaplan_meier(noisy(people(n, 500 + run), epsilon, run), **CURVE)
        low, high = curve.confidence_interval_.T
        k = len(low)
        told += k
        missed += int(((low > truth[:k]) | (high < truth[:k])).sum())
        mean = curve.restricted_mean(5.0)
        areas += mean.told and not mean.low <= area <= mean.high
    assert told > 200
    assert missed < 0.09 * told
    assert areas <= 9


def test_counts_are_not_cut_at_zero_before_the_curve():
    """With many empty bins a cut would add noise to everybody's number at risk."""
    fine = ps.CountSchema(
        (ps.Bins("months", tuple(np.linspace(0, 60, 201))), ps.Categories("died", (0, 1))), (("months", "died"),)
    )
    data = {name: column for name, column in people(5_000).items() if name in ("months", "died")}
    at_risk = [inf.kaplan_meier(noisy(data, 1.0, seed, fine), **CURVE).at_risk[0] for seed in range(10)]
    assert np.mean(at_risk) == pytest.approx(5_000, abs=150)


def test_a_curve_without_events_covers_one():
    data = people(1_000) | {"died": np.zeros(1_000, int)}
    for seed in range(20):
        curve = inf.kaplan_meier(noisy(data, 1.0, seed), **CURVE)
        assert (curve.confidence_interval_[:, 1] == 1.0).mean() > 0.7
        assert len(curve.timeline) < 12
        assert not curve.restricted_mean(12.0).told


def test_the_log_rank_test_keeps_its_level_and_sees_a_difference():
    rejected, seen = 0, 0
    for run in range(80):
        data = people(3_000, run)
        seen += inf.logrank_test(noisy(data, 1.0, run), by="sex", **CURVE).p_value < 0.05
        mixed = data | {"sex": np.random.default_rng(run).permutation(data["sex"])}
        rejected += inf.logrank_test(noisy(mixed, 1.0, run), by="sex", **CURVE).p_value < 0.05
    assert rejected <= 11
    assert seen > 70


def test_a_log_rank_test_that_noise_hides_is_not_told():
    found = [inf.logrank_test(noisy(people(300, run), 0.3, run), by="sex", **CURVE) for run in range(20)]
    hidden = [each for each in found if not each.told]
    assert hidden
    assert all((each.p_value, each.degrees_freedom) == (1.0, 1) for each in hidden)
    assert all(math.isnan(each.test_statistic) for each in hidden)
    assert inf.logrank_test(noisy(people(3_000), 3.0, 1), by="sex", **CURVE).told
    alone = people(50)
    with pytest.raises(ReleaseError, match="a group of 'sex' has no record at risk"):
        inf.logrank_test(exact(alone | {"sex": np.full(50, "f")}), by="sex", **CURVE)


def test_the_median_has_an_interval():
    truth = inf.kaplan_meier(exact(people(100_000, 9)), **CURVE).median_survival_time_
    found = inf.kaplan_meier(noisy(people(5_000), 1.0, 1), **CURVE).median()
    assert found.low <= truth <= found.high
    nobody = inf.kaplan_meier(exact(people(300) | {"died": np.zeros(300, int)}), **CURVE).median()
    assert math.isinf(nobody.value)
    assert math.isinf(nobody.high)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda r: inf.kaplan_meier(r, time="sex", event="died"), "must be a variable of Bins"),
        (lambda r: inf.kaplan_meier(r, time="months", event="sex", times="daily"), "'discrete' or 'continuous'"),
        (lambda r: inf.kaplan_meier(r, time="age", event="died"), "no released table"),
        (lambda r: inf.kaplan_meier(r, **CURVE).restricted_mean(40.0), "at most the last edge"),
        (lambda r: inf.kaplan_meier(r, alpha=0.9, **CURVE), "alpha must be"),
        (lambda r: inf.logrank_test(r, by="age", **CURVE), "no released table"),
    ],
)
def test_a_wrong_call_gets_a_sentence(call, words):
    with pytest.raises(ReleaseError, match=words):
        call(exact(people(200)))
    assert SCHEMA.tables


def test_a_figure_has_a_line_and_a_band_for_every_group_from_1_to_where_the_curve_is_told(tmp_path):
    pytest.importorskip("matplotlib", reason="draws with matplotlib, which is not installed")
    data = people(3_000)
    curves = inf.kaplan_meier(noisy(data, 3.0, 1), by="sex", **CURVE)
    figure = inf.plot_survival(curves, tmp_path / "km.svg", xlabel="months")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(curves)
    assert len(axes.collections) == 2
    for line, curve in zip(axes.lines, curves.values(), strict=True):
        times, survival = line.get_data()
        assert (times[0], survival[0]) == (0, 1)
        assert times[-1] == curve.told_to
        assert survival[-1] == curve.survival_function_[-1]
        assert (np.diff(times) >= 0).all()
    assert "<svg" in (tmp_path / "km.svg").read_text()
    smooth = inf.kaplan_meier(noisy(data, 3.0, 1), times="continuous", **CURVE)
    times, survival, low, high = smooth.corners()
    assert times.tolist() == [0, *smooth.timeline]
    assert (low <= survival).all()
    assert (survival <= high).all()
    with pytest.raises(ReleaseError, match="end its name in"):
        inf.plot_survival(smooth, tmp_path / "km.docx")
    few = inf.kaplan_meier(noisy(people(20), 0.1, 1), **CURVE)
    with pytest.raises(ReleaseError, match="nothing to draw"):
        inf.plot_survival(few)


@pytest.mark.parametrize("times", ["discrete", "continuous"])
@pytest.mark.parametrize("first", [0, 6])
def test_a_line_begins_at_time_0_wherever_the_bins_do_and_has_the_area_of_the_restricted_mean(first, times):
    edges = tuple(range(first, first + 13))
    schema = ps.CountSchema((ps.Bins("months", edges), ps.Categories("died", (0, 1))), (("months", "died"),))
    data = people(800)
    counts = ps.measure(schema, {"months": data["months"] + first, "died": data["died"].astype(int)})
    curve = inf.kaplan_meier(ps.Release.exact(schema, counts), times=times, **CURVE)
    line, survival, low, high = curve.corners()
    assert (line[0], survival[0], low[0], high[0]) == (0, 1, 1, 1)
    assert len(line) == len(survival) == len(low) == len(high)
    area = float(np.trapezoid(survival, line))
    assert area == pytest.approx(curve.restricted_mean(curve.told_to).value)
