"""Compute first weights and steps of logistic, Poisson and hazard rounds."""

from __future__ import annotations

import math

import numpy as np

from privstats.estimates.denoise import Array


def start(features: int, family: str, rate: float | None, constant: float | None) -> Array:
    """Return the first weights, ``(d,)``: 0, or the guessed ``rate``'s link on the constant, last.

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
    """Return a Newton step of bounded length under noise.

    ``V diag(1 / max(l + 2 sigma_H sqrt d, 3 sigma_H)) V'g`` with ``H = V diag(l) V'``.

    Args:
        g: score, ``(d,)``.
        H: information, symmetric, ``(d, d)``.
        sigma_H: noise standard deviation on its diagonal.
        radius: R, to limit the step to 1 / R, or None.

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


_WIDE = 8.0  # times the mean hazard beyond which no bin starts
_LEAST = 1e-4
_LARGEST_SHARE = 0.9  # of those at risk in a bin, for a finite hazard


def cumulative_half(bins: int) -> Array:
    """Return equal hazards of bins ``(K,)`` of sum one half.

    Example:
        >>> from privstats.estimates.score import cumulative_half
        >>> cumulative_half(5).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1]
    """
    return np.full(bins, 0.5 / bins)


def shrunk_hazards(events: Array, at_risk: Array, sigma: float) -> Array:
    """Return cumulative hazards per bin, ``(K,)``, shrunk to the common one as far as noise explains them.

    ``sigma`` is the noise standard deviation of an event count.

    Example:
        >>> from privstats.estimates.score import shrunk_hazards
        >>> shrunk_hazards(np.array([10.0, 0.0]), np.array([100.0, 50.0]), sigma=0.0).round(3).tolist()
        [0.101, 0.016]
        >>> shrunk_hazards(np.array([10.0, 0.0]), np.array([100.0, 50.0]), sigma=5.0).round(3).tolist()
        [0.09, 0.049]
    """
    return np.asarray(-np.log1p(-shrunk_shares(events, at_risk, sigma, _LARGEST_SHARE)))


def shrunk_shares(events: Array, at_risk: Array, sigma: float, largest: float) -> Array:
    """Return events over those at risk, ``(K,)``, shrunk to the common share as far as noise explains them.

    Args:
        events: by bin, noisy.
        at_risk: by bin: persons, or person-time, for which the result is a hazard.
        sigma: noise standard deviation of an event count.
        largest: bound of the result.

    Example:
        >>> from privstats.estimates.score import shrunk_shares
        >>> shrunk_shares(np.array([10.0, 0.0]), np.array([100.0, 50.0]), sigma=0.0, largest=0.9).round(3).tolist()
        [0.096, 0.015]
    """
    bins = len(events)
    exposed = np.maximum(at_risk, 1.0)
    least = sigma * np.sqrt(bins)
    share = min(max(float(events.sum()), least, 1.0) / max(float(exposed.sum()), least), 0.5)
    expected = share * exposed
    known = expected**2 / (expected**2 + expected + sigma**2)
    shares = share * (1 + known * (events / expected - 1))
    low, high = max(share / _WIDE, _LEAST), min(share * _WIDE, largest)
    return np.asarray(np.clip(shares, low, high))
