"""A head with its promise as scikit-learn parameters: ``Private(LDA(), epsilon=...)``."""

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

from privstats.course.paid import Paid, charged_by_rows
from privstats.dp import Cost, gaussian_epsilon, gaussian_mu
from privstats.dp.privacy import Adjacency
from privstats.errors import HeadError
from privstats.files.envelope import PathLike
from privstats.files.signing import Signer
from privstats.heads.evidence import Array
from privstats.heads.private import central, owners_terms
from privstats.transforms import Column, Transform

_LEAST = 0.001
"""The least epsilon of a plan."""

_ROUNDING = 1e-9

_LEFT_OUT = ("clip_norm", "classes", "columns", "target_bound", "centred", "expected_records", "public")
"""Terms that only some heads take; None leaves them to the head."""


_Method = TypeVar("_Method", bound=Callable[..., Any])
_Params = ParamSpec("_Params")


def _where_the_head_has_it(method: _Method) -> _Method:
    def has(estimator: Private) -> bool:
        return hasattr(getattr(estimator, "head_", estimator.head), method.__name__)

    return cast("_Method", available_if(has)(method))


def _spelled(init: Callable[_Params, None]) -> Callable[_Params, None]:
    """Refuse ``transform`` in place of ``public_transform``."""

    @wraps(init)
    def checked(*args: _Params.args, **terms: _Params.kwargs) -> None:
        if "transform" in terms:
            raise HeadError(
                "Private calls the public maps public_transform, because scikit-learn takes an estimator with a "
                "transform for a transformer; give public_transform=..."
            )
        init(*args, **terms)

    return checked


class Private(MetaEstimatorMixin, BaseEstimator):
    """A head with ``fit_private`` as its ``fit``, and the promise among its parameters.

    Guarantee:
        As in the head's ``fit_private``, for each call of ``fit`` alone: (epsilon, delta)-DP for one record of its
        rows, under ``adjacency``. Calls add up (mu-GDP composes as ``sqrt(sum mu_i^2)``): k folds over g candidates and
        the last fit are ``k g + 1`` fits, each charged to ``ledger``. The sum is for one record only where each
        record's fold follows from that record alone; ``KFold`` splits by position, so one added record changes several
        fits. Outside the promise: steps that a pipeline fits in front (scaler, PCA) read records exactly, so use
        ``public_transform``; a search's held-out scores and its choice; models fitted on the predictions
        (``CalibratedClassifierCV``, stacking). Resampling puts one record into several rows: the promise is then per
        row, unless ``multiplicity`` states their number.

    Args:
        epsilon, delta: the promise for one record, per fit, in all of its rows.
        adjacency, clip_norm, classes, columns, grid_bits, max_records: as in the head's ``fit_private``.
        target_bound: public bound to which targets are clipped; regressions need it.
        centred, expected_records: as there, for heads that accept them.
        public_transform: the head's ``transform``, renamed for scikit-learn.
        ledger, dataset: where every fit is charged.
        multiplicity: maximum rows of one fit per record, not checked. The noise grows by that factor; epsilon, delta
            and the charge are for the record: ``multiplicity`` times a row's mu (group privacy: Dong, Roth and Su
            2022).

    Raises:
        HeadError: a term of the promise is missing, or ``transform`` was passed.

    Attributes:
        head_: the fitted head, with ``release_`` (or ``releases_``).

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
        """Fit a clone of the head under the promise.

        Args:
            classes: those of this fit, if the constructor has none; scikit-learn metadata.
            public: ``(X, y)``, public records: **no promise covers them**; scikit-learn metadata.

        Raises:
            HeadError: an unsuitable ``head``, terms or ``multiplicity``. Other errors are those of ``fit_private``.
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
        """Labels of the classes, ``(C,)``."""
        labels: NDArray[Any] = self._fitted().classes_
        return labels

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns, if known."""
        names: NDArray[Any] = self._fitted().feature_names_in_
        return names

    @property
    def coef_(self) -> Array:
        """Weights of the columns, if any."""
        coef: Array = self._fitted().coef_
        return coef

    @property
    def intercept_(self) -> Any:
        """Intercept, if any."""
        return self._fitted().intercept_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return predictions."""
        predictions: NDArray[Any] = self._fitted().predict(X)
        return predictions

    def save(self, path: PathLike, signer: Signer | None = None) -> None:
        """Write the fitted head, for ``privstats.heads.load``."""
        self._fitted().save(path, signer)

    @_where_the_head_has_it
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, ``(n, C)``."""
        probabilities: Array = self._fitted().predict_proba(X)
        return probabilities

    @_where_the_head_has_it
    def predict_log_proba(self, X: Any) -> Array:
        """Return log probabilities, ``(n, C)``."""
        logarithms: Array = self._fitted().predict_log_proba(X)
        return logarithms

    @_where_the_head_has_it
    def decision_function(self, X: Any) -> Array:
        """Return scores ``(n, C)``, or ``(n,)`` for two classes."""
        scores: Array = self._fitted().decision_function(X)
        return scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return accuracy, or R² for a regression."""
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
    if settings is None or fitted_with is None:
        return settings if fitted_with is None else fitted_with
    if list(settings) != list(fitted_with):
        raise HeadError("classes were given to Private(...) and other ones to fit; give them once")
    return settings


def _of_one_row(times: int, epsilon: float, delta: float, ledger: Paid, dataset: str | None) -> dict[str, Any]:
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
