"""The step between rounds of a logistic or Poisson regression, from a noisy score and a noisy information matrix."""

from __future__ import annotations

import math

import numpy as np

from privstats.estimates.spectrum import Array

__all__ = ["damped_step", "start"]


def start(features: int, family: str, rate: float | None, constant: float | None) -> Array:
    """Weights of the first round, ``(d,)``: 0, or the link of the guessed ``rate`` on the constant, the last column.

    Example:
        >>> from privstats.estimates.score import start
        >>> start(3, "logistic", rate=None, constant=None).tolist()
        [0.0, 0.0, 0.0]
        >>> start(3, "logistic", rate=0.02, constant=1.0).round(2).tolist()  # log(0.02 / 0.98) on the constant
        [0.0, 0.0, -3.89]
    """
    weights = np.zeros(features)
    if rate is not None and constant is not None:
        weights[-1] = (math.log(rate) if family == "poisson" else math.log(rate / (1 - rate))) / constant
    return weights


def damped_step(g: Array, H: Array, sigma_H: float, radius: float | None) -> Array:
    """A Newton step of bounded length under noise.

    ``V diag(1 / max(l + 2 sigma_H sqrt d, 3 sigma_H)) V'g`` with ``H = V diag(l) V'``.

    Args:
        g: score, ``(d,)``.
        H: information, symmetric, ``(d, d)``.
        sigma_H: noise standard deviation on its diagonal.
        radius: R, to shorten the step to 1 / R, for a Poisson regression; None to leave it.

    Example:
        >>> from privstats.estimates.score import damped_step
        >>> g, H = np.array([2.0, 2.0]), np.diag([4.0, 1.0])
        >>> damped_step(g, H, 0.0, None).round(6).tolist()  # Newton's step
        [0.5, 2.0]
        >>> damped_step(g, H, 1.0, None).round(2).tolist()  # noise in H shortens it, most where H is small
        [0.29, 0.52]
    """
    values, vectors = np.linalg.eigh((H + H.T) / 2)
    floor = max(3 * sigma_H, len(values) * np.finfo(np.float64).eps * float(np.abs(values).max(initial=0.0)), 1e-12)
    step = np.asarray(vectors @ (vectors.T @ g / np.maximum(values + 2 * sigma_H * math.sqrt(len(values)), floor)))
    length = float(np.linalg.norm(step))
    return step / (radius * length) if radius is not None and radius * length > 1 else step
