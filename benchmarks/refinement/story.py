"""The front page's picture: accuracy against epsilon, refinement rounds beside DP-SGD, from the committed results.

    python -m benchmarks.refinement.compare --figures docs/images

A panel per data set in a file of its own, for a light page and a dark one, so that a phone shows them below each other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measuring import Rows
from benchmarks.peers.story import SOURCE, THEMES, Theme, dressed

__all__ = ["PANELS", "digest", "draw", "panel"]

PANELS: Mapping[str, str] = {
    "digits": "1,347 handwritten digits",
    "banking77 whole": "10,003 questions to a bank, 77 intents",
}
_TITLE = "accuracy under differential privacy, %: "
_LINES = {
    "refined": ("privstats, with refinement rounds", "o-"),
    "LDA": ("privstats, one release", "s--"),
    "Opacus DP-SGD": ("DP-SGD (Opacus, tuned)", "D-"),
    "full-batch DP-GD": ("DP-GD (tuned)", "^--"),
}
_TEXT = 13


def draw(results: Path, folder: Path) -> list[Path]:
    """Write ``epsilon-DATA-THEME.png`` for every panel and theme."""
    document, written = json.loads(results.read_text()), []
    folder.mkdir(parents=True, exist_ok=True)
    for data in PANELS:
        rows = document[_TITLE + data]
        for name, theme in THEMES.items():
            path = folder / f"epsilon-{data.partition(' ')[0]}-{name}.png"
            note = {SOURCE: digest(rows)}
            panel(PANELS[data], rows, theme).savefig(path, dpi=110, facecolor=theme.ground, metadata=note)
            written.append(path)
    return written


def digest(rows: Rows) -> str:
    """Of the rows that a panel shows."""
    return hashlib.sha256(json.dumps(list(rows), sort_keys=True).encode()).hexdigest()


def panel(title: str, rows: Rows, theme: Theme) -> Any:
    """Four lines with their standard errors."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(5.4, 4.9), layout="constrained", facecolor=theme.ground)
    axes = made.subplots()
    epsilons = [key.removeprefix("eps ") for key in rows[0] if key.startswith("eps ")]
    at = {row["model"]: row for row in rows}
    for model, (name, style) in _LINES.items():
        accuracy, error = ([at[model][f"{what} {epsilon}"] for epsilon in epsilons] for what in ("eps", "se"))
        colour = theme.ours if name.startswith("privstats") else theme.theirs
        x = [float(epsilon) for epsilon in epsilons]
        axes.errorbar(x, accuracy, error, fmt=style, color=colour, markersize=6, capsize=3, label=name)
    axes.set_xscale("log")
    axes.set_xticks([float(epsilon) for epsilon in epsilons], epsilons)
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=_TEXT, color=theme.ink)
    axes.set(xlabel="epsilon of one record, at delta 1e-5", ylabel="test accuracy, %")
    axes.set_ylim(0, 100)
    dressed(axes, theme)
    axes.legend(loc="lower right", fontsize=_TEXT - 2, frameon=False, labelcolor=theme.ink)
    return made
