"""How many neighbours and which threshold a sparse graph needs, by exact tail probabilities.

Random k-regular Harary graphs as in SecAgg+ (Bell, Bonawitz, Gascon, Lepoint, Raykova 2020). The bounds assume that who
colludes does not depend on the graph. Used by ``Parameters.solve``; pure mathematics, no cryptography.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, log2

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PlanError

__all__ = ["CERTAIN", "FailureBounds", "SparseGraph", "failure_bounds", "solve_sparse"]

_CONNECTIVITY, _PRIVACY, _LIVENESS = -40.0, -40.0, -30.0
_MAX_NEIGHBOURS = 255


@dataclass(frozen=True)
class FailureBounds:
    """log2 of the probability that a promise fails, over the random graph; minus infinity where it cannot.

    Attributes:
        connectivity: honest survivors fall into groups whose sums could be told apart.
        privacy: somebody's neighbours include so many colluders that both of its secrets could be put together.
        liveness: a secret finds fewer than t shares, so that the session ends without a sum.
        lying_server: as connectivity, if the server chooses who "drops" after seeing the graph.
    """

    connectivity: float
    privacy: float
    liveness: float
    lying_server: float


CERTAIN = FailureBounds(-inf, -inf, -inf, -inf)


@dataclass(frozen=True)
class SparseGraph:
    """A degree, a threshold and what can still fail."""

    neighbours: int
    threshold: int
    bounds: FailureBounds


def solve_sparse(clients: int, *, min_survivors: int, colluders: int, robust: bool = False) -> SparseGraph:
    """The smallest even k, and the smallest t for it, with connectivity and privacy <= 2^-40 and liveness <= 2^-30.

    Args:
        clients: parties on the roster.
        min_survivors: the fewest clients whose sum may be revealed; the others may drop.
        colluders: clients that may work with the server.
        robust: also hold ``lying_server`` to 2^-40, which takes about a third more neighbours.

    Raises:
        PlanError: no even k up to 255 (or clients - 2) satisfies them.
    """
    dropouts = clients - min_survivors
    if clients < 4 or colluders < 0 or dropouts < 0 or colluders + dropouts >= clients:
        raise PlanError(
            f"a random graph needs at least 4 clients and an honest survivor, got clients={clients}, "
            f"colluders={colluders}, min_survivors={min_survivors}"
        )
    from scipy.stats import hypergeom  # half a second that complete graphs need not wait for

    kind = "robust" if robust else "sparse"
    for k in range(2, min(clients - 2, _MAX_NEIGHBOURS) + 1, 2):
        if _connectivity(clients, colluders + dropouts, k) > _CONNECTIVITY:
            continue
        thresholds = np.arange(k // 2 + 1, k + 1)
        enough = _log2_union(clients, hypergeom.logsf(2 * thresholds - k - 1, clients - 1, colluders, k)) <= _PRIVACY
        if robust:
            beside = hypergeom.logsf(thresholds - k // 2 - 1, clients - 1, colluders, k // 2)
            enough &= _log2_union(clients, beside) <= _PRIVACY
        t = int(thresholds[enough.argmax()])  # the smallest, as a larger one only makes liveness worse
        bounds = failure_bounds(clients, min_survivors=min_survivors, colluders=colluders, neighbours=k, threshold=t)
        if enough.any() and bounds.liveness <= _LIVENESS:
            return SparseGraph(k, t, bounds)
    raise PlanError(
        f"no {kind} graph of at most {_MAX_NEIGHBOURS} neighbours carries {colluders} colluders and {dropouts} "
        f"dropouts among {clients} clients: expect fewer colluders or fewer dropouts (lower colluders, raise "
        "min_survivors), or use a complete graph of at most 256 clients"
    )


def failure_bounds(
    clients: int, *, min_survivors: int, colluders: int, neighbours: int, threshold: int
) -> FailureBounds:
    """The failure bounds of a sparse graph with degree k and threshold t.

    With c colluders and d = clients - min_survivors dropouts among n clients:

    - connectivity ``n * prod_{i<k/2} (c+d-i)/(n-i)``: k/2 places in a row on the ring hold no honest survivor;
    - privacy ``n * P[Hyp(n-1, c, k) >= 2t-k]``: enough colluders to sign, and share, for two survivor lists;
    - liveness ``n * P[Hyp(n-1, n-1-d, k) < t]``: too few neighbours survive to give t shares;
    - lying_server ``n * P[Hyp(n-1, c, k/2) >= t-k/2]``: every client insists that everybody on the survivor list keeps
      t neighbours on it, so next to k/2 places without honest survivors at least t-k/2 of these must be colluders'.

    Source: SecAgg+, theorems 3.7 to 3.10, with exact hypergeometric tails for their bounds; the last is ours.
    """
    from scipy.stats import hypergeom

    n, c, k, t = clients, colluders, neighbours, threshold
    dropouts = n - min_survivors
    return FailureBounds(
        connectivity=_connectivity(n, c + dropouts, k),
        privacy=float(_log2_union(n, hypergeom.logsf(2 * t - k - 1, n - 1, c, k))),
        liveness=float(_log2_union(n, hypergeom.logcdf(t - 1, n - 1, n - 1 - dropouts, k))),
        lying_server=float(_log2_union(n, hypergeom.logsf(t - k // 2 - 1, n - 1, c, k // 2))),
    )


def _connectivity(clients: int, lost: int, k: int) -> float:
    """log2 of n * prod_{i<k/2} (lost - i)/(n - i); minus infinity once a factor reaches zero."""
    if lost < k // 2:
        return -inf
    return log2(clients) + sum(log2((lost - i) / (clients - i)) for i in range(k // 2))


def _log2_union(clients: int, log_probability: float | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(log2(clients) + np.asarray(log_probability) / log(2))
