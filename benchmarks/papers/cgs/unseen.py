"""FedCGS on a domain that no client has: five sources of digits, one of them left out of training in turn.

PACS and OfficeHome cannot be had; the protocol is the paper's: the records of every other source are split at random
over five clients, and the global head is scored on all records of the source that was left out. Table 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.alignment.digits5 import SOURCES, Digits, digits5, encoders
from benchmarks.measuring import Tables
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.cgs import published
from benchmarks.papers.cgs.skew import fedcgs, mixture_layer
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.sets import Features, released
from privstats import heads

__all__ = ["domains", "without"]

_SEEDS = range(3)
_CLIENTS = 5  # a source
_BASE, _OURS = "FedPFT", "FedCGS"
_NEAREST = "efficientnet"
_AVERAGE = "Avg."
_WHY = (
    "every source's own draws keep its class shapes; one covariance of all records takes their differences for spread"
)
_HEADS: Mapping[str, tuple[str, Any]] = {
    _OURS: ("NAB", fedcgs),
    "LDA, of this library": ("NAB", heads.LDA),
    "RDA, of this library": ("NAS", heads.RDA),
}

Found = Mapping[str, Sequence[float]]


def domains(*, quick: bool) -> Tables:
    """A row per encoder and source left out, and the averages beside those of PACS and OfficeHome."""
    sheet = Sheet(published.PAPER, "Table 2", "test accuracy on an unseen domain, %", better="higher", trials=3)
    cells: list[Cell] = []
    averages: dict[str, Found] = {}
    for encoder in ["gradients"] if quick else encoders():
        digits = digits5(encoder, most=60 if quick else None)
        by_target = {name: _accuracies(digits, place) for place, name in enumerate(SOURCES)}
        by_target[_AVERAGE] = {
            method: list(np.mean([found[method] for found in by_target.values()], axis=0))
            for method in by_target[SOURCES[0]]
        }
        averages[encoder] = by_target[_AVERAGE]
        for target, found in by_target.items():
            cells += _row(sheet, f"digits behind {encoder}: {target}", found)
    nearest = _NEAREST if _NEAREST in averages else next(iter(averages))
    gaps = gap_sheet(sheet, _BASE)
    further: list[Cell] = []
    for data, texts in published.TABLE_2.items():
        printed = dict(zip((_BASE, _OURS), texts, strict=True))
        said = f"digits behind {nearest}, the average over five sources"
        for method, text in printed.items():
            cells.append(sheet.nearest(f"{data} {_AVERAGE}", method, text, averages[nearest][method], said))
        further += above(gaps, _BASE, printed, averages[nearest], f"{data} {_AVERAGE}")
    yield sheet.rows(cells)
    yield gaps.rows(further)


def without(digits: Digits, left_out: int) -> Features:
    """All records of a source for testing, and those of the others for training."""
    unseen, name = digits.source == left_out, f"digits without {SOURCES[left_out]}"
    X, y = digits.rows, digits.labels
    return Features(name, name, (X[~unseen], X[unseen], y[~unseen], y[unseen]))


def _row(sheet: Sheet, row: str, found: Found) -> list[Cell]:
    return [
        sheet.cell(row, method, None, values, rival=found[_BASE] if method == _OURS else None, why=_WHY)
        for method, values in found.items()
    ]


def _accuracies(digits: Digits, left_out: int) -> Found:
    """By method, a value per seed; the heads of sums have one, which no partition changes."""
    features, source = without(digits, left_out), digits.source[digits.source != left_out]
    X, X_test, y, y_test = features.split
    found: dict[str, list[float]] = {_BASE: []}
    for seed in _SEEDS:
        rng = np.random.default_rng(seed)
        mine = [rng.permutation(np.flatnonzero(source == place)) for place in np.unique(source)]
        cut = [part for places in mine for part in np.array_split(places, _CLIENTS)]
        found[_BASE].append(mixture_layer(features, [(X[part].astype(np.float32), y[part]) for part in cut], rng))
    for method, (statistics, make) in _HEADS.items():
        head = make().fit_release(released(features, statistics))
        found[method] = [100 * head.score(X_test, y_test)]
    return found
