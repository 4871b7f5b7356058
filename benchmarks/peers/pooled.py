"""What all records in one place give: scikit-learn without privacy, diffprivlib and Opacus's DP-SGD with it.

No federation: their bytes are those of the records, once, to whoever is trusted with them. DP-SGD is
``refinement.peers``', with its search over rates, clips, momenta and schedules.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from benchmarks.heads.peers import diffprivlib_naive_bayes
from benchmarks.peers.flower import DELTA
from benchmarks.peers.interface import Outcome, Shards
from benchmarks.refinement import gradient
from benchmarks.refinement.gradient import Recipe
from benchmarks.refinement.peers import _opacus as opacus_score
from benchmarks.refinement.peers import tuned

__all__ = ["DPSGD", "MODELS", "DPNaiveBayes", "Pooled", "dp_sgd", "logistic_grid"]

MODELS: Mapping[str, Callable[..., Any]] = {
    "LDA": LinearDiscriminantAnalysis,
    "logistic regression": lambda C: LogisticRegression(C=C, max_iter=300),
}


@dataclass(frozen=True)
class Pooled:
    """A model of scikit-learn on everybody's raw records.

    Attributes:
        model: of ``MODELS``.
        C: of the logistic regression.
    """

    model: str
    C: float | None = None

    def __str__(self) -> str:
        return "nothing tuned" if self.C is None else f"C = {self.C:g}"

    def fit(self, shards: Shards) -> Outcome:
        """Send the records, fit."""
        began = time.process_time()
        X, X_test, y, y_test = shards.split
        model = MODELS[self.model](**({} if self.C is None else {"C": self.C}))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # features that are constant; iterations that end before they converge
            score = 100 * float(model.fit(X, y).score(X_test, y_test))
        return Outcome(score, _records(shards), time.process_time() - began, 1)


@dataclass(frozen=True)
class DPSGD:
    """Opacus trains a linear softmax layer on the pooled records; central, record level.

    Attributes:
        epsilon: at delta 1e-5, by Opacus's PRV accountant.
        recipe: rate, clip, momentum, steps and sample, as :func:`dp_sgd` finds them.
    """

    epsilon: float
    recipe: Recipe

    def __str__(self) -> str:
        return str(self.recipe)

    def fit(self, shards: Shards) -> Outcome:
        """Train by the recipe."""
        began = time.process_time()
        score = 100 * opacus_score(shards.split, self.recipe, self.epsilon, DELTA, shards.seed)
        return Outcome(score, _records(shards), time.process_time() - began, 1, self.epsilon, "record")


def dp_sgd(epsilon: float, shards: Shards) -> tuple[DPSGD, ...]:
    """The one candidate that the search of ``refinement.peers`` leaves, on held-out records of the shards."""
    return (DPSGD(epsilon, tuned(shards.split, epsilon, DELTA, gradient.SAMPLED)),)


@dataclass(frozen=True)
class DPNaiveBayes:
    """diffprivlib's Gaussian naive Bayes on the pooled records; pure epsilon, record level."""

    epsilon: float

    def __str__(self) -> str:
        return "nothing to tune"

    def fit(self, shards: Shards) -> Outcome:
        """Fit with the noise of this seed.

        Raises:
            ImportError: diffprivlib is not installed.
        """
        began = time.process_time()
        score = diffprivlib_naive_bayes(shards.split, self.epsilon, 1, first=shards.seed)[0]
        return Outcome(score, _records(shards), time.process_time() - began, 1, self.epsilon, "record")


def logistic_grid() -> tuple[Pooled, ...]:
    """Inverse penalties."""
    return tuple(Pooled("logistic regression", C) for C in (1.0, 10.0, 100.0, 1000.0))


def _records(shards: Shards) -> int:
    """Bytes of all records in single precision, and a byte for each label."""
    return shards.records * (4 * shards.features + 1)
