"""Measure how often the intervals of a head's score cover: the population, and the same records pooled and scored in
one place.

    python -m benchmarks.inference.head_scores --save

A fixed head, records anew in every draw, the counts of ``Scoring`` through measuring, masks' sums and noise, and the
public reader. The pooled numbers are scikit-learn's.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import privstats as ps
from benchmarks.inference.coverings import dealt, promise, ran
from benchmarks.measuring import Row, Rows, Tables, command
from privstats.randomness import seeded

CLIENTS = 4
EPSILONS = (0.3, 1.0, 3.0)
POPULATION = 400_000
WORLDS = {"two classes, a third are of one": (2, 0.33, 1_000), "three classes, a sixth are of one": (3, 0.17, 2_000)}


class World:
    """A head of a few hundred records, and the population that it meets."""

    def __init__(self, classes: int, rare: float) -> None:
        self.classes, self.shares = classes, np.r_[np.full(classes - 1, (1 - rare) / (classes - 1)), rare]
        self.head = ps.heads.LDA().fit(*self.draw(400, np.random.default_rng(classes)))
        self.truth = self.pooled(*self.draw(POPULATION, np.random.default_rng(100 + classes)))

    def draw(self, count: int, chance: np.random.Generator) -> tuple[Any, Any]:
        """Records of the population."""
        y = chance.choice(self.classes, count, p=self.shares)
        return chance.normal(size=(count, 3)) + 1.2 * np.eye(self.classes, 3)[y], y

    def pooled(self, X: Any, y: Any) -> dict[str, float]:
        """Score the records in one place."""
        shares = self.head.predict_proba(X)
        said = shares.argmax(axis=1)
        recalls = {f"recall {label}": float((said[y == label] == label).mean()) for label in range(self.classes)}
        named = range(self.classes) if self.classes > 2 else (1,)
        areas = {f"AUC {label}": float(roc_auc_score(y == label, shares[:, label])) for label in named}
        whole = {"accuracy": float((said == y).mean()), "balanced accuracy": float(balanced_accuracy_score(y, said))}
        error = ps.heads.expected_calibration_error(self.head, X, y, bins=10)
        return whole | areas | recalls | {"calibration error": error}


def tables(options: argparse.Namespace) -> Tables:
    """A row per measure and epsilon."""
    runs = 2 if options.quick else options.runs
    for title, (classes, rare, records) in WORLDS.items():
        world = World(classes, rare)
        epsilons = EPSILONS[-1:] if options.quick else EPSILONS
        rows = [row for epsilon in epsilons for row in covered(world, records, epsilon, runs)]
        yield f"{title}, {records:,} records", rows


def covered(world: World, records: int, epsilon: float, runs: int) -> Rows:
    """The measures of a head at one epsilon, over so many draws of records and noise."""
    plan = ps.Scoring(world.head, score_bins=10, by_class=world.classes > 2).plan(
        cohort=ps.Cohort(CLIENTS, CLIENTS, 2 * records), privacy=promise(epsilon)
    )
    found: dict[str, list[tuple[bool, bool, bool, float]]] = {}
    for run in range(runs):
        chance = np.random.default_rng([world.classes, run])
        X, y = world.draw(records, chance)
        pooled, read = world.pooled(X, y), ps.inference.head_score(ran(plan, dealt(X, y, CLIENTS), seeded(run)))
        for row in read.to_rows():
            name = f"{row['metric']} {row['class'] or (1 if row['metric'] == 'AUC' else '')}".strip()
            if name not in world.truth:  # at the released prevalence, which moves from release to release
                continue
            low, high = row["conf_low"], row["conf_high"]
            missed = [row["reported"] and not low <= of[name] <= high for of in (world.truth, pooled)]
            found.setdefault(name, []).append((row["reported"], missed[0], missed[1], (high - low) / 2))
    return [_row(name, epsilon, answers) for name, answers in found.items()]


def _row(name: str, epsilon: float, answers: list[tuple[bool, bool, bool, float]]) -> Row:
    reported, missed, missed_pooled, widths = (np.array(column) for column in zip(*answers, strict=True))
    return {
        "measure": name,
        "epsilon": epsilon,
        "runs": len(answers),
        "reported": float(reported.mean()),
        "missed": float(missed.mean()),
        "missed pooled": float(missed_pooled.mean()),
        "half width": float(np.median(widths[reported])) if reported.any() else None,
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="releases per epsilon")


if __name__ == "__main__":
    command("inference.head_scores", __doc__, tables, _options)
