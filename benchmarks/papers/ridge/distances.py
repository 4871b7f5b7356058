"""Propositions 2 and 3 beside Table VII: what a projection keeps of distances, and how far it moves the weights.

The paper states both with O(.); here stand the shares and the distances that its projections have on its data.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measuring import Row, Rows
from benchmarks.papers.cells import Ours
from benchmarks.papers.ridge.data import Array, Federation
from benchmarks.papers.ridge.library import PENALTY
from benchmarks.papers.ridge.scale import PAPER, Scale
from privstats.transforms import GaussianProjection

__all__ = ["distances", "moved"]

_WIDE = 1000
_PAIRS = 2_000
_WITHIN = 0.1  # epsilon of Proposition 2


def distances(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """By m, on the data of Table VII."""
    federations = [Federation.draw(seed, d=_WIDE) for seed in scale.wide_seeds]
    rows: list[Row] = []
    for m in scale.widths:
        if m == _WIDE:
            continue
        projection = GaussianProjection(seed=0, inputs=_WIDE, features=m)
        R = projection.apply(np.eye(_WIDE))
        kept = Ours.of([_kept(federation.all_rows, R) for federation in federations])
        far = Ours.of([moved(federation, R) for federation in federations])
        rows.append(
            {
                "m": f"{m}",
                f"distances within {_WITHIN:.0%}, %": kept.mean,
                f"distances within {_WITHIN:.0%}, %, se": kept.error,
                "weights moved": far.mean,
                "weights moved, se": far.error,
                "root of d / m, the bound": float(np.sqrt(_WIDE / m)),
                "root of 1 - m / d": float(np.sqrt(1 - m / _WIDE)),
            }
        )
    yield f"{PAPER}, Propositions 2 and 3: projections of d = {_WIDE} features", rows


def moved(federation: Federation, R: Array) -> float:
    """How far the weights in projected features, taken back to all features, lie from the exact ones, relatively.

    Args:
        federation: of d features.
        R: of the projection, ``(d, m)``.
    """
    exact, X = federation.oracle(PENALTY), federation.all_rows @ R
    low = np.linalg.solve(X.T @ X + PENALTY * np.eye(X.shape[1]), X.T @ federation.all_targets)
    return float(np.linalg.norm(R @ low - exact) / np.linalg.norm(exact))


def _kept(X: Array, R: Array) -> float:
    """Per cent of random pairs whose distance changes by at most a share of :data:`_WITHIN`."""
    one, other = np.random.default_rng(0).integers(0, len(X), (2, _PAIRS))
    gaps = X[one] - X[other]
    before = np.linalg.norm(gaps, axis=1)
    there = before > 0
    after = np.linalg.norm(gaps[there] @ R, axis=1)
    return 100 * float((np.abs(after / before[there] - 1) <= _WITHIN).mean())
