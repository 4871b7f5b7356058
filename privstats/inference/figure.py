"""Survival curves as a picture: a line and a band for every group, up to the time to which the curve is told.

It draws given numbers and computes none. Needs the ``report`` extra (matplotlib).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privstats import optional_dependencies
from privstats.errors import ReleaseError
from privstats.inference.survival import SurvivalCurve

__all__ = ["plot_survival"]

_LINES = ("#1b6ca8", "#c4521a", "#2f7d4f", "#7a4a9c", "#8a6d1d", "#444444")
_FORMATS = (".svg", ".png", ".pdf")


def plot_survival(
    curves: SurvivalCurve | Mapping[str, SurvivalCurve], path: str | Path | None = None, *, xlabel: str = "time"
) -> Any:
    """Draw Kaplan-Meier curves with their bands.

    Args:
        curves: from :func:`kaplan_meier`, one curve or one per group.
        path: where to save the picture, as svg, png or pdf; nowhere if omitted.
        xlabel: the unit of time.

    Returns:
        The matplotlib figure, for titles and sizes of your own.

    Raises:
        MissingExtraError: matplotlib is not installed.
        ReleaseError: no curve is told, or another file format.

    Example:
        >>> months, died = ps.Bins("month", (0, 6, 12, 24)), ps.Categories("died", (0, 1))
        >>> tables = ps.CountSchema((months, died), (("month", "died"),))
        >>> moments = ps.measure(tables, {"month": [3, 7, 20, 8], "died": [1, 0, 0, 1]})
        >>> release = ps.Release.exact(tables, moments)
        >>> curve = ps.inference.kaplan_meier(release, time="month", event="died")
        >>> ps.inference.plot_survival(curve, xlabel="months").axes[0].get_xlabel()
        'months'
    """
    groups = {"": curves} if isinstance(curves, SurvivalCurve) else dict(curves)
    if not any(len(curve.timeline) for curve in groups.values()):
        raise ReleaseError("noise hides every curve from its first bin on, so there is nothing to draw")
    if path is not None and Path(path).suffix not in _FORMATS:
        raise ReleaseError(f"a figure is saved as {', '.join(_FORMATS)}; end its name in one of these")
    drawing = optional_dependencies.load("matplotlib.figure", by="a figure")
    figure = drawing.Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.subplots()
    for place, (group, curve) in enumerate(groups.items()):
        times, survival, low, high = curve.corners()
        look = {"color": _LINES[place % len(_LINES)]}
        axes.plot(times, survival, label=group, **look)
        axes.fill_between(times, low, high, alpha=0.2, linewidth=0, **look)
    axes.set(xlabel=xlabel, ylabel="survival", ylim=(0, 1.02), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    if any(groups):
        axes.legend(frameon=False)
    if path is not None:
        figure.savefig(path)
    return figure
