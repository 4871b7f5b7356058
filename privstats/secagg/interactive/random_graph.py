"""Solve for a random graph's degree and threshold, and bound its failure probabilities.

Exact tails on random k-regular Harary graphs, as in SecAgg+ (Bell, Bonawitz, Gascon, Lepoint, Raykova 2020), and on a
random committee. They assume that who colludes depends neither on the graph nor on the committee.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf, log, log2

import numpy as np
from numpy.typing import NDArray

from privstats.errors import PlanError

_CONNECTIVITY, _PRIVACY, _LIVENESS = -40.0, -40.0, -30.0
_MAX_NEIGHBOURS = 255
COMPLETE_LIMIT = 256
"""Maximum number of clients in a complete graph."""
COMMITTEE = 1024
"""Maximum number of clients whose signatures fix the one survivor list: all clients up to this number.

A client downloads 64 bytes per signature and verifies each: 36 kB at 1,000 clients, at most 66 kB in a larger cohort.
"""


@dataclass(frozen=True)
class FailureBounds:
    """log2 of the probability over the random graph that a promise fails; -inf where it cannot.

    Attributes:
        connectivity: honest survivors split into groups with separable sums.
        privacy: a client's neighbours include enough colluders to reconstruct both its secrets.
        liveness: no sum, as a secret has fewer than t shares although no more clients vanish than planned.
        lying_server: as connectivity, if the server sees the graph before choosing who "drops".
        two_lists: the committee has enough colluders for two survivor lists; -inf where all clients are on it.
    """

    connectivity: float
    privacy: float
    liveness: float
    lying_server: float
    two_lists: float


CERTAIN = FailureBounds(-inf, -inf, -inf, -inf, -inf)


@dataclass(frozen=True)
class SparseGraph:
    """A degree, a threshold and their failure bounds."""

    neighbours: int
    threshold: int
    bounds: FailureBounds


def excludable(clients: int, neighbours: int, disputes: int) -> int:
    """Return m, the number of listed clients that a lying server can exclude from a sum.

    ceil((n-k-1) / (k/2+1)) + 1 windows of k neighbours cover the circle, each excluding at most q clients
    (``disputes``): docs/proofs/random_graph.md, 8.
    """
    windows = -(-(clients - neighbours - 1) // (neighbours // 2 + 1)) + 1
    return disputes * windows


def committee_size(clients: int) -> int:
    """Return the number of clients whose signatures on a survivor list count."""
    return min(clients, COMMITTEE)


@lru_cache(256)
def signatures_needed(clients: int, colluders: int) -> int:
    """Return the number of the committee's signatures on one list that exclude a second list.

    With s members, c' of them colluders that sign twice, tau signatures on each of two lists need
    2 (tau - c') <= s - c'. The result is the smallest tau with 2 tau > s + c' except with probability 2^-40: for
    s = n it is floor((n + c) / 2) + 1 and certain (docs/proofs/random_graph.md, 8).
    """
    size = committee_size(clients)
    if size == clients:
        return (clients + colluders) // 2 + 1
    tau = np.arange(size // 2 + 1, size + 2)  # with size + 1 there is never a list
    return int(tau[(_two_lists(clients, colluders, tau) <= _PRIVACY).argmax()])


def _two_lists(clients: int, colluders: int, signatures: int | NDArray[np.int64]) -> NDArray[np.float64]:
    from scipy.stats import hypergeom

    size = committee_size(clients)
    return np.asarray(hypergeom.logsf(2 * np.asarray(signatures) - size - 1, clients, colluders, size)) / log(2)


@lru_cache(256)  # a session reads its plan again with every message
def solve_sparse(
    clients: int, *, min_survivors: int, colluders: int, robust: bool = False, disputes: int = 1
) -> SparseGraph:
    """Return the smallest even k, and its smallest t, with small failure bounds and room for disputes.

    Connectivity and privacy are at most 2^-40, liveness at most 2^-30. There is room if no more clients can be
    excluded (:func:`excludable`) than may drop out. Without such a k, the smallest k with small bounds is returned, and
    :class:`Parameters` refuses it.

    Args:
        robust: also hold ``lying_server`` to 2^-40.
        disputes: maximum number of neighbours in dispute with a client; at most half of k - t.

    Raises:
        PlanError: no even k up to 255 (or clients - 2) satisfies them, or too few clients may remain to sign one list.
    """
    dropouts = clients - min_survivors
    if clients < 4 or colluders < 0 or dropouts < 0 or colluders + dropouts >= clients:
        raise PlanError(
            f"a random graph needs at least 4 clients and an honest survivor, got clients={clients}, "
            f"colluders={colluders}, min_survivors={min_survivors}"
        )
    if _unsigned(clients, dropouts, signatures_needed(clients, colluders)) > _LIVENESS:
        raise PlanError(
            f"more than half of {clients} clients, {colluders} of which may collude, sign one survivor list, and "
            f"{min_survivors} survivors may be too few: raise min_survivors, or lower colluders"
        )
    # Imported here, because the import takes half a second, which complete graphs do not need.
    from scipy.stats import hypergeom

    kind = "robust" if robust else "sparse"
    without_room = None
    for k in range(2, min(clients - 2, _MAX_NEIGHBOURS) + 1, 2):
        if _connectivity(clients, colluders + dropouts, k) > _CONNECTIVITY:
            continue
        thresholds = np.arange(k // 2 + 1, k + 1)
        enough = _log2_union(clients, hypergeom.logsf(2 * thresholds - k - 1, clients - 1, colluders, k)) <= _PRIVACY
        if robust:
            one_side = hypergeom.logsf(thresholds - disputes - k // 2 - 1, clients - 1, colluders, k // 2)
            enough &= _log2_union(clients, one_side) <= _PRIVACY
        enough &= 2 * disputes <= k - thresholds
        t = int(thresholds[enough.argmax()])  # the smallest, as a larger one only makes liveness worse
        numbers = {"neighbours": k, "threshold": t, "disputes": disputes}
        bounds = failure_bounds(clients, min_survivors=min_survivors, colluders=colluders, **numbers)
        if enough.any() and bounds.liveness <= _LIVENESS:
            graph = SparseGraph(k, t, bounds)
            if excludable(clients, k, disputes) <= dropouts:
                return graph
            without_room = without_room or graph
    if without_room is not None:
        return without_room
    remedy = (
        'write graph = "complete"'
        if clients <= COMPLETE_LIMIT
        else "expect fewer colluders or fewer dropouts (lower colluders, raise min_survivors), or use a complete graph "
        f"of at most {COMPLETE_LIMIT} clients"
    )
    raise PlanError(
        f"no {kind} graph of at most {_MAX_NEIGHBOURS} neighbours tolerates {colluders} colluders and {dropouts} "
        f"dropouts among {clients} clients: {remedy}"
    )


def largest_min_survivors(clients: int, *, colluders: int, robust: bool, disputes: int = 1) -> int | None:
    """Return the largest ``min_survivors`` with a graph that has room for disputes; None if there is none.

    A graph that tolerates some dropouts tolerates fewer, so the search ends at the first number without a graph.
    """
    # No graph has room for fewer than one of the highest degree excludes.
    for minimum in range(clients - excludable(clients, min(clients - 2, _MAX_NEIGHBOURS), disputes), 0, -1):
        try:
            graph = solve_sparse(clients, min_survivors=minimum, colluders=colluders, robust=robust, disputes=disputes)
        except PlanError:
            return None
        if excludable(clients, graph.neighbours, disputes) <= clients - minimum:
            return minimum
    return None


def failure_bounds(
    clients: int, *, min_survivors: int, colluders: int, neighbours: int, threshold: int, disputes: int = 1
) -> FailureBounds:
    """Return the failure bounds of a sparse graph.

    n clients have degree k, threshold t, c colluders and d = clients - min_survivors dropouts. At most q neighbours
    (``disputes``) share no mask with a client, and m = :func:`excludable`. Before log2, bounds and
    events are:

    - connectivity: ``n * prod_{i<k/2} (c+d-i)/(n-i)``. k/2 adjacent positions hold no honest survivor.
    - privacy: ``n * P[Hyp(n-1, c, k) >= 2t-k]``. Enough colluders for t shares of both a client's secrets.
    - liveness: ``n * P[Hyp(n-1, n-1-d+m, k) < t+q] + P[Hyp(n, n-d, s) < tau]``. A client has fewer than t undisputed
      neighbours among the n - d + m clients that must stay, or too few of the committee's s members stay to sign.
    - lying_server: ``n * P[Hyp(n-1, c, k/2) >= t-q-k/2]``. Near every client in a sum t neighbours sign or collude. So
      next to k/2 positions without honest signers at least t-q-k/2 must be colluders (docs/proofs/random_graph.md, 8).
      The factor is n: there are n windows of k/2 adjacent positions, each beside one client on its left and one on its
      right.
    - two_lists: ``P[Hyp(n, c, s) >= 2 tau - s]``, with tau = :func:`signatures_needed`; 0 where s = n.

    Source: SecAgg+, theorems 3.7 to 3.10, with exact hypergeometric tails; the last two are ours.
    """
    from scipy.stats import hypergeom

    n, c, k, t = clients, colluders, neighbours, threshold
    dropouts = n - min_survivors
    gone = max(0, dropouts - excludable(n, k, disputes))
    return FailureBounds(
        connectivity=_connectivity(n, c + dropouts, k),
        privacy=float(_log2_union(n, hypergeom.logsf(2 * t - k - 1, n - 1, c, k))),
        liveness=float(
            np.logaddexp2(
                _log2_union(n, hypergeom.logcdf(t + disputes - 1, n - 1, n - 1 - gone, k)),
                _unsigned(n, dropouts, signatures_needed(n, c)),
            )
        ),
        lying_server=float(_log2_union(n, hypergeom.logsf(t - disputes - k // 2 - 1, n - 1, c, k // 2))),
        two_lists=float(_two_lists(n, c, signatures_needed(n, c))),
    )


def _unsigned(clients: int, dropouts: int, signatures: int) -> float:
    """Return log2 of the probability that too few of the committee stay to sign, if d clients drop out."""
    from scipy.stats import hypergeom

    size = committee_size(clients)
    return float(hypergeom.logcdf(signatures - 1, clients, clients - dropouts, size) / log(2))


def _connectivity(clients: int, lost: int, k: int) -> float:
    if lost < k // 2:
        return -inf
    return log2(clients) + sum(log2((lost - i) / (clients - i)) for i in range(k // 2))


def _log2_union(clients: int, log_probability: float | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(log2(clients) + np.asarray(log_probability) / log(2))
