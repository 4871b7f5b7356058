"""Draw forest and balance plots; needs the ``report`` extra (matplotlib)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.figures import INK, LINES, PALE, SMALL, beside_zero, check_format, figure_of, saved
from privstats.inference.regression.summary import ratio_of

if TYPE_CHECKING:
    from privstats.inference.regression.table import Regression
    from privstats.inference.treatment_effects.balance import Balance
    from privstats.inference.treatment_effects.table import EffectTable

    Estimates: TypeAlias = EffectTable | Regression

_FOOT = 52  # letters of a line below all panels
_NAME = 17  # letters of a line that leave a phone half of its width for intervals
_ROW, _LINE, _PANEL, _REST = 0.16, 0.16, 0.34, 0.62  # inches
_BESIDE = 0.16  # offset as a share of a row
_APART = 0.1  # a standardised difference that is usually called small
_TICKS = (1, 2, 5)
_MOST_TICKS = 3  # on an axis that takes half of the picture


class ForestRow(NamedTuple):
    """One row of a forest plot.

    Attributes:
        value, low, high: NaN and infinite where not reported.
        group: declared family, or ``"exploratory"``.
    """

    name: str
    value: float
    low: float
    high: float
    group: str
    starred: bool = False

    @property
    def reported(self) -> bool:
        """Whether there is an interval to draw."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def text(self) -> str:
        """Estimate and interval, as text."""
        if not self.reported:
            return "not reported"
        width = self.high - self.low
        digits = min(max(1 - math.floor(math.log10(width)), 0), 6) if width > 0 else 3
        value, low, high = (f"{each:.{digits}f}" for each in (self.value, self.low, self.high))
        return f"{value}{'*' if self.starred else ''} ({low} to {high})"


def forest_rows(tables: Estimates | Mapping[str, Estimates], alpha: float = 0.05) -> list[ForestRow]:
    """Return the rows of a forest plot: one per effect, or per column of a regression.

    Raises:
        ReleaseError: no table, or tables of several kinds.
    """
    named = dict(tables) if isinstance(tables, Mapping) else {"": tables}
    if not named or len({_scale(each) for each in named.values()}) != 1:
        raise ReleaseError("a forest plot draws one or more tables of one kind; draw other kinds separately")
    return [row for name, each in named.items() for row in _rows(name, each, alpha)]


def plot_forest(
    tables: Estimates | Mapping[str, Estimates], path: str | Path | None = None, *, alpha: float = 0.05
) -> Any:
    """Draw estimates with their intervals, declared and exploratory ones in separate panels.

    Ratios have a logarithmic axis with a line at 1, others a line at 0. Unreported rows have no mark. ``tables`` are
    from :func:`effect`, :func:`hazards` or a regression; several of one kind by name.

    Raises:
        ReleaseError: nothing is reported, tables of several kinds, or another file format.

    Example:
        >>> X, y = np.array([[0.1], [0.2], [0.4], [0.8]]), np.array([1.2, 1.5, 1.7, 2.7])
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=4.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> fit = ps.inference.ols(ps.Release.exact(schema, ps.measure(schema, X, y)))
        >>> [panel.get_title(loc="left") for panel in ps.inference.plot_forest({"growth": fit}).axes[:1]]
        ['exploratory']
    """
    check_format(path)
    rows = forest_rows(tables, alpha)
    first = next(iter(tables.values())) if isinstance(tables, Mapping) else tables
    scale = _scale(first)
    if not any(row.reported for row in rows):
        raise ReleaseError("noise hides every row, so none can be drawn")
    order = [*_DECLARED, *dict.fromkeys(row.group for row in rows if row.group not in _DECLARED)]
    apart = {group: [row for row in rows if row.group == group] for group in order}
    groups = {group: each for group, each in apart.items() if each}
    heights = [_PANEL + sum(_height(row) for row in each) for each in groups.values()]
    tabled = tables.values() if isinstance(tables, Mapping) else [tables]
    remarks = [textwrap.fill(f"* {each}", _FOOT) for each in dict.fromkeys(map(_remark, tabled)) if each]
    figure = figure_of(sum(heights) + _REST + _LINE * sum(each.count("\n") + 1 for each in remarks))
    panels = figure.subplots(len(groups), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (group, each) in zip(panels, groups.items(), strict=True):
        _forest_panel(axes, group, each, scale)
    if scale.ratio:
        _ratio_ticks(panels[-1], [row for row in rows if row.reported])
    else:
        panels[-1].locator_params(axis="x", nbins=_MOST_TICKS)
    notes = "\n".join([f"{scale.name}, {100 * (1 - alpha):g} % intervals", *remarks])
    figure.supxlabel(notes, fontsize=SMALL, parse_math=False)
    return saved(figure, path)


def plot_balance(balance: Balance, path: str | Path | None = None) -> Any:
    """Draw columns' standardised mean differences between both arms, the largest on top (a "love plot").

    Upper marks are before weighting, lower ones after. Lines are noise intervals; dashed ones at -.1 and .1 bound
    differences usually called small. Unreported columns have no mark.

    Example:
        >>> values = np.array([[50.0, 48.0]]), np.array([0.12]), np.array([0.08]), np.array([0.16]), np.array([True])
        >>> figure = ps.inference.plot_balance(ps.inference.Balance(("age",), *values))
        >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
        ['age']
    """
    check_format(path)
    sizes = np.where(balance.reported, np.abs(balance.difference), -1.0)
    order = np.argsort(-sizes, kind="stable")
    names = [textwrap.fill(balance.columns[place], _NAME) for place in order]
    figure = figure_of(sum(_LINE * name.count("\n") + _ROW + _LINE for name in names) + _REST)
    axes = figure.subplots()
    before = np.column_stack([balance.difference, balance.low, balance.high])
    _marks(axes, before[order], "o", LINES[0], "before weighting", 0.0 if balance.weighted is None else -_BESIDE)
    if balance.weighted is not None:
        _marks(axes, balance.weighted[order], "s", LINES[1], "after weighting", _BESIDE)
        figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=SMALL)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.4, -0.6)
    for place, tick in zip(order, axes.get_yticklabels(), strict=True):
        tick.set_color(INK if balance.reported[place] else PALE)
    for small in (-_APART, _APART):
        axes.axvline(small, color=PALE, linewidth=0.8, linestyle="--", zorder=0)
    beside_zero(axes)
    axes.locator_params(axis="x", nbins=2 * _MOST_TICKS)
    figure.supxlabel("standardised difference, treated less others", fontsize=SMALL, parse_math=False)
    return saved(figure, path)


