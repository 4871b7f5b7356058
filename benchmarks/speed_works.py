"""The works of ``benchmarks.speed``, each with its floor, timed in turns by the process that runs this file.

    PYTHONPATH=CHECKOUT python benchmarks/speed_works.py WORK REPEATS [--quick]

It imports the library of the checkout on the path and nothing of these benchmarks, so that one file times any version.
Prints processor seconds and the process's peak of resident memory as JSON.
"""

from __future__ import annotations

import csv
import io
import json
import os
import resource
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
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk
from scipy.special import ndtri

import privstats as ps
from privstats.encoding import Ring
from privstats.randomness import seeded
from privstats.secagg.prg import TILE, add_masks

__all__ = ["COUNTED", "GOALS", "SECONDS", "WORKS", "floor_of_masks"]

Pair: TypeAlias = tuple[Callable[[], object], Callable[[], object]]
"""A floor and the work, both ready to be timed."""

_QUICK = 200  # so many times fewer records or samples
_TILE = 1 << 13
_FOLDS = 5
_CLASSES = 1_000
_SHORT: dict[str, Any] = {"per_class": 50, "max_rounds": 3}
"""Samples and rounds of trained heads, so that a fit takes minutes of one core."""
Fit: TypeAlias = Callable[[int], Pair]


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


def _fit(head: str, d: int, statistics: str = "NAB", dimension: int | None = None, **parameters: Any) -> Fit:
    """A head of 1,000 classes from an exact release, over one symmetric product of its class sums."""

    def made(part: int) -> Pair:
        from privstats import heads

        few, width = max(_CLASSES // part, 2), max(d // part, 8)
        rng = np.random.default_rng(0)
        y = np.arange(4 * few) % few
        X = rng.standard_normal((len(y), width)) + rng.standard_normal((few, width))[y]
        schema = ps.ClassSchema(few, width, statistics, clip_norm=4 * width**0.5)
        release = ps.Release.exact(schema, ps.measure(schema, X, y))
        sums = np.asarray(release.moments.A)
        chosen = parameters if dimension is None else {**parameters, "dimension": min(dimension, width)}

        def work() -> object:
            with warnings.catch_warnings(action="ignore"):
                return getattr(heads, head)(**chosen).fit_release(release)

        return lambda: dsyrk(1.0, sums.T), work

    return made


def _step(d: int, step: Callable[[Any, Any], object]) -> Callable[[int], Pair]:
    """One step of a discriminant of 1,000 classes, by LAPACK alone, over one symmetric product of its class sums."""

    def made(part: int) -> Pair:
        few, width = max(_CLASSES // part, 2), max(d // part, 8)
        sums = np.random.default_rng(0).standard_normal((few, width))
        covariance = np.asfortranarray(sums.T @ sums / few + np.eye(width))
        return lambda: dsyrk(1.0, sums.T), lambda: step(sums, covariance)

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


_STEPS: dict[str, Callable[[Any, Any], object]] = {
    "product of the class sums": lambda sums, _: dsyrk(1.0, sums.T),
    "Cholesky factor": lambda _, covariance: cho_factor(covariance, lower=True, check_finite=False),
    "two triangular solves": lambda sums, covariance: cho_solve((covariance, True), sums.T, check_finite=False),
    "eigenvectors": lambda _, covariance: np.linalg.eigh(covariance),
}

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
    **{f"fit of 1,000 classes, d {d}, LDA from exact sums": _fit("LDA", d) for d in (2048, 4096)},
    **{
        f"fit of 1,000 classes, d {d}, FedCGS's head from exact sums": _fit("LDA", d, covariance="total")
        for d in (2048, 4096)
    },
    **{f"fit of 1,000 classes, d {d}, ridge from exact sums": _fit("RidgeClassifier", d) for d in (2048, 4096)},
    "fit of 1,000 classes, d 2048, naive Bayes": _fit("NaiveBayes", 2048, "NAD"),
    "fit of 1,000 classes, d 2048, FisherMix in 256 dimensions": _fit("FisherMix", 2048, dimension=256, **_SHORT),
    "fit of 1,000 classes, d 2048, Proto-Hyper in 256 dimensions": _fit("ProtoHyper", 2048, dimension=256, **_SHORT),
    "fit of 1,000 classes, d 128, QDA": _fit("QDA", 128, "NAS"),
    "fit of 1,000 classes, d 256, QDA": _fit("QDA", 256, "NAS"),
    **{f"step of 1,000 classes, d {d}, {name}": _step(d, step) for name, step in _STEPS.items() for d in (2048, 4096)},
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


def _counted(name: str) -> float | None:
    """Return a fit's or step's arithmetic in floors of C d^2 operations, or None where it is not counted.

    The class sums' symmetric product is 1 floor, a Cholesky factor d^3 / 3 operations, a triangular solve of C columns
    1 floor. Eigenvectors take at least 4 d^3 / 3 operations to a tridiagonal matrix and 2 d^3 back; a product of a
    ``(d, d)`` matrix and C columns 2 floors. Ridge forms the tridiagonal matrix and turns C columns four times.
    """
    d = next((width for width in (2048, 4096) if f", d {width}, " in name), 0)
    factor, vectors = d / (3 * _CLASSES), 10 * d / (3 * _CLASSES)
    counts = {
        ", LDA": 1 + factor + 2,
        ", FedCGS's head": factor + 2,
        ", ridge": 4 * factor + 8,
        ", product of the class sums": 1.0,
        ", Cholesky factor": factor,
        ", two triangular solves": 2.0,
        ", eigenvectors": vectors,
    }
    return next(
        (count for what, count in counts.items() if d and name.endswith((what, f"{what} from exact sums"))), None
    )


COUNTED: dict[str, float] = {name: count for name in WORKS if (count := _counted(name)) is not None}
"""Arithmetic of a fit or step that no order of the same steps avoids, in floors."""

GOALS: dict[str, float] = {
    **{name: 3.0 for name in WORKS if name.startswith("fit") and name in COUNTED},
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
    """Processor seconds of floor and work, in turns, after one round that counts for nothing; and the memory's peak."""
    pair = WORKS[name](part)
    seconds: dict[str, list[float]] = {"floor": [], "work": []}
    for _ in range(repeats + 1):
        for what, task in zip(seconds, pair, strict=True):
            start = time.process_time()
            task()
            seconds[what].append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3 * 1.024
    return {**{what: values[1:] for what, values in seconds.items()}, "MB": [peak]}


if __name__ == "__main__":
    print(json.dumps(timed(sys.argv[1], int(sys.argv[2]), _QUICK if "--quick" in sys.argv else 1)))
