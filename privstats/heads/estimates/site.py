"""What a site's own rows say of noisy weights: which directions carry a signal, and how much of one is noise.

Post-processing of released sums, so it costs no privacy; the rows are the site's own, without labels.
"""

from __future__ import annotations

import numpy as np

from privstats.heads.evidence import Array

__all__ = ["site_weights"]

_WHITENED = 0.25
_LEAST = 1e-6  # of the largest eigenvalue
_LEVELS = np.logspace(-4, 12, 641)


def site_weights(weights: Array, sigma: float, centred: Array) -> Array:
    """Weights of a linear rule for classes as noise leaves them, in the directions of a site's rows.

    With S = Q diag(l) Q' the second moment of the rows, the signal in direction j has variance t l_j, and t is the most
    likely number given the noisy weights: direction j keeps ``t l_j / (t l_j + sigma^2)``, its posterior mean. What is
    left is whitened by ``l_j^-1/4``, as parties that stop early whiten too little (docs/papers_and_peers.md).

    Args:
        weights: ``(C, d)``; the part that all classes share decides nothing and is taken out.
        sigma: noise standard deviation of an entry; with 0 the weights are whitened alone.
        centred: rows of the site less their mean, ``(n, d)``; with fewer rows than directions eigenvalues are pulled
            together, to where one row leaves the weights nearly as they are.
    """
    own: Array = weights - weights.mean(axis=0)
    records, features = centred.shape
    values, Q = np.linalg.eigh(centred.T @ centred)
    values = np.maximum(records * values + features * values.mean(), 0.0)
    if not values[-1] > 0:
        return own
    share = np.maximum(values / values[-1], _LEAST)
    turned = own @ Q
    kept = share**-_WHITENED
    if sigma > 0:
        signal = _level(np.square(turned).sum(axis=0) / sigma**2, len(own) - 1, share) * share
        kept *= signal / (signal + 1.0)
    out: Array = (turned * kept) @ Q.T
    return out


def _level(squares: Array, freedom: int, share: Array) -> float:
    """The t over sigma^2 under which sums of squares with variance 1 + t l_j are most likely."""
    variance = 1.0 + _LEVELS[:, None] * share
    return float(_LEVELS[np.argmin((freedom * np.log(variance) + squares / variance).sum(axis=1))])
