"""The number tables of docs/tables.md, from the committed results of ``benchmarks/inference``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from benchmarks.measuring import Row, results

__all__ = ["MAKERS"]

Cells: TypeAlias = Sequence[Sequence[str]]


def inference_coverage() -> Cells:
    """docs/tables.md: intervals of a regression under central noise."""
    return _regression(
        results("inference.coverage")["regression, central: 95 % intervals of five slopes and the intercept"]
    )


def inference_models() -> Cells:
    """docs/tables.md: the same by trust model."""
    rows = results("inference.coverage")["regression by trust model, 10,000 records"]
    return [
        [*line[:2], row, *line[2:]] for line, row in zip(_regression(rows), ["model", *_of(rows, "model")], strict=True)
    ]


def inference_survival() -> Cells:
    """docs/tables.md: points of a survival curve."""
    rows = results("inference.coverage")["Kaplan-Meier, central: 95 % intervals of 23 points"]
    head = ["records", "epsilon", "told", "told and missed"]
    return [
        head,
        *([f"{r['records']:,}", f"{r['epsilon']:g}", _share(r["told"]), _share(r["told and missed"])] for r in rows),
    ]


def _regression(rows: Sequence[Row]) -> list[list[str]]:
    head = ["records", "epsilon", "told", "told and missed", "naive covers", "half width", "without noise"]
    return [head, *(_line(row) for row in rows)]


def _line(row: Row) -> list[str]:
    start = [f"{row['records']:,}", f"{row['epsilon']:g}"]
    if row["refused"] == row["runs"]:
        return [*start, "refused", "-", "-", "-", f"{row['without noise']:.3f}"]
    width = "-" if row["half width"] is None else f"{row['half width']:.3f}"
    shares = (row["told"], row["told and missed"], row["naive covers"])
    return [*start, *map(_share, shares), width, f"{row['without noise']:.3f}"]


def _of(rows: Sequence[Row], key: str) -> list[str]:
    return [str(row[key]) for row in rows]


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"


MAKERS: tuple[Callable[[], Cells], ...] = (inference_coverage, inference_models, inference_survival)
"""One per table."""
