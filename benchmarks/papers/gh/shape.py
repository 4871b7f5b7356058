"""Whether features are Gaussian within classes, and how few directions separate the classes: GH-OFL's appendix D.

Skewness and kurtosis are third and fourth moments, which the paper's federated statistics do not hold: "from the
federated sufficient statistics" is true of sums of third and fourth powers beside them. Tables 9 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Row, Rows, Tables
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.accuracy import spoilt
from benchmarks.papers.sets import Features, corrupted_fashion, nearest_to, released
from privstats import heads
from privstats.heads.diagnostics import Gaussianity

__all__ = ["contradictions", "gaussianity", "subspaces"]

Array: TypeAlias = NDArray[np.float64]

_COLUMNS = ("skew, mean", "skew, 90th", "kurtosis, mean", "kurtosis, 90th")
_GRID_BITS = 11  # 4 f bits of a fourth power and 16 of 60,000 records fit 64
_WHOLE = "all features"
_NO_DATA = "no package installs this data set"


def gaussianity(*, quick: bool) -> tuple[str, Rows]:
    """Table 9: of the nearest sets, and of features that no projection has mixed."""
    sheet = Sheet(published.PAPER, "Table 9", "skewness and kurtosis within classes")
    cells: list[Cell] = []
    for data, printed in published.GAUSSIANITY.items():
        if data in ("DBPedia-14", "SST-2"):
            cells += [sheet.absent(data, name, text, _NO_DATA) for name, text in zip(_COLUMNS, printed, strict=True)]
            continue
        features = nearest_to(data, quick=quick)
        sums, records = _shapes(features)
        for name, text, of_sums, of_records in zip(_COLUMNS, printed, sums, records, strict=True):
            cells.append(sheet.nearest(data, name, text, of_sums, features.said))
            cells.append(sheet.cell(f"{data}, of the records", name, None, of_records))
    made = None if quick else corrupted_fashion()
    if made is not None:
        for seed, features in enumerate((made[0], made[0].projected(256, 0))):
            said = ("not projected", "projected to 256")[seed]
            for source, shape in zip(("", ", of the records"), _shapes(features), strict=True):
                for name, value in zip(_COLUMNS, shape, strict=True):
                    cells.append(sheet.cell(f"{made[0].said}, {said}{source}", name, None, value))
    return sheet.rows(cells)


def _shapes(features: Features) -> tuple[Sequence[float], Sequence[float]]:
    """The four columns, of released power sums alone and of the records themselves."""
    X, _, y, _ = features.split
    sums, records = heads.gaussianity_of(released(features, "NADTF", _GRID_BITS)), heads.gaussianity(X, y)
    return _columns(sums), _columns(records)


def _columns(shape: Gaussianity) -> Sequence[float]:
    return shape.skewness[0], shape.skewness[2], shape.kurtosis[0], shape.kurtosis[2]


def subspaces(*, quick: bool) -> Tables:
    """Table 10: LDA in k Fisher directions, k as printed up to the C - 1 that there are."""
    sheet = Sheet(published.PAPER, "Table 10", "LDA in the Fisher subspace: accuracy, %, and share of energy")
    gaps = gap_sheet(sheet, _WHOLE)
    cells: list[Cell] = []
    further: list[Cell] = []
    for data, (whole, by_dimension) in published.SUBSPACE.items():
        features, tests = _tested(data, quick=quick)
        accuracy, energy = _by_dimension(features, tests, list(by_dimension))
        printed = {_WHOLE: whole} | {f"k = {k}": text for k, (text, _) in by_dimension.items()}
        cells += [sheet.nearest(data, row, text, accuracy[row], features.said) for row, text in printed.items()]
        for k, (_, text) in by_dimension.items():
            cells.append(sheet.nearest(data, f"energy, k = {k}", text, energy[k], features.said))
        further += above(gaps, _WHOLE, printed, accuracy, data)
    yield sheet.rows(cells)
    yield gaps.rows(further)


def _tested(data: str, *, quick: bool) -> tuple[Features, Sequence[Array]]:
    """The nearest set, and its test rows: as they are, or one array per corruption."""
    if data != "CIFAR-100-C":
        features = nearest_to(data, quick=quick)
        return features, [features.split[1]]
    clean, spoilt_rows = spoilt(quick=quick)[0]
    said = f"{clean.said}, {len(spoilt_rows)} corruptions"
    return Features(clean.name, said, clean.split), list(spoilt_rows.values())


def _by_dimension(
    features: Features, tests: Sequence[Array], dimensions: Sequence[int]
) -> tuple[dict[str, list[float]], dict[int, float]]:
    """Accuracy in percent, a mean over the tests, in all features and in k directions; the share of energy in these."""
    release = released(features, "NAB")
    width, y_test = features.split[0].shape[1], features.split[3]

    def score(head: heads.LDA) -> list[float]:
        fitted = head.fit_release(release)
        return [100 * float(np.mean([fitted.score(rows, y_test) for rows in tests]))]

    found, energy = {_WHOLE: score(heads.LDA(shrinkage=0.05))}, {}
    for k in dimensions:
        fisher = heads.fisher_subspace(release, min(k, width))
        found[f"k = {k}"] = score(heads.LDA(shrinkage=0.05, subspace=fisher.basis.shape[1]))
        energy[k] = fisher.explained_energy
    return found, energy


def contradictions() -> tuple[str, Rows]:
    """Cells of the paper that cannot both hold."""
    names = ("what", "one place", "another place", "why not both", "gap")
    rows: list[Row] = [dict(zip(names, each, strict=True)) for each in published.CONTRADICTIONS]
    return "GH-OFL against itself", rows
