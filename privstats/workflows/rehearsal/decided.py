"""What a model predicts, beside how well it orders: a rare class may never be the likeliest one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privstats.heads.diagnostics import RARE

__all__ = ["Decided"]

_PAIR, _TINY = 2, 1e-300
_MISSED = 0.5
"""Of its share of the records, what a class is predicted for at most where it is called missed."""


@dataclass(frozen=True)
class Decided:
    """The predictions of a model for records held out.

    Attributes:
        classes: their names.
        shares: of each class among the records summed.
        predicted: how often each is predicted, as a share.
        expected: its mean probability.
        balanced: mean of the recalls, where the likeliest class is predicted.
        by_shares: the same where probabilities are divided by ``shares`` first; of two classes that is a threshold.
        by_expected: the same with ``expected``.
    """

    classes: tuple[str, ...]
    shares: tuple[float, ...]
    predicted: tuple[float, ...]
    expected: tuple[float, ...]
    balanced: float
    by_shares: float
    by_expected: float

    @classmethod
    def of(
        cls,
        classes: Sequence[str],
        summed: NDArray[np.intp],
        y: NDArray[np.intp],
        probabilities: NDArray[np.float64],
    ) -> Self:
        """Of probabilities ``(n, C)`` for records of the classes ``y``, ``(n,)``; ``summed`` are those learned from."""
        shares, expected = np.bincount(summed, minlength=len(classes)) / len(summed), probabilities.mean(axis=0)
        likeliest = probabilities.argmax(axis=1)
        predicted = np.bincount(likeliest, minlength=len(classes)) / len(y)
        lines = [likeliest, *((probabilities / np.maximum(each, _TINY)).argmax(axis=1) for each in (shares, expected))]
        balanced = [fmean(float((each[y == place] == place).mean()) for place in np.unique(y)) for each in lines]
        said = [tuple(each.tolist()) for each in (shares, predicted, expected)]
        return cls(tuple(classes), said[0], said[1], said[2], *balanced)

    @property
    def one_class(self) -> bool:
        """Whether one class is predicted for all of these records."""
        return max(self.predicted) == 1

    @property
    def remark(self) -> str:
        """What the balanced accuracy means where classes are missed, and what to do; empty where none is."""
        each = zip(self.classes, self.shares, self.predicted, strict=True)
        missed = [
            f"{name} is {share:.1%} of the records summed and is predicted for {said:.1%} of those held out"
            for name, share, said in each
            if said < _MISSED * share
        ]
        if not missed:
            return ""
        rare = min(range(len(self.classes)), key=lambda place: self.shares[place])
        mean = f"the mean of the model's own probabilities ({self.classes[rare]}: {self.expected[rare]:.3f})"
        how = f"Flagging so gives a balanced accuracy of {self.by_shares:.1%} here, and above {mean}"
        if len(self.classes) > _PAIR:
            how = (
                f"Taking the largest of the probabilities divided by the shares gives a balanced accuracy of "
                f"{self.by_shares:.1%} here, and divided by {mean}"
            )
        return f"{'; '.join(missed)}: {RARE}. {how} {self.by_expected:.1%}."
