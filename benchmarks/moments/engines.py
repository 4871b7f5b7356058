"""Records in parts, measured by one process, by Dask and by local Spark: time, memory, and the same integers.

    export OMP_NUM_THREADS=1
    python -m benchmarks.moments.engines --one-heap --rows 100000000 --links 20 --spark 100000000 --lazy 0 --save
    python -m benchmarks.moments.engines --one-heap --rows 0 --lazy 100000000 --keep --save

The first table is of Parquet files, one part each. With ``--links N`` each file is linked N times under other names,
so that 100 million records fit into memory and no disk is measured. The second table is of records that each part
generates itself: a block of normal rows, scaled by the part's own number. Times are processor seconds of this process
and all that it started, Java and Python apart. "Caller" is of this process alone, which holds Dask's scheduler. An
engine first measures a few records. It then measures all of them, up to 5 million twice: "first" includes memory that
a worker touches for the first time.

"One process as a worker" is one that has the allocator's settings of the workers. "Processes at once" are independent
processes, as many as workers, that each measure their share and nothing else: what the machine's shared memory and
caches cost, and so the least that any engine with these workers can take. "Dask without a cluster" runs Dask's graph in
this process, so that it holds all that privstats adds. "Dask" has a Dask frame, "Dask's workers" a list of delayed
parts, which they read themselves. "Dask's floor" is the frame's graph with a task that only sums one column of each
part. "Spark" receives rows from Java; "Spark's workers" receive names of parts and read the parts themselves. Memory is
the largest sum of resident memory, seen ten times a second. The third table simulates more workers than this machine
has processors, from the measured seconds of a part. Spark is left out where pyspark or Java is not installed, and
measures at most ``--spark`` records.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import multiprocessing
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command, results
from benchmarks.moments.dask import KEEPING
from privstats import optional_dependencies
from privstats.contrib.parts import measure
from privstats.contrib.parts.partitioned import Partitioned

FEATURES, CLASSES = 40, 2
NAMES = tuple(f"x{place}" for place in range(FEATURES))
SCHEMA = ps.ClassSchema(CLASSES, FEATURES, "NAB", clip_norm=8.0, feature_names=NAMES)
PART, QUICK_PART = 625_000, 500
GROWTH = (1, 2, 4, 8)
ONE_HEAP = {"MALLOC_ARENA_MAX": 1, "MALLOC_MMAP_MAX_": 0, "MALLOC_TRIM_THRESHOLD_": 2_000_000_000}
"""Settings of glibc's allocator with which all threads share one heap, from which no page is returned."""
_FAN_IN, _MAX_TWICE = 8, 5_000_000
_TASKS_OF_WORKER = 8
"""Tasks of Spark: after each its Python worker collects garbage, which takes 0.08 s with these packages loaded."""
_BY = "this benchmark"


def options(parser: argparse.ArgumentParser) -> None:
    """The sizes and the workers."""
    parser.add_argument("--rows", type=int, default=2_500_000, help="records in files, in parts of 100 MB")
    parser.add_argument("--lazy", type=int, default=20_000_000, help="records that parts generate")
    parser.add_argument("--lazy-part", type=int, default=500_000, help="records of such a part")
    parser.add_argument("--spark", type=int, default=2_500_000, help="the most records that Spark measures")
    parser.add_argument("--links", type=int, default=1, help="names of each file")
    parser.add_argument("--only", default="", help="measure processes and these engines alone, by commas")
    parser.add_argument("--one-heap", action="store_true", help="workers also have the settings of one heap")
    parser.add_argument("--keep", action="store_true", help="keep the stored tables that this run does not measure")
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    parser.add_argument("--folder", type=Path, help="where the files are written, and deleted afterwards")


