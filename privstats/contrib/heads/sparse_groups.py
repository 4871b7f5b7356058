"""SAFLe's non-linear head as one ridge regression: bits of features, in groups, as sparse indicators.

Source: Bacellar et al. 2025, arXiv:2512.03336. Its head is a linear regression on these indicators, so exact masked
sums of them suffice, and the model is the same for any split of the records among the parties.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError, SchemaError
from privstats.kinds import ClassSchema

MAX_WIDTH = 1 << 14
"""Most indicators: their second moment then has 134 million entries."""
_MAX_GROUP = 12


@dataclass(frozen=True)
class SparseGroups:
    """A public map of features to indicators, for exact sums alone.

    Each feature becomes ``levels`` bits, one for each threshold that it exceeds. The bits are shuffled by the seed and
    cut into groups. A group of k bits is one of 2^k indicators, of which exactly one is 1. A head of their sums, such
    as ``RidgeClassifier``, is SAFLe's: bucketed features, and a table of weights for each group.

    **Under noise the head loses** to one on the features themselves, because the second moment of many indicators needs
    many noisy entries. So give its plan ``NoPrivacy`` and parties that may reveal exact sums, or use another head.

    Args:
        seed: of the shuffles; public.
        low, high: public range of each feature.
        levels: thresholds per feature, evenly within its range.
        group: bits of a group, at most 12.
        copies: number of shuffles; each yields groups of its own.

    Raises:
        SchemaError: a field is out of its bounds, or the map has more than 16,384 indicators.

    Example:
        >>> from privstats.contrib.heads.sparse_groups import SparseGroups
        >>> groups = SparseGroups(seed=0, low=(0.0, 0.0), high=(1.0, 1.0), levels=3, group=2)
        >>> groups.width, groups.apply([[0.1, 0.9]]).sum(), groups.schema(2).clip_norm
        (12, np.float64(3.0), 1.7320508075688772)
    """

    seed: int
    low: Sequence[float]
    high: Sequence[float]
    levels: int
    group: int
    copies: int = 1

    def __post_init__(self) -> None:
        if len(self.low) != len(self.high) or not all(a < b for a, b in zip(self.low, self.high, strict=True)):
            raise SchemaError("low and high must be the ends of each feature's range, low below high")
        for field, least, most in (("levels", 1, 256), ("group", 1, _MAX_GROUP), ("copies", 1, 256)):
            if not least <= getattr(self, field) <= most:
                raise SchemaError(f"{field} must be {least} to {most}, got {getattr(self, field)}")
        if self.width > MAX_WIDTH:
            raise SchemaError(
                f"the map has {self.width:,} indicators, at most {MAX_WIDTH:,}: lower levels, group or copies, or "
                "project the features first"
            )

    @property
    def groups(self) -> int:
        """Number of groups, and of ones in a row."""
        return self.copies * math.ceil(len(self.low) * self.levels / self.group)

    @property
    def width(self) -> int:
        """Number of indicators."""
        return self.groups << self.group

    def schema(self, classes: int) -> ClassSchema:
        """Return the schema of the indicators' counts, class sums and second moment; no row is clipped."""
        return ClassSchema(classes, self.width, "NAB", clip_norm=math.sqrt(self.groups))

    def apply(self, X: ArrayLike) -> csr_array:
        """Return indicators, ``(n, width)``, with one 1 per group.

        Raises:
            DataError: X has another number of features, or a value that is not finite.
        """
        rows = np.asarray(X, np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.low):
            raise DataError(f"X must have {len(self.low)} features, got shape {rows.shape}")
        if not np.isfinite(rows).all():
            raise DataError("X holds a value that is not finite: remove or fill it first")
        places = self._places(rows)
        ends = np.arange(len(rows) + 1) * self.groups
        return csr_array((np.ones(places.size), places.ravel(), ends), shape=(len(rows), self.width))

    def _places(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the place of each group's one, ``(n, groups)``."""
        low, high = np.asarray(self.low), np.asarray(self.high)
        steps = np.arange(1, self.levels + 1) / (self.levels + 1)
        bits = (rows[:, :, None] > low[:, None] + (high - low)[:, None] * steps).reshape(len(rows), -1)
        rng, chosen = np.random.Generator(np.random.PCG64(self.seed)), []
        for _ in range(self.copies):
            order = rng.permutation(bits.shape[1])
            chosen.append(np.pad(bits[:, order], ((0, 0), (0, -len(order) % self.group))))
        grouped = np.hstack(chosen).reshape(len(rows), self.groups, self.group)
        codes = grouped @ (1 << np.arange(self.group))
        return np.asarray(codes + (np.arange(self.groups) << self.group), np.int64)
