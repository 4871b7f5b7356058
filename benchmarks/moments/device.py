"""Exact moments on a device: the host's integers, seconds next to a float64 product there, and what is requested of it.

    python -m benchmarks.moments.device --save

Times are of the first CUDA device, or of the host's processor where there is none: these show equality alone. How
often the host waits for a CUDA device is counted by torch's own debug mode. Requests per batch and tile are counted on
the host, for tensors that pass for a device's, so they need no device: ``--counts`` measures them alone, and keeps the
saved times. ``--before CHECKOUT`` also counts those of an older version, by today's counter:

    python -m benchmarks.moments.device --counts --before ../older-checkout --save
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

import privstats as ps
from benchmarks.measuring import Row, Tables, child, command, saved
from benchmarks.moments import device_counts
from benchmarks.moments.device_counts import BATCHES, ROUNDS, batch_row, round_row
from privstats.moments.device_sums import DeviceAccumulator
from privstats.moments.tensor_products import Products, prefers_limbs

SHAPES = ((2_000_000, 40, 10, "NAB"), (50_000, 512, 10, "NAB"), (50_000, 512, 100, "NAS"), (20_000, 2_048, 10, "NAB"))
QUICK = ((2_000, 16, 3, "NAS"),)
BATCHES_COUNTED = "requests of a device, counted on the host"
ROUNDS_COUNTED = "requests of a round, counted on the host"
BEFORE = "before, "


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--counts", action="store_true", help="no times")
    parser.add_argument("--before", type=Path, help="a checkout of an older version, whose requests are counted too")


def _before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    return saved("moments.device") if chosen.counts else {}


def tables(chosen: argparse.Namespace) -> Tables:
    """A row per shape."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    shapes, repeats = (QUICK, 1) if chosen.quick else (SHAPES, chosen.repeats)
    if not chosen.counts:
        yield "exact moments on a device", [_row(device, *shape, repeats) for shape in shapes]
    yield BATCHES_COUNTED, [batch_row(*each) for each in BATCHES]
    yield ROUNDS_COUNTED, [round_row(*each) for each in ROUNDS]
    if chosen.before is not None:
        batches, rounds = _older(chosen.before.resolve())
        yield BEFORE + BATCHES_COUNTED, batches
        yield BEFORE + ROUNDS_COUNTED, rounds


def _older(tree: Path) -> list[list[Row]]:
    """Count the requests of another checkout's library, in a process of its own."""
    words = [sys.executable, device_counts.__file__]
    counted = json.loads(child(words, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}))
    commit = child(["git", "rev-parse", "--short=9", "HEAD"], cwd=tree).strip()
    return [[{**row, "commit": commit} for row in counted[kind]] for kind in ("batches", "rounds")]


def _row(device: Any, n: int, d: int, classes: int, statistics: str, repeats: int) -> Row:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), rng.integers(0, classes, n)
    radius = float(np.quantile(np.linalg.norm(X[:10_000], axis=1), 0.95))
    schema = ps.ClassSchema(classes, d, statistics, clip_norm=radius)
    rows, labels = torch.as_tensor(X, device=device), torch.as_tensor(y, device=device)
    if _measured(schema, rows, labels) != ps.measure(schema, X, y):
        raise SystemExit("the device gave other integers than the host")
    whole = torch.round(rows * (schema.grid_steps / float(rows.norm(dim=1).max())))
    found = {
        "float64 product s": _least(device, lambda: rows.T @ rows, repeats),
        "measure s": _least(device, lambda: _measured(schema, rows, labels), repeats),
        "second moments by float64 s": _least(
            device, lambda: Products(torch, device, limbs=False).gram(whole), repeats
        ),
        "by limbs s": _least(device, lambda: Products(torch, device, limbs=True).gram(whole), repeats),
    }
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "the host's processor",
        "rows": n,
        "features": d,
        "statistics": statistics,
        "limbs": prefers_limbs(torch, device, schema.grid_bits),
        **found,
        "measure / product": found["measure s"] / found["float64 product s"],
        "waits of the host": _waits(lambda: _measured(schema, rows, labels)) if device.type == "cuda" else None,
    }


def _measured(schema: ps.ClassSchema, rows: Any, labels: Any) -> Any:
    meter = DeviceAccumulator(schema)
    meter.add(rows, labels)
    return meter.moments()


def _least(device: Any, task: Callable[[], object], repeats: int) -> float:
    """Seconds until the device has done it."""
    wait: Callable[[], object] = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    taken = []
    for _ in range(repeats + 1):
        wait()
        began = time.perf_counter()
        task()
        wait()
        taken.append(time.perf_counter() - began)
    return min(taken[1:])


def _waits(task: Callable[[], object]) -> int:
    cuda: Any = torch.cuda
    cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            task()
    finally:
        cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(each.message) for each in said)


if __name__ == "__main__":
    command("moments.device", __doc__, tables, options, _before)
