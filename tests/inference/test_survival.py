"""Survival curves: against lifelines' numbers without noise, and coverage with it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

import privstats as ps
from privstats import inference as inf
from privstats.errors import ReleaseError
from privstats.inference.counts.survival import _survival, exposure_in, hazard_variances
from privstats.inference.counts.table import spread
from tests.inference.test_counts import SCHEMA, exact, noisy, people
from tests.lengths import sized

CURVE = {"time": "months", "event": "died", "times": "discrete"}


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


def test_at_continuous_times_events_are_divided_by_the_time_at_risk_of_even_rates():
    """By hand: of 10 at risk 2 die and 3 leave, of the other 5 one of each; the overflow bin holds the rest."""
    schema = ps.CountSchema((ps.Bins("t", (0, 1, 2, 3)), ps.Categories("e", (0, 1))), (("t", "e"),))
    data = {"t": [0.5] * 5 + [1.5] * 2 + [2.5] * 3, "e": [1, 1, 0, 0, 0, 1, 0, 0, 0, 0]}
    curve = inf.kaplan_meier(exact(data, schema), time="t", event="e", times="continuous")
    first, second = 0.5 ** (2 / 5), 0.6 ** (1 / 2)  # (1 - q)^(d / (d + c))
    assert curve.survival_function_ == pytest.approx([first, first * second])
    assert curve.timeline.tolist() == [1.0, 2.0]
    assert curve.at_risk.tolist() == [10, 5]
    area = (1 - first) / -math.log(first) + first * (1 - second**0.5) / -math.log(second)
    assert curve.restricted_mean(1.5).value == pytest.approx(area)


def left_early(n, seed, leave=(0.05, 0.01), late=False):
    """Two arms of one hazard that leave at different rates a month, followed past the last edge or not."""
    rng = np.random.default_rng(seed)
    arm = rng.integers(0, 2, n)
    event, left = rng.exponential(50, n), rng.exponential(1 / np.array(leave)[arm])
    seen = np.minimum(np.minimum(event, left), rng.uniform(18, 40, n) if late else 18.5)
    return {"arm": arm, "months": seen, "died": (event == seen).astype(int)}


LEFT = ps.CountSchema(
    (ps.Categories("arm", (0, 1)), ps.Bins("months", (0, 6, 12, 18, 24)), ps.Categories("died", (0, 1))),
    (("arm", "months", "died"),),
)


def test_groups_that_leave_at_different_rates_are_not_told_apart_by_that():
    """Whole bins reject three quarters of the same counts."""
    rejected = {"discrete": 0, "continuous": 0}
    for run in range(40):
        release = noisy(left_early(5_000, run), 8.0, run, LEFT)
        for times in rejected:
            words = {**CURVE, "by": "arm", "times": times}
            rejected[times] += inf.logrank_test(release, **words).p_value < 0.05
            assert inf.proportionality_test(release, **words).reported
    assert rejected["continuous"] <= 6
    assert rejected["discrete"] >= 20


def test_a_last_bin_that_is_open_is_not_told_and_one_that_is_closed_is():
    """Followed past the last edge, its holders are those of all later times."""
    data = left_early(4_000, 1, late=True)
    (open_, closed) = (
        ps.CountSchema((ps.Bins("months", edges, open=how), ps.Categories("died", (0, 1))), (("months", "died"),))
        for edges, how in (((0, 6, 12, 18), "above"), ((0, 6, 12, 18, 100), "none"))
    )
    words = {**CURVE, "times": "continuous"}
    ours = {name: data[name] for name in ("months", "died")}
    short, long = (inf.kaplan_meier(exact(ours, schema), **words) for schema in (open_, closed))
    assert (short.reported_to, long.reported_to) == (12, 100)
    assert np.allclose(short.survival_function_, long.survival_function_[:2])
    assert not short.restricted_mean(18.0).reported
    assert long.restricted_mean(18.0).reported


def test_the_first_points_of_few_events_are_covered():
    """Estimate +- 2 errors, with errors from the same few events, missed 15 % of these."""
    schema = ps.CountSchema((ps.Bins("months", tuple(range(14))), ps.Categories("died", (0, 1))), (("months", "died"),))
    missed, rng, runs = 0, np.random.default_rng(5), sized(150, 300)
    for run in range(runs):
        event = rng.exponential(1 / 0.0015, 1_000)
        data = {"months": np.minimum(event, 12.5), "died": (event < 12.5).astype(int)}
        low, high = inf.kaplan_meier(
            noisy(data, 8.0, run, schema), **{**CURVE, "times": "continuous"}
        ).confidence_interval_[0]
        missed += not low <= math.exp(-0.0015) <= high
    assert missed <= binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize(("n", "epsilon"), [(1_000, 1.0), (4_000, 0.5)])
def test_curves_and_restricted_means_cover_under_noise(n, epsilon):
    """The truth is the curve of a very large sample."""
    big = inf.kaplan_meier(exact(people(100_000, 9)), **CURVE)
    truth, area = big.survival_function_, big.restricted_mean(5.0).value
    missed, reported, areas, runs = 0, 0, 0, sized(50, 200)
    for run in range(runs):
        curve = inf.kaplan_meier(noisy(people(n, 500 + run), epsilon, run), **CURVE)
        low, high = curve.confidence_interval_.T
        k = len(low)
        reported += k
        missed += int(((low > truth[:k]) | (high < truth[:k])).sum())
        mean = curve.restricted_mean(5.0)
        areas += mean.reported and not mean.low <= area <= mean.high
    assert reported > 200
    assert missed < 0.09 * reported
    assert areas <= binom.ppf(0.999, runs, 0.05)


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
        assert not curve.restricted_mean(12.0).reported


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
    hidden = [each for each in found if not each.reported]
    assert hidden
    assert all((each.p_value, each.degrees_freedom) == (1.0, 1) for each in hidden)
    assert all(math.isnan(each.test_statistic) for each in hidden)
    assert inf.logrank_test(noisy(people(3_000), 3.0, 1), by="sex", **CURVE).reported
    alone = people(50)
    with pytest.raises(ReleaseError, match="'sex' has no record"):
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
        (lambda r: inf.kaplan_meier(r, time="sex", event="died", times="discrete"), "must be a variable of Bins"),
        (lambda r: inf.kaplan_meier(r, time="months", event="sex", times="daily"), "'discrete' or 'continuous'"),
        (lambda r: inf.kaplan_meier(r, time="months", event="died"), "one time, such as a visit, or a span"),
        (lambda r: inf.logrank_test(r, time="months", event="died", by="sex"), "one time, such as a visit, or a span"),
        (lambda r: inf.kaplan_meier(r, time="age", event="died", times="discrete"), "no released table"),
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
    axes, _ = figure.axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(curves)
    assert len(axes.collections) == 2
    for line, curve in zip(axes.lines, curves.values(), strict=True):
        times, survival = line.get_data()
        assert (times[0], survival[0]) == (0, 1)
        assert times[-1] == curve.reported_to
        assert survival[-1] == curve.survival_function_[-1]
        assert (np.diff(times) >= 0).all()
    assert "<svg" in (tmp_path / "km.svg").read_text()
    smooth = inf.kaplan_meier(noisy(data, 3.0, 1), **CURVE | {"times": "continuous"})
    times, survival, low, high = smooth.corners()
    assert times.tolist() == [0, *smooth.timeline]
    assert (low <= survival).all()
    assert (survival <= high).all()
    with pytest.raises(ReleaseError, match="end its name with"):
        inf.plot_survival(smooth, tmp_path / "km.docx")
    few = inf.kaplan_meier(noisy(people(20), 0.1, 1), **CURVE)
    with pytest.raises(ReleaseError, match="none can be drawn"):
        inf.plot_survival(few)


@pytest.mark.parametrize("times", ["discrete", "continuous"])
@pytest.mark.parametrize("first", [0, 6])
def test_a_line_begins_at_time_0_wherever_the_bins_do_and_has_the_area_of_the_restricted_mean(first, times):
    edges = tuple(range(first, first + 13))
    schema = ps.CountSchema((ps.Bins("months", edges), ps.Categories("died", (0, 1))), (("months", "died"),))
    data = people(800)
    counts = ps.measure(schema, {"months": data["months"] + first, "died": data["died"].astype(int)})
    curve = inf.kaplan_meier(ps.Release.exact(schema, counts), **CURVE | {"times": times})
    line, survival, low, high = curve.corners()
    assert (line[0], survival[0], low[0], high[0]) == (0, 1, 1, 1)
    assert len(line) == len(survival) == len(low) == len(high)
    area = float(np.trapezoid(survival, line))  # lines are straight, and hazards even, inside a bin
    assert area == pytest.approx(curve.restricted_mean(curve.reported_to).value, rel=2e-3)


def follow(months, died):
    """Women of 40 years."""
    return {"months": months, "died": died, "sex": np.repeat("f", len(months)), "age": np.repeat(40.0, len(months))}


def test_exact_counts_without_an_event_do_not_show_that_none_can_happen():
    """A log-log interval has no width where nobody died, and 0 to 0 misses every risk above 0."""
    curve = inf.kaplan_meier(exact(follow(np.arange(100) % 10, np.zeros(100, int))), **CURVE)
    assert curve.survival_function_.tolist() == [1.0] * len(curve.timeline)
    low, high = curve.confidence_interval_.T
    assert (high == 1.0).all()
    assert low[0] == pytest.approx(1 - 3.841 / (100 + 3.841), abs=1e-3)
    assert (np.diff(low) < 0).all()
    mean = curve.restricted_mean(9.0)
    assert (mean.value, mean.high) == (9.0, 9.0)
    assert low[:9].sum() < mean.low < 9.0 - 0.1  # inside the area under the band, which falls at all times at once


@pytest.mark.parametrize("hazard", [0.0003, 0.002])
def test_restricted_means_of_few_events_keep_their_level(hazard):
    """With .9 or 6 deaths expected among 300, Wald's interval misses 10 to 12 %."""
    rng, missed, n, runs = np.random.default_rng(5), 0, 300, 250
    truth = ((1 - hazard) ** np.arange(1, 10)).sum()
    for _ in range(runs):
        dies, leaves = rng.geometric(hazard, n) - 1, rng.integers(6, 12, n)
        curve = inf.kaplan_meier(exact(follow(np.minimum(dies, leaves), (dies <= leaves).astype(int))), **CURVE)
        mean = curve.restricted_mean(9.0)
        missed += not mean.low <= truth <= mean.high
    assert missed <= 0.09 * runs  # 23 of 250: with probability .004 at a rate of .05


