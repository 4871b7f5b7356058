"""A linear classifier from one or two directions per party, for promises that protect parties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from privstats.course import Releases
from privstats.errors import DataError, HeadError, ReleaseError
from privstats.extend.heads import (
    Bounds,
    ClassEvidence,
    Entry,
    LinearRule,
    Released,
    Rule,
    as_numpy,
    check_parameters,
)
from privstats.extend.support import Array
from privstats.heads import ClassHead, Provenance
from privstats.heads.provenance import directions
from privstats.kinds import PartySchema

_WHITENED = 0.25
_LEAST = 1e-6  # floor of an eigenvalue, as a share of the largest
_LEVELS = np.logspace(-4, 12, 641)


@dataclass(kw_only=True, eq=False, repr=False)
class PartyDiscriminant(ClassHead):
    """``argmax_c W_c . (x - m)``: W is the released sum of one direction of each party, m the mean of a site's rows.

    With ``PartyRounds`` W is the sum of both releases. m removes the rows' common offset, which W alone would read as a
    preference. With a site's rows, each direction retains the likely share of W (:func:`site_weights`).
    Probabilities are not calibrated. ``fit`` reads local records as one party's.

    Attributes:
        center_: m, ``(d,)``; zeros without ``X_site``.
        coef_, intercept_: W, with ``X_site`` in its rows' directions, and ``-W m``.

    Example:
        >>> X, y = np.array([[1.0, 0.2], [-1.0, 0.2]] * 20), np.array([1, 0] * 20)
        >>> schema = ps.PartySchema(2, 2)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [(X[:10], y[:10]), (X[10:], y[10:])])
        >>> head = ps.heads.PartyDiscriminant().fit_release(release, X_site=X)
        >>> head.score(X, y), head.center_.round(1).tolist()
        (1.0, [0.0, 0.2])
    """

    entry: ClassVar[Entry] = Entry(task="parties")
    bounds: ClassVar[Bounds] = {}
    uses_public: ClassVar[bool] = False
    sure_under_noise: ClassVar[bool] = False

    def fit_release(
        self,
        release: Released | Releases,
        labels: Sequence[Any] | None = None,
        *,
        X_site: Any = None,
        public: tuple[Any, Any] | None = None,
    ) -> Self:
        """Fit on a release of a :class:`~privstats.PartySchema`.

        Args:
            release: of directions of parties; or both releases of a ``PartyRounds`` course, in order, None for a
                missing one.
            labels: names of all C classes, in order; defaults to the plan's ``class_names``, else 0..C-1.
            X_site: unlabelled rows of the site that will use the head. **No promise covers them**: the head holds their
                mean and directions, so ``provenance_`` states that it must stay at that site. A hundred rows yield most
                of the gain.

        Guarantee:
            Without ``X_site`` post-processing of the release, which costs no privacy. With it the release's promise
            still holds for every other party toward this site; nothing is promised for the site's own rows.

        Raises:
            ReleaseError: another kind of release, two of different courses, or a nonfinite result.
            HeadError: not a release, or ``public`` is passed.
            DataError: invalid ``labels`` or ``X_site``, or not one or two releases in a list.
        """
        check_parameters(self, self.bounds)
        self._check_public(public)
        sources = directions(release)
        schema: Any = sources[0].plan.schema
        preprocessing, classes = self._front(sources[0], schema.classes, labels)
        weights: Array = np.sum([_sum_of(each) for each in sources], axis=0)
        centre = np.zeros(schema.features)
        if X_site is not None:
            rows = _rows(preprocessing, X_site)
            centre = rows.mean(axis=0)
            weights = site_weights(weights, math.hypot(*(each.sigma["P"] for each in sources)), rows - centre)
        self._begin(preprocessing, classes)
        self._settle(weights, centre)
        provenance = Provenance.of(sources)  # last: where no rule follows, an earlier one is still there
        self.provenance_ = provenance if X_site is None else provenance.beside_exact_rows
        return self

    def fit_private(self, *_: Any, **__: Any) -> NoReturn:
        """Raise ``HeadError``: the promise protects one party among others."""
        raise HeadError(
            "PartyDiscriminant protects a party among others, and one party alone has no others: use "
            "LDA().fit_private, which protects each record"
        )

    def _solve(self, evidence: ClassEvidence) -> Rule:
        raise NotImplementedError("a direction is no function of class sums; see fit_release")

    def _fit_rows(self, X: Array, index: NDArray[np.intp]) -> Self:
        """Settle one party's direction, without clip or noise; m is the rows' mean."""
        self._settle(PartySchema.exact_direction(X, index, len(self.classes_)), X.mean(axis=0))
        return self

    def _settle(self, weights: Array, center: Array) -> None:
        rule = LinearRule(np.asarray(weights), -np.asarray(weights) @ center)
        if not all(np.isfinite(array).all() for array in rule.arrays().values()):
            raise ReleaseError("PartyDiscriminant found no finite weights; the release is damaged, fetch it again")
        self._adopt(rule)
        self.center_ = center


def _sum_of(release: Released) -> Array:
    sums: Any = release.moments
    return np.asarray(sums.P)


def _rows(preprocessing: Any, X_site: Any) -> Array:
    given = preprocessing.ordered(as_numpy(X_site))
    if np.ndim(given) != 2 or not len(given):
        raise DataError("X_site must be a matrix of at least one row, as predict takes them; or omit it")
    rows: Array = preprocessing.apply(given)
    if not np.isfinite(rows).all():
        raise DataError("X_site must hold finite numbers; drop or impute missing values")
    return rows


def site_weights(weights: Array, sigma: float, centred: Array) -> Array:
    """Return noisy weights of a linear rule, denoised in the directions of a site's rows.

    With S = Q diag(l) Q' the rows' second moment, direction j's signal has variance t l_j, with t the most likely
    number. It retains the share ``t l_j / (t l_j + sigma^2)``, its posterior mean, and is whitened by ``l_j^-1/4``.

    Args:
        weights: ``(C, d)``; their mean over classes is removed.
        sigma: noise standard deviation of an entry; 0 only whitens.
        centred: rows of the site less their mean, ``(n, d)``; with few rows eigenvalues are pulled together.
    """
    own: Array = weights - weights.mean(axis=0)
    records, features = centred.shape
    values, Q = np.linalg.eigh(centred.T @ centred)
    values = np.maximum(records * values + features * values.mean(), 0.0)
    if not values[-1] > 0:
        return own
    share = np.maximum(values / values[-1], _LEAST)
    turned = own @ Q
    damping = share**-_WHITENED
    if sigma > 0:
        signal = _level(np.square(turned).sum(axis=0) / sigma**2, len(own) - 1, share) * share
        damping *= signal / (signal + 1.0)
    out: Array = (turned * damping) @ Q.T
    return out


def _level(squares: Array, freedom: int, share: Array) -> float:
    """Return the most likely t over sigma^2 for sums of squares with variance 1 + t l_j."""
    variance = 1.0 + _LEVELS[:, None] * share
    return float(_LEVELS[np.argmin((freedom * np.log(variance) + squares / variance).sum(axis=1))])
