"""A study as a picture: panels and lines over its axes; baselines and rivals without privacy as dashed lines.

One study always yields identical bytes. Needs the ``report`` extra (matplotlib).
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from statistics import fmean
from typing import Any

from privstats.contrib.sweep.axes import OF_PARTITION
from privstats.contrib.sweep.experiment import Study
from privstats.contrib.sweep.frame import Frame
from privstats.extend.readers import LINES
from privstats.extend.support import optional_dependencies

FORMATS = ("png", "svg", "pdf")
_SAID = {
    "model": "{} noise",
    "unit": "one {}",
    "clients": "{} clients",
    "alpha": "alpha {}",
    "clip_norm": "clip norm {}",
    "dimension": "{} features",
    "statistics": "{}",
    "head": "{}",
    "epsilon": "epsilon {}",
}
_NUMBERS = ("epsilon", "dimension", "clip_norm", "clients", "alpha")
_PANELS = ("model", "unit", "head", "statistics", "clients", "clip_norm", "dimension", "alpha")
_LABELS = {"epsilon": "epsilon (stronger privacy to the left)", "clip_norm": "clip norm", "dimension": "features"}
_MARKS = "osD^vPX*"
_DASHES = ("--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
_UNPROTECTED = "#b5541c"
_PER_ROW = 3
_PHONE = 4.6
"""Inches: on a phone 9 points of type are then 9 of its pixels."""
_LEGEND = 3
_ALONE = "with noise (mean and 95 % interval)"


def drawn(study: Study) -> dict[str, bytes]:
    """Return the picture by format: png, svg and pdf.

    Example:
        >>> from privstats.contrib.sweep import Axes, drawn, study
        >>> X, y = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200) % 2
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-5)
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NAB", 8.0), cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> axes, lda = Axes(epsilon=(1.0, 8.0)), {"LDA": ps.heads.LDA}
        >>> sorted(drawn(study(plan, (X, y), (X, y), lda, axes, repeats=2, with_baselines=False)))
        ['pdf', 'png', 'svg']
    """
    matplotlib = optional_dependencies.load("matplotlib", by="a picture")
    plain = {"svg.hashsalt": study.plan.digest, "font.family": "DejaVu Sans", "pdf.compression": 6}
    undated: Mapping[str, dict[str, Any]] = {
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    }
    out = {}
    with matplotlib.rc_context(plain):
        figure = _figure(study)
        for kind in FORMATS:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=150, metadata=undated[kind])
            out[kind] = buffer.getvalue()
    return out


def _figure(study: Study) -> Any:
    from matplotlib.figure import Figure as Canvas

    noisy = Frame(study.summary.columns, tuple(r for r in study.summary.rows if r[_model(study)] != "none"))
    across = _across(noisy)
    panels = next((name for name in _PANELS if name != across and len(_values(noisy, name)) > 1), None)
    shown = _values(noisy, panels) if panels else [None]
    columns = min(_PER_ROW, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = Canvas(figsize=(max(_PHONE, 3.4 * columns), 3.1 * rows + 1.1), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for place, axes in enumerate(grid.flat):
        if place >= len(shown):
            axes.set_visible(False)
            continue
        part = noisy if panels is None else noisy.where(**{panels: shown[place]})
        _panel(axes, part, across, _lines(noisy, across, panels), _least(study))
        _references(axes, study, across, {} if panels is None else {panels: shown[place]})
        if panels is not None:
            axes.set_title(_formatted(panels, shown[place]), fontsize=10)
        _ticks(axes, _values(noisy, across))
    figure.supxlabel(_LABELS.get(across, across), fontsize=10)
    figure.supylabel(study.metric, fontsize=10)
    _bounds(grid.flat[0], study)
    known = dict(zip(*reversed(grid.flat[0].get_legend_handles_labels()), strict=True))
    _legend(figure, {name: known[name] for name in sorted(known, key=lambda name: name in _reference_names(study))})
    return figure


def _legend(figure: Any, known: Mapping[str, Any]) -> None:
    for columns in range(min(_LEGEND, len(known)), 0, -1):
        legend = figure.legend(
            known.values(), known, loc="outside upper center", ncols=columns, frameon=False, fontsize=9
        )
        box = legend.get_window_extent()
        if box.width <= figure.bbox.width:
            break
        if columns > 1:
            legend.remove()
    width, height = figure.get_size_inches()
    wanted, lines = box.width / figure.dpi, math.ceil(len(known) / columns)
    figure.set_size_inches(max(width, wanted), height + 0.2 * max(0, lines - 2))


def _bounds(axes: Any, study: Study) -> None:
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, _least(study)), min(high, 1.02))


def _least(study: Study) -> float:
    return 0.0 if study.metric == "accuracy" else -math.inf


def _model(study: Study) -> int:
    return study.summary.columns.index("model")


def _across(frame: Frame) -> str:
    return next((name for name in _NUMBERS if len(_values(frame, name)) > 1), "epsilon")


def _values(frame: Frame, name: str) -> list[Any]:
    values = list(dict.fromkeys(frame[name]))
    return sorted(values) if all(isinstance(value, int | float) for value in values) else values


def _lines(frame: Frame, across: str, panels: str | None) -> Sequence[dict[str, Any]]:
    others = [name for name in _SAID if name not in (across, panels) and len(_values(frame, name)) > 1]
    lines = [{name: row[name] for name in others} for row in frame]
    return [dict(items) for items in dict.fromkeys(tuple(one.items()) for one in lines)]


def _panel(axes: Any, frame: Frame, across: str, lines: Sequence[Mapping[str, Any]], least: float) -> None:
    span = max(1, len(lines) - 1)
    for place, (line, colour, mark) in enumerate(zip(lines, cycle(LINES), cycle(_MARKS), strict=False)):
        rows = sorted(frame.where(**line), key=lambda row: row[across])
        means = [row["mean"] for row in rows]
        beside = 1.06 ** (2 * place / span - 1) if len(lines) > 1 else 1.0  # lines that coincide stay visible
        axes.errorbar(
            [row[across] * beside for row in rows],
            means,
            yerr=[
                [mean - max(row["low"], least) for row, mean in zip(rows, means, strict=True)],
                [min(row["high"], 1.0) - mean for row, mean in zip(rows, means, strict=True)],
            ],
            marker=mark,
            markersize=4,
            capsize=2,
            linewidth=1.3,
            color=colour,
            label=", ".join(_formatted(name, value) for name, value in line.items()) or _ALONE,
        )
    axes.grid(alpha=0.25)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _references(axes: Any, study: Study, across: str, panel: Mapping[str, Any]) -> None:
    styles = cycle(_DASHES)
    for name, height in _heights(study).items():
        axes.axhline(height, linestyle=next(styles), color="#555555", linewidth=1, label=name)
    for (name, curve), style in zip(_without_privacy(study, across, panel).items(), styles, strict=False):
        means, low, high = zip(*curve.values(), strict=True)
        how = {"linestyle": style, "color": _UNPROTECTED, "linewidth": 1.3, "label": name}
        if len(curve) == 1:
            axes.axhline(means[0], **how)
            axes.axhspan(low[0], high[0], color=_UNPROTECTED, alpha=0.12, linewidth=0)
        else:
            axes.plot(list(curve), means, **how)
            axes.fill_between(list(curve), low, high, color=_UNPROTECTED, alpha=0.12, linewidth=0)


def _heights(study: Study) -> dict[str, float]:
    exact = [row["mean"] for row in study.summary.where(model="none") if row["head"] not in study.rivals]
    best = f"no DP{', the best' if len(exact) > 1 else ''}"
    return ({best: max(exact)} if exact else {}) | dict(study.baselines)


def _without_privacy(
    study: Study, across: str, panel: Mapping[str, Any]
) -> dict[str, dict[Any, tuple[float, float, float]]]:
    """Return each such rival's mean and interval over the horizontal axis; one where that axis does not change it.

    Where several lines of a panel share the axis, it is the mean over these lines, without an interval.
    """
    curves: dict[str, dict[Any, list[dict[str, Any]]]] = {}
    for row in study.summary.where(model="none"):
        rival = study.rivals.get(row["head"])
        same_panel = all(row[name] == value for name, value in panel.items() if name in OF_PARTITION)
        if rival is not None and not rival.private and same_panel:
            curve = curves.setdefault(f"{row['head']}, no privacy", {})
            curve.setdefault(row[across] if across in OF_PARTITION else None, []).append(row)
    return {name: {at: _interval(curve[at]) for at in sorted(curve, key=_order)} for name, curve in curves.items()}


def _interval(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float, float]:
    mean = fmean(row["mean"] for row in rows)
    return (mean, rows[0]["low"], rows[0]["high"]) if len(rows) == 1 else (mean, mean, mean)


def _order(value: Any) -> float:
    return -math.inf if value is None else value


def _reference_names(study: Study) -> set[str]:
    return {*_heights(study), *_without_privacy(study, "epsilon", {})}


def _ticks(axes: Any, values: Sequence[float]) -> None:
    if len(values) > 1 and min(values) > 0:
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def _formatted(name: str, value: Any) -> str:
    even = name == "alpha" and value is None
    return "dealt evenly" if even else _SAID[name].format(f"{value:g}" if isinstance(value, float) else value)