def test_worlds_without_an_event_cover_the_risk_that_made_none():
    """With .9 deaths expected among 300, two of five worlds have none; log-log intervals miss in each of them."""
    rng, covered, hazard, n = np.random.default_rng(5), [], 0.0003, 300
    for _ in range(60):
        dies = rng.geometric(hazard, n) - 1
        curve = inf.kaplan_meier(exact(follow(np.minimum(dies, 11), (dies <= 11).astype(int))), **CURVE)
        low, high = curve.confidence_interval_[9]
        if curve.survival_function_[9] == 1.0:
            covered.append(low <= (1 - hazard) ** 10 <= high)
    assert len(covered) > 15
    assert all(covered)


@pytest.mark.parametrize("hazard", [0.15, 0.4])
def test_many_events_in_a_bin_keep_the_level_at_continuous_times(hazard):
    """At .8 a bin hazards were read as shares, and intervals of the curve were about half as wide as they should be."""
    schema = ps.CountSchema(
        (ps.Bins("months", tuple(range(0, 15, 2))), ps.Categories("died", (0, 1))), (("months", "died"),)
    )
    rng, runs, n = np.random.default_rng(5), sized(80, 200), 200
    missed, means, mean_truth = np.zeros(3, int), 0, -math.expm1(-hazard * 6) / hazard
    truth = np.exp(-hazard * np.array([2.0, 4.0, 6.0]))
    for _ in range(runs):
        died, left = rng.exponential(1 / hazard, n), rng.exponential(30, n)
        data = {"months": np.minimum(np.minimum(died, left), 13.5), "died": (died <= np.minimum(left, 13.5)) * 1}
        curve = inf.kaplan_meier(exact(data, schema), **{**CURVE, "times": "continuous"})
        low, high = curve.confidence_interval_[:3].T
        missed += (low > truth) | (high < truth)
        mean = curve.restricted_mean(6.0)
        means += not mean.low <= mean_truth <= mean.high
    assert max(*missed, means) <= binom.ppf(0.999, runs, 0.05)


