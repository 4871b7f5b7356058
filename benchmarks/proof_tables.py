"""The tables of proofs of reports in benchmarks/secagg/numbers.md: a liar under each level, and what a proof costs.

Cells only; ``tables`` finds the pages that they stand in.
"""

from __future__ import annotations

from benchmarks.measuring import Row, results
from benchmarks.table import Cells, Table, Tables, by_name

__all__ = ["TABLES"]

_NAMES = {
    "digits": "digits",
    "few": "digits, five classes of 6 records",
    "fmnist": "Fashion-MNIST",
    "banking77": "BANKING77",
    "breast cancer": "breast cancer",
}
_LEVELS = ("none", "norm", "moments", "real records")


def poisoned_sums() -> Cells:
    """The worst accuracy found for one liar of twenty, by data and head."""
    tables = results("attacks.poisoned_sums")
    head = [
        "data, head",
        "records, and of the liar",
        "honest",
        "without the liar",
        *(f"`{each}`" for each in _LEVELS[:3]),
    ]
    rows = [
        [f"{_NAMES[row['data']]}, {row['head']}", f"{row['records in all']:,}, {row['of the liar']:,}", *_shown(row)]
        for row in tables["worst accuracy that one liar of twenty leaves, %"]
    ]
    (rounds,) = tables["the same after refinement rounds, digits, %"]
    told = f"digits, softmax after {rounds['rounds']} rounds at epsilon {rounds['epsilon']:g}"
    return [[*head, _LEVELS[3]], *rows, [told, rows[0][1], *_shown(rounds)]]


def _shown(row: Row) -> list[str]:
    return [f"{row[key]:.1f}" if key in row else "" for key in ("honest", "without the liar", *_LEVELS)]


def _milliseconds(row: Row) -> str:
    return "not run" if row["ms"] is None else f"{row['ms']:.2g}"


def _beside(key: str, digits: str = ",.1f") -> str:
    return f"{{{key}:{digits}}} / {{{key}, none:{digits}}}"


TABLES: Tables = {
    **by_name(poisoned_sums),
    "proved_sessions": Table(
        "secagg.proofs",
        "a session whose reports prove their sums",
        {
            "plan": "{statement}",
            "entries": "{m:,}",
            "bits": "{bits}",
            "client, ms": _beside("client ms"),
            "before the spend, ms": _beside("before ms"),
            "helper, ms": _beside("helper ms"),
            "leader, ms": _beside("leader ms"),
            "report, kB": _beside("report kB", ",.0f"),
            "answers, kB": "{answers kB:.1f}",
        },
    ),
    "smaller_reports": Table(
        "secagg.proofs",
        "a smaller report",
        {"way": "{way}", "report, kB": "{report kB:.1f}", "ms more at the client": _milliseconds},
    ),
}
"""By the name in the page's marker."""
