"""Predictions of a classifier with one score per class: scikit-learn's methods, and the names of its classes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin

from privstats.errors import DataError
from privstats.heads.diagnostics import quiet_about
from privstats.heads.evidence import Array
from privstats.heads.rules import local
from privstats.moments.labels import places_of
from privstats.schema import Schema

__all__ = ["Classifier", "class_labels"]


class Classifier(ClassifierMixin, BaseEstimator):
    """Predictions of a classifier that has one score per class: scikit-learn's methods, computed from ``_scores``.

    Attributes:
        classes_: labels of the classes, shape ``(C,)``.
        softmax: whether its probabilities are the softmax of its scores.
    """

    classes_: NDArray[Any]
    softmax: ClassVar[bool] = True

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Scores of rows, shape ``(n, C)``: log-densities up to a term common to all classes."""

    def decision_function(self, X: Any) -> Array:
        """Scores, shape ``(n, C)``; for two classes their difference, shape ``(n,)``, positive for ``classes_[1]``."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row, shape ``(n,)``."""
        labels: NDArray[Any] = self.classes_[self._scores(X).argmax(axis=1)]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose class is predicted right, 0 to 1; y may name a column of a table X.

        Labels of another type than ``classes_`` are read as ``measure`` and ``fit_private`` read them, each by itself;
        one that is no class is predicted wrong.

        Raises:
            DataError: no label of ``y`` is read as one of ``classes_``; or a table X has no column of the name y.
        """
        X, y = local(X, y)
        labels = np.asarray(y)
        if _kind(labels) == _kind(self.classes_):
            with quiet_about(labels):
                return float(super().score(X, labels, sample_weight))
        places = places_of(list(self.classes_), labels)
        if (places < 0).all():
            raise DataError("y holds labels of another kind than classes_; give the classes by their names or numbers")
        with quiet_about(places):
            right = (self.predict(X) == self.classes_[places]) & (places >= 0)
        return float(np.average(right, weights=sample_weight))

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape ``(n, C)``."""
        return self._probabilities(self._scores(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the class probabilities, shape ``(n, C)``."""
        return self._log_probabilities(self._scores(X))

    def _probabilities(self, scores: Array) -> Array:
        return np.asarray(special.softmax(scores, axis=1))

    def _log_probabilities(self, scores: Array) -> Array:
        return np.asarray(special.log_softmax(scores, axis=1))


def _kind(labels: NDArray[Any]) -> str:
    """``"n"`` for numbers and truths of any type."""
    return "n" if labels.dtype.kind in "iufb" else labels.dtype.kind


def class_labels(schema: Schema, total: int, labels: Sequence[Any] | None) -> NDArray[Any]:
    """Names of the classes 0..C-1: the caller's, else the plan's, else their numbers."""
    if labels is None:
        names = schema.class_names
        return np.arange(total) if names is None else np.asarray(names)
    given = np.asarray(labels)
    if given.shape != (total,) or len(np.unique(given)) != total:
        raise DataError(f"labels must name each of the {total} classes of the schema once, in order")
    return given
