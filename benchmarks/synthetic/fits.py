"""The library's maximum-entropy fit beside mbi's mirror descent, under the same noisy tables.

    PRIVSTATS_MBI=PYTHON python -m benchmarks.synthetic.fits --save

The tables are those of a course at epsilon 1: one-way tables and the last session's pairs, in the model's cells. "loss"
is the mean squared residual of a measured cell in standard deviations. "distance" is the mean total variation distance
of the fitted pairs from the records' own. mbi's seconds hold the compilation of its model, which every new model needs.
What is not measured keeps its saved rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Tables, child, command, saved
from benchmarks.synthetic.rows import ADULT, DATA, MBI, Coded, coded_table, course_of
from privstats.contrib.synthetic.junction_tree import JunctionTree
from privstats.contrib.synthetic.model import Measurement, fitted
from privstats.intake.columns import read
from privstats.records.cells import cells_in

__all__ = ["tables"]

Counts = Sequence[NDArray[np.float64]]


def _rows(table: Coded) -> list[Row]:
    course = course_of(table, 1.0, "central", 2)
    releases = ps.private_releases(course, table.records, ledger="uncharged")
    variables, found = course.measurements(releases)
    names = [variable.name for variable in variables]
    edges = [(names.index(a), names.index(b)) for a, b in course.pairs(releases)]
    sizes = tuple(len(each.cells) for each in variables)
    wanted = {(axis,) for axis in range(len(sizes))} | set(edges)
    held = [each for each in found if each.variables in wanted and _is_fine(each, sizes)]
    begun = time.perf_counter()
    model = fitted(JunctionTree(sizes, tuple(edges)), held)
    own = [model.records * model.marginal(each.variables) for each in held]
    seconds = time.perf_counter() - begun
    cells = [cells_in(each, read(table.records[each.name])) for each in variables]
    exact = [_counted([cells[axis] for axis in each.variables], each.counts.shape) for each in held]
    rows = [_row("ours", held, own, exact, seconds)]
    if MBI:
        theirs, seconds = _mbi(held, sizes)
        rows.append(_row("mbi", held, theirs, exact, seconds))
    return rows


def _is_fine(each: Measurement, sizes: Sequence[int]) -> bool:
    return all(
        np.array_equal(lump, np.arange(sizes[axis])) for lump, axis in zip(each.lumps, each.variables, strict=True)
    )


def _counted(cells: Sequence[NDArray[np.intp]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    out = np.zeros(shape)
    np.add.at(out, tuple(cells), 1.0)
    return out


def _mbi(held: Sequence[Measurement], sizes: Sequence[int]) -> tuple[Counts, float]:
    given: dict[str, Any] = {"sizes": sizes, "sigmas": [each.sigma for each in held]}
    for place, each in enumerate(held):
        given |= {f"counts{place}": each.counts, f"variables{place}": each.variables}
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "tables.npz", Path(folder) / "fitted.npz"
        np.savez(path, **given)
        child([MBI, str(Path(__file__).with_name("mbi_fit.py")), str(path), str(out)])
        with np.load(out) as found:
            return [found[f"fitted{k}"].reshape(each.counts.shape) for k, each in enumerate(held)], float(
                found["seconds"]
            )


def _row(fit: str, held: Sequence[Measurement], counts: Counts, exact: Counts, seconds: float) -> Row:
    residuals = [np.ravel(own - each.counts) / each.sigma for own, each in zip(counts, held, strict=True)]
    pairs = [(own, true) for own, true in zip(counts, exact, strict=True) if own.ndim == 2]
    distance = np.mean([np.abs(own / own.sum() - true / true.sum()).sum() / 2 for own, true in pairs])
    return {
        "cells": sum(each.counts.size for each in held),
        "fit": fit,
        "loss": float(np.square(np.concatenate(residuals)).mean()),
        "distance": distance,
        "seconds": seconds,
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", default=[name for name in DATA if name != "adult" or ADULT])


def _before(chosen: argparse.Namespace) -> Mapping[str, Any]:
    return {} if chosen.quick else saved("synthetic.fits")


def tables(chosen: argparse.Namespace) -> Tables:
    """Two rows for each table, one by one, so that a run may be stopped."""
    small = [name for name in chosen.tables if name != "adult"][:1]
    for name in small if chosen.quick else chosen.tables:
        yield f"fits: {name}", _rows(coded_table(name))


if __name__ == "__main__":
    command("synthetic.fits", __doc__, tables, _options, _before)
