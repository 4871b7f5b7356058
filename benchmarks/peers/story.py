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

__all__ = ["SOURCE", "THEMES", "Theme", "digest", "draw", "figure", "titled"]

EXACT, PRIVATE = "without differential privacy: ", "under differential privacy: "
_SHOWN = ("cifar10", "banking77 whole", "fmnist", "digits")
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
    """The first data set that was measured of CIFAR-10, BANKING77, Fashion-MNIST, digits; the harder partition."""
    from matplotlib.figure import Figure

    name = next(name for name in _SHOWN if any(title.startswith(EXACT + name) for title in document))
    made = Figure(figsize=(6.2, 10.4), layout="constrained", facecolor=theme.ground)
    above, below = made.subplots(2, 1)
    _against_bytes(above, titled(document, EXACT + name), theme)
    _against_epsilon(below, titled(document, PRIVATE + name), theme)
    for axes in (above, below):
        _dressed(axes, theme)
    return made


def titled(document: Document, start: str) -> Sequence[Row]:
    """The rows of the first table whose title begins so; none if there is none."""
    return next((rows for title, rows in document.items() if title.startswith(start)), [])


def _against_bytes(axes: Any, rows: Iterable[Row], theme: Theme) -> None:
    """A point per system, its name beside it."""
    shown = sorted((row for row in rows if "accuracy" in row), key=lambda row: -float(row["accuracy"]))
    places = _apart([float(row["accuracy"]) for row in shown])
    right = 1.6 * max(float(row["bytes"]) for row in shown)
    for row, height in zip(shown, places, strict=True):
        x, y, colour = float(row["bytes"]), float(row["accuracy"]), _colour(row, theme)
        axes.errorbar(x, y, float(row["sd accuracy"]), marker="o", color=colour, markersize=7, capsize=3)
        axes.annotate(
            row["system"].removesuffix(" (Flower)").replace(" (Flower),", ","),
            (x, y),
            xytext=(right, height),
            color=colour,
            fontsize=_TEXT - 3,
            va="center",
            arrowprops={"arrowstyle": "-", "color": colour, "alpha": 0.35, "shrinkB": 4},
        )
    axes.set_xscale("log")
    left = 0.6 * min(float(row["bytes"]) for row in shown)
    axes.set(xlim=(left, right * 60), xlabel="bytes of all parties, up and down", ylabel="test accuracy, %")
    axes.set_title("No noise: accuracy against bytes", loc="left", fontsize=_TEXT)


def _apart(heights: Sequence[float], least: float = 0.045) -> list[float]:
    """Heights of names in falling order, moved down until none stands on another."""
    gap = least * (max(heights) - min(heights))
    placed: list[float] = []
    for height in heights:
        placed.append(min(height, placed[-1] - gap) if placed else height)
    return placed


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
    axes.set_title("With noise: accuracy against epsilon", loc="left", fontsize=_TEXT)
    axes.legend(
        fontsize=_TEXT - 3, frameon=False, labelcolor=theme.ink, loc="upper center", bbox_to_anchor=(0.5, -0.16)
    )


def _colour(row: Row, theme: Theme) -> str:
    name = str(row["system"])
    return theme.ours if name.startswith("privstats") else theme.pooled if "pooled" in name else theme.theirs


def _dressed(axes: Any, theme: Theme) -> None:
    axes.set_facecolor(theme.ground)
    axes.tick_params(colors=theme.ink, labelsize=_TEXT - 2)
    axes.title.set_color(theme.ink)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(color=theme.ink, fontsize=_TEXT - 1)
    for side, spine in axes.spines.items():
        spine.set_color(theme.ink)
        spine.set_visible(side in ("left", "bottom"))
