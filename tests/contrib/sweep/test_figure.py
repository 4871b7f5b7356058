"""The figure of a study: nothing of it lies outside, whatever it shows."""

import dataclasses

import pytest

import privstats as ps
from privstats.contrib.sweep import Axes, Frame, figure, study

from .rivals.test_federated import QUICK
from .test_sweep import PLAN, TEST, TRAIN

pytest.importorskip("matplotlib", reason="the report extra is not installed")

HEADS = {"LDA": ps.heads.LDA, "NaiveBayes": ps.heads.NaiveBayes, "RDA": ps.heads.RDA}
BASELINES = {"scikit-learn LDA, pooled": 0.9, "logistic regression, pooled": 0.95}


def of_heads(names, baselines=BASELINES):
    """A study of these heads at two epsilons, with baselines of long names."""
    heads = {name: HEADS[name] for name in names}
    found = study(PLAN, TRAIN, TEST, heads, Axes(epsilon=[1.0, 3.0]), repeats=2, seed=1, with_baselines=False)
    return dataclasses.replace(found, baselines=baselines)


def legend_of(picture):
    picture.draw_without_rendering()
    return picture.legends[-1].get_window_extent()


@pytest.mark.parametrize("heads", [1, 3])
def test_the_legend_lies_within_the_figure(heads):
    picture = figure._figure(of_heads(list(HEADS)[:heads]))
    box = legend_of(picture)
    assert len(picture.legends) == 1
    assert box.x0 >= 0
    assert box.x1 <= picture.bbox.x1
    assert box.y1 <= picture.bbox.y1


def test_a_name_that_is_wider_than_the_figure_widens_it():
    picture = figure._figure(of_heads(["LDA"], {"a model of the pooled records " * 4: 0.9}))
    assert legend_of(picture).x1 <= picture.bbox.x1
    assert picture.get_size_inches()[0] > 5.6


@pytest.mark.parametrize(("scores", "end"), [((0.9, 1.0), 1.0), ((0.0, 0.1), 0.0)])
def test_intervals_end_where_a_score_does(scores, end):
    found = of_heads(["LDA"])
    rows = [row | {"score": scores[row["draw"]]} for row in found.draws]
    (axes,) = figure._figure(dataclasses.replace(found, draws=Frame.of(found.draws.columns, rows))).axes
    ends = [float(y) for bars in axes.collections for segment in bars.get_segments() for y in segment[:, 1]]
    assert end in (min(ends), max(ends))
    assert min(ends) >= 0
    assert max(ends) <= 1


@pytest.mark.parametrize(
    ("axes", "flat"), [(Axes(epsilon=[1.0, 3.0]), True), (Axes(epsilon=[1.0], alpha=[0.1, 1.0, 10.0]), False)]
)
def test_rivals_without_privacy_have_a_line_and_a_band_each_and_no_other_reference_counts_them(axes, flat):
    heads = {"LDA": ps.heads.LDA} | QUICK
    found = study(PLAN, TRAIN, TEST, heads, axes, repeats=2, seed=1, with_baselines=False)
    panel = figure._figure(found).axes[0]
    (exact,) = {row["mean"] for row in found.summary.where(model="none", head="LDA")}
    lines = {line.get_label(): line for line in panel.get_lines()}
    assert set(lines["no DP" if flat else "no DP, the best"].get_ydata()) == {exact}
    for name in QUICK:
        rows = sorted(found.summary.where(head=name), key=lambda row: row["alpha"] or 0)
        drawn = list(lines[f"{name}, no privacy"].get_ydata())
        assert drawn == [rows[0]["mean"]] * 2 if flat else drawn == [row["mean"] for row in rows]
    bands = len(panel.patches) if flat else len(panel.collections) - 1  # the intervals of LDA are a collection too
    assert bands == len(QUICK)


def test_a_chart_of_one_panel_is_read_on_a_phone():
    """Type of 9 points is 9 pixels where a picture has 343."""
    found = study(PLAN, TRAIN, TEST, {"LDA": ps.heads.LDA}, Axes(epsilon=(1.0, 3.0)), repeats=2, with_baselines=False)
    inches = int.from_bytes(figure.drawn(found)["png"][16:20]) / 150
    assert 9 * 343 / (72 * inches) > 9
