"""Outcome lines of two arms from noisy least-squares sums, and the effect estimate that they imply."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privstats.estimates.denoise import Array

_LEAST_MEAN = 0.002  # of half the range of outcomes, so that a ratio of two means of 0 is 1


@dataclass(frozen=True)
class ArmSums:
    """Least-squares sums of the treated and of the others, in this order, with the noise in them.

    Attributes:
        G: ``(d, d)`` of each arm, symmetric, the constant last.
        h: ``(d,)`` of each arm, of outcomes about the middle of their range.
        constant: the value of the constant.
        sigma_G, sigma_h: noise standard deviations; G has sigma_G on its diagonal, sigma_G / sqrt 2 elsewhere.
    """

    G: tuple[Array, Array]
    h: tuple[Array, Array]
    constant: float
    sigma_G: float
    sigma_h: float

    @property
    def records(self) -> tuple[float, float]:
        """Noisy numbers of records of each arm."""
        first, second = (float(each[-1, -1]) / self.constant**2 for each in self.G)
        return first, second


def ridge_line(G: Array, h: Array, sigma: float) -> Array:
    """Return the line of one arm, ``(d,)``: least squares with eigenvalues of G raised by the noise's possible share.

    The penalty is the size of the noise matrix, sigma sqrt(2 d), so directions hidden by noise get little weight.
    Without noise it is least squares, and 0 along columns that are exactly collinear.
    """
    values, vectors = np.linalg.eigh(G)
    raised = np.maximum(values, 0.0) + penalty(sigma, len(G))
    clear = raised > 1e-12 * float(np.abs(values).max(initial=0.0))
    inverse = np.where(clear, 1.0 / np.where(clear, raised, 1.0), 0.0)
    return np.asarray(vectors @ (inverse * (vectors.T @ h)))


def penalty(sigma: float, columns: int) -> float:
    """Return the addend to the eigenvalues of G: the size of a symmetric matrix of noise, sigma sqrt(2 d)."""
    return sigma * math.sqrt(2 * columns)


def outcome_lines(sums: ArmSums, half: float) -> Array:
    """Return both lines and the guess of the effect, ``(2 d + 1,)``: the mean difference of the lines, clipped to half
    the range.

    Args:
        sums: of both arms.
        half: half the range of outcomes.
    """
    lines = [ridge_line(G, h, sums.sigma_G) for G, h in zip(sums.G, sums.h, strict=True)]
    total = sums.G[0][:, -1] + sums.G[1][:, -1]
    records = max(sum(sums.records), 1.0) * sums.constant
    guess = float(np.clip(total / records @ (lines[0] - lines[1]), -half, half))
    return np.concatenate([*lines, [guess]])


def ratio_guess(sums: ArmSums, lines: Array, half: float) -> float:
    """Return the ratio of the lines' means over all records, shrunk toward 1 as far as noise hides the means.

    Args:
        sums: of both arms.
        lines: of both, and the guess of their difference, ``(2 d + 1,)``, about the middle of a range from 0.
        half: half that range.
    """
    d, total = len(sums.h[0]), sums.G[0][:, -1] + sums.G[1][:, -1]
    records = max(sum(sums.records), 1.0) * sums.constant
    means = [float(np.clip(1 + total / records @ line / half, 0.0, 2.0)) for line in (lines[:d], lines[d : 2 * d])]
    hidden = 4 * math.sqrt(2) * sums.sigma_h / records / half + _LEAST_MEAN
    return (means[0] + hidden) / (means[1] + hidden)
