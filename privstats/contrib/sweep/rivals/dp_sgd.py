"""DP-SGD and DP-GD by Opacus on pooled records: the strongest simple private rivals.

The model is central: the trainer sees every record, and only the weights are private. Needs the ``torch`` extra.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from privstats.contrib.sweep.rivals.base import Rival
from privstats.contrib.sweep.rivals.private_descent import Recipe, linear, trained
from privstats.contrib.sweep.rivals.rows import clipped_rows
from privstats.dp import Privacy
from privstats.errors import PlanError
from privstats.extend.heads import Scores
from privstats.extend.support import optional_dependencies
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.schema import narrowed


@dataclass(frozen=True)
class PrivateDescent(Rival):
    """A torch module that Opacus trains on all records in one place, scored in a study as a head is.

    Its rows go through the plan's public maps, are clipped to ``clip_norm``, and are divided by it, so that one recipe
    suits every scale.

    Args:
        recipe: fixed before any record is seen. Tuning a recipe on the records would reveal something that no epsilon
            counts.
        make: function of features and classes that returns a fresh module, which maps rows ``(n, d)`` to scores
            ``(n, C)``; a softmax layer if omitted. The seed fixes the module's random start.

    Guarantee:
        Unit: one record; adjacency: add-remove; (epsilon, delta) of the plan, by Opacus's accountant
        (:func:`~privstats.contrib.sweep.rivals.private_descent.noise_multiplier`). The trainer sees every record, and
        the number of records is public.

    Example:
        >>> from privstats.contrib.sweep.rivals.dp_sgd import PrivateDescent, Recipe
        >>> PrivateDescent(Recipe(rate=4.0, clip=1.0, momentum=0.9, steps=50, sample=1.0)).recipe.clip
        1.0
    """

    packages: ClassVar[tuple[str, ...]] = ("torch", "opacus")

    recipe: Recipe
    make: Callable[[int, int], Any] = linear

    @property
    def name(self) -> str:
        """Name of the method: DP-SGD where a step samples records, DP-GD where it uses all."""
        return f"{'DP-GD' if self.recipe.sample == 1 else 'DP-SGD'} (Opacus), pooled"

    def __str__(self) -> str:
        return (
            f"a softmax trained centrally on all records at the same epsilon and delta, by {self.recipe}; one "
            "recipe serves every data set, and the number of records is public"
        )

    def require(self, plan: Plan) -> None:
        """Refuse a plan with a promise that Opacus cannot keep.

        Raises:
            PlanError: the plan is not of classes, or has another unit or adjacency.
            MissingExtraError: torch or Opacus is not installed.
        """
        refusal = "DP-SGD and DP-GD train a softmax of classes, and this plan has none: omit them"
        narrowed(plan.schema, ClassSchema, PlanError(refusal))
        promise = plan.privacy
        if isinstance(promise, Privacy) and (promise.unit, promise.adjacency) != ("record", "add-remove"):
            raise PlanError(
                f"Opacus protects one record that is added or removed, and this plan has unit {promise.unit!r} and "
                f"adjacency {promise.adjacency!r}: omit dp-sgd and dp-gd, or sweep another plan"
            )
        if isinstance(promise, Privacy) and promise.pure:
            raise PlanError(
                "Opacus promises no pure epsilon: omit dp-sgd and dp-gd, or sweep a plan with a delta above 0"
            )
        optional_dependencies.require(*self.packages, by="DP-SGD and DP-GD beside a sweep")

    def scores(self, plan: Plan, train: tuple[Any, Any], test: tuple[Any, Any], seed: int) -> Scores:
        """Train once at the plan's promise, without noise if there is no DP, and return the scores.

        Args:
            plan: admitted by :meth:`require`.
            train, test: ``(X, y)``; all the cohort's records, and to score on.
            seed: fixes samples and noise. Reproducible noise protects nothing.
        """
        schema: Any = plan.schema
        promise = plan.privacy
        epsilon, delta = (promise.epsilon, promise.delta) if isinstance(promise, Privacy) else (math.inf, 0.0)
        (rows, labels), (others, truth) = (clipped_rows(schema, *part) for part in (train, test))
        make = partial(self.make, schema.features, schema.classes)
        module = trained(make, rows, labels, self.recipe, epsilon, delta, seed)
        return Scores.of(schema, _Fitted(module, schema.classes), others, truth)


@dataclass(frozen=True)
class _Fitted:
    module: Any
    classes: int

    @property
    def classes_(self) -> NDArray[np.intp]:
        return np.arange(self.classes)

    def _logits(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        torch = optional_dependencies.load("torch", by="DP-SGD")
        with torch.no_grad():
            return np.asarray(self.module(torch.as_tensor(rows, dtype=torch.float32)).numpy())

    def predict_proba(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return probabilities, ``(n, C)``; equal ones where a score is not finite."""
        logits = self._logits(rows).astype(np.float64)
        return np.asarray(softmax(np.where(np.isfinite(logits).all(axis=1, keepdims=True), logits, 0.0), axis=1))

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.intp]:
        """Return the most probable class places, ``(n,)``; -1 where a training that diverged has no finite scores."""
        logits = self._logits(rows)
        return np.where(np.isfinite(logits).all(axis=1), logits.argmax(axis=1), -1)


DP_SGD = Recipe(16.0, 0.3, 0.9, 200, 0.2, tail=True, spread=2.0)
"""Recipe for every data set and epsilon; benchmarks/refinement/numbers.md shows how it was chosen."""
DP_GD = Recipe(128.0, 0.1, 0.9, 50, 1.0, spread=2.0)
"""The same, with all records in every step."""


def dp_sgd() -> PrivateDescent:
    """Return DP-SGD with the recipe of benchmarks/refinement/numbers.md.

    Example:
        >>> from privstats.contrib.sweep.rivals.dp_sgd import dp_sgd
        >>> dp_sgd().recipe.tail
        True
    """
    return PrivateDescent(DP_SGD)


def dp_gd() -> PrivateDescent:
    """Return DP-GD with the recipe of benchmarks/refinement/numbers.md.

    Example:
        >>> from privstats.contrib.sweep.rivals.dp_sgd import dp_gd
        >>> dp_gd().recipe.sample  # all records in every step
        1.0
    """
    return PrivateDescent(DP_GD)
