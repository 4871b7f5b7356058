"""The number tables of benchmarks/synthetic/numbers.md, from the committed results of ``benchmarks/synthetic``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from benchmarks.measuring import Row
from benchmarks.table import Cells, Shown, Table, Tables, by_name, titled
from threat_models.bounds import clopper_pearson

__all__ = ["TABLES"]


def _auc(row: Row) -> str:
    spread = row["logistic se"]
    return f"{row['logistic']:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


def _guessed(row: Row) -> str:
    """The share of worlds with its interval: the second half of the worlds is guessed."""
    tested = row["worlds"] - row["worlds"] // 2
    low, high = clopper_pearson(round(row["guessed"] * tested), tested, 0.95)
    return f"{row['guessed']:.2f} ({low:.2f} to {high:.2f})"


_ROWS: dict[str, Shown] = {
    "epsilon": lambda row: "-" if row["epsilon"] is None else f"{row['epsilon']:g}",
    "rows": "{way}",
    "AUC, logistic": _auc,
    "AUC, boosting": "{boosting:.3f}",
    "two-way": "{two-way:.3f}",
    "three-way": "{three-way:.3f}",
    "seconds": lambda row: f"{row['seconds']:.1f}" if row["seconds"] else "",
    "splits": "{seeds}",
}


def synthetic_rows() -> Cells:
    """benchmarks/synthetic/numbers.md: every way on every table, by epsilon."""
    peers = titled("synthetic.rows", "peers: ")
    lines = [["table", *_ROWS]]
    for name, rows in titled("synthetic.rows", "rows: "):
        first, *ours, last = rows
        theirs = [row for title, found in peers if title.startswith(f"{name}, ") for row in found]
        between = sorted([*ours, *theirs], key=lambda row: float(row["epsilon"]))
        for place, row in enumerate([first, *between, last]):
            cells = (shown.format_map(row) if isinstance(shown, str) else shown(row) for shown in _ROWS.values())
            lines.append([name if not place else "", *cells])
    return lines


_MASKS: dict[str, Shown] = {
    "table": "{table}",
    "records": "{records:,}",
    "columns": "{columns}",
    "parties": "{parties}",
    "masked": "{masked s:.1f} s",
    "one curator": "{one curator s:.1f} s",
}
_ATTACKS: dict[str, Shown] = {
    "epsilon": "{epsilon:g}",
    "copies": "{copies}",
    "mu claimed": "{claimed:.3f}",
    "mu at least": "{least:.3f}",
    "AUC": "{auc:.2f}",
    "guessed, 95 %": _guessed,
    "baseline": "{baseline:.2f}",
    "ceiling": "{ceiling:.2f}",
    "worlds": "{worlds}",
}

TABLES: Tables = {
    **by_name(synthetic_rows),
    "synthetic_masks": Table("synthetic.rows", "seconds of all sessions", _MASKS),
    "synthetic_attacks": Table("synthetic.attacks", "attacks", _ATTACKS),
}
