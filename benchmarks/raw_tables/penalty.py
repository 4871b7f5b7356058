"""What a penalty is worth on raw tables, without privacy: logistic regressions and least squares on rows of cells.

    python -m benchmarks.raw_tables.penalty --save

The rows are those of the private heads with given cuts, a tenth of the cells missing. C divides the penalty of a
logistic regression, alpha is that of least squares. ``RefinedSoftmax`` has no penalty: its rounds move toward the
weights that fit best. ``RidgeClassifier`` chooses one by its evidence.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from sklearn.linear_model import LogisticRegression, Ridge

from benchmarks.measuring import Row, Tables, command, standard_error
from benchmarks.raw_tables.cells import declared
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.running import SCORES
from benchmarks.raw_tables.sets import TABLES, Classes, splits

__all__ = ["LOGISTIC", "SQUARES", "TITLE"]

TITLE = "AUC by penalty, without privacy"
LOGISTIC, SQUARES = (300.0, 10.0, 1.0, 0.1), (0.01, 1.0, 100.0)
_ASKED = ("lending", "default", "churn", "mlc churn", "credit", "mortgages")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--splits", type=int, default=6)


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table."""
    named, rows = {table.name: table for table in TABLES}, list[Row]()
    for name in ("cancer",) if chosen.quick else _ASKED:
        columns, y = named[name].load()
        known = Known.of(columns)
        cells = declared(known, known.edges)
        found: dict[str, list[float]] = {}
        there = list(splits(columns, y, range(2 if chosen.quick else chosen.splits)))
        for split in there:
            rows_of, tested = (cells.apply(cells.codes(frame)) for frame in (split.gaps, split.gaps_test))
            for way, auc in _aucs(rows_of, tested, split.y, split.y_test).items():
                found.setdefault(way, []).append(round(auc, 5))
        errors = {f"{way}, se": standard_error(aucs) for way, aucs in found.items()}
        usual = {"data": name, "rate": float(y.mean()), "entries": cells.width, "positives": int(there[0].y.sum())}
        rows.append({**usual, **found, **errors})
        yield TITLE, rows


def _aucs(rows: Any, tested: Any, y: Classes, y_test: Classes) -> Mapping[str, float]:
    """AUC of every model on the test rows."""
    scores = {
        f"C {c:g}": LogisticRegression(C=c, max_iter=4_000).fit(rows, y).decision_function(tested) for c in LOGISTIC
    }
    scores |= {f"alpha {alpha:g}": Ridge(alpha=alpha).fit(rows, y).predict(tested) for alpha in SQUARES}
    return {way: SCORES["aucs"](y_test, each) for way, each in scores.items()}


if __name__ == "__main__":
    command("raw_tables.penalty", __doc__, tables, options)
