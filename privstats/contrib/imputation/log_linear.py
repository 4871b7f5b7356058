"""Fit a log-linear model to noisy counts with gaps, by maximum likelihood.

A table crosses variables; some have a further cell for gaps. A *complete cell* has a value of each variable, and an
*observed cell* covers the complete cells that its gaps leave open. With F the features of complete cells, parameters t
and ``p = softmax(F t)``, observed counts c have the log likelihood ``sum c log(M p)``, where M, of 0 and 1, says which
complete cells an observed one covers. Its gradient is ``sum_l c_l s_l``, with the scores ``s_l = E[F | l] - E[F]`` and
the information ``J = n Cov(F) - sum_l c_l Cov(F | l)``: that of complete records less what gaps take away (Louis 1982).
All of these are linear in c, so noise of mean 0 leaves their means as they are.
benchmarks/inference/imputation_numbers.md has the derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from privstats.extend.support import Array
from privstats.inference.counts.table import gradients

_PRIOR_DEVIATION = 10.0  # of every parameter: a maximum exists where a cell of two variables is empty
_BOUND = 15.0  # of every parameter: noise may make a count negative, whose probability has no maximum above 0
_MAX_ITERATIONS, _MAX_HALVINGS = 100, 30
_DECREMENT = 1e-6  # twice the log likelihood that a further step could add: it moves no estimate by .001 errors
_EMPTY = 1e-10  # share of records that is too small to determine a coefficient
_SINGULAR = 1e-7  # eigenvalue of a Gram matrix with a diagonal of 1
_SMALL_STEP, _LONGEST_STEP = 1e-10, 2.0  # of Newton's method in log odds


@dataclass(frozen=True, eq=False)
class Layout:
    """Complete and observed cells of crossed variables.

    Args:
        levels: number of values of each variable; the first is the reference.
        gaps: whether the variable has a further cell, its last, for gaps.
        products: sets of three or more variables whose product the model holds, besides those of all pairs.
    """

    levels: tuple[int, ...]
    gaps: tuple[bool, ...]
    products: tuple[tuple[int, ...], ...] = ()

    @cached_property
    def codes(self) -> NDArray[np.intp]:
        """The value of each variable in each complete cell, ``(variables, cells)``."""
        return np.indices(self.levels).reshape(len(self.levels), -1)

    @cached_property
    def covers(self) -> sparse.csr_array:
        """M, ``(observed cells, complete cells)``; both in the order of a table's counts."""
        each = [np.vstack([np.eye(k), *[np.ones((1, k))] * gap]) for k, gap in zip(self.levels, self.gaps, strict=True)]
        crossed: Any = reduce(sparse.kron, each)
        return sparse.csr_array(crossed)

    def indicators(self, variable: int) -> Array:
        """Return whether each complete cell has each value of a variable but the first, ``(cells, values - 1)``."""
        return np.asarray(np.eye(self.levels[variable])[self.codes[variable]][:, 1:])

    @cached_property
    def terms(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each term: single ones, pairs, and ``products``."""
        many = range(len(self.levels))
        pairs = ((first, second) for first in many for second in many if first < second)
        return (*((one,) for one in many), *pairs, *self.products)

    @cached_property
    def features(self) -> Array:
        """F, ``(complete cells, parameters)``: products of the indicators of each term's variables, term by term."""
        return np.hstack([self.product(each) for each in self.terms])

    def places(self, variables: Collection[int]) -> NDArray[np.intp]:
        """Return the parameters of a term."""
        sizes = [math.prod(self.levels[each] - 1 for each in term) for term in self.terms]
        at = next(place for place, term in enumerate(self.terms) if set(term) == set(variables))
        return np.arange(sum(sizes[:at]), sum(sizes[: at + 1]))

    def product(self, variables: Sequence[int]) -> Array:
        """Return products of variables' indicators, ``(cells, values)``; the last variable's values change first."""

        def crossed(left: Array, right: Array) -> Array:
            return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))

        return reduce(crossed, map(self.indicators, variables))


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    Attributes:
        layout: its cells.
        theta: parameters, ``(k,)``.
        covariance, noise_covariance: of theta, by chance and noise, and by noise alone, ``(k, k)``; NaN without a
            maximum.
        converged: whether the likelihood has a maximum there.
    """

    layout: Layout
    theta: Array
    covariance: Array
    noise_covariance: Array
    converged: bool

    @cached_property
    def p(self) -> Array:
        """Probabilities of complete cells."""
        return _probabilities(self.layout.features @ self.theta)

    def logistic(self, X: Array, yes: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Return the coefficients of :func:`fitted_odds`, and their derivatives by theta, ``(m, k)``."""
        b, moved = fitted_odds(X, self.p, yes)
        return b, np.asarray(moved @ (self.p[:, None] * (self.layout.features - self.p @ self.layout.features)))

    def function(self, of_logs: Callable[[Array], Array]) -> tuple[Array, Array]:
        """Return an analytic function of log probabilities, ``(..., K)`` to ``(..., m)``, and derivatives ``(m, k)``.

        The log probabilities lack a constant.
        """

        def of_theta(theta: Array) -> Array:
            return of_logs(theta @ self.layout.features.T)

        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            return of_theta(self.theta), gradients(of_theta, self.theta).T

    def covariances(self, slopes: Array) -> tuple[Array, Array]:
        """Return the covariances of a function with these derivatives ``(m, k)``, and of what noise adds."""
        return slopes @ self.covariance @ slopes.T, slopes @ self.noise_covariance @ slopes.T


