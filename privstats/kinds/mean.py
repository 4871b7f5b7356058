"""Sum all feature vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from privstats import moments
from privstats.kinds.base import Kind
from privstats.kinds.record_rows import class_rows
from privstats.kinds.worst import Record, Sums, WorstPair, added, rows_of, vectors, wire
from privstats.moments.base import ExactClass, Moments, RealMoments, containers
from privstats.records.reading import Unread
from privstats.schema.base import Adjacency, Statistic, letters_of
from privstats.schema.checks import REQUIRED, checked_vectors, settle
from privstats.schema.narrowing import bare
from privstats.schema.public_values import Values
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

_TABLE: tuple[Statistic, ...] = (
    Statistic("x", "pooled", ("feature",), (1, 0), meaning="the sum of all feature vectors"),
)


@dataclass(frozen=True)
class MeanSchema(Kind):
    """The sum x of all feature vectors; labels or targets are not read.

    Guarantee:
        Unit one record. A record adds an integer vector of norm at most R. So add-remove moves x by at most R, and
        replace-one by at most 2 R, or sqrt 2 R for nonnegative entries. All are attained. Source: the triangle
        inequality; ``|x - x'|^2 <= |x|^2 + |x'|^2`` for nonnegative entries (docs/proofs/records.md).

    Args:
        features, clip_norm, grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`.

    Example:
        >>> moments = ps.measure(ps.MeanSchema(2, clip_norm=1.0), [[0.5, 0.0], [0.0, 0.25]], [0, 1])
        >>> moments.real().x.tolist()
        [0.5, 0.25]
    """

    task: ClassVar[str] = "mean"
    purpose: ClassVar[str] = "the average of every column over all records"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = letters_of(_TABLE)
    proved: ClassVar[str] = "x"

    features: int = REQUIRED
    clip_norm: float = REQUIRED
    grid_bits: int = 12
    _: KW_ONLY
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))

    @property
    def goal(self) -> Unread:
        """What y holds."""
        return Unread()

    @property
    def sizes(self) -> dict[str, int]:
        """Axis length."""
        return {"feature": self.features}

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "x" if self.nonnegative else ""

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/records.md, "A mean")."""
        square = weights.get("x", 0.0) * self.clip_norm**2
        return square * (1 if adjacency == "add-remove" else 2 if self.nonnegative else 4)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(4, 1.0, feature_names=("a", "b", "c", "d"))

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(vectors, added(_of_record))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return MeanMoments, RealMeanMoments

    def moments_of(self, records: Opened, _: Mapping[str, Values]) -> Moments:
        """Return the exact sum; only the length of ``y`` is read."""
        plain = class_rows(self, 2, self.grid_bits)
        sums: Any = moments.accumulators.measured(plain, records, reading=self.reading)
        return MeanMoments(self, sums.A[0], sums.records, sums.clip_report)

    def terms_of(self, records: Opened, _: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        plain = class_rows(self, 2, self.grid_bits)
        result = moments.accumulators.terms_on_grid(plain, records, reading=self.reading)
        return replace(result, terms=(moments.record_sums.Term({"x": result.terms[0].products["A"]}),))


def _of_record(schema: MeanSchema, record: Record) -> Sums:
    return wire(moments.exact_moments(replace(bare(schema), features=2), rows_of(schema, [record]), [0]))


MeanMoments, RealMeanMoments = containers("Mean", MeanSchema, _TABLE, ("features",), "records", "clip_report")
