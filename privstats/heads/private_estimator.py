"""A head with its promise as scikit-learn parameters: ``Private(LDA(), epsilon=...)`` in pipelines and searches.

``fit`` is the head's own ``fit_private``: this wrapper adds no mechanism. It wraps any head.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar, cast

from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from privstats.dp import Cost, gaussian_epsilon, gaussian_mu
from privstats.dp.privacy import Adjacency
from privstats.errors import HeadError
from privstats.files.envelope import PathLike
from privstats.files.signing import Signer
from privstats.heads.evidence import Array
from privstats.heads.private import central, owners_terms
from privstats.ledger.charges import Paid, charged_by_rows
from privstats.transforms import Column, Transform

_LEAST = 0.001
"""The least epsilon of a plan."""

_ROUNDING = 1e-9

_LEFT_OUT = ("clip_norm", "classes", "columns", "target_bound", "centred", "expected_records", "public")
"""Terms that only some heads take; None leaves them to the head."""


_Method = TypeVar("_Method", bound=Callable[..., Any])
_Given = ParamSpec("_Given")


def _where_the_head_has_it(method: _Method) -> _Method:
    """Return a method that exists where the head has one of the same name."""

    def has(estimator: Private) -> bool:
        return hasattr(getattr(estimator, "head_", estimator.head), method.__name__)

    return cast("_Method", available_if(has)(method))


def _spelled(init: Callable[_Given, None]) -> Callable[_Given, None]:
    """Return the constructor, with a sentence for a caller who gives ``fit_private``'s name of the public maps."""

    @wraps(init)
    def checked(*args: _Given.args, **terms: _Given.kwargs) -> None:
        if "transform" in terms:
            raise HeadError(
                "Private calls the public maps public_transform, because scikit-learn takes an estimator with a "
                "transform for a transformer; give public_transform=..."
            )
        init(*args, **terms)

    return checked


