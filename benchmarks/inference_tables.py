"""The number tables of docs/tables.md, from the committed results of ``benchmarks/inference``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from benchmarks.measuring import Row
from benchmarks.table import Shown, Table, Tables

__all__ = ["TABLES"]


def _share(key: str) -> Shown:
    return lambda row: f"{100 * row[key]:.1f} %"


def _unless_refused(shown: Shown, otherwise: str = "-") -> Shown:
    """What a cell says where a model was refused in every run."""

    def cell(row: Row) -> str:
        if row["refused"] == row["runs"]:
            return otherwise
        return shown.format_map(row) if isinstance(shown, str) else shown(row)

    return cell


def _half_width(row: Row) -> str:
    return "-" if row["half width"] is None else f"{row['half width']:.3f}"


_RELEASE: dict[str, Shown] = {"records": "{records:,}", "epsilon": "{epsilon:g}"}
_INTERVALS: dict[str, Shown] = {
    "told": _unless_refused(_share("told"), "refused"),
    "told and missed": _unless_refused(_share("told and missed")),
    "naive covers": _unless_refused(_share("naive covers")),
    "half width": _unless_refused(_half_width),
    "without noise": "{without noise:.3f}",
}
_RESULT = "inference.coverage"

TABLES: Tables = {
    "inference_coverage": Table(_RESULT, "regression, central: 95 % intervals", _RELEASE | _INTERVALS),
    "inference_models": Table(_RESULT, "regression by trust model", _RELEASE | {"model": "{model}"} | _INTERVALS),
    "inference_survival": Table(
        _RESULT,
        "Kaplan-Meier, central",
        _RELEASE | {"told": _share("told"), "told and missed": _share("told and missed")},
    ),
}
"""By the name in the page's marker: intervals of a regression, the same by trust model, points of a survival curve."""
