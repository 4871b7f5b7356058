"""Seconds to fit heads that solve a problem per class, with one BLAS thread each and with as many as BLAS takes.

    OPENBLAS_NUM_THREADS=2 python -m benchmarks.heads.threads --classes 30 --save
    python -m benchmarks.heads.threads --classes 150 --one --keep --save  # takes minutes with two threads

The library gives them one thread (``one_blas_thread``); the other column undoes that. On a busy machine the threads
of a small eigendecomposition wait for one another.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Row, Tables, command, results
from privstats import heads
from privstats.heads import quadratic
from privstats.heads.fitting import class_covariance

FITTED: Mapping[str, Callable[[], Any]] = {"QDA": heads.QDA, "RDA": heads.RDA, "LowRankQDA": heads.LowRankQDA}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the benchmark's options."""
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2, help="that BLAS takes")
    parser.add_argument("--heads", nargs="+", choices=list(FITTED), default=list(FITTED))
    parser.add_argument("--one", action="store_true", help="one thread only")
    parser.add_argument("--keep", action="store_true", help="keep saved tables of other sizes")


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per head."""
    if options.quick:
        options.classes, options.features = 5, 16
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(options.classes), 100)
    X = rng.standard_normal((options.classes, options.features))[y] + rng.standard_normal((len(y), options.features))
    size = f"fits with {options.classes} classes x {options.features}"
    for title, rows in results("heads.threads").items() if options.keep else ():
        if title != "machine" and not title.startswith(f"{size},"):
            yield title, rows
    load, ways = os.getloadavg()[0], ("one thread", *[f"{options.threads} threads"] * (not options.one))
    rows = [fitted(name, X, y, options.threads, ways) for name in options.heads]
    yield f"{size}, load average {load:.0f}", rows


def fitted(name: str, X: Any, y: Any, threads: int, ways: Sequence[str]) -> Row:
    """Wall and CPU seconds of each way."""
    row: dict[str, Any] = {"head": name}
    for way in ways:
        with ExitStack() as stack:
            stack.enter_context(threadpool_limits(threads, user_api="blas"))
            if way != "one thread":
                for module in (class_covariance, quadratic):
                    stack.enter_context(patch.object(module, "one_blas_thread", nullcontext))
            wall, cpu = time.perf_counter(), time.process_time()
            FITTED[name]().fit(X, y)
            row[f"{way}, s"], row[f"{way}, CPU s"] = time.perf_counter() - wall, time.process_time() - cpu
    return row


if __name__ == "__main__":
    command("heads.threads", __doc__, tables, options)
