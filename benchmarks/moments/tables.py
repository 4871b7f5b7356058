"""Declared columns of a raw table: seconds and memory of its sums, beside the bare product of the rows they stand for.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.tables --save

A tenth of the cells is missing; every fifth column holds texts. Records come in batches, so what they take is not
counted; those of files are, each in a process of its own (``table_process``). The floor is one float64 ``A.T @ A`` of
the dense rows, batch by batch, without reading a value. ``cutting`` is the reading of values and the comparison with
the cuts alone. Processor seconds, the least of the repeats.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import privstats as ps
from benchmarks.measuring import Row, Tables, child, command, peak_bytes, saved
from benchmarks.moments.declared import PART, batch, batches, cells_of, written

SIZES, QUICK_SIZES = ((100_000, 30), (1_000_000, 30), (100_000, 300)), ((2_000, 10),)
FILES = "reading and measuring a file"


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield the tables of arrays, then those of files."""
    sizes = QUICK_SIZES if chosen.quick else SIZES
    if not chosen.files:
        yield "N, A and B of two classes, 7 cuts a column", [of_arrays(*size, chosen.repeats) for size in sizes]
    yield FILES, [of_file(kind, *size) for kind in ("csv", "parquet") for size in sizes[:2]]


def before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    """Return the earlier tables that a run of files alone leaves unchanged."""
    return {title: rows for title, rows in saved("moments.tables").items() if chosen.files and title != FILES}


def of_arrays(records: int, columns: int, repeats: int) -> Row:
    """One size."""
    cells = cells_of(columns)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))

    def measured() -> None:
        ps.measure(schema, batches(records, columns))

    def cut() -> None:
        for table, _ in batches(records, columns):
            cells.indices(cells.codes(table))

    def product() -> None:
        rows = cells.apply(cells.codes(batch(min(PART, records), columns, 0)[0]))
        started.append(time.process_time())
        for _ in batches(records, columns):
            rows.T @ rows

    def drawn() -> None:
        for _ in batches(records, columns):
            pass

    started: list[float] = []
    draws = _seconds(drawn, repeats)
    floor = min(_since(product, started) for _ in range(repeats)) - draws
    seconds = _seconds(measured, repeats) - draws
    return {
        "records": records,
        "columns": columns,
        "entries a row": cells.width,
        "A.T @ A s": floor,
        "cutting s": _seconds(cut, repeats) - draws,
        "measure s": seconds,
        "of the floor": seconds / floor,
        "peak MB": peak_bytes(measured)[0] / 1e6,
    }


def of_file(kind: str, records: int, columns: int) -> Row:
    """Reading and measuring a file, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"ward.{kind}")
        written(path, records, columns)
        asked = [sys.executable, "-m", "benchmarks.moments.table_process", str(path), str(columns)]
        said = child(asked)
        size = path.stat().st_size / 1e6
    return {"file": kind, "records": records, "columns": columns, "MB": size, **json.loads(said)}


def _seconds(work: Callable[[], None], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def _since(work: Callable[[], None], started: list[float]) -> float:
    """Processor seconds from when the work says that it begins."""
    work()
    return time.process_time() - started[-1]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--files", action="store_true", help="measure files alone, and keep the rest as it is saved")
    parser.add_argument("--repeats", type=int, default=2)


if __name__ == "__main__":
    command("moments.tables", __doc__, tables, options, before)
