"""Where proportional hazards start: a hazard per bin from noisy counts of events and persons at risk."""

from __future__ import annotations

import numpy as np

from privstats.estimates.spectrum import Array

__all__ = ["cumulative_half", "shrunk_hazards"]

_WIDE = 8.0  # times the mean hazard beyond which no bin starts
_LEAST = 1e-4


def cumulative_half(bins: int) -> Array:
    """Hazards of bins ``(K,)`` that add up to one half, where no count tells better.

    Example:
        >>> from privstats.estimates.hazard import cumulative_half
        >>> cumulative_half(5).tolist()
        [0.1, 0.1, 0.1, 0.1, 0.1]
    """
    return np.full(bins, 0.5 / bins)


def shrunk_hazards(events: Array, at_risk: Array, sigma: float) -> Array:
    """A cumulative hazard per bin, ``(K,)``, each shrunk to that of all bins by what noise and chance leave of it.

    Args:
        events, at_risk: noisy counts, ``(K,)``.
        sigma: noise standard deviation of a count of events.

    Example:
        >>> from privstats.estimates.hazard import shrunk_hazards
        >>> shrunk_hazards(np.array([10.0, 0.0]), np.array([100.0, 50.0]), sigma=0.0).round(3).tolist()
        [0.1, 0.015]
        >>> shrunk_hazards(np.array([10.0, 0.0]), np.array([100.0, 50.0]), sigma=100.0).round(3).tolist()
        [0.119, 0.118]
    """
    bins = len(events)
    exposed = np.maximum(at_risk, 1.0)
    least = sigma * np.sqrt(bins)
    share = min(max(float(events.sum()), least, 1.0) / max(float(exposed.sum()), least), 0.5)
    expected = share * exposed
    known = expected**2 / (expected**2 + expected + sigma**2)
    shares = share * (1 + known * (events / expected - 1))
    low, high = max(share / _WIDE, _LEAST), min(share * _WIDE, 0.9)
    return np.asarray(-np.log1p(-np.clip(shares, low, high)))
