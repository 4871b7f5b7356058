"""How wide the interval of an AUC is for a rare outcome: bins of equal width, of the margin, and by the head.

    python -m benchmarks.inference.rare_outcome --save

A head of a noisy release at epsilon 3 is scored on other records, through the public calls.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

import privstats as ps
from benchmarks.inference.coverings import dealt, promise, ran
from benchmarks.measuring import Row, Rows, Tables, command
from privstats.inference.head_curves import expected_area
from privstats.randomness import seeded

CLIENTS = 4
CASES = ((0.05, 4_000, 1.0), (0.05, 4_000, 3.0), (0.07, 3_000, 2.0), (0.3, 3_000, 1.0))
"""Share of the outcome, records that are scored, epsilon."""
SLOPES = np.array([0.7, 0.6, 0.4, 0.3, 0.2])
TRAINED = 3_000
WAYS: dict[str, dict[str, Any]] = {
    "20 bins of equal width": {"equal_bins": True},
    "60 bins of the margin": {"score": "margin", "reach": 8.0, "score_bins": 60},
    "20 bins that follow the head (the default)": {},
}


def tables(options: argparse.Namespace) -> Tables:
    """A row per way, of each case."""
    for share, records, epsilon in CASES[:1] if options.quick else CASES:
        runs = 2 if options.quick else options.runs
        rows: Rows = [_row(name, way, share, records, epsilon, runs) for name, way in WAYS.items()]
        yield f"{100 * share:g} in 100, {records:,} records, epsilon {epsilon:g}", rows


def _row(name: str, way: dict[str, Any], share: float, records: int, epsilon: float, runs: int) -> Row:
    found = []
    for run in range(runs):
        chance = np.random.default_rng([run, records])
        X, y = _drawn(TRAINED, share, chance)
        schema = ps.ClassSchema(2, len(SLOPES), "NAB", clip_norm=4.0)
        plan = ps.Plan(schema=schema, cohort=ps.Cohort(CLIENTS, CLIENTS, TRAINED), privacy=promise(3.0))
        release = ran(plan, dealt(X, y, CLIENTS), seeded(run))
        head = ps.heads.LDA().fit_release(release)
        scoring = ps.Scoring(head, **way)
        scored = scoring.plan(cohort=ps.Cohort(CLIENTS, CLIENTS, records), privacy=promise(epsilon))
        T, t = _drawn(records, share, chance)
        auc = ps.inference.head_score(ran(scored, dealt(T, t, CLIENTS), seeded(1_000 + run))).auc["1"]
        predicted, true = expected_area(scored, share), float(roc_auc_score(t, head.predict_proba(T)[:, 1]))
        found.append((true, auc.value, auc.high - auc.low, predicted.high - predicted.low, auc.low <= true <= auc.high))
    true, value, width, before, covered = np.array(found).T
    return {
        "bins": name,
        "AUC pooled": float(np.median(true)),
        "AUC": float(np.median(value)),
        "width": float(np.median(width)),
        "predicted width": float(np.median(before)),
        "covered": float(covered.mean()),
    }


def _drawn(records: int, share: float, chance: np.random.Generator) -> tuple[Any, Any]:
    """Logistic outcomes of about this share."""
    X = chance.normal(size=(records, len(SLOPES)))
    low, high = -15.0, 15.0
    for _ in range(60):
        middle = (low + high) / 2
        rate = (1 / (1 + np.exp(-(X @ SLOPES + middle)))).mean()
        low, high = (middle, high) if rate < share else (low, middle)
    return X, (chance.random(records) < 1 / (1 + np.exp(-(X @ SLOPES + low)))).astype(int)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=20, help="releases per row")


if __name__ == "__main__":
    command("inference.rare_outcome", __doc__, tables, _options)
