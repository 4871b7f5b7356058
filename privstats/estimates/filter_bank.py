"""Filter a round's released sums into the next weights.

The check of published weights enforces one recipe on all parties.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from privstats.estimates.denoise import Array


@dataclass(frozen=True)
class Filter:
    """An estimate of the weights and its variance.

    Attributes:
        weights: W, ``(C, k)`` for a softmax, ``(k,)`` for a regression.
        variance: S, per column ``(k,)`` or per weight; it only falls.
        update: the last damped update, for momentum.

    Example:
        >>> from privstats.estimates.filter_bank import Filter
        >>> state = Filter(weights=np.zeros(2), variance=np.ones(2), update=np.zeros(2))
        >>> state.variance.tolist()
        [1.0, 1.0]
    """

    weights: Array
    variance: Array
    update: Array


def advanced(
    state: Filter,
    gradient: Array,
    noise: Array | float,
    curvature: Array,
    *,
    caution: float,
    momentum: float = 0.0,
    centred: bool = False,
) -> Filter:
    """Return the state after one gradient: ``W - (eta G / cur + momentum old)``.

    ``eta = S / (S (1 + c) + s^2 / cur^2)`` is Kalman's gain, reduced by ``c``: damped Newton without noise, an average
    with a Wiener prior under strong noise (Wiener 1949; Kalman 1960). Then ``S <- (1 - eta) S``, and the stored update
    is ``(1 + c) eta`` times this one.

    Args:
        gradient, noise: mean gradient, ridge term included, and its variance s^2.
        curvature: cur, the Hessian's diagonal, above 0.
        caution: c, at least 0.
        momentum: share of the last update repeated.
        centred: subtract the mean over classes.

    Example:
        >>> from privstats.estimates.filter_bank import Filter, advanced
        >>> state = Filter(weights=np.zeros(2), variance=np.ones(2), update=np.zeros(2))
        >>> gradient, curvature = np.array([-1.0, -1.0]), np.ones(2)
        >>> advanced(state, gradient, 0.0, curvature, caution=0.0).weights.tolist()  # Newton's step
        [1.0, 1.0]
        >>> advanced(state, gradient, 1.0, curvature, caution=0.0).weights.tolist()  # half, under noise like the prior
        [0.5, 0.5]
    """
    gain = state.variance / ((1 + caution) * state.variance + noise / np.square(curvature))
    update = gain * gradient / curvature + momentum * state.update
    if centred:
        update = update - update.mean(axis=0)
    return replace(
        state,
        weights=state.weights - update,
        variance=state.variance * (1 - gain),
        update=(1 + caution) * update * gain,
    )


_ENERGIES = 2.0 ** np.arange(-10.0, 1.0)
_EXPLAINED = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.985, 0.995])
_STRETCHES = np.linspace(0.0, 1.0, 4)
_RESOLUTION = 0.35  # half the way between two energies, so that one of them always fits
_SHAPE = 0.05  # residuals need not be Gaussian: a share within the clip is no better known than by this part of it
_CAUTION = 0.25
_LEAST_SHARE = 1e-9  # avoids division by 0
_TINY = float(np.finfo(np.float64).tiny)


def _widths(points: Array) -> Array:
    edges = np.concatenate([[0.0], (points[1:] + points[:-1]) / 2, [1.0]])
    return np.asarray(np.diff(edges))


@dataclass(frozen=True)
class KalmanBank:
    """Beliefs about weights under every hypothesis, and about the hypotheses (multiple models; Magill 1965).

    A hypothesis fixes the targets' mean square, its explainable part, and a factor on all curvatures, with prior
    probabilities inverse to it. The last L hypotheses assume that one unknown direction alone is curved by that factor.

    Attributes:
        weights, variance: posterior means and variances, ``(H, k)``; for the last L the curved direction's.
        others: the other directions' variances for the last L, ``(L, k)``.
        prior: variances before any gradient, ``(H, k)``; for the last L those of the other directions.
        unexplained: mean square residual at the best weights, ``(H,)``.
        stretch: the factor on curvatures, ``(H,)``.
        evidence: log-probability up to a constant, ``(H,)``.

    Example:
        >>> from privstats.estimates.filter_bank import KalmanBank
        >>> bank = KalmanBank.of(np.ones(2) / 2, np.ones(2), stretch=1.0, energy=(0.25, 0.01), bound=1.0)
        >>> bank.mean.round(6).tolist(), len(bank.evidence) == len(bank.weights)
        ([0.0, 0.0], True)
    """

    weights: Array
    variance: Array
    others: Array
    prior: Array
    unexplained: Array
    stretch: Array
    evidence: Array

    @classmethod
    def of(
        cls,
        curvature: Array,
        shape: Array,
        stretch: float,
        energy: tuple[float, float],
        bound: float,
        *,
        single: bool = False,
    ) -> KalmanBank:
        """Return the bank before any gradient: weights have mean 0 and the variance that explains the targets.

        Args:
            curvature: diagonal of E u u', ``(k,)``.
            shape: prior variances up to a factor, ``(k,)``.
            stretch: largest factor on curvatures that noise can hide.
            energy: the targets' released mean square, and its noise.
            bound: Y, the bound of targets.
            single: whether one direction alone may be stretched.
        """
        stretches = min(stretch, len(curvature)) ** _STRETCHES  # no eigenvalue is above the trace
        energies, explained, stretched = (
            each.ravel() for each in np.meshgrid(bound**2 * _ENERGIES, _EXPLAINED, stretches, indexing="ij")
        )
        prior = np.log(_widths(_EXPLAINED))[None, :, None] - np.log(stretches)
        prior = np.broadcast_to(prior, (len(_ENERGIES), len(_EXPLAINED), len(stretches))).ravel()
        spread = energy[1] ** 2 + np.square(_RESOLUTION * energies)
        evidence = prior - (np.square(energy[0] - energies) / spread + np.log(spread)) / 2
        variance = (energies * explained / stretched)[:, None] * (shape / float(curvature @ shape))
        again = np.flatnonzero(stretched > 1) if single else np.zeros(0, np.intp)
        evidence[again] -= math.log(2)
        every = np.concatenate([np.arange(len(evidence)), again])
        variance, others = variance[every], variance[again] * stretched[again, None]
        prior = np.concatenate([variance[: len(variance) - len(again)], others])
        unexplained = (energies * (1 - explained))[every]
        return cls(np.zeros_like(variance), variance, others, prior, unexplained, stretched[every], evidence[every])

    @property
    def belief(self) -> Array:
        """Hypotheses' probabilities, ``(H,)``."""
        raised = np.exp(self.evidence - self.evidence.max())
        return np.asarray(raised / raised.sum())

    @property
    def mean(self) -> Array:
        """Posterior mean weights, ``(k,)``."""
        return np.asarray(self.belief @ self.weights)

    @property
    def learned(self) -> tuple[Array, Array]:
        """The mean's share A that gradients determine, and the variance that their noise adds to it, each ``(k,)``.

        A filter that keeps the part 1 - A of its prior variance P has an estimate of noise variance ``A (1 - A) P``.
        """
        variance = np.concatenate([self.variance[: self._single.start], self.others])
        share = 1 - variance / np.maximum(self.prior, _TINY)
        return np.asarray(self.belief @ share), np.asarray(self.belief @ (share * variance))

    def energies(self, point: Array, curvature: Array) -> Array:
        """Return the mean square residual at these weights per hypothesis, ``(H,)``."""
        away = self.variance + np.square(self.weights - point)
        return np.asarray(self.unexplained + self.stretch * (away @ curvature))

    def deviation(self, point: Array, curvature: Array) -> float:
        """Return the residuals' size: the root of their expected log mean square."""
        return math.exp(float(self.belief @ np.log(self.energies(point, curvature))) / 2)

    def within(self, point: Array, clip: float, curvature: Array) -> Array:
        """Return Gaussian residuals' share within a clip per hypothesis, ``(H,)``."""
        inside = 2 * ndtr(clip / np.sqrt(self.energies(point, curvature))) - 1
        return np.asarray(np.maximum(inside, _LEAST_SHARE))

    def counted(
        self, point: Array, share: tuple[float, float], clip: float, records: int, curvature: Array
    ) -> KalmanBank:
        """Return the bank after a count of residuals within the clip; ``share`` is the count over n, and its noise."""
        expected = self.within(point, clip, curvature)
        spread = share[1] ** 2 + expected * (1 - expected) / records + np.square(_SHAPE * expected)
        evidence = self.evidence - (np.square(share[0] - expected) / spread + np.log(spread)) / 2
        return replace(self, evidence=evidence)

    def pointed(
        self, point: Array, way: Array, noise: Array, attenuation: Array | float, curvature: Array
    ) -> KalmanBank:
        """Return the bank after a gradient, with the estimate ``point + way / (attenuation stretch)`` per filter.

        ``way`` is Newton's step if nothing is clipped or stretched, ``noise`` its standard deviations, ``attenuation``
        the share of a gradient after clipping.
        """
        attenuation = np.broadcast_to(attenuation, self.stretch.shape)
        factor = (attenuation * self.stretch)[:, None]
        innovation, variance = point + way / factor - self.weights, np.square(noise / factor)
        total = self.variance + variance + _TINY
        # in units of the gradient, which hypotheses share, and not of the weights, which they do not
        surprise = np.log(total * np.square(factor * curvature) + _TINY) + np.square(innovation) / total
        state = Filter(self.weights, self.variance, np.zeros(()))
        after = advanced(state, -innovation, variance + _TINY, np.ones(()), caution=_CAUTION)
        evidence = self.evidence - surprise.sum(axis=1) / 2
        weights, last = after.weights, self._single
        gain = self._gain(noise / attenuation[last, None])
        weights[last] = self.weights[last] + gain * self.stretch[last, None] * innovation[last]
        others = self.others * (1 - gain)
        return replace(self, weights=weights, variance=after.variance, others=others, evidence=evidence)

    @property
    def _single(self) -> slice:
        return slice(len(self.evidence) - len(self.others), None)

    def _gain(self, noise: Array) -> Array:
        stretch = self.stretch[self._single, None]
        kalman = self.others / ((1 + _CAUTION) * self.others + np.square(noise) + _TINY)
        return np.asarray(np.minimum(kalman, 1 / ((1 + _CAUTION) * stretch)))


