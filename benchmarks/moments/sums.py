"""Seconds and memory of exact moments, beside the same flops by BLAS, naive numpy and scikit-learn.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.sums --cpu --save

Ratios are to the least time of one float64 ``A.T @ A`` of the same shape in the same run (numpy hands it to the BLAS's
symmetric update, dsyrk; the full product, dgemm, is listed too).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk
from sklearn.covariance import EmpiricalCovariance, LedoitWolf

import privstats as ps
from benchmarks.measuring import Rows, Tables, command, least_seconds, peak_bytes
from privstats.encoding import Ring
from privstats.moments.accumulators import chunk_rows

Clocked: TypeAlias = Callable[[Mapping[str, Callable[[], object]]], dict[str, float]]

SHAPES = ((50_000, 512, 10), (50_000, 512, 100), (13_000, 384, 77), (1_000_000, 64, 10))
QUICK_SHAPES = ((500, 16, 3),)
STATISTICS = ("NA", "NAB", "NABD", "NAS")


def options(parser: argparse.ArgumentParser) -> None:
    """The clock and how often."""
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, for a busy machine; set OMP_NUM_THREADS=1")


def tables(chosen: argparse.Namespace) -> Tables:
    """Every part."""
    clock, unit = (time.process_time, "CPU seconds") if chosen.cpu else (time.perf_counter, "seconds")
    least = partial(least_seconds, repeats=1 if chosen.quick else chosen.repeats, clock=clock)
    for n, d, classes in QUICK_SHAPES if chosen.quick else SHAPES:
        yield f"moments of {n:,} x {d}, {classes} classes", moments_of_shape(n, d, classes, least, unit)
    counts = (1_000, 4_000) if chosen.quick else (100_000, 400_000, 1_600_000)
    yield "memory by number of records, d = 64, from a file", memory_by_records(counts)
    size = 10_000 if chosen.quick else 10_000_000
    yield f"encoding and packing {size:,} entries", packing(least, size)


def moments_of_shape(n: int, d: int, classes: int, least: Clocked, unit: str) -> Rows:
    """Rows of the table for one shape."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, d)), rng.integers(0, classes, n)
    radius = float(np.quantile(np.linalg.norm(X[:10_000], axis=1), 0.95))
    tasks: dict[str, Callable[[], object]] = {"float64 A.T @ A": lambda: X.T @ X}
    other = X.copy()
    tasks["float64 dgemm"] = lambda: other.T @ X
    tasks["float64 dsyrk"] = lambda: dsyrk(1.0, X.T)
    for statistics in STATISTICS:
        schema = ps.ClassSchema(classes, d, statistics, clip_norm=radius)
        tasks[f"measure {statistics}"] = partial(ps.measure, schema, X, y)
        if statistics in {"NAB", "NAS"}:
            tasks[f"sums {statistics}, quantised before"] = partial(sums, schema, ps.moments.quantize(schema, X), y)
    ridge = ps.RidgeSchema(d, clip_norm=radius, target_bound=float(classes), folds=5)
    tasks["measure Ghq, 5 folds"] = partial(ps.measure, ridge, X, y)
    tasks["naive numpy NAB"] = lambda: naive(X, y, classes, per_class=False)
    tasks["naive numpy NAS"] = lambda: naive(X, y, classes, per_class=True)
    tasks["sklearn EmpiricalCovariance"] = lambda: EmpiricalCovariance().fit(X)
    tasks["sklearn LedoitWolf"] = lambda: LedoitWolf().fit(X)
    seconds = least(tasks)
    floor = seconds["float64 A.T @ A"]
    return [
        {"task": name, unit: seconds[name], "x A.T @ A": seconds[name] / floor, **memory(task)}
        for name, task in tasks.items()
    ]


def sums(schema: ps.ClassSchema, grid: NDArray[np.int64], y: NDArray[np.int64]) -> object:
    """The sums alone, of rows that are on the grid already."""
    total, step = schema.adder(), chunk_rows(schema)
    for start in range(0, len(grid), step):
        total.add(grid[start : start + step].astype(np.float64), y[start : start + step])
    return total.totals()


def naive(X: NDArray[np.float64], y: NDArray[np.int64], classes: int, *, per_class: bool) -> object:
    """Compute the obvious first version: float64 products, class by class, without clip or grid."""
    groups = [X[y == label] for label in range(classes)]
    A = np.stack([group.sum(axis=0) for group in groups])
    second = np.stack([group.T @ group for group in groups]) if per_class else X.T @ X
    return np.bincount(y, minlength=classes), A, second


def memory(task: Callable[[], object]) -> dict[str, float]:
    """Peak beyond the result, in MiB."""
    peak, result = peak_bytes(task)
    held = sum(array.nbytes for array in _arrays(result))
    return {"result MiB": held / 2**20, "peak beyond it MiB": (peak - held) / 2**20}


def memory_by_records(counts: tuple[int, ...]) -> Rows:
    """Peak memory of measuring a file, which must not grow with the file."""
    rows = []
    schema = ps.ClassSchema(10, 64, "NABD", clip_norm=10.0)
    with tempfile.TemporaryDirectory() as folder:
        for n in counts:
            path = Path(folder) / "X.npy"
            X = np.lib.format.open_memmap(path, "w+", np.float32, (n, 64))
            for start in range(0, n, counts[0]):
                X[start : start + counts[0]] = np.random.default_rng(start).normal(size=(counts[0], 64))
            X.flush()
            y = np.arange(n) % 10
            rows.append({"records": n, "file MiB": X.nbytes / 2**20, **memory(partial(ps.measure, schema, path, y))})
            path.unlink()
    return rows


def packing(least: Clocked, size: int) -> Rows:
    """Ring encoding and packing, beside a copy of the vector."""
    vector = np.random.default_rng(0).integers(-(2**19), 2**19, size)
    rows = []
    for bits in (20, 26, 32, 38, 45, 62):
        ring = Ring(((size, bits),))
        message, ready = np.empty(ring.wire_bytes, np.uint8), ring.encode(vector)
        wire = ready.pack()
        tasks: dict[str, Callable[[], object]] = {
            "copy": vector.copy,
            "copy to bytes": vector.tobytes,
            "encode": partial(ring.encode, vector),
            "pack_into": partial(ready.pack_into, message),
            "pack": ready.pack,
            "unpack": partial(ring.unpack, wire),
        }
        best = least(tasks)
        rows.append(
            {
                "bits": bits,
                "copy ms": 1e3 * best["copy"],
                "encode + pack_into ms": 1e3 * (best["encode"] + best["pack_into"]),
                "x copy": (best["encode"] + best["pack_into"]) / best["copy"],
                "encode + pack ms": 1e3 * (best["encode"] + best["pack"]),
                "x copy to bytes": (best["encode"] + best["pack"]) / best["copy to bytes"],
                "unpack x copy": best["unpack"] / best["copy"],
            }
        )
    return rows


def _arrays(result: object) -> list[NDArray[Any]]:
    if isinstance(result, np.ndarray):
        return [result]
    if isinstance(result, tuple):
        return [array for item in result for array in _arrays(item)]
    names = ("N", "A", "B", "S", "D", "fold_G", "fold_h", "fold_q", "covariance_", "precision_")
    found = [getattr(result, name, None) for name in names]
    return [array for array in found if isinstance(array, np.ndarray)]


if __name__ == "__main__":
    command("moments.sums", __doc__, tables, options)
