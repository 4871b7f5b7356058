"""Scorecards and the points of one record as pictures.

They draw given numbers and compute none. They need the ``report`` extra (matplotlib).
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privstats.inference.drawing import LINES, UNTOLD, beside_zero, check_format, figure_of, saved

if TYPE_CHECKING:
    from privstats.inference.scorecards.table import ColumnPoints, Explanation, Scorecard

__all__ = ["plot_explanation", "plot_scorecard"]

_UP, _DOWN = LINES[1], LINES[0]
_WIDEST = 26  # letters of a line that leave a phone half of its width for bars


def plot_scorecard(card: Scorecard, path: str | Path | None = None, *, row: int = 0) -> Any:
    """Draw a panel for every column: the points of its cells with their bands, one column of panels wide.

    Cells that are not told are grey; a gap stands apart, at the bottom. 4.2 inches wide, so that a phone shows its
    words.

    Args:
        card: from :func:`scorecard`.
        path: where to save the picture, as svg, png or pdf; nowhere if omitted.
        row: of the outcome that is drawn.

    Returns:
        The matplotlib figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ReleaseError: another file format.

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
    said = f"points: log odds of {card.outcomes[row]}{spread if card.noisy else ''}"
    figure.supxlabel(said, fontsize="small", parse_math=False)
    return saved(figure, path)


def plot_explanation(explained: Explanation, path: str | Path | None = None) -> Any:
    """Draw the points of one record as bars, the largest on top.

    Args:
        explained: from :meth:`Scorecard.explain`.
        path: where to save the picture, as svg, png or pdf; nowhere if omitted.

    Returns:
        The matplotlib figure.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ReleaseError: another file format.

    Example:
        >>> parts = (("age", ">= 65", 0.8), ("sodium", "missing", -0.3))
        >>> figure = ps.inference.plot_explanation(ps.inference.Explanation("ill", -1.0, parts))
        >>> figure.get_supxlabel(), [float(bar.get_width()) for bar in figure.axes[0].patches]
        ('points: log odds of ill', [0.8, -0.3])
    """
    check_format(path)
    names = [textwrap.fill(f"{column} {cell}", _WIDEST) for column, cell, _ in explained.parts]
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
    """A cell is a line of its own; with a ramp its steps make a thick line from the lowest points to the highest."""
    told, last = column.told[row], len(column.cells) - 1
    for place in range(last + 1):
        steps = column.intervals.of_steps == place
        points, ends = column.points[row, steps], [column.low[row, steps].min(), column.high[row, steps].max()]
        color = UNTOLD if not told[place] else _UP if points.mean() > 0 else _DOWN
        if column.filled[place]:
            axes.plot(ends, [place, place], color=color, linewidth=1.5)
        axes.plot([points.min(), points.max()], [place, place], color=color, linewidth=5, solid_capstyle="round")
        axes.plot(points.mean(), place, marker="s" if place == last else "o", color=color, markersize=5)
    axes.set_yticks(range(last + 1), column.cells, parse_math=False)
    axes.set_ylim(last + 0.6, -0.6)
    axes.set_title(column.name, loc="left", fontsize="medium", parse_math=False)
    beside_zero(axes)