def stored(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the stored tables, for a run that measures some of them anew."""
    found = results("moments.engines") if chosen.keep else {}
    return {title: rows for title, rows in found.items() if title != "machine"}


class Source(NamedTuple):
    """Records in parts, for each engine.

    Attributes:
        tables: tables of this process.
        part: a function that returns the table of one part by its number; it can be pickled.
        dask: a function that returns a Dask frame.
        spark: a function that returns a Spark frame.
    """

    title: str
    parts: int
    tables: Callable[[], Any]
    part: Callable[[int], Any]
    dask: Callable[[], Any]
    spark: Callable[[Any], Any]


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield the records in files, then those that parts generate, then the simulated growth."""
    part = QUICK_PART if chosen.quick else PART
    larger = QUICK_PART if chosen.quick else chosen.lazy_part
    parts, lazy = (4, 8) if chosen.quick else (chosen.rows // part, chosen.lazy // larger)
    if parts:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            few = written(Path(folder) / "few", 100, 2)
            home = written(Path(folder) / "all", part, max(parts // chosen.links, 1), chosen.links)
            yield compared(in_files(home), in_files(few), part, chosen)
    if not lazy:
        return
    title, rows = compared(generated(larger, lazy), generated(100, 2), larger, chosen)
    yield title, rows
    found = {row["engine"]: row for row in rows}
    if "Dask" in found:
        caller, floor = found["Dask"]["caller cpu s"], found[_at_once(chosen.workers)]["cpu s"]
        cluster = found["Dask"]["cpu s"] - caller - floor
        yield f"growth of Dask with {lazy} parts, simulated", grown(larger, lazy, max(cluster, 0.0) / lazy, caller)


def _at_once(workers: int) -> str:
    return f"{workers} processes at once"


def in_files(home: Path) -> Source:
    """Parquet files of a folder."""
    frames = optional_dependencies.load("dask.dataframe", by=_BY)
    read = partial(frames.read_parquet, str(home), split_row_groups=False)
    paths = tuple(sorted(map(str, home.iterdir())))
    return Source(
        "Parquet files",
        len(paths),
        lambda: home,
        partial(_file, paths),
        read,
        lambda session: session.read.parquet(str(home)),
    )


def _file(paths: Sequence[str], place: int) -> Any:
    return optional_dependencies.load("pyarrow.dataset", by=_BY).dataset(paths[place])


def generated(part: int, parts: int) -> Source:
    """Parts that generate their records."""
    frames = optional_dependencies.load("dask.dataframe", by=_BY)
    make = partial(lazy_part, part)

    def spark(session: Any) -> Any:
        declared = ", ".join([*(f"{name} float" for name in NAMES), "y bigint"])
        return session.range(0, parts, 1, parts).mapInArrow(partial(_as_batches, part), declared)

    return Source(
        "parts that generate them",
        parts,
        lambda: map(make, range(parts)),
        make,
        lambda: frames.from_map(make, range(parts), meta=make(0).iloc[:0]),
        spark,
    )


def lazy_part(part: int, place: int) -> Any:
    """One part's records: the block, scaled."""
    frame = block(part).copy()
    frame[[*NAMES]] *= np.float32(1 + (place % 1024) / 4096)
    return frame


@cache
def block(part: int) -> Any:
    """A frame of normal rows, generated once in each process; about half of the rows are clipped."""
    pandas = optional_dependencies.load("pandas", by=_BY)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((part, FEATURES), np.float32) * 1.2
    return pandas.DataFrame(X, columns=list(NAMES)).assign(y=rng.integers(0, CLASSES, part))


def _as_batches(part: int, batches: Any) -> Iterator[Any]:
    arrow = optional_dependencies.load("pyarrow", by=_BY)
    for batch in batches:
        for (place,) in zip(batch.column(0).to_pylist(), strict=True):
            yield from arrow.Table.from_pandas(lazy_part(part, place), preserve_index=False).to_batches()


def compared(source: Source, few: Source, part: int, chosen: argparse.Namespace) -> tuple[str, list[Row]]:
    """One table: each engine over the same records."""
    workers, records = chosen.workers, part * source.parts
    runs: dict[str, tuple[Callable[[], AbstractContextManager[Any]], Callable[[Any, Source], Any]]] = {
        "one process": (nullcontext, lambda _, source: measure(SCHEMA, source.tables(), "y")),
        "one process as a worker": (lambda: processes_of(1), lambda pool, source: shared(pool, 1, source)),
        _at_once(workers): (lambda: processes_of(workers), lambda pool, source: shared(pool, workers, source)),
        "Dask without a cluster": (_synchronous, lambda _, source: measure(SCHEMA, source.dask(), "y")),
        "Dask": (lambda: cluster_of(workers), lambda _, source: measure(SCHEMA, source.dask(), "y")),
        "Dask's workers": (lambda: cluster_of(workers), lambda _, source: measure(SCHEMA, delayed_parts(source), "y")),
        "Dask's floor": (lambda: cluster_of(workers), lambda client, source: column_sums(client, source.dask())),
    }
    if has_spark() and not chosen.quick and records <= chosen.spark:
        runs |= {
            "Spark": (lambda: spark_of(workers), lambda session, source: measure(SCHEMA, source.spark(session), "y")),
            "Spark's workers": (lambda: spark_of(workers), read_by_workers),
        }
    if chosen.only:
        named = ["one process", "one process as a worker", _at_once(workers), *chosen.only.split(",")]
        runs = {name: run for name, run in runs.items() if name in named}
    allocator = KEEPING | (ONE_HEAP if chosen.one_heap else {})
    os.environ |= {name: str(size) for name, size in allocator.items()}  # of the processes that an engine starts
    twice = records <= _MAX_TWICE
    rows = [of_engine(name, engine, task, source, few, twice=twice) for name, (engine, task) in runs.items()]
    if len({row["moments"] for row in rows if row["moments"] is not None}) > 1:
        raise SystemExit("the engines' moments differ")
    one, _, at_once = (max(row["cpu s"], 0.01) for row in rows[:3])
    heaps = ", one heap" if chosen.one_heap else ""
    return (
        f"NAB of {records:,} records x {FEATURES}, {source.parts} {source.title}, {workers} workers{heaps}",
        [
            {
                **{name: value for name, value in row.items() if name != "moments"},
                "cpu / one process": row["cpu s"] / one,
                "cpu / processes at once": row["cpu s"] / at_once,
                "same integers": None if row["moments"] is None else True,
            }
            for row in rows
        ],
    )


def written(home: Path, part: int, parts: int, links: int = 1) -> Path:
    """A folder of Parquet files, each of other records, under ``links`` names each."""
    arrow = optional_dependencies.load("pyarrow.parquet", by=_BY)
    home.mkdir()
    for place in range(parts):
        table = optional_dependencies.load("pyarrow", by=_BY).Table.from_pandas(
            lazy_part(part, place), preserve_index=False
        )
        first = home / f"{place:05}.parquet"
        arrow.write_table(table, first, compression="none")
        for link in range(1, links):
            (home / f"{place:05}-{link:05}.parquet").hardlink_to(first)
    return home


@contextmanager
def processes_of(workers: int) -> Iterator[Any]:
    """A pool of processes, which have the allocator's settings of :func:`compared`."""
    few = (partial(lazy_part, 100), [0])  # so that a process has imported everything before it is timed
    with multiprocessing.get_context("spawn").Pool(workers, _share, few) as pool:
        yield pool


def shared(pool: Any, workers: int, source: Source) -> Any:
    """Measure in processes that each have their share of the parts from the start."""
    shares = [(source.part, range(first, source.parts, workers)) for first in range(workers)]
    return Partitioned(SCHEMA).total(pool.starmap(_share, shares, 1))


def _share(part: Callable[[int], Any], places: Sequence[int]) -> bytes:
    door = Partitioned(SCHEMA)
    sums = door.zero
    for place in places:
        sums += door.measure(part(place), "y", part=str(place))
    return door.encode(sums)


def read_by_workers(session: Any, source: Source) -> Any:
    """Measure on Spark whose rows are numbers of parts: its Python workers read the parts, as docs/parts.md shows."""
    door = Partitioned(SCHEMA)
    tasks = min(source.parts, _TASKS_OF_WORKER * session.sparkContext.defaultParallelism)
    numbers = session.range(0, source.parts, 1, tasks)
    sums = numbers.mapInArrow(partial(_measured_parts, source.part), "sums binary")
    return door.total(bytes(row["sums"]) for row in sums.collect())


def _measured_parts(part: Callable[[int], Any], batches: Any) -> Iterator[Any]:
    arrow = optional_dependencies.load("pyarrow", by=_BY)
    for batch in batches:
        sums = [_share(part, [place]) for place in batch.column(0).to_pylist()]
        yield arrow.RecordBatch.from_pydict({"sums": sums})


@contextmanager
def _synchronous() -> Iterator[None]:
    with optional_dependencies.load("dask.config", by=_BY).set(scheduler="synchronous"):
        yield


@contextmanager
def cluster_of(workers: int) -> Iterator[Any]:
    """A client of a cluster on this machine, with the allocator's settings of :func:`compared`."""
    distributed = optional_dependencies.load("distributed", by=_BY)
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(ps.measure, ps.ClassSchema(2, 2, "NAB", clip_norm=1.0), np.zeros((1, 2)), np.zeros(1, int))
        yield client


def delayed_parts(source: Source) -> list[Any]:
    """Parts that Dask's workers read or generate themselves."""
    task = optional_dependencies.load("dask", by=_BY).delayed(source.part, pure=False)
    return [task(place) for place in range(source.parts)]


def column_sums(client: Any, frame: Any) -> None:
    """Compute Dask's graph with a task that only sums one column of each part."""
    dask = optional_dependencies.load("dask", by=_BY)
    task, total = dask.delayed(_column_sum, pure=False), dask.delayed(sum, pure=False)
    client.compute(total([task(each) for each in frame.to_delayed()])).result()


def _column_sum(part: Any) -> float:
    return float(part[NAMES[0]].sum())


def has_spark() -> bool:
    """Whether pyspark and Java are installed."""
    return importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None


@contextmanager
def spark_of(workers: int) -> Iterator[Any]:
    """Spark in this machine's Java."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(sys.path)}  # for its workers
    builder = optional_dependencies.load("pyspark.sql", by=_BY).SparkSession.builder.master(f"local[{workers}]")
    named = {"spark.ui.enabled": "false", "spark.sql.files.maxPartitionBytes": "256m", "spark.driver.memory": "2g"}
    for name, value in named.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def of_engine(
    name: str,
    engine: Callable[[], AbstractContextManager[Any]],
    task: Callable[[Any, Source], Any],
    source: Source,
    few: Source,
    *,
    twice: bool,
) -> dict[str, Any]:
    """One engine's row, with its moments."""
    with engine() as opened:
        task(opened, few)
        start = sum(processor_seconds())
        if twice:
            task(opened, source)
        first = sum(processor_seconds()) - start if twice else None
        (python, java), own, clock = processor_seconds(), time.process_time(), time.perf_counter()
        with peak_memory() as peak:
            moments = task(opened, source)
        spent, caller = processor_seconds(), time.process_time() - own
        row: Row = {
            "engine": name,
            "cpu s": sum(spent) - python - java,
            "caller cpu s": caller,
            "java cpu s": spent.java - java,
            "first cpu s": first,
            "wall s": time.perf_counter() - clock,
            "peak MiB": peak() / 2**20,
            "load average": os.getloadavg()[0],
        }
    sums = None if moments is None else tuple(moments.sums(each).tobytes() for each in SCHEMA.sent)
    return {**row, "moments": sums}


def grown(part: int, parts: int, cluster: float, caller: float) -> list[Row]:
    """Simulate more workers, from what a part and an addition take here, one after another.

    Args:
        cluster: processor seconds that a worker of the cluster adds to a part.
        caller: processor seconds of this process, which serves all workers while they run.
    """
    door, seconds = Partitioned(SCHEMA), []
    for place in range(-1, min(parts, 16)):  # the first generates the block
        start = time.process_time()
        sums = door.measure(lazy_part(part, max(place, 0)), "y", part=str(place))
        seconds.append(time.process_time() - start)
    several = [door.measure(lazy_part(QUICK_PART, 0), "y", part=str(place)) for place in range(_FAN_IN)]
    start = time.process_time()
    door.added([door.decode(door.encode(each)) for each in several])
    adding = time.process_time() - start
    tasks = [seconds[1:][place % len(seconds[1:])] + cluster for place in range(parts)]
    spans = {workers: max(makespan(tasks, workers, adding), caller) for workers in GROWTH}
    return [
        {
            "workers": workers,
            "simulated wall s": span,
            "simulated speed": spans[1] / span,
            "s of a part": float(np.median(seconds[1:])),
            "s of the cluster, by part": cluster,
            "caller cpu s": caller,
            "s of adding 8": adding,
            "kB of a sum": len(door.encode(sums)) / 1e3,
        }
        for workers, span in spans.items()
    ]


def makespan(tasks: Sequence[float], workers: int, adding: float) -> float:
    """Return when the last addition ends: parts go to the worker that is free first, then the tree level by level.

    Example:
        >>> makespan([1.0] * 8, 4, 0.5)
        2.5
    """
    free = [0.0] * workers
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    end, level = max(free), len(tasks)
    while level > 1:
        level = -(-level // _FAN_IN)
        end += -(-level // workers) * adding
    return end


def processes() -> list[Any]:
    """This process and all that it started."""
    own = optional_dependencies.load("psutil", by=_BY).Process()
    return [own, *own.children(recursive=True)]


class Spent(NamedTuple):
    """Processor seconds by kind of process."""

    python: float
    java: float


def processor_seconds() -> Spent:
    """Processor seconds of this process, and of all that it started and that still run or were waited for."""
    gone = optional_dependencies.load("psutil", by=_BY).NoSuchProcess
    python = java = 0.0
    for each in processes():
        try:
            times, is_java = each.cpu_times(), each.name() == "java"
        except gone:
            continue
        own, waited = times.user + times.system, times.children_user + times.children_system
        python += waited if is_java else own + waited
        java += own if is_java else 0.0
    return Spent(python, java)


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
    from benchmarks.moments import engines  # so that workers find the functions by their module's name

    command("moments.engines", __doc__, engines.tables, engines.options, before=engines.stored)
