"""One picture of the comparison: accuracy against bytes, and accuracy against epsilon, all systems, from the JSON.

Drawn twice, for a light page and a dark one, two panels below each other and large type, so that a phone shows it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.measuring import Row

__all__ = ["SOURCE", "THEMES", "Theme", "digest", "draw", "dressed", "figure", "titled"]

EXACT, PRIVATE = "without differential privacy: ", "under differential privacy: "
_SHOWN = ("banking77 whole", "cifar10", "fmnist", "digits")
_NAMES_FROM = 0.62  # of the panel's width
_NAMES = {"banking77 whole": "BANKING77", "cifar10": "CIFAR-10", "fmnist": "Fashion-MNIST"}
_TEXT = 13
SOURCE = "Source"
"""Under which name a picture says what it was drawn from."""


@dataclass(frozen=True)
class Theme:
    """Colours of a page.

    Attributes:
        ground, ink: of the page and of what is written on it.
        ours, theirs, pooled: of privstats, of federated peers, of what sees all records in one place.
    """

    ground: str
    ink: str
    ours: str
    theirs: str
    pooled: str


THEMES: Mapping[str, Theme] = {
    "light": Theme("#ffffff", "#1f2937", "#0f766e", "#b45309", "#64748b"),
    "dark": Theme("#131416", "#e5e7eb", "#2dd4bf", "#fbbf24", "#94a3b8"),
}
Document: TypeAlias = Mapping[str, Any]


def draw(results: Path, folder: Path) -> list[Path]:
    """Write ``peers-light.png`` and ``peers-dark.png``."""
    document = json.loads(results.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, theme in THEMES.items():
        path = folder / f"peers-{name}.png"
        figure(document, theme).savefig(path, dpi=110, facecolor=theme.ground, metadata={SOURCE: digest(document)})
        written.append(path)
    return written


def digest(document: Document) -> str:
    """Of the accuracies that a picture shows: what it was drawn from can be compared with what is committed."""
    shown = {title: rows for title, rows in document.items() if title.startswith((EXACT, PRIVATE))}
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def figure(document: Document, theme: Theme) -> Any:
    """Bytes on the first data set there is of four, epsilon on digits, which has most of them; the harder partition."""
    from matplotlib.figure import Figure

    name = next(name for name in _SHOWN if any(title.startswith(EXACT + name) for title in document))
    made = Figure(figsize=(6.2, 10.4), layout="constrained", facecolor=theme.ground)
    above, below = made.subplots(2, 1)
    _against_bytes(above, titled(document, EXACT + name), theme)
    _against_epsilon(below, titled(document, f"{PRIVATE}digits"), theme)
    for axes, what in ((above, f"{_NAMES.get(name, name)}, no noise"), (below, "digits, with noise")):
        axes.set_title(what, loc="left", fontsize=_TEXT, color=theme.ink)
        dressed(axes, theme)
    return made


def titled(document: Document, start: str) -> Sequence[Row]:
    """The rows of the first table whose title begins so; none if there is none."""
    return next((rows for title, rows in document.items() if title.startswith(start)), [])


def _against_bytes(axes: Any, rows: Iterable[Row], theme: Theme) -> None:
    """A point per system on the left, its name on the right, in the order of accuracy and evenly spaced."""
    shown = sorted((row for row in rows if "accuracy" in row), key=lambda row: -float(row["accuracy"]))
    sizes = [float(row["bytes"]) for row in shown]
    for place, row in enumerate(shown):
        x, y, colour = float(row["bytes"]), float(row["accuracy"]), _colour(row, theme)
        axes.errorbar(x, y, float(row["sd accuracy"]), marker="o", color=colour, markersize=7, capsize=3)
        axes.annotate(
            row["system"].replace(" (Flower)", "").replace(" (scikit-learn)", ""),
            (x, y),
            xytext=(_NAMES_FROM, 1 - (place + 0.5) / len(shown)),
            textcoords="axes fraction",
            color=colour,
            fontsize=_TEXT - 2,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.35, "shrinkB": 5, "relpos": (0, 0.5)},
        )
    left, most = 0.6 * min(sizes), max(sizes)
    right = left * (most / left) ** (1 / (_NAMES_FROM - 0.06))
    axes.set(xscale="log", xlim=(left, right), xlabel="bytes of all parties, up and down", ylabel="test accuracy, %")
    axes.set_xticks([10.0**power for power in range(3, 12) if left < 10.0**power < 2 * most])
    axes.minorticks_off()


def _against_epsilon(axes: Any, rows: Iterable[Row], theme: Theme) -> None:
    """A line per system; dashed ones protect a whole party."""
    systems: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("epsilon") is not None:
            systems.setdefault(row["system"], []).append(row)
    for (name, points), mark in zip(systems.items(), "osD^vPX*h", strict=False):
        x, y, error = ([float(row[key]) for row in points] for key in ("epsilon", "accuracy", "sd accuracy"))
        line = "--" if points[0]["unit"] == "party" else "-"
        colour = _colour(points[0], theme)
        axes.errorbar(x, y, error, marker=mark, linestyle=line, color=colour, markersize=7, capsize=3, label=name)
    axes.set_xscale("log")
    axes.set(xlabel="epsilon, at delta 1e-5", ylabel="test accuracy, %", ylim=(0, 100))
    axes.set_xticks(sorted({float(row["epsilon"]) for points in systems.values() for row in points}))
    axes.get_xaxis().set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()
    axes.legend(
        fontsize=_TEXT - 3, frameon=False, labelcolor=theme.ink, loc="upper center", bbox_to_anchor=(0.5, -0.16)
    )


def _colour(row: Row, theme: Theme) -> str:
    name = str(row["system"])
    return theme.ours if name.startswith("privstats") else theme.pooled if "pooled" in name else theme.theirs


def dressed(axes: Any, theme: Theme) -> None:
    """Axes in the colours of a page."""
    axes.set_facecolor(theme.ground)
    axes.tick_params(colors=theme.ink, labelsize=_TEXT - 2)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=theme.ink, fontsize=_TEXT - 1)
    for side, spine in axes.spines.items():
        spine.set_color(theme.ink)
        spine.set_visible(side in ("left", "bottom"))
