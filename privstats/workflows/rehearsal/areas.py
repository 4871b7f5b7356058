"""Areas under the ROC curve, and the difference of two on the same records, each with its standard error.

What a record moves an area by is its influence; of a difference it is the difference of both (DeLong, DeLong and
Clarke-Pearson 1988). Influences of one person's records are added first (Obuchowski 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["Auc", "Held", "Shares", "auc", "gain"]

Shares: TypeAlias = NDArray[np.float64]
"""Probabilities of the classes, ``(n, C)``."""


@dataclass(frozen=True)
class Auc:
    """An area, of more than two classes the mean of one against the rest; or a difference of two.

    Attributes:
        value: of it.
        error: its standard error over the records that it is of, for the models as they are; None where a class has
            fewer than two of them (of persons, two persons).
    """

    value: float
    error: float | None


class Held(NamedTuple):
    """Records to score on.

    Attributes:
        y: place of each record's class, ``(n,)``; every class occurs.
        ids: whose each of them is, ``(n,)``; None where no column tells.
    """

    y: NDArray[np.intp]
    ids: NDArray[np.object_] | None = None


def auc(held: Held, shares: Shares) -> Auc:
    """How well probabilities order the records of the classes."""
    value, moves = _area(held.y, shares)
    return Auc(value, _error(held, moves))


def gain(held: Held, shares: Shares, than: Shares) -> Auc:
    """How much better some probabilities order them than others."""
    (value, moves), (other, others) = _area(held.y, shares), _area(held.y, than)
    return Auc(value - other, _error(held, moves - others))


def _area(y: NDArray[np.intp], shares: Shares) -> tuple[float, NDArray[Any]]:
    """The area, and the influence of each record, ``(n,)``; of two classes that of the second."""
    classes = shares.shape[1]
    found = [_of_one(y == place, shares[:, place]) for place in (range(classes) if classes > 2 else (1,))]
    return float(np.mean([area for area, _ in found])), np.mean([moves for _, moves in found], axis=0)


def _of_one(inside: NDArray[np.bool_], scores: NDArray[np.float64]) -> tuple[float, NDArray[Any]]:
    """Of one class against the rest: the share of pairs in order, where ties count half, and what each record moves."""
    won = np.empty(len(scores))
    ranks = rankdata(scores)
    for side in (inside, ~inside):
        won[side] = (ranks[side] - rankdata(scores[side])) / (~side).sum()
    won[~inside] = 1 - won[~inside]
    area = float(won[inside].mean())
    moves = won - area
    for side in (inside, ~inside):
        size = int(side.sum())
        moves[side] /= np.sqrt(size * max(size - 1, 1))
    return area, moves


def _error(held: Held, moves: NDArray[Any]) -> float | None:
    whose = np.arange(len(moves)) if held.ids is None else np.unique(held.ids, return_inverse=True)[1]
    if min(len(set(whose[held.y == place])) for place in np.unique(held.y)) < 2:
        return None
    return float(np.sqrt((np.bincount(whose, weights=moves) ** 2).sum()))
