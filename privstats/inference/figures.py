"""Draw survival curves, a head's score and scorecards; needs the ``report`` extra (matplotlib).

Every plot returns the matplotlib figure; ``path`` saves it as svg, png or pdf.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats import optional_dependencies
from privstats.errors import ReleaseError
from privstats.inference.summary import count_of

if TYPE_CHECKING:
    from privstats.inference.counts.survival import SurvivalCurve
    from privstats.inference.counts.table import Interval
    from privstats.inference.head_scores import HeadScore
    from privstats.inference.scorecard_table import ColumnPoints, Explanation, Scorecard


LINES = ("#1b6ca8", "#c4521a", "#2f7d4f", "#7a4a9c", "#8a6d1d", "#444444", "#b03a6f", "#3aa5a5")
INK, PALE = "#444444", "#b5b5b5"
WIDE = 4.2
SMALL = 8
_FORMATS = (".svg", ".png", ".pdf")
_ROC, _CALIBRATION = 3.1, 2.9
_MOST_INTERVALS, _LONGEST, _WIDEST = 5, 12, 62
_DARK = 0.55
_RISK_TIMES = 4
_UP, _DOWN = LINES[1], LINES[0]
_WIDEST_CELL = 26  # letters of a line that leave a phone half of its width for bars


def check_format(path: str | Path | None) -> None:
    """Refuse other file formats."""
    if path is not None and Path(path).suffix not in _FORMATS:
        raise ReleaseError(f"a figure is saved as {', '.join(_FORMATS)}; end its name with one of these")


def figure_of(height: float) -> Any:
    """Return an empty figure of common width."""
    drawing = optional_dependencies.load("matplotlib.figure", by="a figure")
    return drawing.Figure(figsize=(WIDE, height), layout="constrained")


def beside_zero(axes: Any, zero: float = 0.0) -> None:
    """Draw a line at zero, and only the lower axis."""
    axes.axvline(zero, color=INK, linewidth=0.8, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def saved(figure: Any, path: str | Path | None) -> Any:
    """Save the figure at any path."""
    if path is not None:
        figure.savefig(path)
    return figure


def plot_survival(
    curves: SurvivalCurve | Mapping[str, SurvivalCurve],
    path: str | Path | None = None,
    *,
    xlabel: str = "time",
    note: str = "",
) -> Any:
    """Draw Kaplan-Meier curves with their bands, and the numbers at risk below.

    Where exact counts have fewer than 20 at risk, the figure states that the band there may be too narrow.

    Args:
        xlabel: the unit of time.
        note: text for an empty corner.

    Raises:
        ReleaseError: no curve is reported, or another file format.

    Example:
        >>> months, died = ps.Bins("month", (0, 6, 12, 24)), ps.Categories("died", (0, 1))
        >>> tables = ps.CountSchema((months, died), (("month", "died"),))
        >>> moments = ps.measure(tables, {"month": [3, 7, 20, 8], "died": [1, 0, 0, 1]})
        >>> release = ps.Release.exact(tables, moments)
        >>> curve = ps.inference.kaplan_meier(release, time="month", event="died", times="discrete")
        >>> ps.inference.plot_survival(curve, xlabel="months").axes[0].get_xlabel()
        'months'
    """
    groups = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not any(len(curve.timeline) for curve in groups.values()):
        raise ReleaseError("noise hides every curve from its first bin on, so none can be drawn")
    check_format(path)
    figure = figure_of(3.5 + 0.18 * len(groups))
    axes, below = figure.subplots(2, 1, height_ratios=[3.2, 0.3 + 0.18 * len(groups)])
    for place, (group, curve) in enumerate(groups.items()):
        times, survival, low, high = curve.corners()
        look = {"color": LINES[place % len(LINES)]}
        axes.plot(times, survival, label=group, **look)
        axes.fill_between(times, low, high, alpha=0.2, linewidth=0, **look)
    axes.set(xlabel=xlabel, ylabel="survival", ylim=(0, 1.02), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    _at_risk(below, groups, axes.get_xlim())
    if any(groups) or note:
        names = axes.get_legend_handles_labels()
        words = axes.legend(*names, frameon=False, title=note or None, title_fontsize=SMALL, alignment="left")
        words.get_title().set_parse_math(False)
    return saved(figure, path)


def _at_risk(axes: Any, groups: Mapping[str, SurvivalCurve], ends: tuple[float, float]) -> None:
    axes.set(xlim=ends, ylim=(-len(groups) - 0.5, 0.5))
    axes.axis("off")
    noisy = any(curve.release.plan.noise is not None for curve in groups.values())
    look = {"fontsize": SMALL - 0.7, "ha": "center", "va": "center", "parse_math": False}
    title = "at risk, and the standard deviation of the noise" if noisy else "at risk"
    if any(curve.has_few_at_risk.any() for curve in groups.values()):
        title += " (where below 20, the band may be too narrow)"
    axes.text(ends[0], 0, title, **{**look, "ha": "left"})
    for row, curve in enumerate(groups.values(), start=1):
        times, numbers, errors = curve.risk_table()
        for place in np.unique(np.linspace(0, len(times) - 1, _RISK_TIMES).round().astype(int)) if len(times) else []:
            text = count_of(numbers[place]) + (f" \u00b1 {errors[place]:,.0f}" if noisy else "")
            axes.text(times[place], -row, text, color=LINES[(row - 1) % len(LINES)], **look)


def plot_score(score: HeadScore, path: str | Path | None = None) -> Any:
    """Draw a head's score in panels: ROC curves, the calibration diagram, the confusion matrix.

    ROC curves need a table by class, calibration needs probabilities. Intervals include noise and sampling, one by one:
    of 100 drawn, about ``100 alpha`` miss. A hidden cell is grey.

    Raises:
        ReleaseError: noise hides the number of records, or another file format.

    Example:
        >>> y = np.arange(900) % 2
        >>> X = np.random.default_rng(0).normal(size=(900, 2)) + 2 * y[:, None]
        >>> scoring = ps.Scoring(ps.heads.LDA().fit(X[:300], y[:300]), score_bins=10)
        >>> plan = scoring.plan(cohort=ps.Cohort(2, 2, 600), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[300:600], y[300:600]), (X[600:], y[600:])])
        >>> figure = ps.inference.plot_score(ps.inference.head_score(release))
        >>> [axes.get_ylabel() for axes in figure.axes]
        ['true positive rate', 'share of right predictions', 'label']
    """
    check_format(path)
    if not score.reported:
        raise ReleaseError(f"there is nothing to draw: {score.why_not_reported}")
    labels = list(score.recall)
    panels = [(_roc, _ROC + 0.2 * len(score.roc))] if score.roc else []
    panels += [(_calibration, _CALIBRATION)] if score.calibration is not None else []
    panels.append((_confusion, 1.2 + min(0.62 * len(labels), 3.2)))
    heights = [height for _, height in panels]
    figure = figure_of(sum(heights) + 0.5)
    every = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for axes, (draw, _) in zip(every, panels, strict=True):
        draw(axes, score)
        axes.spines[["top", "right"]].set_visible(False)
    figure.supxlabel(textwrap.fill(_note(score), _WIDEST), fontsize=SMALL, parse_math=False)
    return saved(figure, path)


def _note(score: HeadScore) -> str:
    noise = "the noise of the counts and " if score.release.plan.noise is not None else ""
    percent = " Confusion in %." if len(score.recall) > _MOST_INTERVALS else ""
    return (
        f"Bands, bars and ranges are {100 * (1 - score.alpha):g} % intervals over {noise}the sampling of records, "
        f"each pointwise and not all at once. About {count_of(score.records)} records.{percent}"
    )


def _roc(axes: Any, score: HeadScore) -> None:
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for place, (name, curve) in enumerate(score.roc.items()):
        look = {"color": LINES[place % len(LINES)]}
        rates, low, high = curve.band()
        axes.fill_between(rates, low, high, step="post", alpha=0.15, linewidth=0, **look)
        points = np.array([(0.0, 0.0), *_points(curve), (1.0, 1.0)])
        axes.plot(
            *points.T, marker="o", markersize=2.5, linewidth=1.2, label=f"{name}: AUC {_range(curve.auc)}", **look
        )
    axes.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1.01))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), frameon=False, fontsize=SMALL)


def _points(curve: Any) -> list[tuple[float, float]]:
    return [
        (false.value, true.value)
        for false, true in zip(curve.false_positive, curve.true_positive, strict=True)
        if false.reported and true.reported
    ]


def _calibration(axes: Any, score: HeadScore) -> None:
    diagram: Any = score.calibration
    axes.plot(diagram.edges[[0, -1]], diagram.edges[[0, -1]], color=INK, linewidth=0.8, linestyle=":")
    for low, high, share in zip(diagram.edges[:-1], diagram.edges[1:], diagram.right, strict=True):
        if not share.reported:
            axes.axvspan(low, high, color=PALE, alpha=0.3, linewidth=0)
            continue
        axes.fill_between([low, high], share.low, share.high, color=LINES[0], alpha=0.2, linewidth=0)
        axes.plot([low, high], [share.value] * 2, color=LINES[0], linewidth=1.5)
    whose, right = diagram.label or "the predicted class", diagram.label or "right predictions"
    axes.set(xlabel=f"probability of {whose}", ylabel=f"share of {right}", ylim=(0, 1.01))
    if diagram.means is not None:
        axes.plot(diagram.means, [share.value for share in diagram.right], "o", color=LINES[0], markersize=3)
    axes.set_xlim(*diagram.edges[[0, -1]])
    axes.set_title(f"calibration error {_range(diagram.error)}", loc="left", fontsize=SMALL)


def _confusion(axes: Any, score: HeadScore) -> None:
    labels = [textwrap.shorten(name, _LONGEST, placeholder="…") for name in score.recall]
    shares = np.array([[each.value if each.reported else np.nan for each in row] for row in score.predicted])
    axes.set_facecolor(PALE)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, intervals in enumerate(score.predicted):
        for column, each in enumerate(intervals):
            axes.text(column, row, _cell(each, len(labels)), ha="center", va="center", fontsize=SMALL, **_ink(each))
    axes.set_xticks(range(len(labels)), labels, parse_math=False, rotation=90 if len(labels) > _MOST_INTERVALS else 0)
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set(xlabel="predicted", ylabel="label")


def _ink(interval: Interval) -> dict[str, str]:
    return {"color": "white" if interval.reported and interval.value > _DARK else "black"}


def _cell(interval: Interval, classes: int) -> str:
    if not interval.reported:
        return "?"
    if classes > _MOST_INTERVALS:  # no room for more than two digits; the rest is in ``predicted``
        return f"{100 * interval.value:.0f}"
    return f"{interval.value:.2f}\n{interval.low:.2f} to {interval.high:.2f}"


def _range(interval: Interval) -> str:
    return (
        f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})" if interval.reported else "hidden by noise"
    )


def plot_scorecard(card: Scorecard, path: str | Path | None = None, *, row: int = 0) -> Any:
    """Draw a panel per column: its cells' points with bands, for the outcome at index ``row``.

    Unreported cells are grey; missing values come last.

    Example:
        >>> cells = ps.Cells((ps.Numeric("age", (40, 65)), ps.Truth("smoker")))
        >>> schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,), class_names=("well", "ill"))
        >>> table = {"age": [30, 50, 70, 80, 35, 45] * 9, "smoker": [0, 0, 1, 1, 1, 0] * 9}
        >>> moments = ps.measure(schema, table, ["well", "well", "ill", "ill", "ill", "well"] * 9)
        >>> release = ps.Release.exact(schema, moments)
        >>> card = ps.inference.scorecard(ps.heads.LDA().fit_release(release), release)
        >>> [panel.get_title(loc="left") for panel in ps.inference.plot_scorecard(card).axes]
        ['age', 'smoker']
    """
    check_format(path)
    rows = [len(column.cells) for column in card.columns]
    figure = figure_of(sum(0.24 * count + 0.45 for count in rows) + 0.5)
    panels = figure.subplots(len(rows), sharex=True, squeeze=False, height_ratios=[count + 1 for count in rows])[:, 0]
    for axes, column in zip(panels, card.columns, strict=True):
        _panel(axes, column, row)
    spread = f"\nlines: {100 * (1 - card.alpha):g} % of what noise does to these records' points"
    text = f"points: log odds of {card.outcomes[row]}{spread if card.noisy else ''}"
    figure.supxlabel(text, fontsize="small", parse_math=False)
    return saved(figure, path)


def plot_explanation(explained: Explanation, path: str | Path | None = None) -> Any:
    """Draw the points of one record as bars, the largest on top.

    Example:
        >>> parts = (("age", ">= 65", 0.8), ("sodium", "missing", -0.3))
        >>> figure = ps.inference.plot_explanation(ps.inference.Explanation("ill", -1.0, parts))
        >>> figure.get_supxlabel(), [float(bar.get_width()) for bar in figure.axes[0].patches]
        ('points: log odds of ill', [0.8, -0.3])
    """
    check_format(path)
    names = [textwrap.fill(f"{column} {cell}", _WIDEST_CELL) for column, cell, _ in explained.parts]
    points = [points for *_, points in explained.parts]
    lines = sum(name.count("\n") + 1 for name in names)
    figure = figure_of(0.2 * lines + 0.14 * len(names) + 1.0)
    axes = figure.subplots()
    axes.barh(range(len(points)), points, color=[_UP if each > 0 else _DOWN for each in points])
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    beside_zero(axes)
    figure.supxlabel(f"points: log odds of {explained.outcome}", fontsize="small", parse_math=False)
    return saved(figure, path)


def _panel(axes: Any, column: ColumnPoints, row: int) -> None:
    reported, last = column.reported[row], len(column.cells) - 1
    for place in range(last + 1):
        codes = column.intervals.of_codes == place
        points, ends = column.points[row, codes], [column.low[row, codes].min(), column.high[row, codes].max()]
        color = PALE if not reported[place] else _UP if points.mean() > 0 else _DOWN
        if column.filled[place]:
            axes.plot(ends, [place, place], color=color, linewidth=1.5)
        axes.plot([points.min(), points.max()], [place, place], color=color, linewidth=5, solid_capstyle="round")
        axes.plot(points.mean(), place, marker="s" if place == last else "o", color=color, markersize=5)
    axes.set_yticks(range(last + 1), column.cells, parse_math=False)
    axes.set_ylim(last + 0.6, -0.6)
    axes.set_title(column.name, loc="left", fontsize="medium", parse_math=False)
    beside_zero(axes)
