"""A bank of Kalman filters: one per hypothesis about what is not known of a regression, weighed by their evidence.

Not a gradient and not a choice of clip: it is told where a round points and how many residuals were small, and says
what to believe. Between the released sums of a regression's round and the weights of the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from privstats.estimates.filter import Filter, advanced
from privstats.estimates.spectrum import Array

__all__ = ["Bank"]

_ENERGIES = 2.0 ** np.arange(-10.0, 1.0)
_EXPLAINED = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.96, 0.985, 0.995])
_STRETCHES = np.linspace(0.0, 1.0, 4)
_RESOLUTION = 0.35  # half the way between two energies, so that one of them always fits
_SHAPE = 0.05  # residuals need not be Gaussian: a share within the clip is no better known than by this part of it
_CAUTION = 0.25
_LEAST_SHARE = 1e-9  # what can be divided by
_TINY = float(np.finfo(np.float64).tiny)


def _widths(points: Array) -> Array:
    """Probabilities of points on (0, 1) that stand for a uniform: the lengths of the cells between their middles."""
    edges = np.concatenate([[0.0], (points[1:] + points[:-1]) / 2, [1.0]])
    return np.asarray(np.diff(edges))


@dataclass(frozen=True)
class Bank:
    """Beliefs about weights under every hypothesis, and about the hypotheses (multiple models; Magill 1965).

    A hypothesis says what the mean square of targets is (powers of 2 below the bound), which part of it weights can
    explain (uniform), and by how much all curvatures are larger than they look, with probabilities that fall as the
    inverses: where noise hides G, its leading directions, in which the signal is, are taken for mean ones.

    Attributes:
        weights: posterior means, ``(H, k)``.
        variance: posterior variances, ``(H, k)``.
        unexplained: mean square of a residual at the best weights, ``(H,)``.
        stretch: what curvatures are multiplied by, ``(H,)``.
        evidence: log-probability of a hypothesis up to a constant, ``(H,)``.
    """

    weights: Array
    variance: Array
    unexplained: Array
    stretch: Array
    evidence: Array

    @classmethod
    def of(cls, curvature: Array, shape: Array, stretch: float, energy: tuple[float, float], bound: float) -> Bank:
        """Before any gradient: weights are 0 give or take what explains targets.

        Args:
            curvature: the diagonal of E u u', ``(k,)``, above 0.
            shape: prior variances up to a factor, ``(k,)``, above 0.
            stretch: how many times its mean an eigenvalue of G may be and still hide in the noise, at least 1.
            energy: the targets' mean square as it was released, and the standard deviation of the noise in it.
            bound: Y, the bound of targets, above 0.
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
        return cls(np.zeros_like(variance), variance, energies * (1 - explained), stretched, evidence)

    @property
    def belief(self) -> Array:
        """Probabilities of the hypotheses, ``(H,)``."""
        raised = np.exp(self.evidence - self.evidence.max())
        return np.asarray(raised / raised.sum())

    @property
    def mean(self) -> Array:
        """Weights as they are expected to be, ``(k,)``: what is published, and what a head predicts with."""
        return np.asarray(self.belief @ self.weights)

    def energies(self, point: Array, curvature: Array) -> Array:
        """Mean square of a residual at these weights under every hypothesis, ``(H,)``."""
        away = self.variance + np.square(self.weights - point)
        return np.asarray(self.unexplained + self.stretch * (away @ curvature))

    def deviation(self, point: Array, curvature: Array) -> float:
        """The size of residuals at these weights: the root of their expected log mean square."""
        return math.exp(float(self.belief @ np.log(self.energies(point, curvature))) / 2)

    def within(self, point: Array, clip: float, curvature: Array) -> Array:
        """Share of residuals at these weights within a clip under every hypothesis, ``(H,)``, as of Gaussian ones."""
        inside = 2 * ndtr(clip / np.sqrt(self.energies(point, curvature))) - 1
        return np.asarray(np.maximum(inside, _LEAST_SHARE))

    def counted(self, point: Array, share: tuple[float, float], clip: float, records: int, curvature: Array) -> Bank:
        """After a round has counted how many residuals are within the clip.

        Args:
            point: the weights at which it did, ``(k,)``.
            share: the released count over ``records``, and the standard deviation of the noise in it.
            clip: what residuals were clipped to.
            records: n.
            curvature: as for :meth:`of`.
        """
        expected = self.within(point, clip, curvature)
        spread = share[1] ** 2 + expected * (1 - expected) / records + np.square(_SHAPE * expected)
        evidence = self.evidence - (np.square(share[0] - expected) / spread + np.log(spread)) / 2
        return replace(self, evidence=evidence)

    def pointed(self, point: Array, way: Array, noise: Array, attenuation: Array | float, curvature: Array) -> Bank:
        """After a gradient, which tells every filter of ``point + way / (attenuation stretch)``.

        Args:
            point: where it was taken, ``(k,)``.
            way: Newton's way from there to the optimum if nothing is clipped or stretched, ``(k,)``.
            noise: standard deviations of its entries, ``(k,)``.
            attenuation: what clipping leaves of a gradient, a number or one per hypothesis ``(H,)``.
            curvature: as for :meth:`of`.
        """
        factor = (np.broadcast_to(attenuation, self.stretch.shape) * self.stretch)[:, None]
        told, variance = point + way / factor - self.weights, np.square(noise / factor)
        total = self.variance + variance + _TINY
        # in units of the gradient, which hypotheses share, and not of the weights, which they do not
        surprise = np.log(total * np.square(factor * curvature) + _TINY) + np.square(told) / total
        state = Filter(self.weights, self.variance, np.zeros(()))
        after = advanced(state, -told, variance + _TINY, np.ones(()), caution=_CAUTION)
        evidence = self.evidence - surprise.sum(axis=1) / 2
        return replace(self, weights=after.weights, variance=after.variance, evidence=evidence)
