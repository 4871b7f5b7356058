"""What a round of a softmax costs a party, beside a step of full-batch DP-GD and the products that it cannot avoid.

    python -m benchmarks.refinement.round_speed --save

Processor seconds on one thread, the least of a few turns. "products" are the three that a round has in integers:
rows by M, what they give by W, and residuals by rows. "again" is a further round of the same course in one process,
which keeps the rows behind M. "step" is a clipped gradient of a linear softmax in plain numpy,
in the same precision, of rows that need no map.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import Split, normal_batch
from benchmarks.measuring import Row, Tables, command
from benchmarks.refinement.library import course_of
from benchmarks.refinement.models import DELTA
from privstats.kinds import GradientSchema
from privstats.records.opened import Opened
from privstats.records.row_cache import RowCache
from privstats.schema.public_values import Values

TITLE = "processor seconds of a round"
SIZES = ((50_000, 512, 100), (50_000, 256, 10), (10_000, 384, 77))
_TILE, _CLIP = 512, 0.3

Array: TypeAlias = NDArray[np.float64]


def options(parser: argparse.ArgumentParser) -> None:
    """How often."""
    parser.add_argument("--turns", type=int, default=5)


def tables(options: argparse.Namespace) -> Tables:
    """A row per size."""
    sizes, turns = (((2_000, 32, 5),), 1) if options.quick else (SIZES, options.turns)
    yield TITLE, [row_of(*size, turns) for size in sizes]


def row_of(records: int, features: int, classes: int, turns: int) -> Row:
    """The least of the turns of each, and the ratios."""
    X, y = normal_batch(records, features, classes)
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    schema, values = _round((X, X, y, y))
    opened = Opened(schema.reading, X, y)
    kept = replace(opened, cache=RowCache())
    works: dict[str, Callable[[], Any]] = {
        "step": lambda: _step(X, y, np.zeros((classes, features))),
        "products": lambda: _products(X, *(values[name].integers.astype(np.float64) for name in "MW")),
        "round": lambda: schema.moments_of(opened, values),
        "again": lambda: schema.moments_of(kept, values),
    }
    works["again"]()  # the first round of the course
    found = dict.fromkeys(works, float("inf"))
    for _ in range(turns):
        for name, work in works.items():
            begun = time.process_time()
            work()
            found[name] = min(found[name], time.process_time() - begun)
    size = {"records": records, "features": features, "classes": classes}
    ratios = {"steps": ("round", "step"), "floors": ("round", "products"), "steps again": ("again", "step")}
    return {**size, **found, **{name: found[over] / found[under] for name, (over, under) in ratios.items()}}


def _round(split: Split) -> tuple[GradientSchema, dict[str, Values]]:
    """The schema of a round, and values of the size of those that it publishes."""
    course, rng = course_of(split, 1.0, DELTA), np.random.default_rng(0)
    C, d = course.first.schema.sizes["class"], split[0].shape[1]
    M = 3 * np.eye(d) + 0.1 * rng.standard_normal((d, d))
    return course.recipe.schema, {"M": Values.rounded(M), "W": Values.rounded(rng.standard_normal((C, d + 1)))}


def _step(X: Array, y: NDArray[np.int64], W: Array) -> Array:
    scores = X @ W.T
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    scores[np.arange(len(y)), y] -= 1
    norms = np.sqrt(np.einsum("ij,ij->i", scores, scores) * np.einsum("ij,ij->i", X, X))
    scores *= np.minimum(1, _CLIP / np.maximum(norms, 1e-30))[:, None]
    return np.asarray(scores.T @ X)


def _products(X: Array, M: Array, W: Array) -> Array:
    total = np.zeros_like(W)
    for start in range(0, len(X), _TILE):
        rows = X[start : start + _TILE] @ M
        units = np.empty((len(rows), W.shape[1]))
        units[:, :-1], units[:, -1] = rows, 1.0
        total += (units @ W.T).T @ units
    return total


if __name__ == "__main__":
    command("refinement.round_speed", __doc__, tables, options)
