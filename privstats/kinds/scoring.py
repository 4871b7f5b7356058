"""Count a published head's predictions for new records, in public cells.

Each record is scored alone. The head is stored as bytes among the published values; an entry point names its reader.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import PlanError, RecordError, SchemaError
from privstats.intake.declared.categories import Categories
from privstats.kinds.base import Kind
from privstats.kinds.classes import ClassSchema
from privstats.kinds.counts import (
    COUNT_TABLE,
    CountMoments,
    CountSchema,
    RealCountMoments,
    counted_terms,
    move_of_tables,
)
from privstats.kinds.scorers import SCORERS
from privstats.kinds.worst import Record, Sums, WorstPair, added, wire
from privstats.records.reading import Labels
from privstats.records.variables import Bins, Variable
from privstats.schema.base import Adjacency, Statistic, letters_of
from privstats.schema.checks import as_int, settle, size
from privstats.schema.public_values import Values
from privstats.transforms import Transform
from privstats.transforms.base import to_builtins

if TYPE_CHECKING:
    from privstats.moments.base import ExactClass, RealMoments
    from privstats.moments.record_sums import RecordTerms
    from privstats.records.opened import Opened

HEAD = "head"
"""The name of the head's bytes among the published values."""

Scale: TypeAlias = Literal["probability", "margin"]

_ROW_BITS = 20

_MAX_BINS = 1000

_MAX_BYTES = 1 << 25

_MIN_ROOM = 1 << 16

