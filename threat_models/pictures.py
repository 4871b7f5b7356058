"""Pictures of a leakage report: ROC curves under their ceiling, leakage over a setting, sights, reconstructions.

They show rows and compute only the ceilings to draw. Needs the ``report`` extra (matplotlib).
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import optional_dependencies
from privstats.files.atomic import atomic_write
from threat_models.adversary import SIGHTS
from threat_models.report import LeakageReport, Row, Verdict

COLOURS: Mapping[Verdict | str, str] = {
    "violates ceiling": "#b2182b",
    "leaks": "#ef8a62",
    "no evidence": "#67a9cf",
    "underpowered": "#d9d9d9",
    "does not apply": "#ffffff",
}
_LINES = ("#1b6ca8", "#c4521a", "#2f7d4f", "#7a4a9c", "#8a6d1d", "#444444", "#b03a6f", "#3aa5a5")
_SHADE = "#e4e4e4"
_AXES = {
    "records": "records per class",
    "epsilon": "epsilon (stronger privacy to the left)",
    "dropouts": "clients that vanish",
    "releases": "releases of the same records",
}
_SQUAREST = 64
_HATCH = "////"
_SCENE = "four-samples"
_SEES: Mapping[str, str] = {
    "release": "one\nrelease",
    "releases": "several\nreleases",
    "cohort": "a small\ncohort\nwithout\nmasks",
    "transcript": "what the\nserver\nsees",
    "heads": "models\nonly",
}
_WIDE = 3.7
"""Inches: a phone shows a page's pictures 343 points of its screen wide, and 8 points of type are 10 of these then."""
_SMALL = 8
_LEAST_ALARMS = 5


def draw_all(report: LeakageReport, folder: Path) -> dict[str, Path]:
    """Write every picture that the rows allow as ``folder/NAME.png``; gives the paths by name."""
    out = {}
    for name, png in drawn(report).items():
        out[name] = folder / f"{name}.png"
        atomic_write(out[name], png, shared=True)
    return out


def drawn(report: LeakageReport) -> dict[str, bytes]:
    """The pictures as PNG bytes, by name."""
    out = {}
    for name, figure in figures(report).items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=150)
        out[name] = buffer.getvalue()
    return out


