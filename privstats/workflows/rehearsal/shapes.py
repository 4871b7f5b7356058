"""Draw a private model's points over its columns' values, in small panels for a phone."""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.inference.scorecard_table import ColumnPoints, Scorecard
from privstats.transforms import Column, Dates, Numeric

COLUMNS = 6
"""Columns that are drawn."""

_INK, _GREY = "#1f4e79", "#b5b5b5"
_WIDE, _HIGH = 4.2, 1.45
_MARGIN = 0.1
_LONGEST = 10
_APART, _SLANT, _ROOM = 4, 40, 0.4
"""Names below a panel: dots between two names, degrees of slant, and inches for slanted names."""
_NOTHING = 1e-6
"""Share of the span of the cut points below which a value is shown as 0."""


def decisive(card: Scorecard) -> list[int]:
    """Return the columns with the largest variance of points, in table order."""
    row = len(card.outcomes) - 1
    spans = ((each.within(each.points, np.mean)[row], each.shares) for each in card.columns)
    weights = [float((np.clip(shares, 0, None) * points**2).sum()) for points, shares in spans]
    order = sorted(range(len(weights)), key=lambda place: -weights[place])
    return sorted(order[:COLUMNS])


def drawn(card: Scorecard) -> bytes:
    """Return a PNG with a panel per decisive column."""
    from privstats import optional_dependencies

    places, row = decisive(card), len(card.outcomes) - 1
    extent = _extent([card.columns[place] for place in places], row)
    drawing = optional_dependencies.load("matplotlib.figure", by="a figure")
    figure = drawing.Figure(figsize=(_WIDE, _HIGH * len(places) + 0.2), layout="constrained")
    panels = figure.subplots(len(places), sharey=True, squeeze=False)[:, 0]
    for axes, place in zip(panels, places, strict=True):
        column, declared = card.columns[place], card.cells.columns[place]
        axes.axhline(0, color="#444444", linewidth=0.6)
        if extent is not None:
            axes.set_ylim(extent)
        if isinstance(declared, Numeric | Dates):
            _curve(axes, column, declared, card.cells.marks[place], row)
        else:
            _values(axes, column, row)
        axes.set_title(column.name, loc="left", fontsize=9, fontweight="bold", parse_math=False)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    _part(figure, panels)
    figure.supylabel(f"log odds of {card.outcomes[row]}", fontsize=8, parse_math=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _extent(columns: Sequence[ColumnPoints], row: int) -> tuple[float, float] | None:
    """Return the points' axis ends: empty cells' wide bands would flatten every curve."""
    filled = [column.filled[column.intervals.of_codes] for column in columns]
    low = [column.low[row, codes] for column, codes in zip(columns, filled, strict=True)]
    high = [column.high[row, codes] for column, codes in zip(columns, filled, strict=True)]
    least, most = (np.concatenate([[0.0], *ends]) for ends in (low, high))
    room = _MARGIN / 2 * float(most.max() - least.min())
    return (float(least.min()) - room, float(most.max()) + room) if room > 0 else None


def _part(figure: Any, panels: Any) -> None:
    figure.draw_without_rendering()
    for axes in panels:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        if any(right.x0 - left.x1 < _APART for left, right in pairwise(sorted(boxes, key=lambda box: box.x0))):
            axes.tick_params(axis="x", labelrotation=_SLANT)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
            figure.set_figheight(figure.get_figheight() + _ROOM)


def _curve(axes: Any, column: ColumnPoints, declared: Numeric | Dates, marks: NDArray[Any], row: int) -> None:
    span = float(marks[-1] - marks[0]) or 1.0
    ends = np.concatenate([[marks[0] - _MARGIN * span], marks, [marks[-1] + _MARGIN * span]])
    points, reported = column.points[row, :-1], column.reported[row, column.intervals.of_codes[:-1]]
    low, high = column.low[row, :-1], column.high[row, :-1]
    axes.stairs(high, ends, baseline=low, fill=True, color=_INK, alpha=0.15)
    axes.stairs(points, ends, baseline=None, color=_GREY, linewidth=1.6)
    axes.stairs(np.where(reported, points, np.nan), ends, baseline=None, color=_INK, linewidth=1.8)
    gap = ends[-1] + _MARGIN * span
    _mark(axes, gap, column, row, -1)
    places = [float(marks[0]), float(np.median(marks)), float(marks[-1])] if len(marks) > 1 else [float(marks[0])]
    names = [*(_label(declared, each, span) for each in places), "missing"]
    axes.set_xticks([*places, gap], names, parse_math=False)


def _values(axes: Any, column: ColumnPoints, row: int) -> None:
    for place in range(len(column.cells)):
        _mark(axes, place, column, row, place)
    names = [cell if len(cell) <= _LONGEST else f"{cell[:_LONGEST]}..." for cell in column.cells]
    axes.set_xticks(range(len(names)), names, parse_math=False)


def _mark(axes: Any, x: float, column: ColumnPoints, row: int, place: int) -> None:
    """Draw one cell with its band; an empty cell is a dot within the axis."""
    colour, points = _INK if column.reported[row, place] else _GREY, float(column.points[row, place])
    if column.filled[place]:
        axes.plot([x, x], [column.low[row, place], column.high[row, place]], color=colour, alpha=0.4, linewidth=3)
    else:
        points = float(np.clip(points, *axes.get_ylim()))
    axes.plot([x], [points], marker="o", markersize=4, color=colour, clip_on=False)


def _label(column: Column, value: float, span: float) -> str:
    if isinstance(column, Dates):
        return column.edge_text(float(np.floor(value)))
    return f"{value if abs(value) > _NOTHING * span else 0.0:.3g}"
