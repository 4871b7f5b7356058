"""The AUC that a head's releases predict for a session of scores, beside that on held-out records.

    python -m benchmarks.raw_tables.predicted --save --keep

The recipe without pairs, as in ``mean_probability``. "By the sums" samples rows from the released sums, as all heads
were described before; "now" is the middle that the head's file holds, and the range is between its 2.5 % and 97.5 %
quantile. A release is covered where the AUC on the held-out quarter is at most .02 outside of the range; "printed" is
what ``plan check`` prints for a session over as many records at the same epsilon.
"""

from __future__ import annotations

import argparse
import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from benchmarks.raw_tables.cells import Array
from benchmarks.raw_tables.known import Known
from benchmarks.raw_tables.mean_probability import released
from benchmarks.raw_tables.running import DELTA, lines_of
from benchmarks.raw_tables.sets import TABLES, RawTable, splits
from privstats import heads
from privstats.heads.released_scores import drawn, released_scores
from privstats.inference.head_curves import expected_area, expected_ends

__all__ = ["BUILT_ON", "FRESH", "TITLE", "UNTOUCHED"]

TITLE = "predicted AUC"
BUILT_ON = ("mgus", "attrition", "biopsy", "monica", "rotterdam", "fertil2", "cancer")
"""Tables by which the correction was found."""
FRESH = ("rossi", "titanic", "cells", "gbsg", "mroz", "anes", "nhefs", "credit")
"""Further tables, on which variants of the correction were compared as well."""
UNTOUCHED = ("spam", "churn", "hdma", "recid", "loanapp", "thornton", "health insurance", "remote work")
"""Tables that no part of the correction saw. Two later variants were held against a limit on all tables."""
_NEAR = 0.02


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--tables", nargs="+", default=[*BUILT_ON, *FRESH, *UNTOUCHED])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0, 3.0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--draws", type=int, default=2, help="releases of a split")
    parser.add_argument("--keep", action="store_true", help="go on with the saved rows")
    parser.add_argument("--minutes", type=float, help="begin no further row after so many")


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per table and epsilon."""
    names, epsilons = (["cancer"], [3.0]) if chosen.quick else (chosen.tables, chosen.epsilons)
    count, draws = (1, 1) if chosen.quick else (chosen.splits, chosen.draws)
    tables = sorted((each for each in TABLES if each.name in names), key=lambda each: names.index(each.name))
    asked = ((epsilon, table) for epsilon in epsilons for table in tables)
    return lines_of(TITLE, "raw_tables.predicted", chosen, asked, partial(_measured, count=count, draws=draws))


def _measured(table: RawTable, epsilon: float, count: int, draws: int) -> Row:
    columns, y = table.load()
    known, runs = Known.of(columns), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that records are few
        for split in splits(columns, y, range(count)):
            for draw in range(draws):
                head: Any = heads.RefinedSoftmax().fit_releases(released(known, split, epsilon, draw))
                scores = released_scores(head)
                assert scores is not None
                assert scores.area is not None
                true = float(roc_auc_score(split.y_test, head.predict_proba(split.gaps_test)[:, 1]))
                trained = float(roc_auc_score(split.y, head.predict_proba(split.gaps)[:, 1]))
                before = area(drawn(head, head._scored_on).quantiles)
                printed = _printed(head, len(split.y_test), float(split.y.mean()), epsilon, scores.area)
                runs.append((true, trained, before, area(scores.quantiles), *scores.area, *printed))
    true, trained, before, now, low, high, least, most = np.array(runs).T
    covered = (low - _NEAR <= true) & (true <= high + _NEAR)
    outside = (true < least - _NEAR) | (most + _NEAR < true)
    return {
        "data": table.name,
        "epsilon": epsilon,
        "records": len(y),
        "releases": len(runs),
        "held out": float(true.mean()),
        "trained": float(trained.mean()),
        "by the sums": float(before.mean()),
        "now": float(now.mean()),
        "low": float(low.mean()),
        "high": float(high.mean()),
        "covered": int(covered.sum()),
        "printed low": float(least.mean()),
        "printed high": float(most.mean()),
        "printed covers": len(runs) - int(outside.sum()),
        "by release": [[round(float(each), 4) for each in run] for run in runs],
    }


def _printed(head: Any, records: int, share: float, epsilon: float, ends: Array) -> tuple[float, float]:
    """The ends that ``plan check`` prints where as many records are scored as were held out; 0 and 1 where hidden."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=DELTA)
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, records), privacy=privacy)
    found = expected_area(plan, share)
    return expected_ends(found, ends) if found.reported else (0.0, 1.0)


def area(quantiles: Array) -> float:
    """The chance that a score of the second class is above one of the first."""
    others, members = quantiles
    return float((members[:, None] > others).mean() + (members[:, None] == others).mean() / 2)


if __name__ == "__main__":
    command("raw_tables.predicted", __doc__, tables, options)
