"""The tables of benchmarks/heads/numbers.md of ridge regressions on raw tables, beside AdaSSP.

Cells only; ``tables`` finds the pages that they stand in.
"""

from __future__ import annotations

from benchmarks.measuring import Row
from benchmarks.table import Cells, Tables, by_name, titled

__all__ = ["TABLES", "ridge_on_tables", "ridge_on_tables_standing"]

_UNTOUCHED = ("ames", "mid-atlantic wages", "medical visits")
_RIVALS = {
    "AdaSSP": "AdaSSP, three releases",
    "adassp": "its penalty on this release",
    "wiener": "the posterior mean, the default before",
    "rounds": "rounds at the same charge",
}
_SURE = 2.0  # standard errors


def ridge_on_tables() -> Cells:
    """R2 by table, target and epsilon."""
    found = titled("heads.ridge_tables", "R2, %: ")
    epsilons = list(dict.fromkeys(row["epsilon"] for _, rows in found for row in rows))
    lines = [["table", "target", *(f"{epsilon:g}".lstrip("0") for epsilon in epsilons)]]
    for name, rows in found:
        shown = name if name in _UNTOUCHED else f"{name} °"
        for place, target in enumerate(dict.fromkeys(row["target"] for row in rows)):
            cells = [_cell(row) for row in rows if row["target"] == target]
            lines.append(["" if place else f"{shown}, {rows[0]['records']:,} x {rows[0]['columns']}", target, *cells])
    return lines


def ridge_on_tables_standing() -> Cells:
    """In how many cells a release is ahead, level or behind."""
    found = titled("heads.ridge_tables", "R2, %: ")
    lines = [["against", "tables", "ahead", "level", "behind", "by at most"]]
    for rival, shown in _RIVALS.items():
        for place, (kind, new) in enumerate({"looked at": False, "untouched": True}.items()):
            rows = [row for name, rows in found if (name in _UNTOUCHED) == new for row in rows]
            behind = [-row[f"lead over {rival}"] for row in rows if _standing(row, rival) < 0]
            ahead = sum(_standing(row, rival) > 0 for row in rows)
            counts = [ahead, len(rows) - ahead - len(behind), len(behind)]
            most = f"{max(behind):.1f}" if behind else ""
            lines.append(["" if place else shown, kind, *map(str, counts), most])
    return lines


def _standing(row: Row, rival: str) -> int:
    lead, error = row[f"lead over {rival}"], row[f"se over {rival}"]
    return int(lead > _SURE * error) - int(lead < -_SURE * error)


def _cell(row: Row) -> str:
    """The rivals, one release and rounds; one release is bold where it is behind AdaSSP."""
    ours = f"{row['aggregate']:.1f}"
    behind = _standing(row, "AdaSSP") < 0
    *rivals, rounds = (f"{row[rival]:.1f}" for rival in _RIVALS)
    return " / ".join([*rivals, f"**{ours}**" if behind else ours, rounds])


TABLES: Tables = by_name(ridge_on_tables, ridge_on_tables_standing)
