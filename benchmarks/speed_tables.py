"""The tables of what people wait for: sums, noise, masks, and the first second of a process, beside floors and goals.

Cells only; ``tables`` finds the pages that they stand in.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.measuring import Row
from benchmarks.table import Shown, Table, Tables

__all__ = ["TABLES"]


def _beside(row: Row, when: str) -> str:
    return f"{row[f'{when} / floor']:.2f} / {row[f'median {when}']:.2f}" if f"{when} / floor" in row else "-"


def _goal(goal: str | None, met: bool) -> str:
    """What was asked; bold where the least of the repeats misses it."""
    return "-" if goal is None else goal if met else f"**{goal}**"


def _work_goal(row: Row) -> str:
    if "goal s" in row:
        return _goal(f"{row['goal s']:g} s", row["after s"] <= row["goal s"])
    most = row["goal"]
    return _goal(None if most is None else f"{most:g}", most is None or row["after / floor"] <= most)


def _started(row: Row, when: str) -> str:
    least, median = row[f"seconds{when}"], row[f"median{when}"]
    return f"{least:.2f} / {median:.2f} s, {row[f'times numpy{when}']:.2f}"


_WORKS: Mapping[str, Shown] = {
    "work (least / median of five)": "{work}",
    "floor": "{floor after s:.3f} s",
    "today": "{after s:.3f} s",
    "before, over its floor": lambda row: _beside(row, "before"),
    "today, over its floor": lambda row: _beside(row, "after"),
    "goal": _work_goal,
}


def _counted(row: Row) -> str:
    return f"{row['counted']:.1f}" if "counted" in row else "-"


_FITS: Mapping[str, Shown] = {
    "1,000 classes": lambda row: row["work"].removeprefix("fit of 1,000 classes, ").removesuffix(" from exact sums"),
    "floor": "{floor after s:.3f} s",
    "seconds": "{after s:.3g} s",
    "over its floor": lambda row: f"{row['after / floor']:.2f}" if "counted" in row else "-",
    "arithmetic counted": _counted,
    "goal": _work_goal,
    "memory": "{MB after:,.0f} MB",
}
_STEPS: Mapping[str, Shown] = {
    "step by LAPACK alone": lambda row: row["work"].removeprefix("step of 1,000 classes, "),
    "seconds": "{after s:.3f} s",
    "over the floor": "{after / floor:.2f}",
    "arithmetic counted": _counted,
}
_STARTS: Mapping[str, Shown] = {
    "start (least / median, times numpy)": "{start}",
    "before": lambda row: _started(row, " before"),
    "today": lambda row: _started(row, ""),
    "goal": lambda row: _goal(row.get("goal"), row.get("met", True)),
}

_FILES: Mapping[str, Shown] = {
    "file": "{file}",
    "records x columns": "{records:,} x {columns}",
    "MB on the disk": "{MB:.0f}",
    "processor seconds": "{s:.1f}",
    "MB of memory before": "{MB before:.0f}",
    "at most": "{MB at most:.0f}",
}


def _begins(row: Row, *starts: str) -> bool:
    return str(row["work"]).startswith(starts)


def _apart(row: Row) -> str:
    low, high = row["quartiles after s"]
    return f"{1e3 * row['median after s']:.0f} ({1e3 * low:.0f} to {1e3 * high:.0f}) ms"


_ROUNDS: Mapping[str, Shown] = {
    "round of": lambda row: row["work"].removeprefix("round of a "),
    "its products": lambda row: f"{1e3 * row['floor after s']:.0f} ms",
    "today, median and quartiles": _apart,
    "today over before, medians": lambda row: f"{row['median after s'] / row['median before s']:.2f}",
}
_SWEEPS: Mapping[str, Shown] = {
    "classes x features": "{classes:,} x {features:,}",
    "algebra": "{algebra:.1f} s",
    "noise": "{noise:.1f} s",
    "scores": "{scores:.1f} s",
    "other": "{other:.1f} s",
    "host, without algebra": lambda row: f"{row['noise'] + row['scores'] + row['other']:.1f} s",
    "sums, once": "{sums:.1f} s",
}
_OF_ROUNDS = "round of"
_OF_FITS = ("fit of", "step of")

TABLES: Tables = {
    "table_files": Table("moments.tables", "reading and measuring a file", _FILES),
    "speeds": Table("speed", "processor seconds", _WORKS, only=lambda row: not _begins(row, *_OF_FITS, _OF_ROUNDS)),
    "round_speeds": Table("speed", "processor seconds", _ROUNDS, only=lambda row: _begins(row, _OF_ROUNDS)),
    "fits": Table("speed", "processor seconds", _FITS, only=lambda row: _begins(row, "fit of")),
    "fit_steps": Table("speed", "processor seconds", _STEPS, only=lambda row: _begins(row, "step of")),
    "sweep_parts": Table("heads.sweep_parts", "processor seconds of a study's fit", _SWEEPS),
    "starts": Table("startup", "seconds of a fresh process by the ", _STARTS, ("seconds of", str)),
}
"""By the name in a page's marker."""
