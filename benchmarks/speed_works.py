"""The works of ``benchmarks.speed``, each with its floor, timed in turns by the process that runs this file.

    PYTHONPATH=CHECKOUT python benchmarks/speed_works.py WORK REPEATS [--quick]

It imports the library of the checkout on the path and nothing of these benchmarks, so that one file times any version.
Prints processor seconds as JSON.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from scipy.linalg.blas import dsyrk
from scipy.special import ndtri

import privstats as ps
from privstats.encoding import Ring
from privstats.randomness import seeded
from privstats.secagg.prg import TILE, add_masks

__all__ = ["GOALS", "SECONDS", "WORKS", "floor_of_masks"]

Pair: TypeAlias = tuple[Callable[[], object], Callable[[], object]]
"""A floor and the work, both ready to be timed."""

_QUICK = 200  # so many times fewer records or samples
_TILE = 1 << 13
_FOLDS = 5


def _dense(n: int, d: int, classes: int, statistics: str) -> Callable[[int], Pair]:
    """Moments of normal rows, of which one in twenty is clipped, over a symmetric product of the same rows."""

    def made(part: int) -> Pair:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n // part, d)), rng.integers(0, classes, n // part)
        radius = float(np.quantile(np.linalg.norm(X[:10_000], axis=1), 0.95))
        return lambda: dsyrk(1.0, X.T), _measure(d, classes, statistics, radius, X, y)

    return made


def _sparse(n: int, d: int, statistics: str, classes: int = 10, clipped: float = 0.05) -> Callable[[int], Pair]:
    """Moments of sparse rows of 1 % over scipy's products: of all rows, of each class for S, of parts for folds."""

    def made(part: int) -> Pair:
        rng = np.random.default_rng(0)
        X: Any = sp.random_array((n // part, d), density=0.01, rng=rng, format="csr", data_sampler=rng.standard_normal)
        y = rng.integers(0, classes, n // part)
        radius = float(np.quantile(np.sqrt(X.multiply(X).sum(axis=1)), 1 - clipped))
        groups = y if "S" in statistics else y % _FOLDS if "G" in statistics else np.zeros_like(y)
        parts = [X[groups == label] for label in range(groups.max() + 1)]
        return lambda: [rows.T @ rows for rows in parts], _measure(d, classes, statistics, radius, X, y)

    return made


def _measure(d: int, classes: int, statistics: str, radius: float, X: Any, y: Any) -> Callable[[], object]:
    if statistics == "Ghq":
        ridge = ps.RidgeSchema(d, clip_norm=radius, target_bound=float(classes), folds=_FOLDS)
        return lambda: ps.measure(ridge, X, y.astype(float))
    schema = ps.ClassSchema(classes, d, statistics, clip_norm=radius)
    return lambda: ps.measure(schema, X, y)


def _calls(rows: int, calls: int) -> Callable[[int], Pair]:
    """Many measurements of few rows: arrays, frames and mappings of columns, over a symmetric product of each."""

    def made(part: int) -> Pair:
        import pandas as pd

        rng, several = np.random.default_rng(0), max(calls // part, 1)
        names = tuple(f"x{j}" for j in range(40))
        X, y = rng.standard_normal((rows, 40)), rng.integers(0, 10, rows)
        frame, columns = pd.DataFrame(X, columns=names), {"age": X[:, 0], "sex": np.where(y % 2, "f", "m")}
        schema = ps.ClassSchema(10, 40, "NAB", clip_norm=4.0, feature_names=names)
        bins = ps.Bins("age", (-1, 0, 1))
        counts = ps.CountSchema((bins, ps.Categories("sex", ("f", "m"))), (("age", "sex"),))

        def work() -> None:
            with warnings.catch_warnings(action="ignore"):
                for _ in range(several):
                    ps.measure(schema, X, y)
                    ps.measure(schema, frame, y)
                    ps.measure(counts, columns)

        return lambda: [dsyrk(1.0, X.T) for _ in range(2 * several)], work

    return made


def _batches(n: int, d: int, size: int) -> Callable[[int], Pair]:
    """Moments of rows in many batches over a symmetric product of each batch."""

    def made(part: int) -> Pair:
        rng = np.random.default_rng(0)
        X, y = rng.standard_normal((n // part, d)), rng.integers(0, 10, n // part)
        pairs = [(X[start : start + size], y[start : start + size]) for start in range(0, len(X), size)]
        schema = ps.ClassSchema(10, d, "NAB", clip_norm=2.0 * d**0.5)
        return lambda: [dsyrk(1.0, rows.T) for rows, _ in pairs], lambda: ps.measure(schema, iter(pairs))

    return made


def _table(head: str, *, values: bool) -> Callable[[int], Pair]:
    """A private fit on a mixed table with gaps, as pandas reads it or in Python values, over pandas' reading of its
    file and one symmetric product of rows as wide."""

    def made(part: int) -> Pair:
        import pandas as pd

        from privstats import heads

        n = 50_000 // part
        rng, file = np.random.default_rng(0), io.StringIO()
        numbers = {f"x{j}": np.round(rng.normal(10 * j, 1 + j, n), j % 4) for j in range(18)}
        texts = {f"c{j}": rng.choice([f"level {k}" for k in range(min(2 + j, 12))], n) for j in range(12)}
        table = pd.DataFrame(numbers | texts)
        table.mask(rng.random(table.shape) < 0.1).to_csv(file, index=False)
        read, y = pd.read_csv(io.StringIO(file.getvalue())), (rng.random(n) < 0.4).astype(int)
        columns: Any = (*map(ps.Numeric, numbers), *(ps.Categories(c, (*np.unique(texts[c]).tolist(),)) for c in texts))
        rows = rng.standard_normal((n, ps.Cells(columns).width))
        X = {name: column.astype(object).tolist() for name, column in read.items()} if values else read
        promise = {"epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove", "ledger": "uncharged"}
        public = {"columns": columns, "classes": (0, 1), "expected_records": n}

        def work() -> object:
            with warnings.catch_warnings(action="ignore"):
                return getattr(heads, head)().fit_private(X, y, **public, **promise)

        return lambda: (pd.read_csv(io.StringIO(file.getvalue())), dsyrk(1.0, rows.T)), work

    return made


def _fit(head: str, classes: int, d: int, **parameters: Any) -> Callable[[int], Pair]:
    """A head from an exact release, over one symmetric product of its class sums."""

    def made(part: int) -> Pair:
        from privstats import heads

        few, width = max(classes // part, 2), max(d // part, 8)
        rng = np.random.default_rng(0)
        y = np.arange(4 * few) % few
        X = rng.standard_normal((len(y), width)) + rng.standard_normal((few, width))[y]
        schema = ps.ClassSchema(few, width, "NAB", clip_norm=4 * width**0.5)
        release = ps.Release.exact(schema, ps.measure(schema, X, y))
        sums = np.asarray(release.moments.A)
        return lambda: dsyrk(1.0, sums.T), lambda: getattr(heads, head)(**parameters).fit_release(release)

    return made


def _file(*, quotes: int, notes: bool = False) -> Callable[[int], Pair]:
    """Codes of declared columns from a CSV file, over pandas' reading of it as texts."""

    def made(part: int) -> Pair:
        import pandas as pd

        n = 50_000 // part
        rng, path = np.random.default_rng(0), Path(tempfile.mkdtemp()) / "rows.csv"
        numbers = {f"x{j}": np.round(rng.normal(10 * j, 1 + j, n), j % 4) for j in range(18)}
        texts = {f"c{j}": rng.choice([f"level {k}" for k in range(min(2 + j, 12))], n) for j in range(12)}
        table = pd.DataFrame(numbers | texts | {"ill": rng.integers(0, 2, n)})
        if notes:
            table["c0"] = np.where(rng.random(n) < 0.1, "seen,\nagain", table["c0"])
        table.to_csv(path, index=False, quoting=quotes)
        cells = ps.Cells(
            (*map(ps.Numeric, numbers), *(ps.Categories(c, (*np.unique(texts[c]).tolist(),)) for c in texts))
        )
        file = ps.moments.RecordFile(path, "ill")

        def work() -> object:
            with warnings.catch_warnings(action="ignore"):
                return sum(len(X) for X, _ in file.batches(cells, unreadable="leave out"))

        return lambda: pd.read_csv(path, dtype=str), work

    return made


def _noise(sampler: str, sigma: float) -> Callable[[int], Pair]:
    """Samples over their keystream and as many float64 inverse normals."""

    def made(part: int) -> Pair:
        size = max(1, (1 << 20) // part // _TILE) * _TILE
        rng = seeded(0)

        def floor() -> None:
            for _ in range(0, size, _TILE):
                words = rng.uint64(_TILE).view(np.int64) & np.int64((1 << 63) - 1)
                ndtri((words + 0.5) * 2.0**-64)

        return floor, lambda: getattr(ps.dp, sampler)(sigma, size, rng)

    return made


def _mask(bits: int, masks: int = 20) -> Callable[[int], Pair]:
    """Masks of entries of so many bits over their floor."""

    def made(part: int) -> Pair:
        size, seeds = (1 << 20) // part, [os.urandom(32) for _ in range(masks)]
        vector = Ring(((size, bits),)).zeros()
        return floor_of_masks(bits, size, masks), lambda: add_masks(vector, plus=seeds)

    return made


def floor_of_masks(bits: int, size: int, masks: int = 20) -> Callable[[], object]:
    """The least that masking can be: one AES-256-GCM call and one numpy addition per tile and mask."""
    lane, keys = np.zeros(size, "<u4" if bits <= 32 else "<u8"), [AESGCM(os.urandom(32)) for _ in range(masks)]
    zeros, buffer = bytes(TILE * lane.itemsize), bytearray(TILE * lane.itemsize + 16)

    def floor() -> None:
        for tile, start in enumerate(range(0, size, TILE)):
            part = lane[start : start + TILE]
            nonce, source = tile.to_bytes(12, "big"), memoryview(zeros)[: part.nbytes]
            target = memoryview(buffer)[: part.nbytes + 16]
            stream = np.frombuffer(buffer, lane.dtype, len(part))
            for key in keys:
                key.encrypt_into(nonce, source, None, target)
                np.add(part, stream, out=part)

    return floor


def _noise_share(sigma: float) -> Callable[[int], Pair]:
    """The noise of one party over one mask of the same entries."""

    def made(part: int) -> Pair:
        size, rng = (1 << 20) // part, seeded(0)
        return floor_of_masks(41, size, 1), lambda: ps.dp.discrete_gaussian(sigma, size, rng)

    return made


WORKS: dict[str, Callable[[int], Pair]] = {
    "2M x 40, NAB": _dense(2_000_000, 40, 10, "NAB"),
    "2M x 40, ridge with 5 folds": _dense(2_000_000, 40, 10, "Ghq"),
    "50k x 512, NAB": _dense(50_000, 512, 10, "NAB"),
    "5k x 2048, NAB": _dense(5_000, 2048, 10, "NAB"),
    "50k x 512, NAS, 100 classes": _dense(50_000, 512, 100, "NAS"),
    "few rows: 1,000 times 50 x 40": _calls(50, 1_000),
    "many batches: 500k x 40 in batches of 50": _batches(500_000, 40, 50),
    "many batches: 2M x 40 in batches of 2,000": _batches(2_000_000, 40, 2_000),
    "sparse 50k x 2000, NAB": _sparse(50_000, 2000, "NAB"),
    "sparse 50k x 2000, NAB, half of it clipped": _sparse(50_000, 2000, "NAB", clipped=0.5),
    "sparse 50k x 2000, NABD": _sparse(50_000, 2000, "NABD"),
    "sparse 50k x 2000, NAS, 10 classes": _sparse(50_000, 2000, "NAS"),
    "sparse 50k x 2000, ridge with 5 folds": _sparse(50_000, 2000, "Ghq"),
    "sparse 500k x 500, NAB": _sparse(500_000, 500, "NAB"),
    "mixed table 50k x 30, LDA": _table("LDA", values=False),
    "mixed table 50k x 30, RefinedSoftmax": _table("RefinedSoftmax", values=False),
    "mixed table 50k x 30 in Python values, LDA": _table("LDA", values=True),
    "mixed table 50k x 30 in Python values, RefinedSoftmax": _table("RefinedSoftmax", values=True),
    "fit of 1,000 classes, d 2048, LDA from exact sums": _fit("LDA", 1_000, 2_048),
    "fit of 1,000 classes, d 4096, LDA from exact sums": _fit("LDA", 1_000, 4_096),
    "fit of 1,000 classes, d 2048, FedCGS's head from exact sums": _fit("LDA", 1_000, 2_048, covariance="total"),
    "fit of 1,000 classes, d 4096, FedCGS's head from exact sums": _fit("LDA", 1_000, 4_096, covariance="total"),
    "rows of a CSV file, 50k x 31": _file(quotes=csv.QUOTE_MINIMAL),
    "rows of a CSV file, 50k x 31, in quotes": _file(quotes=csv.QUOTE_ALL),
    "rows of a CSV file, 50k x 31, with notes of two lines": _file(quotes=csv.QUOTE_MINIMAL, notes=True),
    "discrete noise, sigma 4": _noise("discrete_gaussian", 4.0),
    "discrete noise, sigma 17.3": _noise("discrete_gaussian", 17.3),
    "discrete noise, sigma 63": _noise("discrete_gaussian", 63.0),
    "rounded noise, sigma 2^20": _noise("rounded_gaussian", 2.0**20),
    "rounded noise, sigma 2^36": _noise("rounded_gaussian", 2.0**36),
    "discrete noise, sigma 2^42": _noise("discrete_gaussian", 2.0**42),
    "rounded noise, sigma 2^48": _noise("rounded_gaussian", 2.0**48),
    "20 masks of 32-bit entries": _mask(32),
    "20 masks of 41-bit entries": _mask(41),
    "noise of a party beside one mask, sigma 17.3": _noise_share(17.3),
    "noise of a party beside one mask, sigma 2^20": _noise_share(2.0**20),
    "noise of a party beside one mask, sigma 2^36": _noise_share(2.0**36),
}
"""Floor and work by name; the number is how many times less there shall be of it."""


GOALS: dict[str, float] = {
    "2M x 40, NAB": 2.5,
    "2M x 40, ridge with 5 folds": 3.5,
    "50k x 512, NAB": 1.3,
    "5k x 2048, NAB": 1.15,
    "50k x 512, NAS, 100 classes": 2.0,
    **{name: 2.0 for name in WORKS if "50k x 2000" in name or "500k x 500" in name},
    **{name: 2.0 for name in WORKS if " noise, sigma" in name and name.endswith(("2^36", "2^42", "2^48"))},
}
"""What was asked of work over floor, where something was."""

SECONDS: dict[str, float] = {name: 2.5 if name.endswith("LDA") else 4.0 for name in WORKS if name.startswith("mixed")}
"""What was asked of work in processor seconds."""


def timed(name: str, repeats: int, part: int) -> dict[str, list[float]]:
    """Processor seconds of floor and work, in turns, after one round that counts for nothing."""
    pair = WORKS[name](part)
    seconds: dict[str, list[float]] = {"floor": [], "work": []}
    for _ in range(repeats + 1):
        for what, task in zip(seconds, pair, strict=True):
            start = time.process_time()
            task()
            seconds[what].append(time.process_time() - start)
    return {what: values[1:] for what, values in seconds.items()}


if __name__ == "__main__":
    print(json.dumps(timed(sys.argv[1], int(sys.argv[2]), _QUICK if "--quick" in sys.argv else 1)))
