"""How pictures of this room look: colours, the width of a phone, what is plain, and the formats that they are saved in.

4.2 inches wide, so that words of 9 points are read on a screen of 375 pixels.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privstats import optional_dependencies
from privstats.errors import ReleaseError

__all__ = ["INK", "LINES", "SMALL", "UNTOLD", "WIDE", "beside_zero", "check_format", "figure_of", "saved"]

LINES = ("#1b6ca8", "#c4521a", "#2f7d4f", "#7a4a9c", "#8a6d1d", "#444444", "#b03a6f", "#3aa5a5")
INK, UNTOLD = "#444444", "#b5b5b5"
WIDE = 4.2
SMALL = 8
_FORMATS = (".svg", ".png", ".pdf")


def check_format(path: str | Path | None) -> None:
    """Refuse another format before anything is drawn.

    Raises:
        ReleaseError: the name ends in none of the formats.
    """
    if path is not None and Path(path).suffix not in _FORMATS:
        raise ReleaseError(f"a figure is saved as {', '.join(_FORMATS)}; end its name in one of these")


def figure_of(height: float) -> Any:
    """An empty matplotlib figure, as wide as all are.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    drawing = optional_dependencies.load("matplotlib.figure", by="a figure")
    return drawing.Figure(figsize=(WIDE, height), layout="constrained")


def beside_zero(axes: Any, zero: float = 0.0) -> None:
    """A line at "no difference", and no frame but the axis below."""
    axes.axvline(zero, color=INK, linewidth=0.8, zorder=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)


def saved(figure: Any, path: str | Path | None) -> Any:
    """The figure, saved where there is a path."""
    if path is not None:
        figure.savefig(path)
    return figure
