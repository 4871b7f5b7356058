"""What the grid costs: LDA accuracy from moments on grids of 4 to 12 bits, beside float64 without clip or grid.

python -m benchmarks.moments.grid --save
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import privstats as ps
from benchmarks.data import Split, tasks
from benchmarks.measuring import Row, Tables, command

CLIP_NORMS = {"digits": 80.0, "banking77": 1.0, "cifar10": 24.0, "fmnist": 24.0}
"""About the largest norm in each set: 1 by the encoder's definition, 24 covers all but one record in 50,000."""
GRID_BITS = (4, 6, 8, 10, 12)


def tables(options: argparse.Namespace) -> Tables:
    """One row per data set."""
    chosen = [task for task in tasks(bundled_only=options.quick) if task.name in CLIP_NORMS]
    yield "LDA accuracy (%) by grid_bits", [accuracies(task.name, task.load()) for task in chosen]


def accuracies(name: str, split: Split) -> Row:
    """Accuracy in per cent by grid, and what one standard error is."""
    X, X_test, y, y_test = split
    exact = ps.heads.LDA().fit(X, y).score(X_test, y_test)
    row: dict[str, Any] = {"features": name, "clip norm": CLIP_NORMS[name], "float64": 100 * exact}
    for bits in GRID_BITS:
        schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", CLIP_NORMS[name], bits)
        release = ps.Release.exact(schema, ps.measure(schema, X, y))
        row[f"{bits} bits"] = 100 * ps.heads.LDA().fit_release(release).score(X_test, y_test)
    return {**row, "standard error": 100 * math.sqrt(exact * (1 - exact) / len(y_test))}


if __name__ == "__main__":
    command("moments.grid", __doc__, tables)
