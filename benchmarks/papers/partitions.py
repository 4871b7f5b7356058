"""How records are cut between clients: label skew by Dirichlet draws, a few classes each, and a few that dominate.

As GH-OFL (section 4.1) and FedCGS (both its parts) describe it; one-shot ridge has a generator of its own. Places only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Places", "Weights", "by_classes", "by_dirichlet", "dominant_mix", "drawn"]

Places = NDArray[np.intp]
Weights = NDArray[np.float64]

_TINY = 1e-300  # a class whose every share underflows goes to all clients alike


def by_dirichlet(labels: Places, clients: int, alpha: float, rng: np.random.Generator) -> list[Places]:
    """Client u draws class shares ``p_u ~ Dir(alpha 1_C)``; a record of class c goes to u with weight ``p_uc``.

    Args:
        labels: of the records, ``(n,)``.
        clients: K; a client may end with no record.
        alpha: smaller is more skewed.
        rng: of shares and records.
    """
    classes = np.unique(labels)
    shares = rng.dirichlet(np.full(len(classes), alpha), size=clients) + _TINY
    owner = np.empty(len(labels), np.intp)
    for column, label in enumerate(classes):
        places = np.flatnonzero(labels == label)
        weight = shares[:, column] / shares[:, column].sum()
        owner[places] = rng.choice(clients, len(places), p=weight)
    return [np.flatnonzero(owner == client) for client in range(clients)]


def by_classes(labels: Places, clients: int, each: int, rng: np.random.Generator) -> list[Places]:
    """Client u has the ``each`` classes from u on, in turn; a class's records go to its clients in equal shares.

    Args:
        labels: of the records, ``(n,)``.
        clients: K, at least as many as there are classes, so that every class has a client.
        each: classes of a client.
        rng: of the records.

    Raises:
        ValueError: fewer clients than classes.
    """
    classes = np.unique(labels)
    if clients < len(classes):
        raise ValueError(f"{clients} clients cannot hold {len(classes)} classes in turn; take more clients")
    parts: list[list[Places]] = [[] for _ in range(clients)]
    for column, label in enumerate(classes):
        owners = [u for u in range(clients) if (column - u) % len(classes) < each]
        places = rng.permutation(np.flatnonzero(labels == label))
        for owner, share in zip(owners, np.array_split(places, len(owners)), strict=True):
            parts[owner].append(share)
    return [np.sort(np.concatenate(shares)) for shares in parts]


def dominant_mix(classes: int, share: float, dominant: int, rng: np.random.Generator) -> Weights:
    """A client's label mix, ``(C,)``: ``share`` of all classes alike, the rest of a few that dominate.

    Args:
        classes: C.
        share: s, of the records that come from all classes.
        dominant: how many classes dominate.
        rng: of the classes.
    """
    chosen = rng.choice(classes, dominant, replace=False)
    return np.asarray(share / classes + (1 - share) / dominant * np.isin(np.arange(classes), chosen), np.float64)


def drawn(labels: Places, mix: Weights, count: int, rng: np.random.Generator) -> Places:
    """Places of ``count`` records whose labels have a mix; none twice, except where a class has too few."""
    wanted = rng.multinomial(count, mix)
    taken = []
    for label, many in enumerate(wanted):
        places = np.flatnonzero(labels == label)
        taken.append(rng.choice(places, many, replace=many > len(places)))
    return np.concatenate(taken)
