"""Curvature that gradients themselves tell: how they changed between the weights at which they were taken.

Not a step and not a filter: a noise-aware quasi-Newton estimate, which believes nothing that noise explains as well.
Between the gradients of a course so far and the next step of a regression.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privstats.estimates.spectrum import Array

__all__ = ["Curvature", "Walk"]

_SCALES = 4.0 ** np.arange(-8.0, 4.0)
_ODDS = 1e-4  # decisive evidence, as Jeffreys has it, before the matrix of the first release is corrected


@dataclass(frozen=True)
class Curvature:
    """A symmetric positive definite matrix by its eigenvalues ``(k,)`` and orthonormal columns ``(k, k)``."""

    values: Array
    vectors: Array

    def solved(self, gradient: Array) -> Array:
        """The matrix's inverse times a vector, ``(k,)``."""
        return np.asarray(self.vectors @ ((self.vectors.T @ gradient) / self.values))

    def noise(self, sigma: Array | float) -> Array:
        """Standard deviations, ``(k,)``, of :meth:`solved` of noise of standard deviations sigma."""
        inverse = (self.vectors / self.values) @ self.vectors.T
        return np.asarray(np.sqrt(np.square(inverse) @ np.square(np.broadcast_to(sigma, self.values.shape))))


@dataclass(frozen=True)
class Walk:
    """Where gradients were taken and what they were.

    Attributes:
        points: weights, ``(t, k)``.
        gradients: of what falls, ``K (best - point)`` and noise, ``(t, k)``.
        noise: standard deviations of their entries, ``(t,)``.
    """

    points: Array
    gradients: Array
    noise: Array

    @classmethod
    def empty(cls, size: int) -> Walk:
        """Before the first gradient of ``size`` entries."""
        return cls(np.zeros((0, size)), np.zeros((0, size)), np.zeros(0))

    def on(self, point: Array, gradient: Array, noise: float) -> Walk:
        """With one more gradient."""
        return Walk(
            np.vstack([self.points, point]), np.vstack([self.gradients, gradient]), np.append(self.noise, noise)
        )

    def curvature(self, diagonal: Array) -> Curvature:
        """K as the walk corrects a diagonal, never below the least of that.

        Differences of gradients are ``-K`` times differences of points, whatever the optimum is. K is the diagonal and
        entries from N(0, v); given v their posterior mean is ridge regression (Hennig 2015 has it for exact
        gradients), averaged over v by how well it explains the differences, v = 0 at odds of 10,000 to 1.

        Args:
            diagonal: K as far as it is known, ``(k,)``, above 0.
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
        found, logs = [np.zeros_like(ways)], [_log_likelihood(noise, energy, k)]
        for scale in _SCALES / k**2:
            total = scale * explained + noise
            found.append(scale * np.linalg.solve(total, ways))
            logs.append(_log_likelihood(total, energy, k))
        prior = np.array([1 - _ODDS, *[_ODDS / len(_SCALES)] * len(_SCALES)])
        belief = prior * np.exp(np.array(logs) - max(logs))
        return np.asarray(missed.T @ np.tensordot(belief / belief.sum(), np.array(found), axes=1))


def _log_likelihood(covariance: Array, energy: Array, k: int) -> float:
    _, volume = np.linalg.slogdet(covariance)
    return float(-(k * volume + np.trace(np.linalg.solve(covariance, energy))) / 2)
