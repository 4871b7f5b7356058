"""Write a page of synthetic rows next to the released tables; needs the ``report`` extra."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privstats.contrib.synthetic.distances import Distance
from privstats.contrib.synthetic.rows import NO_INTERVALS, SyntheticRows
from privstats.extend.readers import INK, LINES, SMALL, figure_of
from privstats.extend.support import atomic_write
from privstats.workflows.report import Figure, Table, render

_MOST_PICTURES = 24
"""Pictures of each kind on a page."""
_MOST_BARS = 100
_NORMAL = 1.959963984540054
_BAR_INCHES, _PAIR_INCHES, _LONGEST = 0.16, 1.9, 18


def write_page(rows: SyntheticRows, path: str | os.PathLike[str]) -> None:
    """Write the page as one HTML file, complete or not at all.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    last = max(each.session for each in rows.distances)
    singles = [each for each in rows.distances if len(each.columns) == 1]
    pairs = [each for each in rows.distances if len(each.columns) == 2 and each.session == last]
    html = render(
        __package__,
        "page.html",
        names=list(rows.drawn),
        promise=rows.promise,
        warning=NO_INTERVALS,
        pairs=[" x ".join(pair) for pair in rows.pairs],
        singles=[_figure(each, one_way(each)) for each in singles[:_MOST_PICTURES]],
        doubles=[_figure(each, two_way(each)) for each in pairs[:_MOST_PICTURES]],
        hidden=[_title(each) for each in (*singles[_MOST_PICTURES:], *pairs[_MOST_PICTURES:])],
        distances=distance_table(rows.distances),
    )
    atomic_write(Path(path), html.encode(), shared=True)


def distance_table(distances: Sequence[Distance]) -> Table:
    """Return each released table's distance, with its interval."""
    return Table(
        "distances",
        ("table", "session", "from the exact table (95 %)", "from the released table", "in merged cells"),
        [
            (_title(each), str(each.session), each.exact_text, f"{each.value:.3f}", each.merged_text)
            for each in distances
        ],
    )


def one_way(table: Distance) -> Any:
    """Draw rows as bars, released shares as dots with 95 % noise; of many cells those between the rows' ends."""
    (cells,) = table.cells
    shown = np.arange(len(cells))
    if len(cells) > _MOST_BARS:
        held = np.append(np.flatnonzero(table.rows[:-1]), len(cells) - 1)
        shown = np.append(np.arange(held[0], held[-2:][0] + 1)[:_MOST_BARS], held[-1])
    figure = figure_of(0.8 + _BAR_INCHES * len(shown))
    axes, at = figure.subplots(), np.arange(len(shown))
    axes.barh(at, table.rows[shown], color="#aab4c2", height=0.7, label="synthetic rows")
    bars = {"xerr": _NORMAL * table.noise, "color": LINES[0], "markersize": 3, "linewidth": 1}
    axes.errorbar(table.released[shown], at, fmt="o", label="released", **bars)
    axes.set_yticks(at, [_short(cells[each]) for each in shown], fontsize=SMALL)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel("share of the records", fontsize=SMALL)
    axes.legend(fontsize=SMALL, frameon=False)
    return figure


def two_way(table: Distance) -> Any:
    """Draw released shares left, the rows' right, in one scale."""
    figure = figure_of(_PAIR_INCHES)
    panels = figure.subplots(1, 2, sharey=True)
    top = float(max(table.released.max(), table.rows.max(), 1e-9))
    for axes, shares, name in zip(panels, (table.released, table.rows), ("released", "synthetic rows"), strict=True):
        image = axes.imshow(np.sqrt(np.maximum(shares, 0.0)), vmin=0, vmax=math.sqrt(top), aspect="auto", cmap="Blues")
        axes.set_title(name, fontsize=SMALL, color=INK)
        axes.set_xlabel(_short(table.columns[1]), fontsize=SMALL)
        axes.set_xticks([])
        axes.set_yticks([])
    panels[0].set_ylabel(_short(table.columns[0]), fontsize=SMALL)
    scale = figure.colorbar(image, ax=panels, ticks=[0.0, math.sqrt(top)])
    scale.ax.set_yticklabels(["0", f"{top:.2g}"], fontsize=SMALL)
    return figure


def _figure(table: Distance, figure: Any) -> Figure:
    caption = f"{_title(table)}: distance {table.exact_text} from the exact table, {table.value:.3f} from the released."
    caption += f" {table.merged_text}." if table.merged else ""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return Figure.of_png(_title(table), caption, buffer.getvalue())


def _title(table: Distance) -> str:
    return " x ".join(table.columns)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
