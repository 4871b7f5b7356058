"""Alternatives that a user has: scikit-learn on raw records, and diffprivlib. `refinement` has DP-SGD."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifierCV
from sklearn.naive_bayes import GaussianNB

from benchmarks.data import Split

SCIKIT_LEARN: Mapping[str, Callable[[], Any]] = {
    "naive Bayes": GaussianNB,
    "LDA": LinearDiscriminantAnalysis,
    "QDA (reg .1)": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
    "ridge": lambda: RidgeClassifierCV(np.logspace(-3, 3, 4)),
    "logistic regression": lambda: LogisticRegression(max_iter=300, C=10.0),
}


def scikit_learn_accuracy(make: Callable[[], Any], split: Split) -> float | str:
    """Accuracy in percent, or why there is none."""
    X, X_test, y, y_test = split
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 100 * float(make().fit(X, y).score(X_test, y_test))
    except (ValueError, np.linalg.LinAlgError) as error:
        return f"fails: {type(error).__name__}"


def diffprivlib_naive_bayes(split: Split, epsilon: float, repeats: int, first: int = 0) -> list[float]:
    """Accuracies in percent of diffprivlib's Gaussian naive Bayes (pure epsilon-DP) on rows of norm at most 1.

    Args:
        split: X_train, X_test, y_train, y_test.
        epsilon: of the promise.
        repeats: draws of the noise.
        first: seed of the first of them.

    Raises:
        ImportError: diffprivlib is not installed, or does not run beside this scikit-learn.
    """
    models = diffprivlib_models()
    X, X_test, y, y_test = split
    scores = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + repeats):
            model = models.GaussianNB(epsilon=epsilon, bounds=(-1.0, 1.0), random_state=seed)
            scores.append(100 * float(model.fit(X, y).score(X_test, y_test)))
    return scores


def diffprivlib_models() -> Any:
    """Import diffprivlib's models, which name three constants that newer scikit-learns no longer export."""
    from sklearn.tree import _tree

    for name, value in (("DOUBLE", np.float64), ("DTYPE", np.float32), ("NODE_DTYPE", None)):
        if not hasattr(_tree, name):
            setattr(_tree, name, value)
    from diffprivlib import models

    return models
