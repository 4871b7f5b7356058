"""The picture of benchmarks/raw_tables/numbers.md: ours, DP-EBM and trees without privacy at epsilon 1, table by table.

    python -m benchmarks.raw_tables.cells --figures docs/images

For a light page and a dark one; the tables on which nothing was chosen or looked at before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measuring import Row
from benchmarks.peers.story import SOURCE, THEMES, Theme, dressed
from benchmarks.raw_table_tables import EBM, EBM_WHOLE, OURS, about, row_of

__all__ = ["digest", "draw", "figure", "shown"]

_WAYS = {
    OURS: ("privstats, a tenth of the cells missing, no range", "o", "ours"),
    EBM: ("DP-EBM, the same, true ranges and medians", "D", "theirs"),
    EBM_WHOLE: ("DP-EBM, whole records, true ranges", "d", "theirs"),
    "boosting": ("boosting without privacy, the same gaps", "|", "pooled"),
}
_TEXT = 13


def draw(folder: Path) -> list[Path]:
    """Write ``raw-tables-light.png`` and ``raw-tables-dark.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, written = shown(), []
    for name, theme in THEMES.items():
        path = folder / f"raw-tables-{name}.png"
        figure(rows, theme).savefig(path, dpi=110, facecolor=theme.ground, metadata={SOURCE: digest(rows)})
        written.append(path)
    return written


def shown() -> Sequence[tuple[str, dict[str, Row]]]:
    """By untouched table its rows at epsilon 1, the hardest table first."""
    found = [
        (table["data"], {way: row for way in _WAYS if (row := row_of(table["data"], way, _epsilon(way))) is not None})
        for table in about()
        if table["role"] == "new"
    ]
    return sorted(found, key=lambda each: float(each[1]["boosting"]["mean"]))


def _epsilon(way: str) -> float | None:
    return None if way == "boosting" else 1.0


def digest(rows: Sequence[tuple[str, dict[str, Row]]]) -> str:
    """Of what the picture shows: what it was drawn from can be compared with what is committed."""
    points = [(data, way, row["mean"], row["se"]) for data, ways in rows for way, row in ways.items()]
    return hashlib.sha256(json.dumps(points).encode()).hexdigest()


def figure(rows: Sequence[tuple[str, dict[str, Row]]], theme: Theme) -> Any:
    """A line per table, a point per way with two standard errors."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(6.2, 7.4), layout="constrained", facecolor=theme.ground)
    axes = made.subplots()
    for way, (name, mark, whose) in _WAYS.items():
        there = [(place, ways[way]) for place, (_, ways) in enumerate(rows) if way in ways]
        colour = getattr(theme, whose)
        axes.errorbar(
            [row["mean"] for _, row in there],
            [place + 0.18 * (way == EBM_WHOLE) - 0.18 * (way == EBM) for place, _ in there],
            xerr=[2 * row["se"] for _, row in there],
            fmt=mark,
            color=colour,
            markerfacecolor=theme.ground if way == EBM_WHOLE else colour,
            markersize=14 if mark == "|" else 7,
            capsize=2,
            label=name,
        )
    axes.set_yticks(range(len(rows)), [data for data, _ in rows])
    axes.set(xlabel="AUC at epsilon 1 and delta 1e-6, ± two standard errors", xlim=(None, 1.0))
    axes.grid(axis="y", alpha=0.2, color=theme.ink)
    dressed(axes, theme)
    axes.legend(
        fontsize=_TEXT - 2, frameon=False, labelcolor=theme.ink, loc="upper center", bbox_to_anchor=(0.42, -0.12)
    )
    return made