class Private(MetaEstimatorMixin, BaseEstimator):
    """An estimator with the ``fit_private`` of a head as its ``fit``, and the promise among its parameters.

    A head's own ``fit`` is exact. ``Private`` has no exact ``fit``, so a pipeline that ends in it releases nothing
    without a promise.

    Guarantee:
        That of the head's ``fit_private``, for every call of ``fit`` by itself: (epsilon, delta)-DP for one record of
        the rows that it is given, under ``adjacency``. Calls add up (mu-GDP composes as ``sqrt(sum mu_i^2)``): k folds
        over g candidates and the last fit are ``k g + 1`` releases, each of which is charged to ``ledger``. The sum is
        for one record where the fold of every record follows from that record alone: ``KFold`` and its kin cut by
        position and label, so one record more moves others between folds, and a fit then differs in several. Three
        things are outside the promise: a step that a pipeline fits in front (a scaler, PCA) reads the records exactly,
        so give public maps as ``public_transform`` instead; the scores that a search computes on held-out records are
        exact; and so is the choice that it makes from them. So are models that others fit on its predictions, such as
        ``CalibratedClassifierCV`` and stacking. Resampling, as in bagging and oversampling, puts one record into
        several rows: the promise is then for one row, unless ``multiplicity`` states how many (docs/alone.md).

    Args:
        head: an unfitted head of ``privstats.heads``; it is cloned, as scikit-learn's meta-estimators do.
        epsilon, delta: the promise for one record, of each fit, in all of its rows.
        adjacency: ``"add-remove"`` or ``"replace-one"``.
        clip_norm: rows longer than this (after ``public_transform``) are shortened to it: a public choice. Needed
            without ``columns``.
        classes: all possible classes, from public knowledge; classifiers only.
        columns: those of a raw table, as in the head's ``fit_private``.
        target_bound: targets longer than this are shortened to it: a public choice; regressions need it.
        centred: whether the mean is released first; classifiers of one release only.
        expected_records: the number of records, from public knowledge; for refined heads, ``columns``, and ``centred``.
        public_transform: the ``transform`` of the head's ``fit_private``; scikit-learn takes an estimator with a
            ``transform`` for a transformer.
        grid_bits, max_records: as in the head's ``fit_private``.
        ledger, dataset: where every fit is charged, as in the head's ``fit_private``; it has no default.
        multiplicity: the most rows of one fit that one record may be in. The noise is that many times larger, epsilon
            and delta hold for the record, and the ledger is charged for it: ``multiplicity`` times mu of a row (group
            privacy: Dong, Roth, Su 2019). Nothing here counts rows: the caller keeps to it.

    Raises:
        HeadError: a term of the promise is missing, or ``transform`` was given for ``public_transform``.

    Attributes:
        head_: the fitted head, with ``release_`` (or ``releases_``).
        n_features_in_, feature_names_in_, coef_, intercept_: as of the fitted head, where it has them.

    Example:
        >>> from sklearn.model_selection import GridSearchCV
        >>> X, y = np.random.default_rng(0).normal(size=(600, 2)), np.arange(600) % 2
        >>> X[:, 0] += 6.0 * y
        >>> terms = {"delta": 1e-5, "adjacency": "add-remove", "clip_norm": 8.0, "classes": (0, 1)}
        >>> head = ps.heads.Private(ps.heads.LDA(), epsilon=1.0, ledger="uncharged", **terms)
        >>> search = GridSearchCV(head, {"epsilon": [0.001, 8.0]}, cv=3).fit(X, y)
        >>> search.best_params_, search.best_estimator_.head_.release_.budget.epsilon
        ({'epsilon': 8.0}, 8.0)
    """

    head_: Any

    @_spelled
    @owners_terms
    def __init__(
        self,
        head: Any,
        *,
        epsilon: float,
        delta: float,
        adjacency: Adjacency,
        clip_norm: float | None = None,
        classes: Sequence[Any] | None = None,
        columns: Sequence[Column] | None = None,
        target_bound: float | None = None,
        centred: bool | None = None,
        expected_records: int | None = None,
        public_transform: Sequence[Transform] = (),
        grid_bits: int = 12,
        max_records: int | None = None,
        ledger: Paid = None,
        dataset: str | None = None,
        multiplicity: int = 1,
    ) -> None:
        self.head = head
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.clip_norm = clip_norm
        self.classes = classes
        self.columns = columns
        self.target_bound = target_bound
        self.centred = centred
        self.expected_records = expected_records
        self.public_transform = public_transform
        self.grid_bits = grid_bits
        self.max_records = max_records
        self.ledger = ledger
        self.dataset = dataset
        self.multiplicity = multiplicity

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        public: tuple[Any, Any] | None = None,
    ) -> Self:
        """Fit a clone of the head on one party's own records, under the promise.

        Both options are scikit-learn's metadata: ``Private(...).set_fit_request(classes=True)`` has a pipeline, a
        search or ``cross_val_score(..., params={"classes": ...})`` hand them on where metadata routing is enabled.

        Args:
            X, y: as the head's ``fit_private`` takes them.
            classes: those of this fit, where the constructor was given none.
            public: ``(X, y)``, records that are public, as in the head's ``fit_private``: **no promise covers them**.

        Raises:
            HeadError: ``head`` has no ``fit_private``, or takes no such term, or lacks one that it needs; or a
                ``multiplicity`` that leaves a row less than any plan promises; or other classes than the constructor's.
            SchemaError, PlanError, DataError, LedgerError: as in the head's ``fit_private``.
        """
        terms = self._terms(classes, public)
        times = terms.pop("multiplicity")
        if times != 1:
            terms |= _of_one_row(times, self.epsilon, self.delta, self.ledger, self.dataset)
        self.head_ = clone(self.head).fit_private(X, y, **terms)
        self.head_.provenance_ = self.head_.provenance_.of_rows(times)
        self.n_features_in_ = self.head_.n_features_in_
        return self

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels of the classes, shape ``(C,)``."""
        labels: NDArray[Any] = self._fitted().classes_
        return labels

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, where the records had them."""
        names: NDArray[Any] = self._fitted().feature_names_in_
        return names

    @property
    def coef_(self) -> Array:
        """Weights of the columns, where the fitted head has them."""
        coef: Array = self._fitted().coef_
        return coef

    @property
    def intercept_(self) -> Any:
        """The intercept of the fitted head, where it has one."""
        return self._fitted().intercept_

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions of the fitted head."""
        predictions: NDArray[Any] = self._fitted().predict(X)
        return predictions

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write the fitted head, as its own ``save`` does; ``privstats.heads.load`` reads it as a head.

        Raises:
            HeadError: as there.
        """
        self._fitted().save(path, signer)

    @_where_the_head_has_it
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities of the fitted head, shape ``(n, C)``."""
        probabilities: Array = self._fitted().predict_proba(X)
        return probabilities

    @_where_the_head_has_it
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the class probabilities of the fitted head, shape ``(n, C)``."""
        logarithms: Array = self._fitted().predict_log_proba(X)
        return logarithms

    @_where_the_head_has_it
    def decision_function(self, X: Any) -> Array:
        """Return the scores of the fitted head, ``(n, C)``, or ``(n,)`` for two classes."""
        scores: Array = self._fitted().decision_function(X)
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fitted head's score: share of right classes, or R²."""
        return float(self._fitted().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.head)
        tags.estimator_type, tags.classifier_tags, tags.regressor_tags = (
            inner.estimator_type,
            inner.classifier_tags,
            inner.regressor_tags,
        )
        tags.target_tags = inner.target_tags
        tags.non_deterministic = True
        return tags

    def _fitted(self) -> Any:
        check_is_fitted(self, "head_")
        return self.head_

    def _terms(self, classes: Sequence[Any] | None, public: tuple[Any, Any] | None) -> dict[str, Any]:
        """Return the terms that this head's ``fit_private`` takes, checked against what it needs."""
        if isinstance(self.head, type) or not callable(getattr(self.head, "fit_private", None)):
            shown = self.head.__name__ if isinstance(self.head, type) else type(self.head).__name__
            if hasattr(self.head, "fit_private"):
                raise HeadError(f"head must be a head, got the class {shown}; call it: {shown}()")
            raise HeadError(f"head must be a head with fit_private, such as privstats.heads.LDA(), got {shown}")
        values = {name: value for name, value in self.get_params(deep=False).items() if name != "head"}
        values |= {"transform": values.pop("public_transform"), "public": public}
        values["classes"] = _one_of(self.classes, classes)
        terms = {name: value for name, value in values.items() if not (name in _LEFT_OUT and value is None)}
        name, parameters = type(self.head).__name__, inspect.signature(self.head.fit_private).parameters
        if strange := sorted(set(terms) - {"multiplicity"} - set(parameters)):
            raise HeadError(f"{name} takes no {strange[0]}; leave it out of Private({name}(), ...)")
        needed = {each for each, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY}
        needed = {each for each in needed if parameters[each].default is inspect.Parameter.empty}
        if lacking := sorted(needed - set(terms)):
            raise HeadError(f"{name} needs {lacking[0]}=..., a public choice; give it to Private({name}(), ...)")
        return terms


