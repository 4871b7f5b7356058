"""Measure how well a rehearsal's models order records, and what they predict.

A record's influence is the amount by which it moves an area (DeLong, DeLong and Clarke-Pearson 1988); a person's
influences are added first (Obuchowski 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.heads.diagnostics import RARE
from privstats.inference.own_scores import area_influences

Shares: TypeAlias = NDArray[np.float64]
"""Probabilities of the classes, ``(n, C)``."""


@dataclass(frozen=True)
class Auc:
    """An AUC (one-vs-rest mean for more than two classes), or the difference between two AUCs.

    Attributes:
        value: the area or difference.
        error: for fixed models; None for fewer than two records or persons in a class.
    """

    value: float
    error: float | None


class Held(NamedTuple):
    """Records held out for scoring: class indices ``(n,)``, and any persons' ids."""

    y: NDArray[np.intp]
    ids: NDArray[np.object_] | None = None


def auc(held: Held, shares: Shares) -> Auc:
    """Return the probabilities' AUC; every class must occur among the records."""
    value, moves = _area(held.y, shares)
    return Auc(value, _error(held, moves))


def gain(held: Held, shares: Shares, than: Shares) -> Auc:
    """Return ``shares``' area minus ``than``'s."""
    (value, moves), (other, others) = _area(held.y, shares), _area(held.y, than)
    return Auc(value - other, _error(held, moves - others))


def _area(y: NDArray[np.intp], shares: Shares) -> tuple[float, NDArray[Any]]:
    """Return the area, for two classes the second's, and records' influences, ``(n,)``."""
    classes = shares.shape[1]
    areas = [area_influences(y == place, shares[:, place]) for place in (range(classes) if classes > 2 else (1,))]
    return float(np.mean([area for area, _ in areas])), np.mean([moves for _, moves in areas], axis=0)


def _error(held: Held, moves: NDArray[Any]) -> float | None:
    whose = np.arange(len(moves)) if held.ids is None else np.unique(held.ids, return_inverse=True)[1]
    if min(len(set(whose[held.y == place])) for place in np.unique(held.y)) < 2:
        return None
    return float(np.sqrt((np.bincount(whose, weights=moves) ** 2).sum()))


_PAIR, _TINY = 2, 1e-300
_MISSED = 0.5
"""A class counts as missed if it is predicted for less than this part of its share of the records."""


@dataclass(frozen=True)
class Decided:
    """A model's predictions for held-out records.

    Attributes:
        shares: of each class among the summed records.
        predicted: share of predictions per class.
        expected: mean probability per class.
        balanced: mean recall when predicting the likeliest class.
        by_shares: likewise, with probabilities divided by ``shares``.
        by_expected: likewise, by ``expected``.
        sensitivity, specificity: of two classes with ``predict(threshold="prevalence")``; else None.
    """

    classes: tuple[str, ...]
    shares: tuple[float, ...]
    predicted: tuple[float, ...]
    expected: tuple[float, ...]
    balanced: float
    by_shares: float
    by_expected: float
    sensitivity: float | None = None
    specificity: float | None = None

    @classmethod
    def of(
        cls, classes: Sequence[str], summed: NDArray[np.intp], y: NDArray[np.intp], probabilities: NDArray[np.float64]
    ) -> Self:
        """Summarise probabilities ``(n, C)``; ``summed`` are the training records' classes."""
        shares, expected = np.bincount(summed, minlength=len(classes)) / len(summed), probabilities.mean(axis=0)
        likeliest = probabilities.argmax(axis=1)
        predicted = np.bincount(likeliest, minlength=len(classes)) / len(y)
        lines = [likeliest, *((probabilities / np.maximum(each, _TINY)).argmax(axis=1) for each in (shares, expected))]
        balanced = [fmean(float((each[y == place] == place).mean()) for place in np.unique(y)) for each in lines]
        lists = [tuple(each.tolist()) for each in (shares, predicted, expected)]
        recalls: list[float] = []
        if len(classes) == _PAIR and len(np.unique(y)) == _PAIR:
            flagged = probabilities[:, 1] >= shares[1]
            recalls = [float((flagged[y == place] == place).mean()) for place in (1, 0)]
        return cls(tuple(classes), lists[0], lists[1], lists[2], *balanced, *recalls)

    @property
    def one_class(self) -> bool:
        """Whether all records get one predicted class."""
        return max(self.predicted) == 1

    @property
    def remark(self) -> str:
        """Remedy for missed classes, or empty."""
        each = zip(self.classes, self.shares, self.predicted, strict=True)
        missed = [
            f"{name} is {share:.1%} of the records summed and is predicted for {text:.1%} of those held out"
            for name, share, text in each
            if text < _MISSED * share
        ]
        if not missed:
            return ""
        rare = min(range(len(self.classes)), key=lambda place: self.shares[place])
        mean = f"the mean of the model's own probabilities ({self.classes[rare]}: {self.expected[rare]:.3f})"
        how = f"Flagging this way has a balanced accuracy of {self.by_shares:.1%} here, and above {mean}"
        if len(self.classes) > _PAIR:
            how = (
                f"Taking the largest of the probabilities divided by the shares gives a balanced accuracy of "
                f"{self.by_shares:.1%} here, and divided by {mean}"
            )
        return f"{'; '.join(missed)}: {RARE}. {how} {self.by_expected:.1%}."
