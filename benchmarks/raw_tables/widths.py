"""The width of an AUC's interval that a plan of a score prints, next to the intervals that its sessions have.

    python -m benchmarks.raw_tables.widths --save

A head of each kind is fitted at epsilon 3 on three quarters of a table's records. Two parties score the rest, in
sessions of their own noise. "Printed" is the width for that many records, the class's share and the noise at the AUC
that the head has on the held-out records, which nobody knows beforehand: a plan prints it at two assumed AUCs. A
session holds that AUC where its interval does.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA
from benchmarks.raw_tables.sets import TABLES, splits
from privstats import heads
from privstats.inference.head_curves import expected_area
from privstats.randomness import seeded

__all__ = ["NEAR", "TITLE"]

TITLE = "width of the AUC's interval"
NEAR = 0.25
"""Relative distance within which a session's width counts as the printed one."""
_FITTED = 3.0
_HEADS: Mapping[str, Callable[[], Any]] = {
    "LDA": heads.LDA,
    "RefinedSoftmax": heads.RefinedSoftmax,
    "RefinedSoftmax, calibrated": lambda: heads.RefinedSoftmax(calibrated=True),
}
_TABLES = ("cancer", "anes", "randhie", "fair", "flchain", "churn", "lending")
_NINES = "digits, 9 among ten"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", default=[*_TABLES, _NINES])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0], help="of the sessions of scores")
    parser.add_argument("--fits", type=int, default=2, help="splits of each table")
    parser.add_argument("--sessions", type=int, default=4, help="sessions of each fit and epsilon")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table, head and epsilon."""
    if chosen.quick:
        chosen.tables, chosen.epsilons, chosen.fits, chosen.sessions = ["cancer"], [3.0], 1, 2
    rows: list[Row] = []
    for name in chosen.tables:
        rows += _rows(name, chosen)
        yield TITLE, rows


def _rows(name: str, chosen: argparse.Namespace) -> Iterator[Row]:
    runs: dict[tuple[str, float], list[tuple[float, ...]]] = {}
    share = records = 0.0
    for seed in range(chosen.fits):
        terms, X, y, X_test, y_test = _split(name, seed)
        share, records = float(y_test.mean()), len(y_test)
        for kind, make in _HEADS.items():
            head = _fitted(make(), X, y, terms)
            auc = float(roc_auc_score(y_test, head.predict_proba(X_test)[:, 1]))
            for epsilon in chosen.epsilons:
                runs.setdefault((kind, epsilon), []).extend(_sessions(head, X_test, y_test, epsilon, auc, chosen))
    for (kind, epsilon), found in runs.items():
        yield {"data": name, "head": kind, "records": records, "share": share, "epsilon": epsilon, **_summary(found)}


def _split(name: str, seed: int) -> tuple[Mapping[str, Any], Any, Any, Any, Any]:
    if name == _NINES:
        X, y = load_digits(return_X_y=True)
        rows = X / np.linalg.norm(X, axis=1, keepdims=True)
        parts = train_test_split(rows, (y == 9).astype(int), test_size=0.25, random_state=seed, stratify=y == 9)
        return {"clip_norm": 1.0}, parts[0], parts[2], parts[1], parts[3]
    columns, y = next(each for each in TABLES if each.name == name).load()
    (split,) = splits(columns, y, [seed])
    terms = {"columns": declared(Known.of(columns)).columns}
    return terms, split.gaps, split.y, split.gaps_test, split.y_test


def _fitted(head: Any, X: Any, y: Any, terms: Mapping[str, Any]) -> Any:
    centred = {"centred": True} if "columns" not in terms and isinstance(head, heads.LDA) else {}
    refined = isinstance(head, heads.RefinedSoftmax) and "columns" not in terms
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few, and that a count tells little
        return head.fit_private(
            X,
            y,
            **({} if refined else terms),
            **centred,
            epsilon=_FITTED,
            delta=DELTA,
            adjacency="add-remove",
            classes=(0, 1),
            expected_records=len(y),
            ledger="uncharged",
        )


def _sessions(
    head: Any, X: Any, y: Any, epsilon: float, auc: float, chosen: argparse.Namespace
) -> Iterator[tuple[float, ...]]:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, len(y)), privacy=privacy)
    printed = expected_area(plan, float(y.mean()), auc=float(np.clip(auc, 0.501, 0.999)))
    shards = [(X.iloc[k::2] if hasattr(X, "iloc") else X[k::2], y[k::2]) for k in range(2)]
    for run in range(chosen.sessions):
        (found,) = ps.inference.head_score(ps.simulate(plan, shards, rng=seeded(run))).auc.values()
        hidden = not (printed.reported and found.reported)
        yield auc, printed.high - printed.low, found.high - found.low, found.low <= auc <= found.high, hidden


def _summary(found: list[tuple[float, ...]]) -> Row:
    auc, printed, width, held, hidden = np.array(found, np.float64).T
    shown = hidden == 0
    ratios = width[shown] / printed[shown]
    return {
        "auc": float(auc.mean()),
        "printed": float(printed.mean()),
        "width": float(width.mean()),
        "sessions": len(found),
        "shown": int(shown.sum()),
        "near": int((np.abs(ratios - 1) <= NEAR).sum()),
        "least": float(ratios.min(initial=np.inf)) if shown.any() else None,
        "most": float(ratios.max(initial=0.0)) if shown.any() else None,
        "held": int(held.sum()),
    }


if __name__ == "__main__":
    command("raw_tables.widths", __doc__, tables, options)
