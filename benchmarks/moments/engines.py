"""Records in Parquet files, measured by one process, by Dask and by local Spark: time, memory, and the same integers.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.engines --rows 2000000 --save

Every engine reads the same files, one part each. Times are processor seconds of this process and all that it started:
Dask's workers; Spark's Java and its Python workers. Starting an engine is not counted, and each engine measures a few
records before. Memory is the largest sum of resident memory, seen ten times a second. Spark is left out where pyspark
or Java is not installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from benchmarks.moments.dask import KEEPING
from privstats import optional_dependencies
from privstats.contrib.parts import measure

FEATURES, CLASSES = 40, 2
NAMES = tuple(f"x{place}" for place in range(FEATURES))
SCHEMA = ps.ClassSchema(CLASSES, FEATURES, "NAB", clip_norm=8.0, feature_names=NAMES)
PART, QUICK_PART = 250_000, 500
_BY = "this benchmark"


def options(parser: argparse.ArgumentParser) -> None:
    """The size and the workers."""
    parser.add_argument("--rows", type=int, default=2_000_000, help="records, in parts of 250,000")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--folder", type=Path, help="where the files are written, and deleted afterwards")


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield one row for each engine."""
    part = QUICK_PART if chosen.quick else PART
    parts = 4 if chosen.quick else max(chosen.rows // part, 1)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        home = written(Path(folder) / "records", part, parts)
        few = written(Path(folder) / "few", 100, 2)
        rows = [of_engine("one process", alone, home, few)]
        rows += [of_engine("Dask", task, home, few) for task in dask_of(chosen.workers)]
        rows += [of_engine("Spark", task, home, few) for task in spark_of(chosen.workers)]
    if len({row.pop("moments") for row in rows}) > 1:
        raise SystemExit("the engines' moments differ")
    first = rows[0]["cpu s"]
    yield (
        f"NAB of {part * parts:,} records x {FEATURES}, {chosen.workers} workers",
        [{**row, "cpu / one process": row["cpu s"] / first, "same integers": True} for row in rows],
    )


def written(home: Path, part: int, parts: int) -> Path:
    """A folder of Parquet files, each of other records."""
    arrow = optional_dependencies.load("pyarrow.parquet", by=_BY)
    home.mkdir()
    for place in range(parts):
        rng = np.random.default_rng(place)
        X = rng.standard_normal((part, FEATURES), np.float32) * 1.3  # about half of the rows are clipped
        columns = dict(zip(NAMES, X.T, strict=True)) | {"y": rng.integers(0, CLASSES, part)}
        table = optional_dependencies.load("pyarrow", by=_BY).table(columns)
        arrow.write_table(table, home / f"{place:05}.parquet", compression="none")
    return home


def alone(home: Path) -> Any:
    """Measure the files one after another in this process."""
    return measure(SCHEMA, home, "y")


def dask_of(workers: int) -> Iterator[Callable[[Path], Any]]:
    """A cluster on this machine with the allocator's settings of docs/parts.md."""
    os.environ |= {name: str(size) for name, size in KEEPING.items()}
    distributed = optional_dependencies.load("distributed", by=_BY)
    frames = optional_dependencies.load("dask.dataframe", by=_BY)
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        yield lambda home: measure(SCHEMA, frames.read_parquet(str(home), split_row_groups=False), "y")


def spark_of(workers: int) -> Iterator[Callable[[Path], Any]]:
    """Spark in this machine's Java."""
    if importlib.util.find_spec("pyspark") is None or shutil.which("java") is None:
        return
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers run this environment
    builder = optional_dependencies.load("pyspark.sql", by=_BY).SparkSession.builder.master(f"local[{workers}]")
    named = {"spark.ui.enabled": "false", "spark.sql.files.maxPartitionBytes": "256m", "spark.driver.memory": "2g"}
    for name, value in named.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield lambda home: measure(SCHEMA, session.read.parquet(str(home)), "y")
    finally:
        session.stop()


def of_engine(name: str, task: Callable[[Path], Any], home: Path, few: Path) -> dict[str, Any]:
    """One engine's row, with its moments."""
    task(few)
    before, start = processor_seconds(), time.perf_counter()
    with peak_memory() as peak:
        moments = task(home)
    row: Row = {
        "engine": name,
        "cpu s": processor_seconds() - before,
        "wall s": time.perf_counter() - start,
        "peak MiB": peak() / 2**20,
        "load average": os.getloadavg()[0],
    }
    return {**row, "moments": tuple(moments.sums(each).tobytes() for each in SCHEMA.sent)}


def processes() -> list[Any]:
    """This process and all that it started."""
    own = optional_dependencies.load("psutil", by=_BY).Process()
    return [own, *own.children(recursive=True)]


def processor_seconds() -> float:
    """Processor seconds of this process, and of all that it started and that still run or were waited for."""
    gone = optional_dependencies.load("psutil", by=_BY).NoSuchProcess
    total = 0.0
    for each in processes():
        try:
            times = each.cpu_times()
        except gone:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


@contextmanager
def peak_memory() -> Iterator[Callable[[], float]]:
    """Watch the resident memory of all processes; the function returns the largest sum, in bytes."""
    gone = optional_dependencies.load("psutil", by=_BY).NoSuchProcess
    seen, ended = [0.0], threading.Event()

    def look() -> None:
        total = 0.0
        for each in processes():
            try:
                total += each.memory_info().rss
            except gone:
                continue
        seen[0] = max(seen[0], total)

    def watch() -> None:
        while not ended.wait(0.1):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield lambda: seen[0]
    finally:
        look()
        ended.set()
        watcher.join()


if __name__ == "__main__":
    command("moments.engines", __doc__, tables, options)
