"""Records on a Dask cluster beside the same records in one process, and beside the BLAS floor of one core.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.dask --save

Records lie in the workers' memory, so this is the engine without a disk. The floor is one float64 ``A.T @ A`` of each
partition on one core. Times are processor seconds, because other programs run on the same cores; those of the cluster
are of workers, scheduler and caller together. Efficiency is that of one process over them: what is lost to serving,
unpacking and adding, not to waiting, for which the seconds of the wall and the load stand beside it. What is
extrapolated lies on the line through the measured sizes; its error is what the line through all but the largest misses
there.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import normal_batch
from benchmarks.measuring import Row, Rows, Tables, command, least_seconds
from privstats import optional_dependencies
from privstats.contrib.parts import measure

FEATURES, CLASSES = 64, 10
SIZES, PART = (1_000_000, 3_000_000, 10_000_000), 250_000
QUICK_SIZES, QUICK_PART = (2_000, 4_000, 8_000), 500
LARGE = 100_000_000
DASKS = {"MALLOC_TRIM_THRESHOLD_": 64 << 10}  # which also fixes the limit of the next name at 128 KiB
KEEPING = {"MALLOC_TRIM_THRESHOLD_": 256 << 20, "MALLOC_MMAP_THRESHOLD_": 32 << 20}
"""What glibc's allocator keeps of freed memory, and from what size on it gives an array back whole."""
TIMES = ("A.T @ A s", "measure s", "dask s")


def options(parser: argparse.ArgumentParser) -> None:
    """The cluster."""
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--repeats", type=int, default=3)


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield the measurements, then their extrapolation."""
    sizes, part = (QUICK_SIZES, QUICK_PART) if chosen.quick else (SIZES, PART)
    schema = ps.ClassSchema(CLASSES, FEATURES, "NAB", clip_norm=8.0)
    title = f"NAB of records x {FEATURES}, {CLASSES} classes, {chosen.workers} workers"
    with workers_of(chosen.workers, KEEPING) as client:
        rows = [measured(client, schema, part, size // part, chosen.repeats) for size in sizes]
    yield title, rows
    yield f"extrapolated to {LARGE:,} records", [extrapolated(rows)]
    with workers_of(chosen.workers, DASKS) as client:
        yield "the allocator as Dask sets it", [measured(client, schema, part, sizes[0] // part, chosen.repeats)]


@contextmanager
def workers_of(count: int, allocator: Mapping[str, int]) -> Iterator[Any]:
    """A client of a cluster on this machine whose workers' allocator has these settings, and that has been used."""
    for name in KEEPING:
        os.environ.pop(name, None)
    os.environ |= {name: str(size) for name, size in allocator.items()}  # goes before what Dask sets
    distributed = optional_dependencies.load("distributed", by="this benchmark")
    with (
        distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(ps.measure, ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), np.zeros((1, 2)), np.zeros(1, int))
        yield client


def measured(client: Any, schema: ps.ClassSchema, part: int, parts: int, repeats: int) -> Row:
    """One size: floor, one process, cluster; the least of the repeats each."""
    held = optional_dependencies.load("dask", by="this benchmark").delayed(normal_batch, pure=False)
    batch, sizes = normal_batch(part, FEATURES, CLASSES), (part, FEATURES, CLASSES)
    client.run(normal_batch, *sizes)
    found: dict[str, Any] = {}

    def alone() -> None:
        found["alone"] = ps.measure(schema, repeated(batch, parts))

    def together() -> None:
        found["together"] = measure(schema, [held(*sizes) for _ in range(parts)])

    least = least_seconds({"floor": lambda: gram(batch[0], parts), "alone": alone}, repeats, time.process_time)
    wall, spent = min(clocked(client, together) for _ in range(repeats))
    if found["alone"] != found["together"]:
        raise SystemExit("the cluster's moments are not those of one process")
    load = {"dask wall s": wall, "load average": os.getloadavg()[0]}
    return row(parts * part, (least["floor"], least["alone"], spent)) | load


def clocked(client: Any, task: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the wall, and processor seconds of workers, scheduler and this process."""

    def spent() -> float:
        workers = sum(client.run(time.process_time).values())
        return time.process_time() + float(workers)  # the scheduler lives in this process

    before, start = spent(), time.perf_counter()
    task()
    return time.perf_counter() - start, spent() - before


def row(records: int, times: tuple[float, ...]) -> dict[str, float]:
    """The columns of the table."""
    floor, one, cluster = times
    return {
        "records": records,
        **dict(zip(TIMES, times, strict=True)),
        "measure / floor": one / floor,
        "dask / floor": cluster / floor,
        "parallel efficiency": one / cluster,
    }


def extrapolated(rows: Rows) -> Row:
    """The line through the measured sizes at the large one, and how far it was off where it could be checked."""
    sizes = np.array([each["records"] for each in rows], float)
    at: dict[str, float] = {}
    off: dict[str, float] = {}
    for name in TIMES:
        values = np.array([each[name] for each in rows])
        at[name] = line(sizes, values, LARGE)
        off[name] = abs(line(sizes[:-1], values[:-1], sizes[-1]) / values[-1] - 1)
    whole = row(LARGE, tuple(at.values()))
    return {**whole, "largest error at the largest size": max(off.values())}


def line(sizes: NDArray[np.float64], values: NDArray[np.float64], where: float) -> float:
    """A least-squares line, weighted so that each size counts by its relative error."""
    slope, start = np.polyfit(sizes, values, 1, w=1 / values)
    return float(start + slope * where)


def repeated(batch: Any, parts: int) -> Iterator[Any]:
    """Repeat one batch several times."""
    return (batch for _ in range(parts))


def gram(X: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Compute a second moment at minimum cost: the symmetric product of every partition."""
    total = np.zeros((X.shape[1], X.shape[1]))
    for _ in range(parts):
        total += X.T @ X
    return total


if __name__ == "__main__":
    command("moments.dask", __doc__, tables, options)
