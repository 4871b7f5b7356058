"""Base class of linear regression heads."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from privstats.dp.privacy import Adjacency
from privstats.heads.card import Described
from privstats.heads.evidence import Array
from privstats.heads.export import Exported
from privstats.heads.persistence import FittedState, Stored
from privstats.heads.private import FitPromise, OwnRecords, owners_terms, with_intercept
from privstats.heads.provenance import OfOneRelease
from privstats.heads.registry import Bounds, check_parameters
from privstats.heads.rules import LinearRule, Preprocessing, local, rows_of
from privstats.kinds import RidgeSchema
from privstats.transforms import Column, ConstantFeature, Transform, maps_of

if TYPE_CHECKING:
    from privstats.course.paid import Paid


class LinearRegressor(Stored, Exported, Described, OfOneRelease, RegressorMixin, BaseEstimator):
    """A head with predictions linear in the transformed columns.

    Attributes:
        rule_: weights behind the transform, constant included.
        n_features_in_, feature_names_in_: columns that ``predict`` expects.
        flat_: whether predictions are ``(n,)``, of one flat target.
        width_: the clip of residuals in their standard deviations, where rounds under a promise end short of least
            squares; else None. The model is then Huber's estimate: where targets are skewed, its mean prediction is
            between their median and their mean.
    """

    fit_intercept: bool
    rule_: LinearRule
    preprocessing_: Preprocessing
    flat_: bool
    width_: float | None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        words, width = super().__repr__(N_CHAR_MAX), getattr(self, "width_", None)
        return words if width is None else f"{words} [Huber's estimate, residuals clipped at {width:.2g} deviations]"

    bounds: ClassVar[Bounds]

    @owners_terms
    def fit_private(
        self,
        X: Any,
        y: Any = None,
        *,
        epsilon: float,
        delta: float,
        clip_norm: float | None = None,
        target_bound: float,
        adjacency: Adjacency,
        columns: Sequence[Column] | None = None,
        transform: Sequence[Transform] = (),
        grid_bits: int = 12,
        max_records: int | None = None,
        expected_records: int | None = None,
        ledger: Paid = None,
        dataset: str | None = None,
    ) -> Self:
        """Fit on one party's own records with differential privacy, so that the head may be published.

        Trust, other arguments and errors are as in ``ClassHead.fit_private``. With ``fit_intercept`` a constant of half
        the clip norm ends the transform, unless one does.

        Args:
            X, y: records, as for ``privstats.measure``; targets ``(n,)``, for ``Ridge`` also ``(n, T)``. Batches come
                as ``X`` alone, for one release only.
            target_bound: public bound, about 0, to which targets are clipped; centre them with public knowledge first.
                With ``columns`` records without a numeric target are excluded (``UnreadableRecordsWarning``).
            columns, expected_records: ``columns`` need the number; open cut points are estimated first
                (:class:`~privstats.Binned`). Without a number ``Ridge`` counts the records first, with noise.
                ``RefinedRidge`` takes ``max_records``, else the nearest power of two, then public
                (``AssumedPublicWarning`` under ``"add-remove"``).

        Guarantee:
            As in ``ClassHead.fit_private``. For ``RefinedRidge`` the number of rows is also public, to a power of two,
            unless ``expected_records`` or ``max_records`` is given (``provenance_.assumed_public``).

        Attributes set: those of the fit on releases, and ``release_``; ``releases_`` of a course.
        """
        terms = (clip_norm, columns, transform, grid_bits, max_records, expected_records, ledger, dataset)
        promise = FitPromise(epsilon, delta, adjacency, *terms)
        check_parameters(self, self.bounds)
        return self._fit_under(promise, X, y, target_bound)

    @abstractmethod
    def _fit_under(self, promise: FitPromise, X: Any, y: Any, target_bound: float) -> Self:
        """Release the records under the promise, and fit on the result."""

    def _schema(
        self, records: OwnRecords, transform: Sequence[Transform], clip_norm: float, target_bound: float, grid_bits: int
    ) -> RidgeSchema:
        maps, norm = maps_of(transform), clip_norm
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
        if self.fit_intercept and not _has_constant(transform):
            warnings.warn(
                "this release has no constant feature, so the model has no intercept: end the schema's transform "
                "with ConstantFeature and count it in features, or pass fit_intercept=False",
                UserWarning,
                stacklevel=3,
            )

    def _adopt(self, rule: LinearRule) -> None:
        self.rule_, self.width_ = rule, None

    def _restore(self, saved: FittedState) -> None:
        self.flat_ = saved.flat
        super()._restore(saved)

    @property
    def coef_(self) -> Array:
        """Weights of X's columns, or of a non-affine map's outputs, ``(d,)`` for one flat target, else ``(T, d)``."""
        coef, _ = self._linear
        return coef[0] if self.flat_ else coef

    @property
    def intercept_(self) -> Any:
        """Prediction where all columns are 0: a float for one flat target, else ``(T,)``."""
        _, intercept = self._linear
        return float(intercept[0]) if self.flat_ else intercept

    @property
    def _linear(self) -> tuple[Array, Array]:
        check_is_fitted(self, "rule_")
        return self.rule_.before(self.preprocessing_.transform)

    def predict(self, X: Any) -> Array:
        """Return predicted targets, ``(n,)`` for one flat target, else ``(n, T)``."""
        rows = rows_of(self, X)
        scores = self.rule_.scores(rows)
        return scores[:, 0] if self.flat_ else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions; y may name a column of a table X."""
        X, y = local(X, y)
        return float(super().score(X, np.asarray(y), sample_weight))


def _has_constant(transform: Sequence[Transform]) -> bool:
    return bool(transform) and isinstance(transform[-1], ConstantFeature)