def _marks(axes: Any, numbers: Array, mark: str, colour: str, label: str, beside: float) -> None:
    for row, (value, low, high) in enumerate(numbers):
        if math.isfinite(high - low):
            axes.plot([low, high], [row + beside, row + beside], color=colour, linewidth=1.2)
            axes.plot(value, row + beside, mark, color=colour, markersize=5, label=label)
            label = f"_{label}"  # one entry in the legend


class _Scale(NamedTuple):
    name: str
    ratio: bool


_DECLARED = ("primary", "secondary")
_WHOSE = {"ate": "all records", "att": "the treated", "overlap": "overlap"}


def _scale(table: Any) -> _Scale:
    if hasattr(table, "estimand"):
        return _Scale("effect" if table.design == "trial" else "adjusted difference", ratio=False)
    ratio = ratio_of(table.model)
    return _Scale(ratio or "coefficient", ratio=ratio is not None)


def _rows(name: str, table: Any, alpha: float) -> list[ForestRow]:
    if hasattr(table, "estimand"):
        (row,), (low, high) = table.to_rows(alpha), table.conf_int(alpha)
        text = name or table.name or _WHOSE[table.estimand]
        return [ForestRow(text, float(row["estimate"]), float(low), float(high), table.declared)]
    reported, estimate, ends = table.errors.reported(alpha), table.errors.estimate, table.conf_int(alpha)
    if _scale(table).ratio:
        with np.errstate(over="ignore"):
            estimate, ends = np.exp(estimate), np.exp(ends)
    lows, highs = np.where(reported, ends.T, [[-np.inf], [np.inf]])
    values = np.where(reported, estimate, np.nan)
    starred = bool(_remark(table))
    return [
        ForestRow(
            f"{name}: {column}" if name else column, float(value), float(low), float(high), "exploratory", starred
        )
        for column, value, low, high in zip(table.names, values, lows, highs, strict=True)
        if column != "const"
    ]


def _remark(table: Any) -> str:
    return "" if hasattr(table, "estimand") else str(table.remark)


def _height(row: ForestRow) -> float:
    return _ROW + _LINE * (textwrap.fill(row.name, _NAME).count("\n") + 1)


def _forest_panel(axes: Any, group: str, rows: Sequence[ForestRow], scale: _Scale) -> None:
    for place, row in enumerate(rows):
        if row.reported:
            axes.plot([row.low, row.high], [place, place], color=LINES[0], linewidth=1.4)
            axes.plot(row.value, place, "s", color=LINES[0], markersize=5)
    if scale.ratio:
        axes.set_xscale("log")
    beside_zero(axes, float(scale.ratio))
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_yticks(range(len(rows)), [textwrap.fill(row.name, _NAME) for row in rows], parse_math=False)
    axes.set_title(
        f"declared: {group}" if group in _DECLARED else group, loc="left", fontsize="medium", parse_math=False
    )
    numbers = axes.twinx()
    numbers.set_ylim(axes.get_ylim())
    numbers.set_yticks(range(len(rows)), [row.text for row in rows], fontsize=SMALL)
    numbers.spines[["top", "right", "left"]].set_visible(False)
    numbers.tick_params(axis="y", length=0)
    for row, tick in zip(rows, numbers.get_yticklabels(), strict=True):
        tick.set_color(INK if row.reported else PALE)


def _ratio_ticks(axes: Any, rows: Sequence[ForestRow]) -> None:
    low, high = min(1.0, *(row.low for row in rows)), max(1.0, *(row.high for row in rows))
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks = [each * 10.0**decade for decade in decades for each in _TICKS]
    inside = [tick for tick in ticks if low * 0.8 <= tick <= high * 1.25]
    if len(inside) < 2:
        inside = [round(low, 2), 1.0, round(high, 2)]
    axes.set_xticks(inside, [f"{tick:g}" for tick in inside])
    axes.minorticks_off()
