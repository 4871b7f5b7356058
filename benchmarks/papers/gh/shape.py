"""Whether features are Gaussian within classes, and how few directions separate the classes: GH-OFL's appendix D.

Skewness and kurtosis need records, so the paper's "from the federated sufficient statistics" cannot be: they are third
and fourth moments. Tables 9 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.measuring import Row, Rows, Tables
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.gh import published
from benchmarks.papers.sets import Features, corrupted_fashion, nearest_to, released
from privstats import heads

__all__ = ["contradictions", "gaussianity", "subspaces"]

_COLUMNS = ("skew, mean", "skew, 90th", "kurtosis, mean", "kurtosis, 90th")
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
        found = _shape(features)
        for name, text, value in zip(_COLUMNS, printed, found, strict=True):
            cells.append(sheet.nearest(data, name, text, value, features.said))
    made = None if quick else corrupted_fashion()
    if made is not None:
        for seed, features in enumerate((made[0], made[0].projected(256, 0))):
            said = ("not projected", "projected to 256")[seed]
            for name, value in zip(_COLUMNS, _shape(features), strict=True):
                cells.append(sheet.cell(f"{made[0].said}, {said}", name, None, value))
    return sheet.rows(cells)


def _shape(features: Features) -> tuple[float, float, float, float]:
    shape = heads.gaussianity(features.split[0], features.split[2])
    return shape.skewness[0], shape.skewness[2], shape.kurtosis[0], shape.kurtosis[2]


def subspaces(*, quick: bool) -> Tables:
    """Table 10: LDA in k Fisher directions, k as printed up to the C - 1 that there are."""
    sheet = Sheet(published.PAPER, "Table 10", "LDA in the Fisher subspace: accuracy, %, and share of energy")
    gaps = gap_sheet(sheet, _WHOLE)
    cells: list[Cell] = []
    further: list[Cell] = []
    for data, (whole, by_dimension) in published.SUBSPACE.items():
        features = nearest_to(data, quick=quick)
        accuracy, energy = _by_dimension(features, list(by_dimension))
        printed = {_WHOLE: whole} | {f"k = {k}": text for k, (text, _) in by_dimension.items()}
        cells += [sheet.nearest(data, row, text, accuracy[row], features.said) for row, text in printed.items()]
        for k, (_, text) in by_dimension.items():
            cells.append(sheet.nearest(data, f"energy, k = {k}", text, energy[k], features.said))
        further += above(gaps, _WHOLE, printed, accuracy, data)
    yield sheet.rows(cells)
    yield gaps.rows(further)


def _by_dimension(features: Features, dimensions: Sequence[int]) -> tuple[dict[str, list[float]], dict[int, float]]:
    """Accuracy in percent in all features and in k directions, and the share of energy in these."""
    release = released(features, "NAB")
    _, X_test, _, y_test = features.split
    found = {_WHOLE: [100 * heads.LDA(shrinkage=0.05).fit_release(release).score(X_test, y_test)]}
    energy = {}
    for k in dimensions:
        fisher = heads.fisher_subspace(release, min(k, X_test.shape[1]))
        head = heads.LDA(shrinkage=0.05, subspace=fisher.basis.shape[1]).fit_release(release)
        found[f"k = {k}"] = [100 * head.score(X_test, y_test)]
        energy[k] = fisher.explained_energy
    return found, energy


def contradictions() -> tuple[str, Rows]:
    """Cells of the paper that cannot both hold."""
    names = ("what", "one place", "another place", "why not both", "gap")
    rows: list[Row] = [dict(zip(names, each, strict=True)) for each in published.CONTRADICTIONS]
    return "GH-OFL against itself", rows
