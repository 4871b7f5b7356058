"""The feature sets at hand that stand nearest to those of the papers, as records and as exact releases.

Not the papers' own: none of their backbones (ResNet-18, DistilBERT) installs from a package, so a cell names the set
that it was measured on. Sets come from ``benchmarks.data``; an absent one gives way to the next nearest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import DATA, Split, agnews, clinc150, tasks
from privstats.transforms import GaussianProjection

__all__ = ["CORRUPTED", "Features", "at_hand", "corrupted_fashion", "nearest_to", "released", "scaled"]

Array = NDArray[np.float64]

CORRUPTED = "fmnist_effnetlite0_corrupted.npz"

_SAID = {
    "cifar10": "CIFAR-10 behind EfficientNet-Lite0 and a projection to 256",
    "fmnist": "Fashion-MNIST behind EfficientNet-Lite0 and a projection to 256",
    "banking77": "BANKING77 behind MiniLM, 384 features",
    "agnews": "a part of AG News behind MiniLM, 384 features",
    "clinc150": "CLINC150, 150 intents, behind MiniLM, 384 features",
    "digits": "scikit-learn's digits, 64 pixels",
}
_NEAREST: Mapping[str, tuple[str, ...]] = {
    "CIFAR-10": ("cifar10", "fmnist", "digits"),
    "CIFAR-100": ("banking77", "digits"),
    "SVHN": ("fmnist", "digits"),
    "BANKING77": ("banking77", "digits"),
    "AG_NEWS": ("agnews", "banking77", "digits"),
    "CLINC150": ("clinc150", "banking77", "digits"),
}


@dataclass(frozen=True)
class Features:
    """One set.

    Attributes:
        name: as ``benchmarks.data`` has it.
        said: data and encoder, in words.
        split: X_train, X_test, y_train, y_test.
    """

    name: str
    said: str
    split: Split

    @property
    def classes(self) -> int:
        """C."""
        return int(self.split[2].max()) + 1

    @cached_property
    def radius(self) -> float:
        """The largest norm of a training record: nothing is clipped."""
        return float(np.linalg.norm(self.split[0], axis=1).max()) * (1 + 1e-9)

    def schema(self, statistics: str, grid_bits: int = 12) -> ps.ClassSchema:
        """What is summed."""
        return ps.ClassSchema(self.classes, self.split[0].shape[1], statistics, self.radius, grid_bits)

    def projection(self, features: int, seed: int) -> GaussianProjection:
        """A public map of these records."""
        return GaussianProjection(seed=seed, inputs=self.split[0].shape[1], features=features)

    def projected(self, features: int, seed: int) -> Features:
        """The same records behind a public Gaussian projection."""
        X, X_test, y, y_test = self.split
        step = self.projection(features, seed)
        return Features(
            self.name, f"{self.said}, projected to {features}", (step.apply(X), step.apply(X_test), y, y_test)
        )


@cache
def at_hand(*, quick: bool) -> Mapping[str, Features]:
    """The sets that are there, by name; digits alone for ``quick``."""
    there = (*tasks(bundled_only=quick), *(() if quick else (*agnews(), *clinc150())))
    found = {task.name: task for task in there if task.name in _SAID}
    return {name: Features(name, _SAID[name], task.load()) for name, task in found.items()}


def nearest_to(column: str, *, quick: bool) -> Features:
    """The set at hand that is nearest to one of the papers'."""
    there = at_hand(quick=quick)
    return there[next(name for name in _NEAREST[column] if name in there)]


def released(features: Features, statistics: str, grid_bits: int = 12) -> ps.Release:
    """The exact release of all training records: what any partition sums to."""
    X, _, y, _ = features.split
    schema = features.schema(statistics, grid_bits)
    return ps.Release.exact(schema, ps.measure(schema, X, y))


def scaled(features: Features, most: int | None) -> Features:
    """At most so many training records, drawn once for all, and rows whose entries have a mean square of 1.

    One public factor for all rows, so that the papers' rates of learning mean the same on every set.
    """
    X, X_test, y, y_test = features.split
    chosen = np.arange(len(y))
    if most is not None and most < len(y):
        chosen = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    factor = 1 / float(np.sqrt(np.square(X).mean()))
    return Features(features.name, features.said, (factor * X[chosen], factor * X_test, y[chosen], y_test))


def corrupted_fashion() -> tuple[Features, Mapping[str, Array]] | None:
    """Fashion-MNIST, 1280 features whole, and its test rows under every corruption; None where it was not made."""
    path = DATA / CORRUPTED
    if not path.exists():
        return None
    with np.load(path) as stored:
        X, X_test = (stored[name].astype(np.float64) for name in ("X_train", "X_test"))
        split = X, X_test, stored["y_train"].astype(np.intp), stored["y_test"].astype(np.intp)
        spoilt = {
            name.removeprefix("X_test_").replace("_", " "): stored[name].astype(np.float64)
            for name in stored.files
            if name.startswith("X_test_")
        }
    return Features("fmnist 1280", "Fashion-MNIST behind EfficientNet-Lite0, 1280 features", split), spoilt