def figures(report: LeakageReport) -> dict[str, Any]:
    """The figures by name: "matrix", "roc", "over-AXIS" for a sweep, "reconstruction".

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    optional_dependencies.load("matplotlib", by="a picture")
    rows = report.rows
    swept = [axis for axis in _AXES if sum(axis in row.setting for row in rows) > 1]
    curves = [row for row in rows if row.roc is not None and not row.setting]
    shown = [row for row in rows if row.example is not None and _image(row.example.truth[0]) is not None]
    plans: dict[str, tuple[Callable[[Any, Sequence[Row]], None], Sequence[Row], tuple[float, float]]] = {}
    if rows and not swept:
        names = dict.fromkeys(row.attack for row in rows)
        plans["matrix"] = (_matrix, rows, (_WIDE, 2.1 + 0.24 * len(names)))
    if curves:
        plans["roc"] = (_roc, curves, (_WIDE, 4.2))
    for axis in swept:
        plans[f"over-{axis}"] = (
            _over(axis, report.features),
            [row for row in rows if axis in row.setting],
            (_WIDE, 3.6),
        )
    scene = [row for row in shown if row.attack == _SCENE]
    shown = [row for row in shown if row.attack != _SCENE]
    if scene:
        plans["samples"] = (_samples, scene, (_WIDE, 0.8 + 0.82 * len(scene[0].example.truth)))  # type: ignore[union-attr]
    if shown:
        best = max(shown, key=_telling)
        count = len(best.example.truth)  # type: ignore[union-attr]
        plans["reconstruction"] = (_reconstruction, [best], (_WIDE, 0.8 + 0.82 * count))
    return {name: _figure(draw, subject, size) for name, (draw, subject, size) in plans.items()}


def _figure(draw: Callable[[Any, Sequence[Row]], None], rows: Sequence[Row], size: tuple[float, float]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    draw(figure, rows)
    return figure


def _roc(figure: Any, rows: Sequence[Row]) -> None:
    axes = figure.subplots()
    grid = np.geomspace(1e-3, 1, 200)
    promised = sorted({row.guarantee for row in rows if row.guarantee is not None}, key=lambda each: each.mu)
    edges = [np.array([each.tpr(float(x)) for x in grid]) for each in promised]
    if edges:  # which of two is higher may change with the false positives, where one of them is pure
        axes.fill_between(grid, np.max(edges, axis=0), 1, color=_SHADE, label="above the ceiling", zorder=0)
    for style, each, edge in zip(("-", "--", "-.", ":"), promised, edges, strict=False):
        axes.plot(grid, edge, color="black", linestyle=style, linewidth=1.3, label=f"ceiling, mu {each.mu:.3g}")
    axes.plot(grid, grid, color="#999999", linewidth=1, linestyle=":", label="guessing")
    for colour, row in zip(_cycle(), rows, strict=False):
        fpr, tpr = np.array(row.roc.fpr), np.array(row.roc.tpr)  # type: ignore[union-attr]
        shown = fpr >= _LEAST_ALARMS / max(1, row.worlds)  # to the left of it a curve is a handful of strangers
        axes.step(fpr[shown], tpr[shown], where="post", color=colour, linewidth=1.5, label=row.attack)
    lowest = max(1e-3, min(_LEAST_ALARMS / max(1, row.worlds) for row in rows) / 2)
    axes.set(xscale="log", yscale="log", xlim=(lowest, 1), ylim=(lowest, 1.05))
    axes.set(xlabel="strangers taken for members (false positives)", ylabel="members found (true positives)")
    for side in (axes.xaxis, axes.yaxis):
        side.set_major_formatter(lambda share, _: f"{100 * share:g} %")
        side.set_minor_formatter(lambda share, _: f"{100 * share:g} %" if f"{share:e}"[0] in "25" else "")
    _finish(axes, loc="lower right")


def _over(axis: str, features: int) -> Callable[[Any, Sequence[Row]], None]:
    def draw(figure: Any, rows: Sequence[Row]) -> None:
        axes = figure.subplots()
        names = list(dict.fromkeys(row.attack for row in rows if row.measured is not None))
        tpr = axis == "releases" and all(row.points for row in rows if row.measured is not None)
        edges = set[tuple[float, ...]]()
        for colour, name in zip(_cycle(), names, strict=False):
            mine = [row for row in rows if row.attack == name and row.measured is not None]
            mine.sort(key=lambda row: row.setting[axis])
            _curve(axes, axis, mine, colour, tpr)
            _edge(axes, axis, mine, tpr, edges)
        if axis == "records":
            _landmarks(axes, rows, features)
        axes.set_xlabel(_AXES[axis])
        axes.set_ylabel("TPR at 1 % false positives" if tpr else rows[0].metric)
        if axis != "dropouts":
            axes.set_xscale("log")
            ticks = sorted({row.setting[axis] for row in rows})
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        axes.set_ylim(0 if tpr else None, 1.02)
        _finish(axes, loc="best")

    return draw


def _curve(axes: Any, axis: str, rows: Sequence[Row], colour: str, tpr: bool) -> None:
    x = [row.setting[axis] for row in rows]
    y = [row.points[0].tpr if tpr else row.measured or 0.0 for row in rows]
    ends = [(row.points[0].tpr_interval if tpr else row.interval) or (v, v) for row, v in zip(rows, y, strict=True)]
    spread = [[max(0.0, v - low) for v, (low, _) in zip(y, ends, strict=True)]]
    spread.append([max(0.0, min(high, 1.0) - v) for v, (_, high) in zip(y, ends, strict=True)])
    axes.errorbar(x, y, yerr=spread, marker="o", markersize=4, capsize=3, color=colour, label=rows[0].attack)


def _edge(axes: Any, axis: str, rows: Sequence[Row], tpr: bool, edges: set[tuple[float, ...]]) -> None:
    """The ceiling of an attack, unless one that was drawn before has the same."""
    x = [row.setting[axis] for row in rows]
    pairs = ((row.guarantee, row.ceiling) for row in rows)
    edge = tuple(promised.tpr(0.01) if tpr else ceiling or 0.0 for promised, ceiling in pairs if promised is not None)
    if len(edge) == len(rows) and edge not in edges:
        name = "ceiling" if not edges else f"ceiling, {rows[0].attack}"
        axes.plot(x, edge, color="black", linestyle="--", linewidth=1.2, label=name)
        axes.fill_between(x, edge, 1.02, color=_SHADE, alpha=0.6, zorder=0)
        edges.add(edge)


def _landmarks(axes: Any, rows: Sequence[Row], d: int) -> None:
    """Lines where sums (d) and second moments (d^2 / 2) begin to hide their members, if they are in sight."""
    seen = [row.setting["records"] for row in rows]
    marks = {f"d = {d}": float(d), f"d²/2 = {d * d / 2:g}": d * d / 2}
    for name, place in marks.items():
        if min(seen) / 2 <= place <= max(seen) * 2:
            axes.axvline(place, color="#777777", linestyle=":", linewidth=1)
            axes.text(place, 1.02, name, fontsize=_SMALL, color="#555555", va="bottom", ha="center")


def _matrix(figure: Any, rows: Sequence[Row]) -> None:
    axes = figure.subplots()
    names = list(dict.fromkeys(row.attack for row in rows))
    sights = list(SIGHTS)
    worst: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.measured is not None:
            place = (row.attack, row.sees)
            worst[place] = max(worst.get(place, row), row, key=_severity)
    silent = {(row.attack, row.sees) for row in rows if row.measured is None}
    for y, name in enumerate(names):
        for x, sees in enumerate(sights):
            result = worst.get((name, sees))
            hatch = _HATCH if result is None and (name, sees) in silent else None
            axes.add_patch(_patch(x, y, "white" if result is None else COLOURS[result.verdict], hatch=hatch))
            text = "" if result is None else f"{'mu ' if result.goal == 'audit' else ''}{result.measured:.2f}"
            ink = "white" if result is not None and result.verdict == "violates ceiling" else "black"
            axes.text(x, y, text, ha="center", va="center", fontsize=_SMALL, color=ink)
    axes.set(xlim=(-0.5, len(sights) - 0.5), ylim=(len(names) - 0.5, -0.5))
    axes.set_xticks(range(len(sights)), [_SEES[sees] for sees in sights], fontsize=_SMALL)
    axes.set_yticks(range(len(names)), names, fontsize=_SMALL)
    axes.tick_params(length=0)
    axes.set_xlabel("what the attacker sees", fontsize=9)
    for side in axes.spines.values():
        side.set_visible(False)
    handles = [
        _patch(0, 0, colour, verdict, hatch=_HATCH if verdict == "does not apply" else None)
        for verdict, colour in COLOURS.items()
    ]
    handles += [
        _patch(0, 0, "white", "not played", edge="#999999"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, fontsize=_SMALL)


def _severity(row: Row) -> tuple[int, float]:
    return -list(COLOURS).index(row.verdict), row.measured or 0.0


def _patch(
    x: float, y: float, colour: str, label: str | None = None, hatch: str | None = None, edge: str = "#eeeeee"
) -> Any:
    from matplotlib.patches import Rectangle

    edge = "#bbbbbb" if hatch else edge  # the colour of the hatching too
    return Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, edgecolor=edge, label=label, hatch=hatch)


def _reconstruction(figure: Any, rows: Sequence[Row]) -> None:
    example = rows[0].example
    columns = {
        "record": example.truth,  # type: ignore[union-attr]
        "its class's\nsum over\nits count": example.raw,  # type: ignore[union-attr]
        f"attack\n{_folded(rows[0].attack)}": example.attack,  # type: ignore[union-attr]
        "public\nclass mean": example.mean,  # type: ignore[union-attr]
        "public\nrecord\n(a guess)": example.prior,  # type: ignore[union-attr]
    }
    _grid(figure, columns)


def _samples(figure: Any, rows: Sequence[Row]) -> None:
    """Four samples of a class, by what of secure aggregation is on: one row of the report for each."""
    first = rows[0].example
    columns = {"record": first.truth}  # type: ignore[union-attr]
    for row in rows:
        columns[f"secure\naggregation\n{_folded(row.metric.rpartition(', ')[2])}"] = row.example.attack  # type: ignore[union-attr]
    _grid(figure, columns | {"public\nclass mean": first.mean})  # type: ignore[union-attr]


def _telling(row: Row) -> tuple[float, int]:
    """The most rebuilt, and of those the most records at once: there the attack differs from reading a mean."""
    return row.measured or 0.0, len(row.example.truth)  # type: ignore[union-attr]


def _grid(figure: Any, columns: Mapping[str, Sequence[Sequence[float]]]) -> None:
    count = len(next(iter(columns.values())))
    panels = figure.subplots(count, len(columns), squeeze=False)
    for column, (title, vectors) in enumerate(columns.items()):
        for index, vector in enumerate(vectors):
            axes, image = panels[index][column], _image(vector)
            axes.imshow(image, cmap="gray_r", interpolation="nearest")
            axes.set(xticks=[], yticks=[])
            if index == 0:
                axes.set_title(title, fontsize=_SMALL)


def _folded(name: str) -> str:
    """A name over several lines, broken at its hyphens and spaces."""
    return "\n".join(textwrap.wrap(name, 11, break_long_words=False))


def _image(vector: Sequence[float]) -> NDArray[np.float64] | None:
    """A vector as a square picture, where its length is a square of at most 64 x 64."""
    side = math.isqrt(len(vector))
    return np.reshape(vector, (side, side)) if side * side == len(vector) and 1 < side <= _SQUAREST else None


def _finish(axes: Any, loc: str) -> None:
    axes.grid(alpha=0.25)
    axes.legend(loc=loc, frameon=False, fontsize=_SMALL)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _cycle() -> Sequence[str]:
    return _LINES * 8
