"""Section VI-C: kernels by random features, and whether those of the neural tangent kernel would earn a transform.

The tangent kernel of a two-layer ReLU network is that of its last layer, which ``RandomReLU`` has, plus that of its
first, ``E[1(w'x > 0) 1(w'x' > 0)] x'x'``, of which ``1(w'x > 0) g'x`` with independent normal w and g is an unbiased
random feature (Jacot, Gabriel and Hongler 2018). All sets have one width, so that every upload is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.measuring import Rows
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.ridge.data import Array
from benchmarks.papers.ridge.scale import PAPER, Scale
from benchmarks.papers.sets import at_hand, scaled
from privstats import heads
from privstats.transforms import CentreRows, RandomReLU, UnitNorm, apply

__all__ = ["kernels", "tangent"]

_SHEET = Sheet(PAPER, "section VI-C", "ridge classification on random features: accuracy, %", better="higher")
_WIDTH, _RECORDS = 1024, 10_000


def kernels(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """A column per set at hand, on at most 10,000 records, centred and of norm 1."""
    quick = not scale.timed
    width, seeds = (64, scale.wide_seeds) if quick else (_WIDTH, scale.wide_seeds)
    cells: list[Cell] = []
    for features in at_hand(quick=quick).values():
        X, X_test, y, y_test = scaled(features, _RECORDS).split
        rows, tested = (apply((CentreRows(), UnitNorm()), each) for each in (X, X_test))
        found: dict[str, list[float]] = {}
        for seed in seeds:
            relu = RandomReLU(seed=seed, inputs=rows.shape[1], features=width)
            maps: dict[str, Callable[[Array], Array]] = {
                "features as they are": np.asarray,
                f"{width} ReLU features": relu.apply,
                f"{width} tangent features": partial(tangent, width=width, seed=seed),
            }
            for name, apply_map in maps.items():
                head = heads.RidgeClassifier().fit(apply_map(rows), y)
                found.setdefault(name, []).append(100 * float(head.score(apply_map(tested), y_test)))
        cells += [_SHEET.cell(name, features.name, None, values) for name, values in found.items()]
    yield _SHEET.rows(cells)


def tangent(rows: Array, width: int, seed: int) -> Array:
    """Random features of the tangent kernel, half of them of each layer, ``(n, width)``.

    Args:
        rows: ``(n, d)``.
        width: even.
        seed: of the public draw.
    """
    rng = np.random.default_rng(seed)
    half = width // 2
    last, first, linear = (rng.standard_normal((rows.shape[1], half)) for _ in range(3))
    gates = rows @ first > 0
    return np.asarray(np.hstack([np.maximum(rows @ last, 0.0), np.where(gates, rows @ linear, 0.0)]) / np.sqrt(half))
