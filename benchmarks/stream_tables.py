"""The number tables of benchmarks/streams/numbers.md, from the committed results of ``benchmarks/streams``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from benchmarks.measuring import Row, results
from benchmarks.table import Cells, Tables, by_name

__all__ = ["TABLES"]

_WAYS = ("again each time", "increments", "tree", "square-root")
_SETS = {"digits": "digits", "cifar10": "CIFAR-10"}


def stream_noise() -> Cells:
    """benchmarks/streams/numbers.md: noise of the total."""
    (rows,) = (rows for title, rows in results("streams.noise").items() if title != "machine")
    columns = [name for name in rows[0] if name != "epochs"]
    head = ["epochs", *(name.replace("deletions", "leaving") for name in columns)]
    return [head, *([str(row["epochs"]), *(f"{row[name]:.1f}" for name in columns)] for row in rows)]


def stream_accuracy() -> Cells:
    """benchmarks/streams/numbers.md: accuracy over the epochs, with standard errors."""
    lines = [["set", "epochs", "epsilon", *_WAYS]]
    for name, shown in _SETS.items():
        for title, rows in results("streams.accuracy").items():
            if title.endswith(f": {name}"):
                epochs = title.split()[3]
                for epsilon in dict.fromkeys(row["epsilon"] for row in rows):
                    found = {row["way"]: _accuracy(row) for row in rows if row["epsilon"] == epsilon}
                    lines.append([shown, epochs, f"{epsilon:g}", *(found[way] for way in _WAYS)])
    return lines


def stream_audit() -> Cells:
    """benchmarks/streams/numbers.md: canaries through a whole stream."""
    (rows,) = (rows for title, rows in results("streams.audit").items() if title != "machine")
    lines = [
        ["mechanism, epochs", "mu claimed", "a party that keeps its registry", "the double: takes silence for proof"]
    ]
    for row, double in zip(rows[::2], rows[1::2], strict=True):
        which = f"{row['mechanism']}, {row['epochs']}"
        lines.append([which, f"{row['mu claimed']:.3f}", f"{row['mu at least']:.3f}", f"{double['mu at least']:.3f}"])
    return lines


def stream_registry() -> Cells:
    """benchmarks/streams/numbers.md: what a record registry takes."""
    (rows,) = (rows for title, rows in results("streams.registry").items() if title != "machine")
    calls = [name for name in rows[0] if name not in ("records", "bytes of a record")]
    lines = [["records", *calls, "bytes of a record"]]
    for row in rows:
        times = (f"{1000 * row[name]:,.2g} ms" if row[name] < 0.1 else f"{row[name]:.2g} s" for name in calls)
        lines.append([f"{row['records']:,}", *times, f"{row['bytes of a record']:.0f}"])
    return lines


def _accuracy(row: Row) -> str:
    return f"{row['over the epochs']:.1f} ± {row['over the epochs, standard error']:.2f}"


TABLES: Tables = by_name(stream_noise, stream_accuracy, stream_audit, stream_registry)
"""By the name in the page's marker."""
