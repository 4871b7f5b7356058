"""The number tables of docs/streams.md, from the committed results of ``benchmarks/streams``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from benchmarks.measuring import results

__all__ = ["MAKERS"]

Cells: TypeAlias = Sequence[Sequence[str]]
_WAYS = ("again each time", "increments", "tree", "square-root")
_SETS = {"digits": "digits", "cifar10": "CIFAR-10"}


def stream_noise() -> Cells:
    """docs/streams.md: noise of the total."""
    (rows,) = (rows for title, rows in results("streams.noise").items() if title != "machine")
    columns = [name for name in rows[0] if name != "epochs"]
    head = ["epochs", *(name.replace("deletions", "leaving") for name in columns)]
    return [head, *([str(row["epochs"]), *(f"{row[name]:.1f}" for name in columns)] for row in rows)]


def stream_accuracy() -> Cells:
    """docs/streams.md: accuracy over the epochs."""
    lines = [["set", "epsilon", *_WAYS]]
    for name, shown in _SETS.items():
        (rows,) = (rows for title, rows in results("streams.accuracy").items() if title.endswith(f": {name}"))
        for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
            found = {row["way"]: row["over the epochs"] for row in rows if row["epsilon"] == epsilon}
            lines.append([shown, f"{epsilon:g}", *(f"{found[way]:.1f}" for way in _WAYS)])
    return lines


MAKERS: tuple[Callable[[], Cells], ...] = (stream_noise, stream_accuracy)
"""One per table."""
