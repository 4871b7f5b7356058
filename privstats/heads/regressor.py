"""Base class of the heads of a linear regression: a party's schema, the optional intercept, predictions.

``ridge`` and ``refined_ridge`` add their solves; ``estimator`` is the counterpart for classes.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privstats.heads.card import Described
from privstats.heads.evidence import Array
from privstats.heads.export import Exported
from privstats.heads.persistence import Stored
from privstats.heads.private import Records, with_intercept
from privstats.heads.release_list import OfOneRelease
from privstats.heads.rules import LinearRule, Preprocessing, local, rows_of
from privstats.schema import RidgeSchema
from privstats.transforms import ConstantFeature, Transform, steps_of

__all__ = ["LinearRegressor"]


class LinearRegressor(Stored, Exported, Described, OfOneRelease, RegressorMixin, BaseEstimator):
    """A head whose predictions are linear in the transformed columns; it takes columns and adopts a rule.

    Attributes:
        fit_intercept: whether a constant column belongs to the model.
        rule_: the decision rule: weights of the columns behind the transform, the constant among them.
        n_features_in_: columns that ``predict`` takes.
        feature_names_in_: their names, where the plan or a DataFrame has them.
    """

    fit_intercept: bool
    rule_: LinearRule
    preprocessing_: Preprocessing
    _flat: bool

    def _schema(
        self, records: Records, transform: Sequence[Transform], clip_norm: float, target_bound: float, grid_bits: int
    ) -> RidgeSchema:
        """The schema of one party's records; with ``fit_intercept`` it ends in a constant, if it did not already."""
        maps, norm = steps_of(transform), clip_norm
        declared = bool(maps) and maps[0].reads_cells
        if self.fit_intercept and not _has_constant(maps):
            maps, norm = with_intercept(maps, clip_norm)
        return RidgeSchema(
            records.features(maps),
            records.targets,
            clip_norm=norm,
            target_bound=target_bound,
            grid_bits=grid_bits,
            transform=maps,
            feature_names=None if declared else records.columns,
        )

    def _warn_without_constant(self, transform: Sequence[Transform]) -> None:
        """Warn that there will be no intercept although one is asked for."""
        if self.fit_intercept and not _has_constant(transform):
            warnings.warn(
                "this release has no constant feature, so the model has no intercept: end the schema's transform "
                "with ConstantFeature and count it in features, or pass fit_intercept=False",
                UserWarning,
                stacklevel=3,
            )

    def _adopt(self, rule: LinearRule) -> None:
        self.rule_ = rule

    @property
    def coef_(self) -> Array:
        """Weights of the columns of X, ``(d,)`` for one flat target, else ``(T, d)``.

        A constant of the transform is part of ``intercept_``. Behind a map that is not affine they are the weights of
        the columns that it gives. Rows that the clip shortens are predicted by less.
        """
        coef, _ = self._linear
        return coef[0] if self._flat else coef

    @property
    def intercept_(self) -> Any:
        """What the model predicts where all columns are 0: a float for one flat target, else ``(T,)``."""
        _, intercept = self._linear
        return float(intercept[0]) if self._flat else intercept

    @property
    def _linear(self) -> tuple[Array, Array]:
        check_is_fitted(self, "rule_")
        return self.rule_.before(self.preprocessing_.transform)

    def predict(self, X: Any) -> Array:
        """Predicted targets, shape ``(n,)`` for one flat target, else ``(n, T)``."""
        rows = rows_of(self, X)
        scores = self.rule_.scores(rows)
        return scores[:, 0] if self._flat else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, at most 1; y may name a column of a table X.

        Raises:
            DataError: a table X has no column of the name y.
        """
        X, y = local(X, y)
        return float(super().score(X, np.asarray(y), sample_weight))


def _has_constant(transform: Sequence[Transform]) -> bool:
    return bool(transform) and isinstance(transform[-1], ConstantFeature)