_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class ScoringSchema(Kind):
    """Counts of (label, predicted class, binned score) of a published head; :class:`~privstats.Scoring` builds one.

    Two classes have one table, label by the second class's binned score: scores in the upper half of the bins predict
    that class. More classes have two: label by predicted class, and correctness by the predicted class's
    score. ``by_class`` adds each class's membership by score.

    Guarantee:
        Unit: one record. Every record counts 1 in one cell of each of J tables, or nowhere, for any head and any other
        records: ``|T|^2 <= J``, and ``2 J`` under replace-one. Source: that of count tables (docs/proofs/records.md).
        The promise covers the scored records, not the head's training records; without a promise, counts of a specially
        built head can single out one record.

    Args:
        head: SHA-256 of the head's file, 64 hex digits.
        head_bytes: its size: at most 32 MiB, and at most twice a quadratic rule over classes and columns, plus room for
            map and names.
        classes: C, at least 2; of three or more labels, the head may know fewer.
        features: dimension after ``transform``.
        score_bins: number of public bins; even for 2 classes.
        score: ``"probability"``, in 0..1 (predicted class of several: 1/C..1); or ``"margin"``, the score less the
            largest other.
        reach: margin bins cover -reach..reach; outer bins hold the rest.
        by_class: add a table per class, for three or more.
        cuts: for two classes: ``score_bins - 1`` rising, public inner edges, including one half; None: equal widths.
        transform, class_names, feature_names: the head's.

    Example:
        >>> y = np.arange(400) % 2
        >>> X = np.random.default_rng(0).normal(size=(400, 2)) + y[:, None]
        >>> schema = ps.Scoring(ps.heads.LDA().fit(X, y), score_bins=4).schema
        >>> schema.tables, schema.shape(("label", "score"))
        ((('label', 'score'),), (2, 4))
    """

    task: ClassVar[str] = "scoring"
    purpose: ClassVar[str] = "how good a published model is: how often it is right, where, and how confident it may be"
    scores_head: ClassVar[bool] = True
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = COUNT_TABLE
    statistics: ClassVar[str] = letters_of(COUNT_TABLE)
    clip_norm: ClassVar[float] = 1.0
    grid_bits: ClassVar[int] = 0
    nonnegative: ClassVar[bool] = False
    proved: ClassVar[str] = "T"
    statements: ClassVar[tuple[str, ...]] = CountSchema.statements

    head: str
    head_bytes: int
    classes: int
    features: int
    _: KW_ONLY
    score_bins: int = 20
    score: Scale = "probability"
    reach: float | None = None
    by_class: bool = False
    cuts: tuple[float, ...] | None = None
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.head, str) or not _DIGEST.fullmatch(self.head):
            raise SchemaError("head must be the SHA-256 of a head in 64 hex digits; ps.Scoring(head) computes it")
        rows = self.rows  # checks the fields that it uses
        settle(self, classes=rows.classes, features=rows.features, transform=rows.transform)
        settle(self, class_names=rows.class_names, feature_names=rows.feature_names)
        settle(self, head_bytes=as_int("head_bytes", self.head_bytes, 1, "the length of the head's file"))
        if self.head_bytes > (maximum := self._max_bytes):
            raise SchemaError(
                f"head_bytes is {self.head_bytes:,}, and a head of {self.classes} classes over {self.features} "
                f"columns has at most {maximum:,}: a larger one would slow every party; publish a smaller head, and "
                "refuse such a plan of another party"
            )
        settle(self, score_bins=_checked_bins(self.score_bins, self.classes, equal=self.cuts is None))
        if self.score not in get_args(Scale):
            raise SchemaError(f"score must be 'probability' or 'margin', got {self.score!r:.40}")
        if (self.score == "margin") != (self.reach is not None):
            raise SchemaError("reach is the largest margin with a bin of its own: set it with score='margin' alone")
        if self.reach is not None:
            settle(self, reach=size("reach", self.reach, "8 suits log-odds"))
        if not isinstance(self.by_class, bool) or (self.by_class and self.classes == 2):
            raise SchemaError("by_class must be True or False, and False for two classes, whose one table covers both")
        if self.cuts is not None:
            settle(self, cuts=self._checked_cuts(self.cuts))
        _ = self.counted  # bounds the number of cells

    def _checked_cuts(self, cuts: object) -> tuple[float, ...]:
        values = tuple(float(each) for each in cuts) if isinstance(cuts, list | tuple) and _all_parts(cuts) else ()
        rising = all(low < high for low, high in pairwise((0.0, *values, 1.0)))
        if not (rising and 0.5 in values and len(values) == self.score_bins - 1) or self.classes != 2:
            raise SchemaError(
                "cuts need two classes, and must be score_bins - 1 rising probabilities between 0 and 1, one of them "
                "0.5: ps.Scoring(head, releases=...) computes them"
            )
        if self.score != "probability":
            raise SchemaError("cuts need score='probability', which is the default: omit score")
        return values

    @property
    def first_half(self) -> int:
        """Number of bins that predict the first of two classes."""
        return self.score_bins // 2 if self.cuts is None else self.cuts.index(0.5) + 1

    @property
    def _max_bytes(self) -> int:
        content = repr((to_builtins(self.transform), self.class_names, self.feature_names))
        rule = 16 * self.classes * (self.features + 1) ** 2
        return min(_MAX_BYTES, _MIN_ROOM + rule + 4 * len(content))

    @cached_property
    def rows(self) -> ClassSchema:
        """The class schema that reads records."""
        read = {"transform": self.transform, "class_names": self.class_names, "feature_names": self.feature_names}
        return ClassSchema(self.classes, self.features, "NA", 1.0, _ROW_BITS, **read)  # type: ignore[arg-type]

    @cached_property
    def labels(self) -> tuple[str, ...] | tuple[int, ...]:
        """Class names, or 0..C-1."""
        return tuple(range(self.classes)) if self.class_names is None else self.class_names

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """Bin edges of a class's score, ``score_bins + 1``."""
        if self.cuts is not None:
            return (0.0, *self.cuts, 1.0)
        low, high = (-self.reach, self.reach) if self.reach is not None else (0.0, 1.0)
        return _equal(low, high, self.score_bins)

    @cached_property
    def sure_edges(self) -> tuple[float, ...]:
        """Bin edges of the predicted class's score."""
        low, high = (0.0, self.reach) if self.reach is not None else (1 / self.classes, 1.0)
        return _equal(low, high, self.score_bins)

    @cached_property
    def counted(self) -> CountSchema:
        """The record's count tables."""
        label = Categories("label", self.labels)
        if self.classes == 2:
            return CountSchema((label, Bins("score", self.edges)), (("label", "score"),))
        variables: list[Variable] = [label, Categories("predicted", self.labels)]
        variables += [Categories("right", ("no", "yes")), Bins("sureness", self.sure_edges)]
        tables = [("label", "predicted"), ("right", "sureness")]
        for name in map(str, self.labels) if self.by_class else ():
            variables += [Categories(f"is {name}", ("no", "yes")), Bins(f"score of {name}", self.edges)]
            tables.append((f"is {name}", f"score of {name}"))
        return CountSchema(tuple(variables), tuple(tables))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """A scored record's variables."""
        return self.counted.variables

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Variables that each table crosses."""
        return self.counted.tables

    @property
    def goal(self) -> Labels:
        """What y holds."""
        return Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Number of cells."""
        return self.counted.sizes

    def shape(self, table: tuple[str, ...]) -> tuple[int, ...]:
        """Return the number of cells along each variable of a table."""
        return self.counted.shape(table)

    def place(self, table: tuple[str, ...]) -> slice:
        """Return a table's slice of T."""
        return self.counted.place(table)

    @property
    def record(self) -> str:
        """Description of one record."""
        return self.rows.record

    @property
    def clipping(self) -> str:
        """Explanation of a record's bounded weight."""
        crossed = "; ".join(" by ".join(table) for table in self.tables)
        return (
            f"The published head {self.head[:16]} gives it a class and a score, and it counts 1 in exactly one cell of "
            f"every table ({crossed}), so that no record weighs more."
        )

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The head's bytes."""
        return {HEAD: (self.head_bytes,)}

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "T"

    def longest(self, statistic: str) -> int | None:
        """Return the largest L1 length of the tables: one count in each."""
        return self.counted.longest(statistic)

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record, that of count tables."""
        return move_of_tables(self.tables, weights, adjacency)

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls("1" * 64, 1_000, 2, 4, score_bins=4)

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(_of_record))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return CountMoments, RealCountMoments

    def moments_of(self, records: Opened, values: Mapping[str, Values]) -> CountMoments:
        """Count a head's predictions.

        Guarantee:
            A record's cells depend on the record, the head and the machine: it is scored in an array of one row. On
            another machine a score within rounding of an edge may fall in the next bin, which moves no other record. A
            record that the head's maps make infinite counts nowhere.

        Raises:
            RecordError: a row has NaN or infinite entries; never for declared columns.
            PlanError: another head was published, or one of other classes or columns.
        """
        total = np.zeros(self.sizes["cell"], np.int64)
        for _, places in _scored(self, records, values):
            for table, cells in zip(self.tables, places, strict=True):
                there = self.place(table)
                total[there] += np.bincount(cells, minlength=there.stop - there.start)
        return CountMoments(self, total)

    def terms_of(self, records: Opened, values: Mapping[str, Values]) -> RecordTerms:
        """Return each record's contribution."""
        several = _scored(self, records, values)
        return moments.record_sums.RecordTerms.joined(counted_terms(self, known, places) for known, places in several)