def _one_of(settings: Sequence[Any] | None, fitted_with: Sequence[Any] | None) -> Sequence[Any] | None:
    """Return the classes of the constructor or those of a fit.

    Raises:
        HeadError: both, and they differ.
    """
    if settings is None or fitted_with is None:
        return settings if fitted_with is None else fitted_with
    if list(settings) != list(fitted_with):
        raise HeadError("classes were given to Private(...) and other ones to fit; give them once")
    return settings


def _of_one_row(times: int, epsilon: float, delta: float, ledger: Paid, dataset: str | None) -> dict[str, Any]:
    """Return the terms of one row, and its charge, where the promise is for a record in ``times`` rows.

    Raises:
        HeadError: the row's epsilon is below what a plan takes.
        LedgerError: not a number of rows, or a ledger that cannot charge them.
        PlanError: a promise out of its bounds.
    """
    Cost.repeated(times)
    central(epsilon, delta, "add-remove")
    one = epsilon / times if delta == 0 else gaussian_epsilon(gaussian_mu(epsilon, delta) / times, delta)
    if one < _LEAST:
        raise HeadError(
            f"multiplicity={times} leaves one row epsilon {one:.2g}, and a plan takes {_LEAST:g} or more: bound the "
            "rows of one record lower, or give a larger epsilon"
        )
    paid = charged_by_rows(ledger, dataset, times)
    return {
        "epsilon": one * (1 - _ROUNDING),  # so that all rows together stay below the promise
        "ledger": paid,
        "dataset": dataset if paid is ledger else None,
    }
