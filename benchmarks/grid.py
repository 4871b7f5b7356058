"""What the grid costs: LDA accuracy from moments on grids of 6 to 12 bits, beside float64 without clip or grid.

    python benchmarks/grid.py --json benchmarks/results/grid.json

Reads the feature sets beside the checkout (``../shared/data``) or in ``$PRIVSTATS_DATA``; absent ones are skipped.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

import numpy as np
from table import DATA, report

import privstats as ps

CLIP_NORMS = {"banking77_minilm384": 1.0, "cifar10_effnetlite0_rp256": 24.0, "fmnist_effnetlite0_rp256": 24.0}
"""About the largest norm in each set: 1 by the encoder's definition, 24 covers all but one record in 50,000."""
GRID_BITS = (4, 6, 8, 10, 12)


def main() -> None:
    """Print and save one row per feature set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name, clip_norm in CLIP_NORMS.items():
        path = DATA / f"{name}.npz"
        if path.exists():
            rows.append(accuracies(name, path, clip_norm))
        else:
            print(f"skipped {name}: {path} is not there")
    if rows:
        if arguments.json:
            arguments.json.unlink(missing_ok=True)
        report("LDA accuracy (%) by grid_bits", rows, arguments.json)


def accuracies(name: str, path: Path, clip_norm: float) -> dict[str, Any]:
    """Accuracy in per cent by grid, and what one standard error is."""
    with np.load(path) as stored:
        X, y, X_test, y_test = (stored[key] for key in ("X_train", "y_train", "X_test", "y_test"))
    exact = ps.heads.LDA().fit(X, y).score(X_test, y_test)
    row: dict[str, Any] = {"features": name, "clip norm": clip_norm, "float64": 100 * exact}
    for bits in GRID_BITS:
        schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", clip_norm, bits)
        release = ps.Release.exact(schema, ps.measure(schema, X, y))
        row[f"{bits} bits"] = 100 * ps.heads.LDA().fit_release(release).score(X_test, y_test)
    return {**row, "standard error": 100 * math.sqrt(exact * (1 - exact) / len(y_test))}


if __name__ == "__main__":
    main()
