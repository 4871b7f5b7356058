"""Seconds to fit heads that solve a problem per class, with one BLAS thread each and with as many as BLAS takes.

    OPENBLAS_NUM_THREADS=2 python -m benchmarks.heads.threads --save

The library gives them one thread (docs/architecture.md); the other column undoes that. On a busy machine the threads of
a small eigendecomposition wait for one another.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.measuring import Row, Tables, command
from privstats import heads
from privstats.heads.estimates import blas

FITTED: Mapping[str, Callable[[], Any]] = {"QDA": heads.QDA, "RDA": heads.RDA, "LowRankQDA": heads.LowRankQDA}


def options(parser: argparse.ArgumentParser) -> None:
    """How large a problem."""
    parser.add_argument("--classes", type=int, default=150)
    parser.add_argument("--features", type=int, default=384)
    parser.add_argument("--threads", type=int, default=2, help="that BLAS takes")
    parser.add_argument("--heads", nargs="+", choices=list(FITTED), default=list(FITTED))


def tables(options: argparse.Namespace) -> Tables:
    """One table, a row per head."""
    if options.quick:
        options.classes, options.features = 5, 16
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(options.classes), 100)
    X = rng.standard_normal((options.classes, options.features))[y] + rng.standard_normal((len(y), options.features))
    title = f"fits with {options.classes} classes x {options.features}, load average {os.getloadavg()[0]:.0f}"
    yield title, [fitted(name, X, y, options.threads) for name in options.heads]


def fitted(name: str, X: Any, y: Any, threads: int) -> Row:
    """Wall and CPU seconds both ways."""
    row: dict[str, Any] = {"head": name}
    for way in ("one thread", f"{threads} threads"):
        with ExitStack() as stack:
            stack.enter_context(threadpool_limits(threads, user_api="blas"))
            if way != "one thread":
                stack.enter_context(patch.object(blas, "threadpool_limits", lambda *_, **__: nullcontext()))
            wall, cpu = time.perf_counter(), time.process_time()
            FITTED[name]().fit(X, y)
            row[f"{way}, s"], row[f"{way}, CPU s"] = time.perf_counter() - wall, time.process_time() - cpu
    return row


if __name__ == "__main__":
    command("heads.threads", __doc__, tables, options)
