"""Calls with every type that a user may pass: mypy reads this module, and ``test_accepted.py`` runs it.

A call that must not type-check has ``type: ignore``, which ``mypy --strict`` reports where it is unused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import coo_matrix, csr_array

import privstats as ps
from privstats.moments import ColumnLike, Moments, RecordsLike, TargetsLike

SCHEMA = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
ROWS = [[0.5, 0.0], [0.0, 0.25], [0.5, 0.5], [0.25, 0.0]]
LABELS = [0, 1, 0, 1]
NAMED = {"a": [0.5, 0.0, 0.5, 0.25], "b": [0.0, 0.25, 0.5, 0.0], "y": LABELS}


def lists() -> Moments:
    """Nested lists, tuples, and lists of arrays."""
    ps.measure(SCHEMA, tuple(map(tuple, ROWS)), tuple(LABELS))
    ps.measure(SCHEMA, [np.array(row) for row in ROWS], range(2, 2) or LABELS)
    return ps.measure(SCHEMA, ROWS, LABELS)


def arrays() -> Moments:
    """Arrays of any type."""
    ps.measure(SCHEMA, np.array(ROWS, np.float16), np.array(LABELS, np.bool_))
    ps.measure(SCHEMA, np.array(ROWS, object), np.array(LABELS, object))
    return ps.measure(SCHEMA, np.array(ROWS), np.array(LABELS))


def files(folder: Path) -> Moments:
    """A .npy file, and its memory map."""
    path = folder / "rows.npy"
    np.save(path, np.array(ROWS))
    ps.measure(SCHEMA, np.load(path, mmap_mode="r"), LABELS)
    ps.measure(SCHEMA, str(path), LABELS)
    return ps.measure(SCHEMA, path, LABELS)


def sparse() -> Moments:
    """Sparse arrays and matrices."""
    ps.measure(SCHEMA, coo_matrix(np.array(ROWS)), LABELS)
    return ps.measure(SCHEMA, csr_array(np.array(ROWS)), LABELS)


def batches() -> Moments:
    """Batches from a generator or a list."""

    def pairs() -> Iterator[tuple[list[list[float]], list[int]]]:
        yield ROWS[:1], LABELS[:1]
        yield ROWS[1:], LABELS[1:]

    ps.measure(SCHEMA, list(pairs()))
    return ps.measure(SCHEMA, pairs())


def tensors() -> Moments:
    """Tensors, and a loader of them."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    X, y = torch.tensor(ROWS), torch.tensor(LABELS)
    ps.measure(SCHEMA, DataLoader(TensorDataset(X, y), batch_size=3))
    return ps.measure(SCHEMA, X, y)


def polars_frames() -> Moments:
    """Frames of polars, and a lazy one with a named target."""
    import polars as pl

    table = pl.DataFrame(NAMED)
    ps.measure(SCHEMA, table.select("a", "b"), table["y"])
    ps.measure(SCHEMA, table, "y")
    return ps.measure(SCHEMA, table.lazy(), "y")


def pandas_frames() -> Moments:
    """Frames of pandas."""
    import pandas as pd

    table = pd.DataFrame(NAMED)
    ps.measure(SCHEMA, table[["a", "b"]], table["y"])
    return ps.measure(SCHEMA, table, "y")


def relations() -> Moments:
    """A relation of DuckDB with a named target."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("create table t as select unnest([.5, 0, .5, .25]) a, unnest([0, .25, .5, 0]) b")
    return ps.measure(SCHEMA, connection.sql("select a, b, case when a in (.5) then 0 else 1 end y from t"), "y")


def columns_by_name() -> Moments:
    """Columns by name."""
    schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
    return ps.measure(schema, {"sex": ["f", "m", "f"]})


def passed_on(X: RecordsLike, y: TargetsLike, ids: ColumnLike | None = None) -> Moments:
    """A function of a user's own, with the types of ``measure``."""
    return ps.measure(SCHEMA, X, y) if ids is None else persons()


def persons() -> Moments:
    """Ids of persons."""
    privacy = ps.Privacy(
        model="central",
        unit="person",
        adjacency="add-remove",
        epsilon=1.0,
        delta=1e-5,
        max_records_per_person=2,
        person_clip=2,
    )
    plan = ps.Plan(schema=SCHEMA, cohort=ps.Cohort(3, 3, 100), privacy=privacy)
    return ps.measure(SCHEMA, ROWS, LABELS, persons=["a", "a", 7, None], person_clip=plan.person_clip)


def released() -> ps.Release:
    """One party's records, with noise."""
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
    return ps.private_release(SCHEMA, privacy, np.array(ROWS), np.array(LABELS), ledger="uncharged")


def refused() -> None:
    """Calls that mypy refuses; never run."""
    ps.measure(SCHEMA, 3, LABELS)  # type: ignore[call-overload]
    ps.measure(SCHEMA, None, LABELS)  # type: ignore[call-overload]
    ps.measure(SCHEMA, ROWS, 1)  # type: ignore[call-overload]
    ps.measure(SCHEMA, ROWS, {0, 1})  # type: ignore[call-overload]
    ps.measure(SCHEMA, sys, LABELS)  # type: ignore[arg-type]
    ps.measure(SCHEMA, ROWS, LABELS, persons=3, person_clip=None)  # type: ignore[call-overload]
    ps.moments.quantize(SCHEMA, object())  # type: ignore[arg-type]
