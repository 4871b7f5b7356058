"""scikit-learn on all records in one place: what a federation without privacy is measured against.

No federation: its bytes are those of the records, once, to whoever is trusted with them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.interface import Outcome, Shards

__all__ = ["MODELS", "Pooled", "logistic_grid"]

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
        return Outcome(score, shards.record_bytes, time.process_time() - began, 1)


def logistic_grid() -> tuple[Pooled, ...]:
    """Inverse penalties."""
    return tuple(Pooled("logistic regression", C) for C in (10.0, 100.0, 1000.0))
