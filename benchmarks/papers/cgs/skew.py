"""FedCGS under label skew: its head beside one-shot FedAvg, an ensemble and FedPFT, and its upload.

Every method sees the same records, features and partitions; FedCGS's head is the library's, from the sums of the
clients. Tables 1 and 4, and the communication overhead.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TypeAlias

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

import privstats as ps
from benchmarks.measuring import Rows, Tables
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.cgs import published
from benchmarks.papers.cgs.training import Array, Net, Recipe, average, blank, trained
from benchmarks.papers.gaps import above, gap_sheet
from benchmarks.papers.partitions import Places, by_dirichlet
from benchmarks.papers.sets import Features, nearest_to, scaled
from privstats import heads
from threat_models.attacks.encoder import conv_features, digit_images

__all__ = [
    "COLUMNS",
    "RECORDS",
    "SEEDS",
    "backbones",
    "ensemble",
    "fedcgs",
    "few",
    "local_layers",
    "mixture_layer",
    "table_1",
    "uploads",
]

SEEDS = range(5)
COLUMNS = {"CIFAR10": "CIFAR-10", "CIFAR100": "CIFAR-100", "SVHN": "SVHN"}
RECORDS = 10_000
CLIENTS = 10
RECIPE = Recipe(epochs=50)
_COMPONENTS = 10
_OURS = "FedCGS"
_NO_GENERATOR = "it trains a generator of images, and features have none"
_WHY = (
    "ten components for a client's nine records of a class (the median) are nearly the records, and a layer on records "
    "is ahead"
)
_NO_BACKBONE = "no package installs the weights of this backbone"

Shards: TypeAlias = Sequence[tuple[Array, Places]]


def few(column: str, *, quick: bool) -> Features:
    """The nearest set with at most 10,000 training records, rows scaled to a mean square of 1 an entry."""
    features = nearest_to(COLUMNS[column], quick=quick)
    return scaled(features, 500 if quick else RECORDS)


def fedcgs(shrinkage: float | None = None) -> heads.LDA:
    """Its head: LDA with the covariance of all records, inverted as it is."""
    return heads.LDA(covariance="total", shrinkage=shrinkage)


def table_1(*, quick: bool) -> Tables:
    """Five partitions a cell, ten clients, every one taking part."""
    sheet = Sheet(published.PAPER, "Table 1", "test accuracy under label skew, %", better="higher", trials=3)
    gaps = gap_sheet(sheet, _OURS)
    cells: list[Cell] = []
    further: list[Cell] = []
    for column, by_alpha in published.TABLE_1.items():
        if quick and column != "CIFAR10":
            continue
        features = few(column, quick=quick)
        for alpha, texts in by_alpha.items():
            found, where = _accuracies(features, alpha, quick=quick), f"{column}, alpha = {alpha:g}"
            printed = dict(zip(published.METHODS, texts, strict=True))
            cells += _methods(sheet, where, printed, found, f"{features.said}, frozen")
            further += above(gaps, _OURS, printed, found, where)
    for each, made in ((sheet, cells), (gaps, further)):  # the paper has methods across
        yield each.rows([replace(cell, row=cell.column, column=cell.row) for cell in made])


def _accuracies(features: Features, alpha: float, *, quick: bool) -> dict[str, list[float]]:
    """By method, a value per partition; an ensemble and one-shot FedAvg are made of the same local layers."""
    X, _, y, _ = features.split
    found: dict[str, list[float]] = {}
    for seed in SEEDS[:2] if quick else SEEDS:
        rng = np.random.default_rng(seed)
        cut = by_dirichlet(y, CLIENTS, alpha, rng)
        shards = [(X[part].astype(np.float32), y[part]) for part in cut if len(part)]
        local = local_layers(features, shards, rng)
        values = {
            "FedAvg (one-shot)": average(local, [len(labels) for _, labels in shards]).accuracy(*_test(features)),
            "Ensemble": ensemble(features, local),
            "FedCGS": _of_sums(features, shards),
        }
        if not quick:
            values["FedPFT"] = mixture_layer(features, shards, rng)
        for name, value in values.items():
            found.setdefault(name, []).append(value)
    return found


def _methods(
    sheet: Sheet, column: str, printed: Mapping[str, str], found: Mapping[str, Sequence[float]], said: str
) -> Iterator[Cell]:
    """Cells of one data set and alpha; FedCGS loses where another method of the run is better."""
    best = max((values for name, values in found.items() if name != _OURS), key=lambda values: float(np.mean(values)))
    for name, text in printed.items():
        if name in ("DENSE", "Co-Boosting"):
            yield sheet.absent(name, column, text, _NO_GENERATOR)
        elif name in found:
            rival = best if name == _OURS else None
            yield sheet.nearest(name, column, text, found[name], said, rival=rival, why=_WHY)


def _of_sums(features: Features, shards: Shards) -> float:
    schema = features.schema("NAB")
    moments = reduce(add, (ps.measure(schema, rows, labels) for rows, labels in shards))
    head = fedcgs().fit_release(ps.Release.exact(schema, moments))
    return 100 * head.score(features.split[1], features.split[3])


def ensemble(features: Features, local: Sequence[Net]) -> float:
    """Accuracy in percent of the sum of all clients' probabilities."""
    rows, labels = _test(features)
    votes = sum(net.probabilities(rows) for net in local)
    return 100 * float((np.asarray(votes).argmax(axis=1) == labels).mean())


