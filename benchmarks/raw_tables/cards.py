"""A scorecard next to its head: whose score it returns, and what the sum of its printed points misses.

    python -m benchmarks.raw_tables.cards --save

Each head is fitted at epsilon 3 on three quarters of a table's records with a tenth of the cells missing; every release
has another split and other noise. Differences are in log odds, over the records that the head was fitted on. "Points
alone" are the base and the points without the factor by which the head multiplies them. "Printed" is what the card says
that they miss. The query runs in SQLite, over the table as it is.
"""

from __future__ import annotations

import argparse
import sqlite3
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import DELTA, present
from benchmarks.raw_tables.sets import Split, splits
from privstats import heads
from privstats.inference import Scorecard

__all__ = ["EPSILON", "TITLE"]

TITLE = "scorecards next to their heads"
EPSILON = 3.0
_HEADS: Mapping[str, Callable[[], Any]] = {"RefinedSoftmax": heads.RefinedSoftmax, "LDA": heads.LDA}
_TABLES = ("mgus", "recid", "hdma", "credit", "flchain")
_FEW = 6  # columns of the bundled table, all of which no query holds


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", default=list(_TABLES))
    parser.add_argument("--releases", type=int, default=10, help="of each table and head")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table and head."""
    names, releases = (["cancer"], 1) if chosen.quick else (chosen.tables, chosen.releases)
    rows: list[Row] = []
    for table in present(names):
        columns, y = table.load()
        if chosen.quick:
            columns = columns.iloc[:, :_FEW]
        cells = declared(Known.of(columns))
        for name, make in _HEADS.items():
            found = [_compared(make(), split, cells) for split in splits(columns, y, range(releases))]
            rows.append({"data": table.name, "head": name, "columns": columns.shape[1], **_summary(found)})
            yield TITLE, rows


def _compared(head: Any, split: Split, cells: ps.Cells) -> dict[str, float]:
    card = _card(head, split, cells)
    scores = card.scores(split.gaps)[:, 0]
    alone = replace(card, lengths=None).scores(split.gaps)[:, 0]
    missed = float(np.sqrt(np.mean((alone - scores) ** 2)))
    printed = 0.0 if card.discrepancies is None else float(card.discrepancies.total[0])
    return {
        "card": float(np.abs(scores - head.decision_function(split.gaps)).max()),
        "query": float(np.abs(_queried(card, split.gaps) - scores).max()),
        "missed": missed,
        "printed": printed,
        "rate": float(split.y.mean()),
        "probability": float(head.predict_proba(split.gaps)[:, 1].mean()),
        "card's probability": float(card.predict_proba(split.gaps)[:, 1].mean()),
        "probability by points": float((1 / (1 + np.exp(-alone))).mean()),
    }


def _card(head: Any, split: Split, cells: ps.Cells) -> Scorecard:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few, and that a count tells little
        head.fit_private(
            split.gaps,
            split.y,
            columns=cells.columns,
            epsilon=EPSILON,
            delta=DELTA,
            adjacency="add-remove",
            classes=(0, 1),
            expected_records=len(split.y),
            ledger="uncharged",
        )
    return ps.inference.scorecard(head, head.releases_, draws=2)  # bands are not compared


def _queried(card: Scorecard, table: pd.DataFrame) -> Any:
    """Return the log odds that the card's query computes in SQLite."""
    with sqlite3.connect(":memory:") as base:
        table.to_sql("records", base, index=False)
        return pd.read_sql_query(card.sql("records"), base)["log_odds"].to_numpy()


def _summary(found: list[dict[str, float]]) -> Row:
    """Return the worst difference of both readers, and means of the rest with the range of what points miss."""
    every = {name: np.array([each[name] for each in found]) for name in found[0]}
    worst = {f"{name}, most": float(every[name].max()) for name in ("card", "query", "missed")}
    means = {name: float(values.mean()) for name, values in every.items() if name not in ("card", "query")}
    ratio = float((every["missed"] / every["printed"]).max()) if every["printed"].all() else None
    return {"releases": len(found), **worst, "missed, least": float(every["missed"].min()), **means, "ratio": ratio}


if __name__ == "__main__":
    command("raw_tables.cards", __doc__, tables, options)
