"""The schema of a mean: the sum of all feature vectors, whatever their labels.

The first round of a course that centres rows (``course.Centred``), and where G would be hidden the second of a
regression's (``course.Rounds``). Bounds and shapes only.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import Transform

__all__ = ["MeanSchema"]

_TABLE: tuple[Statistic, ...] = (
    Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of all feature vectors"),
)


@dataclass(frozen=True)
class MeanSchema(Schema):
    """The sum x of all feature vectors; labels or targets are given as to any schema, and not read.

    Guarantee:
        Unit one record. A record adds a vector of norm at most R, in whole numbers, so add-remove moves x by at most R,
        and replace-one by at most 2 R, or sqrt 2 R where entries are not negative. All three are attained. Source: the
        triangle inequality; ``|x - x'|^2 <= |x|^2 + |x'|^2`` without negative entries (docs/sensitivity.md).

    Args:
        features, clip_norm, grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> moments = ps.measure(ps.MeanSchema(2, clip_norm=1.0), [[0.5, 0.0], [0.0, 0.25]], [0, 1])
        >>> moments.real().x.tolist()
        [0.5, 0.25]
    """

    task: ClassVar[str] = "mean"
    makes: ClassVar[str] = "the average of every column over all records"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)

    features: int = GIVEN
    clip_norm: float = GIVEN
    grid_bits: int = 12
    _: KW_ONLY
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))

    @property
    def sizes(self) -> dict[str, int]:
        """Length of the one axis."""
        return {"feature": self.features}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.columns
