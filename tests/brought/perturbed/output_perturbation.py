"""A ridge-penalised softmax whose weights get noise once, after the fit: a rival beside a sweep's heads.

Guarantee: unit one record, add-remove. Rows x have norm at most 1, so the cross entropy of a record is
sqrt(2)-Lipschitz in the weights W; with the penalty |W|^2 / 2 * strength the sum of losses is ``strength``-strongly
convex, and its least point moves by at most sqrt(2) / strength when a record comes or goes. A Gaussian of that over
mu in every weight is mu-GDP. Source: Chaudhuri, Monteleoni and Sarwate 2011, output perturbation, with Gaussian
noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from privstats.contrib.sweep.rivals import Rival
from privstats.dp import Privacy, gaussian_mu
from privstats.errors import PlanError
from privstats.extend.heads import Scores
from privstats.plan import Plan
from privstats.transforms import apply


@dataclass(frozen=True)
class Penalty:
    """What the rival is tuned by: the weight of |W|^2 / 2 beside the sum of losses."""

    strength: float

    def __str__(self) -> str:
        return f"penalty {self.strength:g}"


@dataclass(frozen=True)
class OutputPerturbation(Rival):
    """The penalised fit, and one Gaussian draw in every weight."""

    packages: ClassVar[tuple[str, ...]] = ("scikit-learn",)

    recipe: Penalty = Penalty(10.0)

    @property
    def name(self) -> str:
        """The name of its row."""
        return "output perturbation, pooled"

    def __str__(self) -> str:
        return f"a softmax fitted centrally on all records, with noise in its weights, by {self.recipe}"

    def require(self, plan: Plan) -> None:
        """Refuse a plan of another unit or adjacency, a pure one, or one without classes."""
        promise = plan.privacy
        if plan.schema.task != "classes":
            raise PlanError("output perturbation fits a softmax of classes, and this plan has none")
        if isinstance(promise, Privacy) and (
            (promise.unit, promise.adjacency) != ("record", "add-remove") or promise.pure
        ):
            raise PlanError("output perturbation keeps (epsilon, delta) for one record that is added or removed")

    def scores(self, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], seed: int) -> Scores:
        """The scores of one noisy fit."""
        privacy, schema = plan.privacy, plan.schema
        model = LogisticRegression(C=1 / self.recipe.strength, fit_intercept=False, tol=1e-10, max_iter=10_000)
        model.fit(_short(schema, train[0]), train[1])
        if isinstance(privacy, Privacy):
            spread = math.sqrt(2) / (self.recipe.strength * gaussian_mu(privacy.epsilon, privacy.delta))
            model.coef_ = model.coef_ + np.random.default_rng(seed).normal(0.0, spread, model.coef_.shape)
        return Scores.of(schema, model, _short(schema, test[0]), test[1])


def _short(schema: Any, X: Any) -> np.ndarray:
    rows = apply(schema.transform, np.asarray(X, np.float64))
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), schema.clip_norm)
