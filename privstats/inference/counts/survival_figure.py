"""Survival curves as a picture: given numbers, none computed. It needs the ``report`` extra (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privstats.errors import ReleaseError
from privstats.inference.counts.survival import SurvivalCurve
from privstats.inference.drawing import LINES, SMALL, check_format, figure_of, saved

__all__ = ["plot_survival"]


def plot_survival(
    curves: SurvivalCurve | Mapping[str, SurvivalCurve],
    path: str | Path | None = None,
    *,
    xlabel: str = "time",
    note: str = "",
) -> Any:
    """Draw Kaplan-Meier curves with their bands.

    Args:
        curves: from :func:`kaplan_meier`, one curve or one per group.
        path: where to save the picture, as svg, png or pdf; nowhere if omitted.
        xlabel: the unit of time.
        note: words for a corner that no curve crosses, such as a hazard ratio with its interval.

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
    check_format(path)
    figure = figure_of(3.2)
    axes = figure.subplots()
    for place, (group, curve) in enumerate(groups.items()):
        times, survival, low, high = curve.corners()
        look = {"color": LINES[place % len(LINES)]}
        axes.plot(times, survival, label=group, **look)
        axes.fill_between(times, low, high, alpha=0.2, linewidth=0, **look)
    axes.set(xlabel=xlabel, ylabel="survival", ylim=(0, 1.02), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    if any(groups) or note:
        names = axes.get_legend_handles_labels()
        words = axes.legend(*names, frameon=False, title=note or None, title_fontsize=SMALL, alignment="left")
        words.get_title().set_parse_math(False)
    return saved(figure, path)