@pytest.mark.parametrize("times", ["discrete", "continuous"])
def test_variances_of_hazards_are_those_of_the_delta_method_over_all_counts(times):
    """Each bin's own variance, and the numbers at risk that later bins share, give the variance of log survival."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        counts = np.vstack([rng.integers(1, 60, (5, 2)), [40, 10]]).astype(float)
        survival, errors = spread(partial(_survival, times=times), counts.reshape(-1), 0.0)
        exposure = exposure_in(counts, times)[:5]
        shares = counts[:5, 1] / exposure
        hazards = -np.log1p(-shares) if times == "discrete" else shares
        variances = hazard_variances(hazards, counts[:5].sum(axis=1), exposure, times)
        assert np.cumsum(variances) == pytest.approx(np.square(errors / survival)[:5], rel=1e-9)


@pytest.mark.filterwarnings("error")
def test_noise_behind_the_reported_bins_neither_warns_nor_moves_a_mean():
    """Few are at risk in the last bins, where noise makes numbers at risk negative and survival as large as can be."""
    schema = ps.CountSchema(
        (ps.Bins("months", (*range(0, 25, 2), 60), open="above"), ps.Categories("died", (0, 1))), (("months", "died"),)
    )
    rng = np.random.default_rng(0)
    for seed in range(20):
        died = rng.exponential(1 / 0.3, 5_000)
        data = {"months": np.minimum(died, 30.0), "died": (died <= 30.0) * 1}
        mean = inf.kaplan_meier(noisy(data, 1.0, seed, schema), **{**CURVE, "times": "continuous"}).restricted_mean(6.0)
        assert mean.reported
        assert mean.low < mean.value < mean.high


CROWD = ps.CountSchema(
    (ps.Categories("sex", ("f", "m")), ps.Bins("months", tuple(range(7))), ps.Categories("died", (0, 1))),
    (("sex", "months", "died"),),
)


def falling(women, men):
    """Groups of whom these numbers are at risk at months 0, 1, ...; every other one who leaves has the event."""
    months, sex = [], []
    for name, numbers in (("f", women), ("m", men)):
        gone = -np.diff([*numbers, 0])
        months += np.repeat(np.arange(len(numbers)), gone).tolist()
        sex += [name] * numbers[0]
    return {"sex": np.array(sex), "months": np.array(months) + 0.5, "died": np.arange(len(months)) % 2}


@pytest.mark.parametrize(("times", "named"), [("discrete", "2 to 4 of f"), ("continuous", "3 to 5 of f")])
def test_a_table_of_exact_counts_names_the_rows_with_few_at_risk(times, named, tmp_path):
    """Below 20 at risk log-log intervals miss up to 13 %; with 20 they do not."""
    release = exact(falling((60, 20, 19, 9, 3), (90, 60, 50, 40, 20)), CROWD)
    words = {**CURVE, "times": times, "by": "sex"}
    curves = inf.kaplan_meier(release, **words)
    assert [curve.has_few_at_risk.sum() for curve in curves.values()] == [3, 0]
    caution = curves.summary().caution
    assert caution.startswith(f"Fewer than 20 records are at risk at {named}. Do not rely on intervals there: where 5%")
    assert caution in " ".join(str(curves).split())
    assert caution in curves.summary().as_html().replace("&#x27;", "'")
    assert inf.kaplan_meier(release, **words)["m"].summary().caution == ""
    first, few = (float(curves["f"].timeline[place]) for place in (1, 3))
    assert inf.risks_at(curves, first).summary().caution == ""
    assert f"at risk at {few:g} of f." in inf.risks_at(curves, few).summary().caution
    pytest.importorskip("matplotlib", reason="draws with matplotlib, which is not installed")
    assert "band may be too narrow" in below_of(inf.plot_survival(curves, tmp_path / "few.svg"))
    assert "below 20" not in below_of(inf.plot_survival(curves["m"]))


def below_of(figure):
    _, below = figure.axes
    return " ".join(text.get_text() for text in below.texts)


def test_under_noise_no_row_has_few_at_risk():
    curve = inf.kaplan_meier(noisy(falling((600, 40, 19, 9, 3), (600, 3)), 30.0, 1, CROWD), **CURVE, by="sex")["f"]
    assert len(curve.timeline) == 2
    assert not curve.has_few_at_risk.any()
    assert curve.summary().caution == ""


def test_a_median_follow_up_that_few_reach_is_cautioned():
    """Of 200 persons 3 are under observation when the first are censored: the median of these missed 22 %."""
    few = {"sex": ["f"] * 200, "months": [0.5] * 190 + [1.5] * 7 + [3.5, 3.5, 4.5], "died": [1] * 197 + [0] * 3}
    words = {**CURVE, "times": "continuous", "by": "sex"}
    caution = inf.follow_up(exact(few, CROWD), **words).summary().caution
    assert caution.startswith("Fewer than 20 records are at risk at 2 to 5 of f.")
    many = {"sex": ["f"] * 200, "months": [0.5] * 60 + [1.5] * 120 + [2.5] * 10 + [3.5] * 10, "died": [0] * 200}
    assert inf.follow_up(exact(many, CROWD), **words).summary().caution == ""
