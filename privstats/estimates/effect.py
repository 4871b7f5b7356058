"""Estimate two arms' outcome lines and effect from noisy least-squares sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array

_LEAST_MEAN = 0.002  # of half the range of outcomes, so that a ratio of two means of 0 is 1


@dataclass(frozen=True)
class ArmSums:
    """Noisy least-squares sums of the treated, then the other arm.

    Attributes:
        G, h: ``(d, d)``, the constant last, and ``(d,)`` per arm, outcomes about their range's middle.
        sigma_G, sigma_h: noise standard deviations; G has sigma_G / sqrt 2 off its diagonal.
    """

    G: tuple[Array, Array]
    h: tuple[Array, Array]
    constant: float
    sigma_G: float
    sigma_h: float

    @property
    def records(self) -> tuple[float, float]:
        """Noisy records per arm."""
        first, second = (float(each[-1, -1]) / self.constant**2 for each in self.G)
        return first, second


def ridge_line(G: Array, h: Array, sigma: float) -> Array:
    """Return one arm's line, ``(d,)``: least squares with G's eigenvalues raised by :func:`penalty`."""
    values, vectors = np.linalg.eigh(G)
    raised = np.maximum(values, 0.0) + penalty(sigma, len(G))
    clear = raised > 1e-12 * float(np.abs(values).max(initial=0.0))
    inverse = np.where(clear, 1.0 / np.where(clear, raised, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ h)))


def penalty(sigma: float, columns: int) -> float:
    """Return the size of a symmetric noise matrix, sigma sqrt(2 d), added to G's eigenvalues."""
    return sigma * math.sqrt(2 * columns)


def outcome_lines(sums: ArmSums, half: float) -> Array:
    """Return both lines and their mean difference, clipped to ``+-half``, half the outcome range: ``(2 d + 1,)``."""
    lines = [ridge_line(G, h, sums.sigma_G) for G, h in zip(sums.G, sums.h, strict=True)]
    total = sums.G[0][:, -1] + sums.G[1][:, -1]
    records = max(sum(sums.records), 1.0) * sums.constant
    guess = float(np.clip(total / records @ (lines[0] - lines[1]), -half, half))
    return np.concatenate([*lines, [guess]])


def ratio_guess(sums: ArmSums, lines: Array, half: float) -> float:
    """Return the ratio of the lines' means over all records, shrunk toward 1 as far as noise hides the means.

    ``half`` is half a range from 0; ``lines`` are about its middle.
    """
    d, total = len(sums.h[0]), sums.G[0][:, -1] + sums.G[1][:, -1]
    records = max(sum(sums.records), 1.0) * sums.constant
    means = [float(np.clip(1 + total / records @ line / half, 0.0, 2.0)) for line in (lines[:d], lines[d : 2 * d])]
    hidden = 4 * math.sqrt(2) * sums.sigma_h / records / half + _LEAST_MEAN
    return (means[0] + hidden) / (means[1] + hidden)