def fitted_odds(X: Array, p: Array, yes: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return the logistic regression of cells with probabilities p, and its derivatives by p, ``(m, K)``.

    Derivatives are NaN of a coefficient that is not unique, because cells that would tell of it have no probability.

    Args:
        X: columns of each complete cell, ``(K, m)``.
        yes: whether the outcome is the second value there, ``(K,)``.
    """
    b = np.zeros(X.shape[1])
    for _ in range(_MAX_ITERATIONS):
        mean = expit(X @ b)
        G = X.T @ ((p * mean * (1 - mean))[:, None] * X)
        inverse, unique = _inverse(G)
        moved = inverse @ ((yes - mean)[:, None] * X).T
        step = moved @ p
        if np.abs(step).max() < _SMALL_STEP:
            break
        b = b + np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    return b, np.where(unique[:, None], moved, np.nan)


def _inverse(G: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the pseudo-inverse of a Gram matrix, and which solutions are unique."""
    own = np.diag(G)
    some = own > _EMPTY * own.max()
    scale = np.sqrt(np.where(some, own, np.inf))
    values, vectors = np.linalg.eigh(G / np.outer(scale, scale))
    fine = values > _SINGULAR
    inverse = (vectors[:, fine] / values[fine]) @ vectors[:, fine].T / np.outer(scale, scale)
    return inverse, some & (np.abs(vectors[:, ~fine]).max(axis=1, initial=0.0) <= _SINGULAR)


def group_odds(logs: Array, layout: Layout, by: int) -> Array:
    """Return the log odds of each group's risk, ``(..., groups)``, standardised over all other variables.

    The outcome is the last variable, of two values. The function is analytic.

    Args:
        logs: log probabilities of complete cells, up to a constant, ``(..., K)``.
        by: the groups' variable.
    """

    def by_group(cells: Array) -> Array:
        turned = np.moveaxis(cells.reshape(*logs.shape[:-1], *layout.levels), logs.ndim - 1 + by, -2)
        return np.asarray(turned.reshape(*logs.shape[:-1], -1, layout.levels[by], 2))

    share = by_group(_probabilities(logs)).sum(axis=(-2, -1))[..., None]
    no, yes = np.moveaxis(by_group(logs), -1, 0)
    risk, other = (share / (1 + np.exp(against - own)) for own, against in ((yes, no), (no, yes)))
    return np.asarray(np.log(risk.sum(axis=-2) / other.sum(axis=-2)))


def _probabilities(logs: Array) -> Array:
    weights = np.exp(logs - np.real(logs).max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def fitted(layout: Layout, counts: Array, sigma: float) -> Fit:
    """Return the model's maximum likelihood estimate from noisy counts, ``(observed cells,)``.

    Chance has the covariance ``1 / J``, which is Rubin's (1987) for infinitely many imputations. Noise of deviation
    ``sigma`` in each count moves the estimate by ``J^-1 sum_l e_l s_l``. Where noise makes a count of few records
    negative, its parameter ends at a bound of 15, and has the prior's variance in place of an estimate's.
    """
    theta = np.zeros(layout.features.shape[1])
    for _ in range(_MAX_ITERATIONS):
        at = _Point(layout, counts, theta)
        definite, step = _step(at)
        if definite and float(at.gradient @ step) <= _DECREMENT:
            at = _Point(layout, counts, np.clip(theta + step, -_BOUND, _BOUND))
            break
        theta = _climbed(at, step)
    else:
        definite = False
    if not definite:
        none = np.full((len(theta), len(theta)), np.nan)
        return Fit(layout, at.theta, none, none, converged=False)
    free = np.ix_(at.free, at.free)
    inverse = np.diag(np.where(at.free, 0.0, _PRIOR_DEVIATION**2))
    inverse[free] = np.linalg.inv(at.information[free])
    moved = sigma * at.scores[:, at.free] @ inverse[at.free]
    noise = moved.T @ moved
    return Fit(layout, at.theta, inverse + noise, noise, converged=True)


class _Point:
    """The likelihood at one theta, with a wide normal prior."""

    def __init__(self, layout: Layout, counts: Array, theta: Array) -> None:
        self.layout, self.counts, self.theta = layout, counts, theta
        self.p = _probabilities(layout.features @ theta)
        self.observed = layout.covers @ self.p
        self.value = float(counts @ np.log(self.observed)) - float(theta @ theta) / (2 * _PRIOR_DEVIATION**2)

    @cached_property
    def scores(self) -> Array:
        """The score of a record in each observed cell, ``(observed cells, k)``."""
        F = self.layout.features
        return np.asarray(self._given - F.T @ self.p)

    @cached_property
    def gradient(self) -> Array:
        return np.asarray(self.counts @ self.scores - self.theta / _PRIOR_DEVIATION**2)

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Which parameters are inside the bounds, or would move inside by their gradient."""
        return np.asarray((np.abs(self.theta) < _BOUND) | (self.gradient * self.theta < 0))

    @cached_property
    def information(self) -> Array:
        """J, and the prior's."""
        F, m = self.layout.features, self._given
        completed = self.p * np.asarray(self.layout.covers.T @ (self.counts / self.observed))
        hidden = F.T @ (completed[:, None] * F) - m.T @ (self.counts[:, None] * m)
        return np.asarray(self.complete_information - hidden)

    @cached_property
    def complete_information(self) -> Array:
        """The information of as many records without gaps, and the prior's."""
        F, mean = self.layout.features, self.layout.features.T @ self.p
        spread = F.T @ (self.p[:, None] * F) - np.outer(mean, mean)
        return np.asarray(max(float(self.counts.sum()), 1.0) * spread + np.eye(len(mean)) / _PRIOR_DEVIATION**2)

    @cached_property
    def _given(self) -> Array:
        weighted: Any = self.layout.covers @ (self.p[:, None] * self.layout.features)
        return np.asarray(weighted / self.observed[:, None], np.float64)


def _step(at: _Point) -> tuple[bool, Array]:
    """Return whether J is positive definite, and Newton's step of free parameters; otherwise EM's."""
    free = np.ix_(at.free, at.free)
    step = np.zeros(len(at.theta))
    try:
        step[at.free] = cho_solve(cho_factor(at.information[free]), at.gradient[at.free])
    except LinAlgError:
        step[at.free] = np.linalg.solve(at.complete_information[free], at.gradient[at.free])
        return False, step
    return True, step


def _climbed(at: _Point, step: Array) -> Array:
    """Return parameters after the step, halved until the likelihood rises by a part of what its slope promises."""
    share = 1.0
    for _ in range(_MAX_HALVINGS):
        there = np.clip(at.theta + share * step, -_BOUND, _BOUND)
        if _Point(at.layout, at.counts, there).value >= at.value + 1e-4 * float(at.gradient @ (there - at.theta)):
            return np.asarray(there)
        share /= 2
    return at.theta
