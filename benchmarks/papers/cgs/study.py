"""FedCGS's in-depth study: its head beside trained linear layers, feature expansion, and what its sums give away.

Figures 2, 3 and 4 print no numbers in their text, so cells hold ours and the paper's sentence is judged by them. The
attack is that of ``threat_models``, as ``benchmarks.attacks.pictures`` plays it.
"""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from benchmarks.attacks.pictures import data, pictures
from benchmarks.measuring import Row, Rows
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.cgs import published
from benchmarks.papers.cgs.skew import COLUMNS, SEEDS, fedcgs, few
from benchmarks.papers.sets import Features, released
from privstats import heads
from privstats.transforms import RandomReLU

__all__ = ["expansion", "inversion", "linear_layers"]

EXPANSIONS = (512, 1024)
_WHY = "the layer that is ahead is trained on the records themselves"
_CLAIM = "the uploaded variables cannot be used to recover the client's original data"


def linear_layers(*, quick: bool) -> tuple[str, Rows]:
    """Figure 2: the closed form, a layer trained on samples of the global statistics, a layer trained on records."""
    sheet = Sheet(published.PAPER, "Figure 2", "the head beside trained linear layers: accuracy, %", better="higher")
    cells: list[Cell] = []
    for column in ("CIFAR10",) if quick else COLUMNS:
        features = few(column, quick=quick)
        X, X_test, y, y_test = features.split
        release = released(features, "NAB")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            layer = LogisticRegression(max_iter=20 if quick else 200, C=0.01).fit(X, y)
        central = 100 * float(layer.score(X_test, y_test))
        ours = 100 * fedcgs().fit_release(release).score(X_test, y_test)
        where = f"{column}: {features.said}"
        cells.append(sheet.cell("FedCGS", where, None, ours, rival=central, why=_WHY))
        if not quick:
            mixed = [heads.FisherMix(dispersion=1.0, random_state=seed).fit_release(release) for seed in SEEDS]
            values = [100 * head.score(X_test, y_test) for head in mixed]
            cells.append(sheet.cell("Linear (trained on samples)", where, None, values))
        cells.append(sheet.cell("Centralized", where, None, central))
    return sheet.rows(cells)


def expansion(*, quick: bool) -> tuple[str, Rows]:
    """Figure 3: random ReLU features before the sums, five draws of them; what they add, and what they cost."""
    sheet = Sheet(published.PAPER, "Figure 3", "FedCGS on random ReLU features: accuracy, %", better="higher")
    cells: list[Cell] = []
    for column in ("CIFAR10",) if quick else COLUMNS:
        features = few(column, quick=quick)
        where = f"{column}: {features.said}"
        plain = 100 * fedcgs().fit_release(released(features, "NAB")).score(features.split[1], features.split[3])
        cells.append(sheet.cell("no expansion", where, None, plain))
        for width in (128,) if quick else EXPANSIONS:
            wider = [_expanded(features, width, seed) for seed in (SEEDS[:2] if quick else SEEDS)]
            for said, values in zip(("", ", shrunk"), zip(*map(_scores, wider), strict=True), strict=True):
                cells.append(
                    sheet.cell(
                        f"{width} ReLU features{said}",
                        where,
                        None,
                        values,
                        rival=plain,
                        why="alone, random features lose more of the plain ones than they add",
                    )
                )
    return sheet.rows(cells)


def _expanded(features: Features, width: int, seed: int) -> Features:
    X, X_test, y, y_test = features.split
    step = RandomReLU(seed=seed, inputs=X.shape[1], features=width)
    return Features(features.name, features.said, (step.apply(X), step.apply(X_test), y, y_test))


def _scores(features: Features) -> tuple[float, float]:
    """Of the covariance inverted as it is, and shrunk."""
    release = released(features, "NAB")
    made = (heads.LDA(covariance="total", shrinkage=None), heads.LDA(covariance="total"))
    plain, shrunk = (100 * head.fit_release(release).score(features.split[1], features.split[3]) for head in made)
    return plain, shrunk


def inversion(*, quick: bool) -> tuple[str, Rows]:
    """Figure 4: four samples of one class; pictures from raw features, and from the sums that are uploaded."""
    rows: list[Row] = []
    for name, images, y, stride in data(quick):
        found = {row["attacker"]: row for row in pictures(images, y, stride, 2 if quick else 5, 0)}
        raw, blind = (found[who]["PSNR"] for who in (_RAW, _BLIND))
        for who, row in found.items():
            near = row["PSNR"] - blind > 0.9 * (raw - blind)
            said = "refuted: as good as from raw features" if near else "holds for this sight"
            rows.append(
                {
                    "data": name,
                    "the server sees": _SEES.get(who, who),
                    "PSNR, dB": row["PSNR"],
                    "SSIM": row["SSIM"],
                    "the paper's sentence": said if who in _UPLOADED else None,
                }
            )
    return f'FedCGS, Figure 4: "{_CLAIM}"', rows


_RAW = "one client's upload (no secure aggregation)"
_BLIND = "mean public image (baseline)"
_UPLOADED = ("sums of four (A and S, rotation)", "sum of four (A alone)")
_SEES = {
    _RAW: "raw features of each sample (the paper's 'Raw Feature')",
    "sums of four (A and S, rotation)": "A and B of the four samples, as uploaded",
    "sum of four (A alone)": "A of the four samples alone",
    _BLIND: "nothing: the mean public picture",
}
