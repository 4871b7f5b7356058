"""Partition records of several domains over clients with different label mixes, and weigh each client's test set.

The authors' protocol (one client a domain, per-class Dirichlet) and several clients a domain. Indices and weights only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ALPHAS", "Part", "difference", "divided", "one_a_domain", "own_mix"]

ALPHAS = (0.05, 0.1, 0.5, math.inf)
_FEWEST = 10
_T95 = {3: 4.303, 5: 2.776, 10: 2.262}  # Student's quantile of 97.5 %, by the number of seeds

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Part:
    """One client: its domain and the places of its training records."""

    domain: int
    train: Places


def one_a_domain(labels: Places, domain: Places, train: Places, alpha: float, rng: np.random.Generator) -> list[Part]:
    """One client a domain; of each class a client keeps its Dirichlet share over the clients, the largest keeps all."""
    domains, classes = np.unique(domain[train]), np.unique(labels[train])
    shares = _dirichlet(alpha, len(domains), len(classes), rng)
    shares = shares / shares.max(axis=1, keepdims=True)
    parts = []
    for place, name in enumerate(domains):
        mine = rng.permutation(train[domain[train] == name])
        kept = [_first(mine[labels[mine] == label], shares[c, place]) for c, label in enumerate(classes)]
        parts.append(Part(int(name), _at_least(np.concatenate(kept), mine)))
    return parts


def divided(
    labels: Places, domain: Places, train: Places, clients: int, alpha: float, rng: np.random.Generator
) -> list[Part]:
    """Several clients a domain; every class of a domain is cut between its clients by a Dirichlet draw."""
    parts = []
    for name in np.unique(domain[train]):
        mine = rng.permutation(train[domain[train] == name])
        owner = np.empty(len(mine), np.intp)
        for label in np.unique(labels[mine]):
            places = np.flatnonzero(labels[mine] == label)
            edges = np.cumsum(_dirichlet(alpha, clients, 1, rng)[0])[:-1] * len(places)
            owner[places] = np.searchsorted(edges, np.arange(len(places)) + 0.5)
        parts += [Part(int(name), _at_least(mine[owner == client], mine)) for client in range(clients)]
    return parts


def own_mix(labels: Places, mine: Places, classes: int) -> NDArray[np.float64]:
    """Weights of test records, summing to 1, under which their labels have the mix of a client's training labels.

    Args:
        labels: of the test records of the client's domain.
        mine: of the client's training records.
        classes: C.
    """
    there = np.bincount(labels, minlength=classes)
    wanted = np.where(there > 0, np.bincount(mine, minlength=classes), 0)
    weights = (wanted / np.maximum(there, 1))[labels]
    return np.asarray(weights / weights.sum())


def difference(values: NDArray[np.float64], base: NDArray[np.float64]) -> tuple[float, float]:
    """Mean of paired differences over seeds and the half width of its 95 % interval (Student)."""
    gaps = values - base
    return float(gaps.mean()), float(_T95[len(gaps)] * gaps.std(ddof=1) / math.sqrt(len(gaps)))


def _dirichlet(alpha: float, clients: int, draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if math.isinf(alpha):
        return np.full((draws, clients), 1 / clients)
    return rng.dirichlet(np.full(clients, alpha), size=draws)


def _first(places: Places, share: float) -> Places:
    return places[: round(share * len(places))]


def _at_least(kept: Places, mine: Places) -> Places:
    """A client that drew next to nothing still has a few records."""
    return kept if len(kept) >= _FEWEST else np.union1d(kept, mine[:_FEWEST])
