"""Declared columns of a raw table: seconds and memory of its sums, beside the bare product of the rows they stand for.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.tables --save

A tenth of the cells is missing; every fifth column holds texts. Records come in batches, so what they take is not
counted. The floor is one float64 ``A.T @ A`` of the dense rows, batch by batch, without reading a value. ``cutting`` is
the reading of values and the comparison with the cuts alone. Processor seconds, the least of the repeats.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command, peak_bytes
from privstats.moments import RecordFile
from privstats.moments.code_rows import columns_asked

SIZES, QUICK_SIZES = ((100_000, 30), (1_000_000, 30), (100_000, 300)), ((2_000, 10),)
PART = 50_000
VALUES = np.array(["a", "b", "c", "unlisted", None], object)


def tables(chosen: argparse.Namespace) -> Tables:
    """Of arrays, then of a CSV file."""
    sizes = QUICK_SIZES if chosen.quick else SIZES
    yield "N, A and B of two classes, 7 cuts a column", [of_arrays(*size, chosen.repeats) for size in sizes]
    yield "the same from a CSV file", [of_file(*sizes[0])]


def cells_of(columns: int) -> ps.Cells:
    """Four columns of numbers, then one of texts, and so on."""
    cuts = tuple(np.linspace(-1.5, 1.5, 7).tolist())
    declared = [
        ps.Categories(f"c{at}", ("a", "b", "c")) if at % 5 == 4 else ps.Numeric(f"c{at}", cuts) for at in range(columns)
    ]
    return ps.Cells(tuple(declared))


def batch(records: int, columns: int, seed: int) -> tuple[dict[str, Any], Any]:
    """One batch of records with gaps."""
    chance, found = np.random.default_rng(seed), {}
    for at in range(columns):
        if at % 5 == 4:
            found[f"c{at}"] = VALUES[chance.choice(5, records, p=(0.3, 0.3, 0.2, 0.1, 0.1))]
        else:
            found[f"c{at}"] = np.where(chance.random(records) < 0.1, np.nan, chance.normal(size=records))
    return found, chance.integers(0, 2, records)


def of_arrays(records: int, columns: int, repeats: int) -> Row:
    """One size."""
    cells = cells_of(columns)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))

    def batches() -> Iterator[tuple[dict[str, Any], Any]]:
        return (batch(min(PART, records), columns, seed) for seed in range(max(1, records // PART)))

    def measured() -> None:
        ps.measure(schema, batches())

    def cut() -> None:
        for table, _ in batches():
            cells.indices(cells.codes(table))

    def product() -> None:
        rows = cells.apply(cells.codes(batch(min(PART, records), columns, 0)[0]))
        started.append(time.process_time())
        for _ in batches():
            rows.T @ rows

    def drawn() -> None:
        for _ in batches():
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


def of_file(records: int, columns: int) -> Row:
    """Reading and measuring a CSV file."""
    cells = cells_of(columns)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    table, labels = batch(records, columns, 0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ward.csv")
        with path.open("w") as file:
            file.write(",".join([*table, "ill"]) + "\n")
            for *values, label in zip(*table.values(), labels, strict=True):
                said = ("" if value is None or value != value else str(value) for value in values)
                file.write(",".join([*said, str(label)]) + "\n")

        def measured() -> None:
            found = RecordFile(path, "ill").read(columns_asked(schema), unreadable="leave out")
            ps.measure(schema, found.X, found.y, unreadable="leave out")

        size, seconds = path.stat().st_size / 1e6, _seconds(measured, 1)
        most = peak_bytes(measured)[0] / 1e6
        return {"records": records, "columns": columns, "MB": size, "s": seconds, "peak MB": most}


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
    """How often."""
    parser.add_argument("--repeats", type=int, default=2)


if __name__ == "__main__":
    command("moments.tables", __doc__, tables, options)