_SCALES = 4.0 ** np.arange(-8.0, 4.0)
_ODDS = 1e-4  # decisive evidence, as Jeffreys has it, before the matrix of the first release is corrected


@dataclass(frozen=True)
class Curvature:
    """A symmetric positive definite matrix by eigenvalues ``(k,)`` and eigenvectors ``(k, k)``.

    Example:
        >>> from privstats.estimates.filter_bank import Curvature
        >>> curvature = Curvature(values=np.array([2.0, 4.0]), vectors=np.eye(2))
        >>> curvature.solved(np.array([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """

    values: Array
    vectors: Array

    def solved(self, gradient: Array) -> Array:
        """Return the inverse times a vector, ``(k,)``."""
        return np.asarray(self.vectors @ ((self.vectors.T @ gradient) / self.values))

    def noise(self, sigma: Array | float) -> Array:
        """Return standard deviations, ``(k,)``, of :meth:`solved` noise."""
        inverse = (self.vectors / self.values) @ self.vectors.T
        return np.asarray(np.sqrt(np.square(inverse) @ np.square(np.broadcast_to(sigma, self.values.shape))))


@dataclass(frozen=True)
class GradientHistory:
    """The gradients so far: weights ``(t, k)``, downhill gradients ``(t, k)``, and noise standard deviations ``(t,)``.

    Example:
        >>> from privstats.estimates.filter_bank import GradientHistory
        >>> history = GradientHistory.empty(2).on(np.zeros(2), np.array([1.0, -1.0]), 0.1)
        >>> history.gradients.tolist()
        [[1.0, -1.0]]
    """

    points: Array
    gradients: Array
    noise: Array

    @classmethod
    def empty(cls, size: int) -> GradientHistory:
        """Return an empty history."""
        return cls(np.zeros((0, size)), np.zeros((0, size)), np.zeros(0))

    def on(self, point: Array, gradient: Array, noise: float) -> GradientHistory:
        """Append one gradient."""
        return GradientHistory(
            np.vstack([self.points, point]), np.vstack([self.gradients, gradient]), np.append(self.noise, noise)
        )

    def curvature(self, diagonal: Array) -> Curvature:
        """Return K: a diagonal ``(k,)`` corrected by the history, with no eigenvalue below the diagonal's minimum.

        K is the diagonal plus entries from N(0, v): ridge regression (Hennig 2015, for exact gradients), averaged over
        v by evidence.
        """
        matrix = np.diag(diagonal)
        if len(self.noise) > 1 and self.noise.min() > 0:
            correction = self._correction(diagonal)
            matrix = matrix + (correction + correction.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        return Curvature(np.maximum(values, diagonal.min()), vectors)

    def _correction(self, diagonal: Array) -> Array:
        ways = -np.diff(self.points, axis=0)
        missed = np.diff(self.gradients, axis=0) - ways * diagonal
        change = np.diff(np.eye(len(self.noise)), axis=0)
        noise = (change * np.square(self.noise)) @ change.T
        explained, energy, k = ways @ ways.T, missed @ missed.T, len(diagonal)
        result, logs = [np.zeros_like(ways)], [_log_likelihood(noise, energy, k)]
        for scale in _SCALES / k**2:
            total = scale * explained + noise
            result.append(scale * np.linalg.solve(total, ways))
            logs.append(_log_likelihood(total, energy, k))
        prior = np.array([1 - _ODDS, *[_ODDS / len(_SCALES)] * len(_SCALES)])
        belief = prior * np.exp(np.array(logs) - max(logs))
        return np.asarray(missed.T @ np.tensordot(belief / belief.sum(), np.array(result), axes=1))


def _log_likelihood(covariance: Array, energy: Array, k: int) -> float:
    _, volume = np.linalg.slogdet(covariance)
    return float(-(k * volume + np.trace(np.linalg.solve(covariance, energy))) / 2)
