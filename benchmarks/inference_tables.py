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


def inference_peers() -> Cells:
    """docs/tables.md: other ways on the same records."""
    head = ["table", "way", "version", "epsilon", "told and missed", "half width", "median error", "bytes", "shows"]
    lines = []
    for title, rows in _tables("inference.peers"):
        for place, row in enumerate(rows):
            about = [title.partition(":")[0] if not place else "", row["peer"], row["version"], _epsilon(row)]
            found = [_missed(row), _number(row, "half width"), _number(row, "median error")]
            lines.append([*about, *found, f"{row['bytes']:,}", row["discloses"]])
    return [head, *lines]


def inference_readers() -> Cells:
    """docs/tables.md: the readers that the first tables leave out."""
    head = ["table", "records", "epsilon", "told", "told and missed", "half width"]
    lines = []
    for title, rows in _tables("inference.readers"):
        for place, row in enumerate(rows):
            about = [title if not place else "", f"{row['records']:,}", _epsilon(row), _share(row["told"])]
            lines.append([*about, _missed(row), _number(row, "half width")])
    return [head, *lines]


def inference_real() -> Cells:
    """docs/tables.md: columns of real data sets."""
    head = ["columns", "errors", "epsilon", "`cov_type`", "told", "told and missed", "worst parameter", "half width"]
    ((_, rows),) = _tables("inference.real")
    lines = []
    for row in rows:
        about = [row["columns"], row["errors"], _epsilon(row), row["cov_type"], _share(row["told"])]
        lines.append([*about, _missed(row), _share(row["worst parameter"]), _number(row, "half width")])
    return [head, *lines]


def _tables(name: str) -> Sequence[tuple[str, Sequence[Row]]]:
    return [(title, rows) for title, rows in results(name).items() if title != "machine"]


def _epsilon(row: Row) -> str:
    return "no noise" if row["epsilon"] is None else f"{row['epsilon']:g}"


def _missed(row: Row) -> str:
    if "not run" in row:
        return str(row["not run"])
    return "no interval" if row["told and missed"] is None else _share(row["told and missed"])


def _number(row: Row, key: str) -> str:
    return "-" if row.get(key) is None else f"{row[key]:.4f}"


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


MAKERS: tuple[Callable[[], Cells], ...] = (
    *(inference_coverage, inference_models, inference_survival),
    *(inference_peers, inference_readers, inference_real),
)
"""One per table."""
