"""The score of a head as a picture: ROC curves, whether probabilities are true, and what is taken for what.

It draws the numbers of a :class:`~privstats.inference.HeadScore` and computes none. It needs the ``report`` extra
(matplotlib).
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.errors import ReleaseError
from privstats.inference.drawing import INK, LINES, SMALL, UNTOLD, check_format, figure_of, saved

if TYPE_CHECKING:
    from privstats.inference.counts.table import Interval
    from privstats.inference.head_scores.table import HeadScore

__all__ = ["plot_score"]

_ROC, _CALIBRATION = 3.1, 2.9
_MOST_INTERVALS, _LONGEST, _WIDEST = 5, 12, 62
_DARK = 0.55


def plot_score(score: HeadScore, path: str | Path | None = None) -> Any:
    """Draw a head's score in panels below each other: ROC curves, the calibration diagram, the confusion matrix.

    There is no panel of ROC curves where the plan has no table by class, none of calibration where margins were
    counted. Bands, bars and the ranges in cells are intervals that hold the noise and the sampling of the records, each
    by itself: of 100 that are drawn, about ``100 alpha`` miss. A cell that noise hides is grey.

    Args:
        score: from :func:`head_score`.
        path: where to save the picture, as svg, png or pdf; nowhere if omitted.

    Returns:
        The matplotlib figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ReleaseError: noise hides how many records there are, or another file format.

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
    if not score.told:
        raise ReleaseError(f"there is nothing to draw: {score.why_not_told}")
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
    figure.supxlabel(textwrap.fill(_said(score), _WIDEST), fontsize=SMALL, parse_math=False)
    return saved(figure, path)


def _said(score: HeadScore) -> str:
    noise = "the noise of the counts and " if score.release.plan.noise is not None else ""
    percent = " Confusion in %." if len(score.recall) > _MOST_INTERVALS else ""
    return (
        f"Bands, bars and ranges are {100 * (1 - score.alpha):g} % intervals over {noise}the sampling of records, "
        f"each by itself and not all at once. About {score.records:,.0f} records.{percent}"
    )


def _roc(axes: Any, score: HeadScore) -> None:
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
    for place, (name, curve) in enumerate(score.roc.items()):
        look = {"color": LINES[place % len(LINES)]}
        rates, low, high = curve.band()
        axes.fill_between(rates, low, np.append(high[1:], high[-1]), step="post", alpha=0.15, linewidth=0, **look)
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
        if false.told and true.told
    ]


def _calibration(axes: Any, score: HeadScore) -> None:
    """A box for every bin: as wide as the bin, for nobody knows where in it the probabilities lie."""
    found: Any = score.calibration
    axes.plot(found.edges[[0, -1]], found.edges[[0, -1]], color=INK, linewidth=0.8, linestyle=":")
    for low, high, share in zip(found.edges[:-1], found.edges[1:], found.right, strict=True):
        if not share.told:
            axes.axvspan(low, high, color=UNTOLD, alpha=0.3, linewidth=0)
            continue
        axes.fill_between([low, high], share.low, share.high, color=LINES[0], alpha=0.2, linewidth=0)
        axes.plot([low, high], [share.value] * 2, color=LINES[0], linewidth=1.5)
    axes.set(xlabel="probability of the predicted class", ylabel="share of right predictions", ylim=(0, 1.01))
    axes.set_xlim(*found.edges[[0, -1]])
    axes.set_title(f"calibration error {_range(found.error)}", loc="left", fontsize=SMALL)


def _confusion(axes: Any, score: HeadScore) -> None:
    """Shares of a label's records by prediction; a row adds up to about 1."""
    labels = [textwrap.shorten(name, _LONGEST, placeholder="…") for name in score.recall]
    shares = np.array([[each.value if each.told else np.nan for each in row] for row in score.predicted])
    axes.set_facecolor(UNTOLD)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, intervals in enumerate(score.predicted):
        for column, each in enumerate(intervals):
            axes.text(column, row, _cell(each, len(labels)), ha="center", va="center", fontsize=SMALL, **_ink(each))
    axes.set_xticks(range(len(labels)), labels, parse_math=False, rotation=90 if len(labels) > _MOST_INTERVALS else 0)
    axes.set_yticks(range(len(labels)), labels, parse_math=False)
    axes.set(xlabel="predicted", ylabel="label")


def _ink(each: Interval) -> dict[str, str]:
    return {"color": "white" if each.told and each.value > _DARK else "black"}


def _cell(each: Interval, classes: int) -> str:
    if not each.told:
        return "?"
    if classes > _MOST_INTERVALS:  # no room for more than two digits; the rest is in ``predicted``
        return f"{100 * each.value:.0f}"
    return f"{each.value:.2f}\n{each.low:.2f} to {each.high:.2f}"


def _range(each: Interval) -> str:
    return f"{each.value:.2f} ({each.low:.2f} to {each.high:.2f})" if each.told else "hidden by noise"
