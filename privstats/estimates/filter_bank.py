"""Filters between the released sums of a round and the weights of the next, and curvature from gradients.

``Filter`` is a diagonal Kalman filter: damped Newton with no rate to choose. ``KalmanBank`` has one filter per
hypothesis about the unknown quantities of a regression, weighted by their evidence. ``GradientHistory`` estimates
curvature from how gradients changed between the weights at which they were measured: a noise-aware quasi-Newton
estimate, which ignores changes that noise alone explains.

A regression is refined by a bank of filters. One filter, with guards against residual sizes and eigenvalues invented by
noise, lost to DP-GD where n mu / d^1.5 is below 1, and its guards were tuned on the errors that they were to lower. A
bank of Kalman filters (one per hypothesis, weighted by its evidence) has no such constants: it averages over what is
unknown. It costs some hundred vectors of length d per round, and the recipe keeps the last states, since a course asks
for all of them once per round. Where n mu is below 40 its hypotheses outnumber what the sums can distinguish, and a
course follows a fixed schedule of steps instead, with 1/64 of the budget for the first release. Where noise hides G a
session for the mean of the rows' directions follows the first release. It is a separate plan, not a letter of the first
release, because ``MeanSchema`` has its proof already and a first release keeps its meaning for every other head. The
digest of earlier releases in every round's plan shows heads whether the rounds include a mean. Parties of a course must
run versions with the same recipe, which the check of published weights enforces, and the course's digest, which names
the recipe's revision.
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
        variance: S, prior variance of an entry about the optimum, one per column ``(k,)``, or one per weight where
            curvatures are; it only falls.
        step: the last step, damped, of the shape of ``weights``; what momentum starts from.

    Example:
        >>> from privstats.estimates.filter_bank import Filter
        >>> state = Filter(weights=np.zeros(2), variance=np.ones(2), step=np.zeros(2))
        >>> state.variance.tolist()
        [1.0, 1.0]
    """

    weights: Array
    variance: Array
    step: Array


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
    """Return the state after one gradient: ``W - (eta G / cur + momentum old)`` with ``eta = S / (S (1 + c) + s^2 /
    cur^2)``.

    ``G / cur`` is Newton's estimate of the way to the optimum and ``s^2 / cur^2`` the noise in it, so eta is Kalman's
    gain where the model is right, less by ``c``. Without noise that is damped Newton (``eta = 1 / (1 + c)``), under
    strong noise an average with a Wiener prior (Wiener 1949; Kalman 1960). Then ``S <- (1 - eta) S``, and the step is
    kept, times ``(1 + c) eta``.

    Args:
        state: before.
        gradient: mean over records of the gradient of the loss at ``state.weights``, ridge term included.
        noise: s^2, the variance of its entries: a number, or one per column ``(k,)``.
        curvature: cur, a diagonal of the Hessian, ``(k,)`` or of the shape of the weights, all above 0.
        caution: c, at least 0.
        momentum: share of the damped last step that is walked again.
        centred: whether the mean over classes, which does not change a softmax, is subtracted from each step.

    Example:
        >>> from privstats.estimates.filter_bank import Filter, advanced
        >>> state = Filter(weights=np.zeros(2), variance=np.ones(2), step=np.zeros(2))
        >>> gradient, curvature = np.array([-1.0, -1.0]), np.ones(2)
        >>> advanced(state, gradient, 0.0, curvature, caution=0.0).weights.tolist()  # Newton's step
        [1.0, 1.0]
        >>> advanced(state, gradient, 1.0, curvature, caution=0.0).weights.tolist()  # half, under noise like the prior
        [0.5, 0.5]
    """
    gain = state.variance / ((1 + caution) * state.variance + noise / np.square(curvature))
    step = gain * gradient / curvature + momentum * state.step
    if centred:
        step = step - step.mean(axis=0)
    return replace(
        state,
        weights=state.weights - step,
        variance=state.variance * (1 - gain),
        step=(1 + caution) * step * gain,
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
    """Return the probabilities of points on (0, 1) that discretise a uniform law: the lengths of the cells between
    their
    midpoints."""
    edges = np.concatenate([[0.0], (points[1:] + points[:-1]) / 2, [1.0]])
    return np.asarray(np.diff(edges))


@dataclass(frozen=True)
class KalmanBank:
    """Beliefs about weights under every hypothesis, and about the hypotheses (multiple models; Magill 1965).

    A hypothesis fixes the mean square of targets (powers of 2 below the bound), the part of it that weights can explain
    (uniform), and the factor by which all curvatures exceed their estimates, with prior probabilities inverse to it:
    where noise hides G, its leading directions, which hold the signal, look like average ones.

    The last L hypotheses assume that one unknown direction alone is that much more curved. The first gradients settle
    that direction, and the other directions, on which they carry little information, keep moving: their variance falls
    by a gradient's information about an average direction, and no step is longer than the curved direction allows.

    Attributes:
        weights: posterior means, ``(H, k)``.
        variance: posterior variances, ``(H, k)``; of the last L the curved direction's.
        others: posterior variances in the other directions under the last L hypotheses, ``(L, k)``.
        unexplained: mean square of a residual at the best weights, ``(H,)``.
        stretch: the factor on curvatures, ``(H,)``.
        evidence: log-probability of a hypothesis up to a constant, ``(H,)``.

    Example:
        >>> from privstats.estimates.filter_bank import KalmanBank
        >>> bank = KalmanBank.of(np.ones(2) / 2, np.ones(2), stretch=1.0, energy=(0.25, 0.01), bound=1.0)
        >>> bank.mean.round(6).tolist(), len(bank.evidence) == len(bank.weights)
        ([0.0, 0.0], True)
    """

    weights: Array
    variance: Array
    others: Array
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
        """Before any gradient: weights have mean 0, and the variance that explains the targets.

        Args:
            curvature: the diagonal of E u u', ``(k,)``, above 0.
            shape: prior variances up to a factor, ``(k,)``, above 0.
            stretch: how many times its mean an eigenvalue of G may be and still hide in the noise, at least 1.
            energy: the targets' mean square as it was released, and the standard deviation of the noise in it.
            bound: Y, the bound of targets, above 0.
            single: whether one direction alone may be stretched, too, which is as likely as that all are.
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
        unexplained = (energies * (1 - explained))[every]
        return cls(np.zeros_like(variance), variance, others, unexplained, stretched[every], evidence[every])

    @property
    def belief(self) -> Array:
        """Probabilities of the hypotheses, ``(H,)``."""
        raised = np.exp(self.evidence - self.evidence.max())
        return np.asarray(raised / raised.sum())

    @property
    def mean(self) -> Array:
        """Posterior mean of the weights, ``(k,)``: the weights that are published, and those of the head."""
        return np.asarray(self.belief @ self.weights)

    def energies(self, point: Array, curvature: Array) -> Array:
        """Return the mean square of a residual at these weights under every hypothesis, ``(H,)``."""
        away = self.variance + np.square(self.weights - point)
        return np.asarray(self.unexplained + self.stretch * (away @ curvature))

    def deviation(self, point: Array, curvature: Array) -> float:
        """Return the size of residuals at these weights: the root of their expected log mean square."""
        return math.exp(float(self.belief @ np.log(self.energies(point, curvature))) / 2)

    def within(self, point: Array, clip: float, curvature: Array) -> Array:
        """Share of residuals at these weights within a clip under every hypothesis, ``(H,)``, as of Gaussian ones."""
        inside = 2 * ndtr(clip / np.sqrt(self.energies(point, curvature))) - 1
        return np.asarray(np.maximum(inside, _LEAST_SHARE))

    def counted(
        self, point: Array, share: tuple[float, float], clip: float, records: int, curvature: Array
    ) -> KalmanBank:
        """Return the bank after a round's count of residuals within the clip.

        Args:
            point: the round's weights, ``(k,)``.
            share: the released count over ``records``, and the standard deviation of the noise in it.
            clip: the bound of residuals.
            records: n.
            curvature: as for :meth:`of`.
        """
        expected = self.within(point, clip, curvature)
        spread = share[1] ** 2 + expected * (1 - expected) / records + np.square(_SHAPE * expected)
        evidence = self.evidence - (np.square(share[0] - expected) / spread + np.log(spread)) / 2
        return replace(self, evidence=evidence)

    def pointed(
        self, point: Array, way: Array, noise: Array, attenuation: Array | float, curvature: Array
    ) -> KalmanBank:
        """Return the bank after a gradient, which gives every filter the estimate ``point + way / (attenuation
        stretch)``.

        Args:
            point: where it was taken, ``(k,)``.
            way: Newton's way from there to the optimum if nothing is clipped or stretched, ``(k,)``.
            noise: standard deviations of its entries, ``(k,)``.
            attenuation: the share of a gradient that clipping leaves, a number or one per hypothesis ``(H,)``.
            curvature: as for :meth:`of`.
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
        """Slice of the hypotheses that a single direction is curved."""
        return slice(len(self.evidence) - len(self.others), None)

    def _gain(self, noise: Array) -> Array:
        """Return the part of Newton's way that the other directions go, ``(L, k)``: Kalman's, or what the curved one
        bears."""
        stretch = self.stretch[self._single, None]
        kalman = self.others / ((1 + _CAUTION) * self.others + np.square(noise) + _TINY)
        return np.asarray(np.minimum(kalman, 1 / ((1 + _CAUTION) * stretch)))


_SCALES = 4.0 ** np.arange(-8.0, 4.0)
_ODDS = 1e-4  # decisive evidence, as Jeffreys has it, before the matrix of the first release is corrected


@dataclass(frozen=True)
class Curvature:
    """A symmetric positive definite matrix by its eigenvalues ``(k,)`` and orthonormal columns ``(k, k)``.

    Example:
        >>> from privstats.estimates.filter_bank import Curvature
        >>> curvature = Curvature(values=np.array([2.0, 4.0]), vectors=np.eye(2))
        >>> curvature.solved(np.array([2.0, 2.0])).tolist()
        [1.0, 0.5]
    """

    values: Array
    vectors: Array

    def solved(self, gradient: Array) -> Array:
        """Return the matrix's inverse times a vector, ``(k,)``."""
        return np.asarray(self.vectors @ ((self.vectors.T @ gradient) / self.values))

    def noise(self, sigma: Array | float) -> Array:
        """Return standard deviations, ``(k,)``, of :meth:`solved` of noise of standard deviations sigma."""
        inverse = (self.vectors / self.values) @ self.vectors.T
        return np.asarray(np.sqrt(np.square(inverse) @ np.square(np.broadcast_to(sigma, self.values.shape))))


@dataclass(frozen=True)
class GradientHistory:
    """The gradients so far, and the weights at which they were taken.

    Attributes:
        points: weights, ``(t, k)``.
        gradients: downhill, ``K (best - point)`` and noise, ``(t, k)``.
        noise: standard deviations of their entries, ``(t,)``.

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
        """Before the first gradient of ``size`` entries."""
        return cls(np.zeros((0, size)), np.zeros((0, size)), np.zeros(0))

    def on(self, point: Array, gradient: Array, noise: float) -> GradientHistory:
        """Return the history with one more gradient."""
        return GradientHistory(
            np.vstack([self.points, point]), np.vstack([self.gradients, gradient]), np.append(self.noise, noise)
        )

    def curvature(self, diagonal: Array) -> Curvature:
        """K: a diagonal, corrected by the history; its eigenvalues never fall below the least of the diagonal.

        Differences of gradients are ``-K`` times differences of points, for any optimum. K is the diagonal and entries
        from N(0, v); given v their posterior mean is ridge regression (Hennig 2015 has it for exact gradients),
        averaged over v by how well it explains the differences, v = 0 at odds of 10,000 to 1.

        Args:
            diagonal: the estimate of K so far, ``(k,)``, above 0.
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
