"""Within-client moments: class moments from which the client's own offset has been taken, exact in whole numbers.

Model ``x = m_y + b_k + noise`` with a client offset b_k. Pure arithmetic on one client's exact N, A, B; the sums over
clients are the plan's, and what they mean for a head is ``heads``' to say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.moments.frozen import equal_arrays, frozen_array
from privstats.schema import COUNT_SCALE

__all__ = ["WithinBlocks", "pull_of", "within_blocks"]


@dataclass(frozen=True, eq=False)
class WithinBlocks:
    """One client's share, or a sum of shares, in grid units.

    Attributes:
        L: counts less what the client explains, ``(C, C)``, symmetric, in 1 / ``COUNT_SCALE`` records.
        A: class sums likewise, ``(C, d)``, in grid steps.
        B: second moments likewise, ``(d, d)``, symmetric, in squared grid steps.
    """

    L: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64]

    def __post_init__(self) -> None:
        for name in "LAB":
            object.__setattr__(self, name, frozen_array(getattr(self, name), np.int64))

    def __add__(self, other: WithinBlocks) -> WithinBlocks:
        return WithinBlocks(self.L + other.L, self.A + other.A, self.B + other.B)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WithinBlocks):
            return NotImplemented
        return all(equal_arrays(getattr(self, name), getattr(other, name)) for name in "LAB")


def pull_of(records: int, pull: float, most: int) -> Fraction | None:
    """What is added to the count below the line, ``lambda``; None for infinity.

    A client of more than ``most`` records takes ``lambda n / most``: its weight ``n / (n + lambda)`` stays that of
    ``most`` records, so that the sensitivity holds for it too and nothing tells whether it is above.
    """
    if math.isinf(pull):
        return None
    exact = Fraction(pull)
    return exact if records <= most else exact * records / most


def within_blocks(
    N: NDArray[np.int64], A: NDArray[np.int64], B: NDArray[np.int64], pull: float, most: int
) -> WithinBlocks:
    """``Q = sum z z' - (sum z)(sum z)' / (n + lambda)`` with ``z = (onehot(y), x)``, cut toward zero entry by entry.

    A client whose rows are all moved by one grid vector has the same Q for ``lambda = 0``, bit for bit. Python integers
    throughout: the products pass 2**63. Cutting never makes a difference of two data sets larger by more than one step.

    Args:
        N: counts, ``(C,)``.
        A: class sums on the grid, ``(C, d)``.
        B: second moments on the grid, ``(d, d)``.
        pull: lambda; 0 is least squares with a free offset for each client, infinity is plain N, A, B.
        most: n_max, the records beyond which a client counts no more than that many.
    """
    records = int(N.sum())
    added = pull_of(records, pull, most)
    counts = np.diag(N)
    if added is None or not records:
        return WithinBlocks(counts * COUNT_SCALE, A, B)
    over = records + added
    total = A.sum(axis=0)
    return WithinBlocks(
        _less(counts, N, N, over, COUNT_SCALE), _less(A, N, total, over, 1), _less(B, total, total, over, 1)
    )


def _less(
    plain: NDArray[Any], left: NDArray[Any], right: NDArray[Any], over: Fraction, scale: int
) -> NDArray[np.int64]:
    """``scale (plain - left right' / over)``, cut toward zero."""
    top = over.numerator * plain.astype(object) - over.denominator * np.outer(left.astype(object), right.astype(object))
    top = scale * top
    cut = np.abs(top) // over.numerator
    return np.where(top < 0, -cut, cut).astype(np.int64)
