"""What somebody gets who may pool the records: scikit-learn's own models on the same rows, without any privacy.

Models as scikit-learn ships them, on rows behind the plan's public maps. Beside the study, not part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privstats.plan import Plan
from privstats.schema import ClassSchema
from privstats.transforms import apply

__all__ = ["BASELINES", "baselines"]

_ITERATIONS = 500

BASELINES: Mapping[str, Mapping[str, Callable[[], Any]]] = {
    "classes": {
        "scikit-learn LDA, pooled": LinearDiscriminantAnalysis,
        "logistic regression, pooled": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=_ITERATIONS)
        ),
    },
    "ridge": {
        "linear regression, pooled": LinearRegression,
        "scikit-learn ridge, pooled": lambda: RidgeCV(np.logspace(-6, 3, 19)),
    },
}
"""By task and name."""


def baselines(plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], tick: Callable[[], None]) -> dict[str, float]:
    """The score of each, by name.

    Args:
        plan: its transform is applied first.
        train, test: ``(X, y)`` as the study takes them.
        tick: called after each.
    """
    task = "classes" if isinstance(plan.schema, ClassSchema) else "ridge"
    maps = plan.schema.transform
    X, X_test = (apply(maps, np.asarray(rows, np.float64)) for rows in (train[0], test[0]))
    out = {}
    for name, model in BASELINES[task].items():
        out[name] = float(model().fit(X, train[1]).score(X_test, test[1]))
        tick()
    return out
