"""The number tables of benchmarks/synthetic/numbers.md, from the committed results of ``benchmarks/synthetic``.

Part of ``benchmarks/tables.py``, which writes them into the page.
"""

from __future__ import annotations

from benchmarks.measuring import Row, Rows, standard_error
from benchmarks.table import Cells, Shown, Table, Tables, by_name, titled
from threat_models.bounds import clopper_pearson

__all__ = ["TABLES"]


def _guessed(row: Row) -> str:
    """The share of worlds with its interval: the second half of the worlds is guessed."""
    tested = row["worlds"] - row["worlds"] // 2
    low, high = clopper_pearson(round(row["guessed"] * tested), tested, 0.95)
    return f"{row['guessed']:.2f} ({low:.2f} to {high:.2f})"


def _spread(row: Row) -> str:
    spread = row["logistic se"]
    return f"{row['logistic']:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


_PEERS, _LEARNERS, _MERGED = ("AIM", "MST"), ("logistic", "boosting"), "ours at 16 cells"
_ROWS: dict[str, Shown] = {
    "epsilon": lambda row: "-" if row["epsilon"] is None else f"{row['epsilon']:g}",
    "rows": "{way}",
    "AUC, logistic": _spread,
    "AUC, boosting": "{boosting:.3f}",
    "two-way": "{two-way:.3f}",
    "three-way": "{three-way:.3f}",
    "seconds": lambda row: f"{row['seconds']:.1f}" if row["seconds"] else "",
    "splits": lambda row: f"{row['seeds']}" + (f" x {row['draws']}" if row.get("draws", 1) > 1 else ""),
}


def _measured(name: str) -> list[Row]:
    """Every row of one table: by epsilon, then by way."""
    ways = ("ours", _MERGED, "AIM", "MST", "mbi AIM", "mbi MST", "OpenDP AIM", "OpenDP MST")
    found = [row for way in ways for title, rows in _titled(f"{way}: {name}, ") for row in rows]
    return sorted(found, key=lambda row: (row["epsilon"], ways.index(row["way"])))


def _titled(start: str) -> list[tuple[str, Rows]]:
    return titled("synthetic.rows", start)


def synthetic_rows() -> Cells:
    """benchmarks/synthetic/numbers.md: every way on every table, by epsilon."""
    lines = [["table", *_ROWS]]
    for name, (first, last) in _titled("ends: "):
        for place, row in enumerate([first, *_measured(name), last]):
            cells = (shown.format_map(row) if isinstance(shown, str) else shown(row) for shown in _ROWS.values())
            lines.append([name if not place else "", *cells])
    return lines


def synthetic_beside() -> Cells:
    """benchmarks/synthetic/numbers.md: AUC of ours less that of each other way, on the splits that both have."""
    others = {**{way: way for way in _PEERS}, _MERGED: "16 cells"}
    lines = [["table", "epsilon", *(f"less {name}, {score}" for name in others.values() for score in _LEARNERS)]]
    for name, _ in _titled("ends: "):
        rows = {(row["epsilon"], row["way"]): row for row in _measured(name)}
        for epsilon in sorted({epsilon for epsilon, way in rows if way in _PEERS}):
            ours = rows.get((epsilon, "ours"))
            cells = [_less(ours, rows.get((epsilon, way)), score) for way in others for score in _LEARNERS]
            lines.append([name, f"{epsilon:g}", *cells])
    return lines


def _less(ours: Row | None, theirs: Row | None, learner: str) -> str:
    """The mean difference over the splits of both and its standard error; "-" where one was not measured."""
    if ours is None or theirs is None:
        return "-"
    pairs = zip(ours[f"{learner} by split"], theirs[f"{learner} by split"], strict=False)
    less = [one - other for one, other in pairs]
    return f"{sum(less) / len(less):+.3f}" + (f" ± {standard_error(less):.3f}" if len(less) > 1 else "")


