"""The tables of both benchmarks of imputation: worlds by title, and three of them beside R's ``mice``."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Mapping, Sequence
from subprocess import DEVNULL, call
from typing import Protocol

from benchmarks.inference.runs import stored
from benchmarks.measuring import Row, Tables

__all__ = ["tables_of"]

_SIZES, _SHARES = (2_000, 20_000), (0.1, 0.3)


class Measure(Protocol):
    """Measures releases of one world: its name, the number of records, the share of gaps and the number of runs."""

    def __call__(self, world: str, records: int, missing: float, runs: int) -> Iterable[Row]:
        """Return a row for each epsilon, or for each way."""


def tables_of(
    name: str, options: argparse.Namespace, titles: Mapping[str, Sequence[str]], measured: Measure, beside_mice: Measure
) -> Tables:
    """Yield a table for each title, and one beside mice for each world of the first two titles.

    Args:
        name: of the benchmark, whose stored rows beside mice stay where R or its package is missing.
        titles: the worlds of each table.
    """
    runs, few = (4, 1) if options.quick else (options.runs, None)
    for title, worlds in titles.items():
        cells = [(world, n, share) for world in worlds for n in _SIZES for share in _SHARES]
        if options.only in title:
            yield title, [row for cell in cells[:few] for row in measured(*cell, runs)]
    without_mice = shutil.which("Rscript") is None or call(["Rscript", "-e", "library(mice)"], stderr=DEVNULL)
    first, second, *_ = titles.values()
    for world in (*first, *second):
        title = f"beside mice: {world}"
        if without_mice:
            yield from [(title, stored(name)[title])] * (title in stored(name))
        elif options.only in title:
            yield title, [row for share in _SHARES[:few] for row in beside_mice(world, _SIZES[0], share, runs)]
