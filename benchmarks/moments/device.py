"""Exact moments on a device: the host's integers, seconds next to a float64 product there, and what is requested of it.

    python -m benchmarks.moments.device --save

Times are of the first CUDA device, or of the host's processor where there is none: these show equality alone. How
often the host waits for a CUDA device is counted by torch's own debug mode. Requests per batch and tile are counted on
the host, for tensors that pass for a device's, so they need no device: ``--counts`` measures them alone, and keeps the
saved times.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

import privstats as ps
from benchmarks.measuring import Row, Tables, command, saved
from benchmarks.moments.device_counts import of_batches, of_rounds
from privstats.moments.device_sums import DeviceAccumulator
from privstats.moments.tensor_products import Products, prefers_limbs
from privstats.schema.public_values import Published, Values

SHAPES = ((2_000_000, 40, 10, "NAB"), (50_000, 512, 10, "NAB"), (50_000, 512, 100, "NAS"), (20_000, 2_048, 10, "NAB"))
QUICK = ((2_000, 16, 3, "NAS"),)
# Records of a batch, features, classes (0: targets in five folds) and statistics.
BATCHES = ((512, 512, 10, "NAB"), (512, 512, 100, "NAS"), (256, 128, 0, "Ghq"))
# Records of a batch, features and classes of a round: of a softmax; 0: of a ridge regression; None: of a logistic one.
ROUNDS = ((512, 512, 10), (512, 512, 1_000), (512, 512, 0), (512, 40, None))
_MANY = 9
BATCHES_COUNTED = "requests of a device, counted on the host"
ROUNDS_COUNTED = "requests of a round, counted on the host"


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--counts", action="store_true", help="no times")


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


def _row(device: Any, n: int, d: int, classes: int, statistics: str, repeats: int) -> Row:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, d)), rng.integers(0, classes, n)
    radius = float(np.quantile(np.linalg.norm(X[:10_000], axis=1), 0.95))
    schema = ps.ClassSchema(classes, d, statistics, clip_norm=radius)
    rows, labels = torch.as_tensor(X, device=device), torch.as_tensor(y, device=device)
    if _measured(schema, rows, labels) != ps.measure(schema, X, y):
        raise SystemExit("the device gave other integers than the host")
    whole = torch.round(rows * (schema.steps / float(rows.norm(dim=1).max())))
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


def batch_row(n: int, d: int, classes: int, statistics: str) -> Row:
    """Count what one more batch requests, and what one tile and the end request."""
    X = torch.as_tensor(np.random.default_rng(0).standard_normal((_MANY * n, d)))
    if classes:
        schema: Any = ps.ClassSchema(classes, d, statistics, clip_norm=float(d**0.5))
        y = torch.arange(len(X)) % classes
    else:
        schema, y = ps.RidgeSchema(d, clip_norm=float(d**0.5), target_bound=4.0, folds=5), X[:, 0]
    one, many = of_batches(schema, X[:n], y[:n], 1), of_batches(schema, X, y, _MANY)
    return {
        "rows of a batch": n,
        "features": d,
        "classes": classes or None,
        "statistics": statistics,
        "waits per batch": (many.waits.total() - one.waits.total()) / (_MANY - 1),
        "waits per batch, others left out": _waits_left_out(schema, X, y, n),
        "launches per batch": (many.launches.total() - one.launches.total()) / (_MANY - 1),
        "waits of a tile and the end": one.waits.total(),
        "launches of a tile and the end": one.launches.total(),
        "bytes copied to the host": one.bytes_read,
        "bytes of the sums": sum(
            each.nbytes for each in ps.measure(schema, X[:1].numpy(), y[:1].numpy()).wire().values()
        ),
        "torch": torch.__version__,
    }


def _waits_left_out(schema: Any, X: torch.Tensor, y: torch.Tensor, n: int) -> float:
    one, many = (
        of_batches(schema, X[: count * n], y[: count * n], count, unreadable="leave out") for count in (1, _MANY)
    )
    return (many.waits.total() - one.waits.total()) / (_MANY - 1)


def round_row(n: int, d: int, classes: int | None) -> Row:
    """Count what one more batch requests in a round's session, what one tile and the end request, and a record's work.

    Work is of nine batches as one tensor: of a round alone, then of the first and a later round of a course.
    """
    schema = _round(d, classes, _MANY * n)
    rng = np.random.default_rng(0)
    values = {name: Values.rounded(np.abs(rng.standard_normal(shape))) for name, shape in schema.needs.items()}
    X = torch.as_tensor(rng.standard_normal((_MANY * n, d)), dtype=torch.float32)
    y = X[:, 0] if classes == 0 else torch.arange(len(X)) % (classes or 2)
    published = Published.of(values)
    one, many = (of_batches(schema, X[: count * n], y[: count * n], count, published=published) for count in (1, _MANY))
    return {
        "records of a batch": n,
        "features": d,
        "classes": classes,
        "round": schema.task,
        "waits per batch": (many.waits.total() - one.waits.total()) / (_MANY - 1),
        "launches per batch": (many.launches.total() - one.launches.total()) / (_MANY - 1),
        "waits of a tile and the end": one.waits.total(),
        "launches of a tile and the end": one.launches.total(),
        "bytes copied to the host": many.bytes_read,
        "bytes of the sums": sum(8 * math.prod(row.shape(schema.sizes)) for row in schema.sent),
        "bytes of the records": X.nbytes + y.nbytes,
        "arrays of the host that are copied": one.loads,
        "torch": torch.__version__,
        **_work(schema, X, y, n, published),
    }


def _work(schema: Any, X: torch.Tensor, y: torch.Tensor, n: int, published: Published) -> Row:
    """Count what one more record costs in a first and in a later round, beside the two products that none avoids."""
    few, many = (of_rounds(schema, X[:count], y[:count], 2, published=published) for count in (n, len(X)))
    row: dict[str, Any] = {
        "waits of a later round": many[1].waits.total(),
        "multiplications of the two products": 2 * math.prod(schema.sizes.values()) if "M" in schema.needs else None,
    }
    for which, less, more in zip(("first", "later"), few, many, strict=True):
        row[f"multiplications, {which} round"] = (more.multiplied - less.multiplied) / (len(X) - n)
        row[f"bytes, {which} round"] = (more.touched - less.touched) / (len(X) - n)
    return row


def _round(d: int, classes: int | None, records: int) -> Any:
    if classes is None:
        return ps.ScoreSchema(d, clip_norm=float(d**0.5))
    course: Any = {"expected_records": records, "course_mu": 1.0}
    if classes == 0:
        return ps.GradientSchema(d, residual_norm=1.0, clip_norm=float(d**0.5), target_bound=4.0, **course)
    return ps.GradientSchema(d, classes, residual_norm=0.5, transform=(ps.transforms.UnitNorm(),), **course)


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
