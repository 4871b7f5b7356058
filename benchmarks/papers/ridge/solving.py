"""Seconds of one solve as features grow (Figure 2 b), and conjugate gradients instead of a factorisation (VI-A).

Gradients run on the triangle of G as it is released, so that no square of it is ever in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

import privstats as ps
from benchmarks.measuring import Row, Rows, least_seconds, peak_bytes
from benchmarks.papers.cells import Sheet
from benchmarks.papers.ridge.baselines import FEDAVG, stepped
from benchmarks.papers.ridge.data import Array, Federation
from benchmarks.papers.ridge.library import PENALTY, exact_plan, measured, weights_of
from benchmarks.papers.ridge.scale import PAPER, Scale

__all__ = ["FIGURE_2B", "computation", "conjugate_gradients", "large", "triangle_product"]

FIGURE_2B = Sheet(PAPER, "Figure 2 (b)", "processor seconds by number of features", better="lower")

_ROUNDS = 200
_TOLERANCE = 1e-10  # of the residual, relative to h


def computation(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """What the server computes from the total, the whole one-shot round, and 200 rounds of FedAvg on the records."""
    cells = []
    for d in scale.dimensions:
        federation = Federation.draw(0, d=d)
        plan = exact_plan(federation)
        parts = measured(plan, federation)
        release = ps.session.aggregate_unmasked(plan, parts)
        tasks: dict[str, Callable[[], object]] = {
            "server's solve": partial(weights_of, release),
            "sums of 20 clients": partial(measured, plan, federation),
            "FedAvg-200": partial(stepped, federation, FEDAVG, _ROUNDS if scale.timed else 1),
        }
        for name, seconds in least_seconds(tasks, max(1, scale.timed), time.process_time).items():
            cells.append(FIGURE_2B.cell(f"{d}", name, None, seconds))
    yield FIGURE_2B.rows(cells)


def large(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Conjugate gradients beside Cholesky at growing d: steps, seconds, memory beyond the triangle, distance."""
    rows: list[Row] = []
    for d in (500, 1_000, 2_000) if scale.timed else (40,):
        federation = Federation.draw(0, d=d)
        X, h = federation.all_rows, federation.all_rows.T @ federation.all_targets
        packed = (X.T @ X)[np.triu_indices(d)]
        del federation, X
        by_factor, by_steps = partial(_factored, packed, h), partial(conjugate_gradients, packed, h, PENALTY)
        seconds = least_seconds({"Cholesky": by_factor, "gradients": by_steps}, max(1, scale.timed), time.process_time)
        exact, (weights, steps) = by_factor(), by_steps()
        memory, less = (peak_bytes(task)[0] for task in (by_factor, by_steps))
        rows.append(
            {
                "d": f"{d}",
                "steps": steps,
                "Cholesky, s": seconds["Cholesky"],
                "gradients, s": seconds["gradients"],
                "Cholesky, MB beyond the triangle": memory / 1e6,
                "gradients, MB beyond the triangle": less / 1e6,
                "relative distance": float(np.linalg.norm(weights - exact) / np.linalg.norm(exact)),
            }
        )
    yield f"{PAPER}, section VI-A: conjugate gradients on the released triangle", rows


def conjugate_gradients(packed: Array, h: Array, penalty: float) -> tuple[Array, int]:
    """``(G + penalty I) w = h`` by conjugate gradients to a relative residual of 1e-10.

    Args:
        packed: the upper triangle of G by rows, ``(d (d + 1) / 2,)``.
        h: ``(d,)``.
        penalty: at least 0.

    Returns:
        weights: ``(d,)``.
        steps: how many; at most 10 d.
    """
    weights, residual = np.zeros_like(h), h.copy()
    direction, square = residual.copy(), float(h @ h)
    goal = _TOLERANCE**2 * square
    steps = 0
    while square > goal and steps < 10 * len(h):
        steps += 1
        moved = triangle_product(packed, direction) + penalty * direction
        length = square / float(direction @ moved)
        weights += length * direction
        residual -= length * moved
        before, square = square, float(residual @ residual)
        direction = residual + square / before * direction
    return weights, steps


def triangle_product(packed: Array, x: Array) -> Array:
    """``G x`` from the upper triangle of a symmetric G, a row at a time, ``(d,)``."""
    product, start, d = np.zeros_like(x), 0, len(x)
    for row in range(d):
        entries = packed[start : start + d - row]
        product[row] += entries @ x[row:]
        product[row + 1 :] += entries[1:] * x[row]
        start += d - row
    return product


def _factored(packed: NDArray[np.float64], h: Array) -> Array:
    d = len(h)
    G = np.zeros((d, d))
    G[np.triu_indices(d)] = packed
    G.flat[:: d + 1] += PENALTY
    return np.asarray(cho_solve(cho_factor(G, overwrite_a=True, check_finite=False), h))