def bytes_of(values: Mapping[str, Values]) -> bytes:
    """Return the head's bytes from the published values."""
    numbers = values[HEAD].integers
    if values[HEAD].exponent or numbers.min() < 0 or numbers.max() > 255:
        raise PlanError("the published head must be bytes, numbers from 0 to 255; ps.Scoring(head).published has them")
    return numbers.astype(np.uint8).tobytes()


def _all_parts(values: Sequence[Any]) -> bool:
    return all(type(each) in (int, float) and 0 < each < 1 for each in values)


def _checked_bins(value: object, classes: int, *, equal: bool) -> int:
    bins = as_int("score_bins", value, 2, "20 suits most heads")
    if bins > _MAX_BINS or (classes == 2 and equal and bins % 2):
        raise SchemaError(
            f"score_bins must be at most {_MAX_BINS}, and of two classes an even number, so that one half is each "
            f"class's; got {bins}"
        )
    return bins


def _equal(low: float, high: float, bins: int) -> tuple[float, ...]:
    return tuple(float(each) for each in np.linspace(low, high, bins + 1))


# --- the sums


Real: TypeAlias = NDArray[np.float64]

ScoresAndShares: TypeAlias = tuple[Real, Real]
"""Scores and probabilities of rows, ``(n, C)`` each; -inf and 0 for a class that the head does not know."""


