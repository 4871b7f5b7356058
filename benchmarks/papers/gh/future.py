"""GH-OFL's future work (D.3), one trial each: a mixture of two Gaussians a class, and a head that is not linear.

The mixture takes a second upload: the first says along which direction a class varies most, parties split the class
there, and the sums of the halves are those of twice as many classes. The network is trained on synthetic records in the
Fisher subspace, as FisherMix is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from benchmarks.measuring import Rows
from benchmarks.papers.cells import Cell, Sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.accuracy import SEEDS
from benchmarks.papers.sets import Features, at_hand, released
from privstats import heads
from privstats.contrib.heads.synthetic import World
from privstats.heads.evidence import class_evidence

__all__ = ["halved", "trials"]

_HIDDEN = (128,)
_SAMPLES = 40_000
_SEEDS = SEEDS[:3]
_MIXED: Mapping[str, tuple[str, Any]] = {"LDA": ("NAB", heads.LDA), "RDA": ("NAS", heads.RDA)}
_WHY_MIXED = "a cut through the middle of a class that is one clump leaves halves that are no Gaussians"
_WHY_BENT = "samples of Gaussians hold no more than RDA has of them in closed form"

Places = NDArray[np.intp]


def trials(*, quick: bool) -> tuple[str, Rows]:
    """A column per set at hand; a trial loses where the head without it, of the same statistics, is better."""
    sheet = Sheet(published.PAPER, "Section D.3", "mixture and non-linear heads: accuracy, %", better="higher")
    cells: list[Cell] = []
    for features in at_hand(quick=quick).values():
        for name, (letters, make) in _MIXED.items():
            plain, mixed = _mixture(features, letters, make)
            cells.append(sheet.cell(f"{name}, one Gaussian a class", features.name, None, plain))
            row = f"{name}, two Gaussians a class"
            cells.append(sheet.cell(row, features.name, None, mixed, rival=plain, why=_WHY_MIXED))
        linear, bent = _networks(features, quick=quick)
        cells.append(sheet.cell("FisherMix, linear", features.name, None, linear))
        row = f"FisherMix, a hidden layer of {_HIDDEN[0]}"
        cells.append(sheet.cell(row, features.name, None, bent, rival=linear, why=_WHY_BENT))
        print(f"  {features.name}: {plain}, {mixed}, {linear}, {bent}", flush=True)
    return sheet.rows(cells)


def halved(X: NDArray[np.float64], y: Places, classes: int) -> Places:
    """On which side of its class's mean a record lies along the class's first principal direction, 0 or 1, ``(n,)``."""
    sides = np.zeros(len(y), np.intp)
    for label in range(classes):
        mine = y == label
        if mine.any():
            centred = X[mine] - X[mine].mean(axis=0)
            _, vectors = np.linalg.eigh(centred.T @ centred)
            sides[mine] = centred @ vectors[:, -1] > 0
    return sides


def _mixture(features: Features, letters: str, make: Any) -> tuple[float, float]:
    """Accuracy in percent of a head, and of the same head whose classes are halves; chances of halves add up."""
    X, X_test, y, y_test = features.split
    split = X, X_test, 2 * y + halved(X, y, features.classes), y_test
    whole = make().fit_release(released(features, letters))
    parts = make().fit_release(released(Features(features.name, features.said, split), letters))
    chances = np.zeros((features.classes, len(X_test)))
    np.add.at(chances, np.asarray(parts.classes_) // 2, parts.predict_proba(X_test).T)
    return 100 * float(whole.score(X_test, y_test)), 100 * float((chances.argmax(axis=0) == y_test).mean())


def _networks(features: Features, *, quick: bool) -> tuple[list[float], list[float]]:
    """Accuracies in percent, one a seed: of FisherMix, and of a network trained on samples of the same world."""
    _, X_test, _, y_test = features.split
    release = released(features, "NAS")
    evidence, _ = class_evidence(release)
    world = World.of(evidence, "auto", 0.0, 0.05, "counts")
    seeds = _SEEDS[: 1 if quick else None]
    linear = [100 * float(heads.FisherMix(random_state=s).fit_release(release).score(X_test, y_test)) for s in seeds]
    return linear, [_network(world, X_test, y_test, seed, quick=quick) for seed in seeds]


def _network(world: World, X_test: NDArray[np.float64], y_test: Places, seed: int, *, quick: bool) -> float:
    """Accuracy in percent of a network trained on samples in the Fisher subspace."""
    samples = world.samples((2_000 if quick else _SAMPLES) // len(world.prior), 1.0, seed)
    net = MLPClassifier(_HIDDEN, max_iter=2 if quick else 30, random_state=seed, batch_size=256)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        net.fit(samples.rows @ world.directions, samples.labels)
    logs = net.predict_log_proba((X_test - world.origin) @ world.projection)
    return 100 * float(((logs + world.prior).argmax(axis=1) == y_test).mean())
