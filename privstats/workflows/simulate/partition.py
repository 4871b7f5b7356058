"""Splitting one data set over simulated clients with label skew.

Only for simulations: real parties come with their own records. Reproducible from a seed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincinv

from privstats.errors import DataError
from privstats.randomness import Generator, uniform

__all__ = ["dirichlet_partition"]


def dirichlet_partition(y: ArrayLike, clients: int, alpha: float, rng: Generator) -> tuple[NDArray[np.int64], ...]:
    """Row indices per client: each class is spread over the clients in Dirichlet(alpha) proportions.

    Args:
        y: labels, shape ``(n,)``; for a regression pass strata, for example quantile bins of the target.
        clients: parties to split over, at least 1.
        alpha: concentration above 0; 0.05 leaves most clients with one or two classes, 100 is nearly even.
        rng: where the randomness comes from.

    Returns:
        One sorted int64 array per client; together they are every row exactly once. A client may be empty.
    """
    labels = np.asarray(y)
    if clients < 1:
        raise DataError(f"clients must be at least 1, got {clients}")
    if not alpha > 0:
        raise DataError(f"alpha must be above 0, got {alpha}")
    owner = np.empty(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        edges = np.cumsum(_dirichlet(clients, alpha, rng))[:-1]
        owner[rows] = np.searchsorted(edges, uniform(len(rows), rng), side="right")
    return tuple(np.flatnonzero(owner == index) for index in range(clients))


def _dirichlet(size: int, alpha: float, rng: Generator) -> NDArray[np.float64]:
    """Normalised Gamma(alpha) draws by inversion; in the rare case that all underflow, one client takes all."""
    draws = np.asarray(gammaincinv(alpha, uniform(size, rng)), np.float64)
    total = draws.sum()
    return np.asarray(draws / total) if total > 0 else np.eye(size)[0]