def _scored(
    schema: ScoringSchema, records: Opened, values: Mapping[str, Values]
) -> Iterator[tuple[NDArray[np.bool_], list[NDArray[np.intp]]]]:
    read = SCORERS.needed(schema.task, "a plan of a score").reader(schema, bytes_of(values))
    for rows, labels in records.pieces():
        if not schema.reading.gaps_have_cells and not np.isfinite(rows).all():
            raise RecordError("X has NaN or infinite entries; drop or impute these records")
        scores, shares = read(rows)
        known = np.asarray(~np.isnan(scores).all(axis=1))
        yield known, cells_of_scores(schema, scores[known], shares[known], labels[known].astype(np.intp))


def cells_of_scores(
    schema: ScoringSchema, scores: Real, shares: Real, labels: NDArray[np.intp]
) -> list[NDArray[np.intp]]:
    """Return every record's cell per table, ``(n,)`` each.

    Args:
        scores, shares: ``(n, C)``, :data:`ScoresAndShares`.
        labels: ``(n,)``, 0..C-1.

    Guarantee:
        Every value has a cell, NaN and infinities too, and each cell follows from its own row.
    """
    best, bins = scores.argmax(axis=1), schema.score_bins
    values = _margins(scores) if schema.score == "margin" else shares
    low, high = schema.edges[0], schema.edges[-1]
    if schema.classes == 2:
        half = schema.first_half
        result = _bins(values[:, 1], low, high, bins) if schema.cuts is None else _between(values[:, 1], schema.cuts)
        score = np.clip(result, np.where(best == 1, half, 0), np.where(best == 1, bins - 1, half - 1))
        return [labels * bins + score]
    sure = _bins(values[np.arange(len(best)), best], schema.sure_edges[0], schema.sure_edges[-1], bins)
    places = [labels * schema.classes + best, (labels == best) * bins + sure]
    for place in range(schema.classes if schema.by_class else 0):
        places.append((labels == place) * bins + _bins(values[:, place], low, high, bins))
    return places


def _margins(scores: Real) -> Real:
    with np.errstate(invalid="ignore", over="ignore"):
        ordered = np.sort(scores, axis=1)
        first = scores.argmax(axis=1)
        others = np.repeat(ordered[:, -1:], scores.shape[1], axis=1)
        others[np.arange(len(first)), first] = ordered[:, -2]
        return np.asarray(scores - others)


def _between(values: Real, cuts: tuple[float, ...]) -> NDArray[np.intp]:
    return np.asarray(np.searchsorted(cuts, np.nan_to_num(values, nan=0.0), side="right"), np.intp)


def _bins(values: Real, low: float, high: float, bins: int) -> NDArray[np.intp]:
    """Return bins; NaN is in the first, values beyond the edges in the outer ones."""
    with np.errstate(invalid="ignore", over="ignore"):
        place = np.floor((values - low) * (bins / (high - low)))
    place = np.clip(np.nan_to_num(place, nan=0.0, posinf=bins, neginf=0.0), 0, bins - 1)
    return np.asarray(place, np.intp)


# --- the two data sets that the certificate compares


def _pairs(schema: ScoringSchema, _: Mapping[str, float]) -> list[tuple[Record, Record]]:
    one, other = ({"times": 1, "cell": 0, "places": [cell] * len(schema.tables)} for cell in (0, 1))
    return [(one, other)]


def _of_record(schema: ScoringSchema, record: Record) -> Sums:
    sizes = (math.prod(schema.shape(table)) for table in schema.tables)
    cells = [np.eye(1, size, place, dtype=np.int64)[0] for size, place in zip(sizes, record["places"], strict=True)]
    return wire(CountMoments(schema, np.concatenate(cells)))
