"""How many neighbours and which threshold a sparse graph needs, by exact tail probabilities.

Random k-regular Harary graphs as in SecAgg+ (Bell, Bonawitz, Gascon, Lepoint, Raykova 2020). The bounds assume that who
colludes and who drops does not depend on the graph. Used by ``Parameters.solve``; pure mathematics, no cryptography.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, log2

from scipy.stats import hypergeom

from privstats.errors import PlanError

__all__ = ["SparseGraph", "solve_sparse"]

_CONNECTIVITY_BITS = 40.0
_PRIVACY_BITS = 40.0
_LIVENESS_BITS = 30.0
_MAX_NEIGHBOURS = 255


@dataclass(frozen=True)
class SparseGraph:
    """A degree and a threshold, with the three failure bounds as log2 of probabilities."""

    neighbours: int
    threshold: int
    connectivity: float
    privacy: float
    liveness: float


def solve_sparse(clients: int, *, min_survivors: int, colluders: int) -> SparseGraph:
    """The smallest even k, and a threshold t for it, whose failure bounds all hold.

    With c colluders and d = clients - min_survivors dropouts among n clients, chosen independently of the graph:
    connectivity ``n * prod_{i<k/2} (c+d-i)/(n-i) <= 2^-40``: honest survivors stay connected;
    privacy ``n * P[Hyp(n-1, c, k) >= 2t-k] <= 2^-40``: nobody's neighbours can give both of its secrets;
    liveness ``n * P[Hyp(n-1, n-1-d, k) < t] <= 2^-30``: every secret finds t shares.

    Raises:
        PlanError: no even k up to 255 (or clients - 2) satisfies them.

    Source: SecAgg+, theorems 3.7 to 3.10, with exact hypergeometric tails in place of their exponential bounds.
    """
    dropouts = clients - min_survivors
    if clients < 4 or colluders < 0 or dropouts < 0 or colluders + dropouts >= clients:
        raise PlanError(
            f"a sparse graph needs at least 4 clients and an honest survivor, got clients={clients}, "
            f"colluders={colluders}, min_survivors={min_survivors}"
        )
    for k in range(2, min(clients - 2, _MAX_NEIGHBOURS) + 1, 2):
        connectivity = _connectivity(clients, colluders + dropouts, k)
        if connectivity > -_CONNECTIVITY_BITS:
            continue
        for t in range(k // 2 + 1, k + 1):
            privacy = _log2_union(clients, hypergeom.logsf(2 * t - k - 1, clients - 1, colluders, k))
            if privacy > -_PRIVACY_BITS:
                continue
            liveness = _log2_union(clients, hypergeom.logcdf(t - 1, clients - 1, clients - 1 - dropouts, k))
            if liveness <= -_LIVENESS_BITS:
                return SparseGraph(k, t, connectivity, privacy, liveness)
            break  # a larger threshold only makes liveness worse
    raise PlanError(
        f"no sparse graph of at most {_MAX_NEIGHBOURS} neighbours carries {colluders} colluders and {dropouts} "
        f"dropouts among {clients} clients: expect fewer of either, or use a complete graph of at most 256 clients"
    )


def _connectivity(clients: int, lost: int, k: int) -> float:
    """log2 of n * prod_{i<k/2} (lost - i)/(n - i); minus infinity once a factor reaches zero."""
    if lost < k // 2:
        return float("-inf")
    return log2(clients) + sum(log2((lost - i) / (clients - i)) for i in range(k // 2))


def _log2_union(clients: int, log_probability: float) -> float:
    return log2(clients) + float(log_probability) / log(2)
