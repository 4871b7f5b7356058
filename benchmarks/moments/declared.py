"""A raw table to time: four columns of numbers, then one of texts, and so on, a tenth of the cells missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import privstats as ps
from privstats.optional_dependencies import load

__all__ = ["PART", "batch", "batches", "cells_of", "written"]

PART = 50_000
VALUES = np.array(["a", "b", "c", "unlisted", None], object)


def cells_of(columns: int) -> ps.Cells:
    """Return a table's declaration, with seven cuts of every number."""
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


def batches(records: int, columns: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """All records."""
    return (batch(min(PART, records), columns, seed) for seed in range(max(1, records // PART)))


def written(path: Path, records: int, columns: int) -> None:
    """Write the table as a file, CSV or Parquet by its name, with a column ``ill``."""
    if path.suffix == ".csv":
        with path.open("w") as file:
            file.write(",".join([*(f"c{at}" for at in range(columns)), "ill"]) + "\n")
            for table, labels in batches(records, columns):
                for *values, label in zip(*table.values(), labels, strict=True):
                    said = ("" if value is None or value != value else str(value) for value in values)
                    file.write(",".join([*said, str(label)]) + "\n")
        return
    pyarrow, parquet = (load(name, by="a Parquet file") for name in ("pyarrow", "pyarrow.parquet"))
    parts = [pyarrow.table({**table, "ill": labels}) for table, labels in batches(records, columns)]
    parquet.write_table(pyarrow.concat_tables(parts), path)  # groups of a million rows, as it comes