def synthetic_rule() -> Cells:
    """benchmarks/synthetic/numbers.md: the table with a rule between two numbers."""
    lines = [["epsilon", "rows", "the pair", "all two-way", "three-way", "AUC, logistic", "AUC, boosting"]]
    for row in _measured("rule"):
        distances = [f"{row[name]:.3f}" for name in ("first pair", "two-way", "three-way")]
        lines.append([f"{row['epsilon']:g}", row["way"], *distances, *(f"{row[score]:.3f}" for score in _LEARNERS)])
    return lines


_FEDERATED: dict[str, Shown] = {
    "epsilon": lambda row: "-" if row["epsilon"] is None else f"{row['epsilon']:g}",
    "parties": lambda row: str(row["parties"] or "-"),
    "rows": "{way}",
    **{f"{ways}-way": f"{{{ways}-way:.4f}}" for ways in (1, 2, 3)},
    "fidelity": "{fidelity:.3f}",
    "model": lambda row: f"{row['model']:.3f}" if row["model"] < 100 else f"{row['model']:,.0f}",
    "draws": "{draws}",
}


def synthetic_federated() -> Cells:
    """benchmarks/synthetic/numbers.md: ours and HeteroFedSyn on the authors' splits."""
    lines = [["table", *_FEDERATED]]
    for name, ends in titled("synthetic.federated", "ends: "):
        found = [
            row
            for way in ("ours", "HeteroFedSyn")
            for _, rows in titled("synthetic.federated", f"{way}: {name}, ")
            for row in rows
        ]
        order = sorted(found, key=lambda row: (row["epsilon"], row["parties"], row["way"] != "ours"))
        for place, row in enumerate([ends[0], *order, ends[-1]]):
            cells = (shown.format_map(row) if isinstance(shown, str) else shown(row) for shown in _FEDERATED.values())
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
_FITS: dict[str, Shown] = {
    "cells": "{cells:,}",
    "fit": "{fit}",
    "loss": "{loss:.3f}",
    "distance": "{distance:.4f}",
    "seconds": "{seconds:.1f}",
}
_DISTANCES: dict[str, Shown] = {
    "lines": "{lines}",
    "runs": "{runs:,}",
    "missed": lambda row: f"{100 * row['missed']:.1f} %",
    "beyond in declared cells": lambda row: f"{100 * row['beyond in declared cells']:.1f} %",
    **{name: f"{{{name}:.3f}}" for name in ("distance", "estimate", "error", "noisy distance", "width")},
}
_CHOICE: dict[str, Shown] = {"columns": "{columns}", "pairs chosen": "{pairs}", "seconds": "{seconds:.2f}"}
_MEMBERSHIP: dict[str, Shown] = {
    "epsilon": "{epsilon:g}",
    "attack": "{attack}",
    "copies": "{copies}",
    "mu claimed": "{claimed:.3f}",
    "mu at least": "{least:.3f}",
    "AUC": "{auc:.2f}",
    "worlds": "{worlds}",
}
_INFERENCE: dict[str, Shown] = {
    "epsilon": "{epsilon:g}",
    "hidden": "{hidden}",
    "guessed, 95 %": _guessed,
    "baseline": "{baseline:.2f}",
    "ceiling": "{ceiling:.2f}",
    "worlds": "{worlds}",
}

TABLES: Tables = {
    **by_name(synthetic_rows, synthetic_beside, synthetic_rule, synthetic_federated),
    "synthetic_masks": Table("synthetic.rows", "seconds of all sessions", _MASKS),
    "synthetic_fits": Table("synthetic.fits", "fits: ", _FITS, ("table", str)),
    "synthetic_distances": Table("synthetic.distances", "", _DISTANCES, ("table", str)),
    "synthetic_choice": Table("synthetic.rows", "seconds of the choice", _CHOICE),
    "synthetic_membership": Table("synthetic.attacks", "membership", _MEMBERSHIP),
    "synthetic_inference": Table("synthetic.attacks", "inference", _INFERENCE),
}