def mixture_layer(features: Features, shards: Shards, rng: np.random.Generator) -> float:
    """Ten diagonal Gaussians a client and class, as many samples as it has records, and a linear layer on them."""
    rows, labels = [], []
    for X, y in shards:
        for label in np.unique(y):
            mine = X[y == label]
            rows.append(_sampled(mine, rng))
            labels.append(np.full(len(mine), label, np.intp))
    net = blank(features.split[0].shape[1], features.classes, mapped=False)
    whole = np.concatenate(rows).astype(np.float32)
    return trained(net, whole, np.concatenate(labels), RECIPE, rng).accuracy(*_test(features))


def _sampled(rows: Array, rng: np.random.Generator) -> Array:
    if len(rows) < 2:
        return rows
    seed = int(rng.integers(2**31))
    mixture = GaussianMixture(min(_COMPONENTS, len(rows)), covariance_type="diag", max_iter=10, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(mixture.fit(rows).sample(len(rows))[0])


def local_layers(features: Features, shards: Shards, rng: np.random.Generator) -> list[Net]:
    """Every client's own linear layer."""
    start = blank(features.split[0].shape[1], features.classes, mapped=False)
    return [trained(start, rows, labels, RECIPE, rng) for rows, labels in shards]


def _test(features: Features) -> tuple[Array, Places]:
    return features.split[1].astype(np.float32), features.split[3]


def backbones(*, quick: bool) -> tuple[str, Rows]:
    """Table 4: one backbone is near; that the encoder matters most is shown on encoders that need no download."""
    sheet = Sheet(published.PAPER, "Table 4", "test accuracy of FedCGS by backbone, %", better="higher")
    cells: list[Cell] = []
    for backbone, printed in published.TABLE_4.items():
        for column, text in printed.items():
            if backbone != "EfficientNetB0" or column == "CIFAR100":
                cells.append(sheet.absent(backbone, column, text, _NO_BACKBONE))
                continue
            features = nearest_to(COLUMNS[column], quick=quick)
            cells.append(sheet.nearest(backbone, column, text, _score(features), features.said))
    for said, features in _encoders():
        cells.append(sheet.cell(said, "scikit-learn's digits", None, _score(features)))
    return sheet.rows(cells)


def _encoders() -> Iterator[tuple[str, Features]]:
    """Three encoders of the same digits: pixels, random convolutions, and random ReLUs of the pixels."""
    images, y = digit_images()
    flat = images.reshape(len(images), -1)
    relu = ps.transforms.RandomReLU(seed=0, inputs=flat.shape[1], features=256)
    made = {"pixels": flat, "random convolutions, 256": conv_features(images), "random ReLUs, 256": relu.apply(flat)}
    test = np.arange(len(y)) % 4 == 0
    for said, rows in made.items():
        yield said, Features("digits", said, (rows[~test], rows[test], y[~test], y[test]))


def _score(features: Features) -> float:
    X, X_test, y, y_test = features.split
    schema = features.schema("NAB")
    head = fedcgs().fit_release(ps.Release.exact(schema, ps.measure(schema, X, y)))
    return 100 * head.score(X_test, y_test)


def uploads() -> tuple[str, Rows]:
    """What a client sends at d = 512 and C = 10: numbers, and bytes once they are exact integers under masks."""
    sheet = Sheet(published.PAPER, "Communication overhead", "numbers that a client sends", better="lower")
    plan = ps.Plan(
        schema=ps.ClassSchema(10, 512, "NAB", clip_norm=1.0),
        cohort=ps.Cohort(clients=10, min_survivors=10, max_records=50_000),
        privacy=ps.NoPrivacy(),
    )
    cells = []
    for name, (numbers, counted) in published.UPLOADS.items():
        if name == "FedCGS":
            why = "B is symmetric, so one triangle of it travels: C + C d + d (d + 1) / 2"
            cells.append(sheet.cell(f"{name}: {counted}", "numbers", numbers, plan.layout.size, why=why))
            wire = plan.masking.upload_bytes
            cells.append(sheet.cell(name, "bytes on the wire: exact integers, masked, ten clients", None, wire))
        else:
            cells.append(sheet.absent(f"{name}: {counted}", "numbers", numbers, "a count of another system"))
    return sheet.rows(cells)
