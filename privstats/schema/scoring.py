"""The schema of a score: what a published head says of records that it has not seen, counted in public cells.

It defines the cells in which a record counts and their bounds; ``moments`` scores the records and counts them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np

from privstats.errors import PlanError, SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import settle, size, whole
from privstats.schema.classes import ClassSchema
from privstats.schema.counts import COUNT_TABLE, Bins, Categories, CountSchema, Variable
from privstats.schema.public_values import Published, Values
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import Transform
from privstats.transforms.base import to_builtins

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["HEAD", "Scale", "ScoringSchema", "published_head"]

HEAD = "head"
"""The name of the head's bytes among the published values."""

Scale: TypeAlias = Literal["probability", "margin"]

_ROW_BITS = 20
_MOST_BINS = 1000
_MOST_BYTES = 1 << 25
_LEAST_ROOM = 1 << 16
_DIGEST = re.compile("[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class ScoringSchema(Schema):
    """Counts of (label, predicted class, binned score) of a published head; :class:`~privstats.Scoring` builds one.

    Of two classes there is one table: the label by the score of the second class in ``score_bins`` bins; the predicted
    class is the half in which the score lies. Of more classes there are two: the label by the predicted class, and
    whether that is right by the score of the predicted class; with ``by_class`` one more for every class, whether a
    record is of it by its score, for one-vs-rest curves.

    Guarantee:
        Unit one record. Every record is scored by itself and counts 1 in exactly one cell of each of J tables, whatever
        the head is and whatever the other records are: ``|T|^2 <= J``, and ``2 J`` under replace-one. Source: that of
        count tables (docs/sensitivity.md). The promise is for the records that are scored, not for those that the head
        was made from; without a promise a head can be built whose counts single out one record.

    Args:
        head: SHA-256 of the head, 64 hex digits, as its file has it; its bytes are the plan's published values.
        head_bytes: how many there are: at most 32 MiB, and twice what a quadratic rule over these classes and columns
            takes, beside the size of map and names.
        classes: number of labels C, at least 2; the head may know fewer of three and more.
        features: dimension of the rows behind ``transform``.
        score_bins: bins of equal width, public; an even number of 2 classes.
        score: ``"probability"``, in 0..1 (of the predicted class of more than two, in 1/C..1); or ``"margin"``, the
            score of the class less the largest of the others.
        reach: with a margin: bins cover -reach..reach, and larger ones count in the outer bins.
        by_class: of more than two classes: a table for every class.
        cuts: of two classes: the inner edges of the bins of a probability, ``score_bins - 1`` of them, rising, with one
            half among them; None for bins of equal width. Public, as all of a plan: :class:`~privstats.Scoring` takes
            them from the releases of the head.
        transform, class_names, feature_names: of the head, as in :class:`ClassSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> y = np.arange(400) % 2
        >>> X = np.random.default_rng(0).normal(size=(400, 2)) + y[:, None]
        >>> schema = ps.Scoring(ps.heads.LDA().fit(X, y), score_bins=4).schema
        >>> schema.tables, schema.shape(("label", "score"))
        ((('label', 'score'),), (2, 4))
    """

    task: ClassVar[str] = "scoring"
    makes: ClassVar[str] = (
        "how well a model that is already published does: how often it is right, where, and how sure it may be"
    )
    scores_head: ClassVar[bool] = True
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = COUNT_TABLE
    statistics: ClassVar[str] = letters_of(COUNT_TABLE)
    clip_norm: ClassVar[float] = 1.0
    grid_bits: ClassVar[int] = 0
    nonnegative: ClassVar[bool] = False

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
        rows = self.rows  # whose checks are those of the fields that it takes
        settle(self, classes=rows.classes, features=rows.features, transform=rows.transform)
        settle(self, class_names=rows.class_names, feature_names=rows.feature_names)
        settle(self, head_bytes=whole("head_bytes", self.head_bytes, 1, "the length of the head's file"))
        if self.head_bytes > (most := self._most_bytes):
            raise SchemaError(
                f"head_bytes is {self.head_bytes:,}, and a head of {self.classes} classes over {self.features} columns "
                f"has at most {most:,}: what is more would cost every party time for each record; publish a smaller "
                "head, and refuse such a plan of somebody else's"
            )
        settle(self, score_bins=_checked_bins(self.score_bins, self.classes, equal=self.cuts is None))
        if self.score not in get_args(Scale):
            raise SchemaError(f"score must be 'probability' or 'margin', got {self.score!r:.40}")
        if (self.score == "margin") != (self.reach is not None):
            raise SchemaError("reach is the largest margin with a bin of its own: give it with score='margin' alone")
        if self.reach is not None:
            settle(self, reach=size("reach", self.reach, "8 suits log-odds"))
        if not isinstance(self.by_class, bool) or (self.by_class and self.classes == 2):
            raise SchemaError("by_class must be True or False, and False of two classes: their one table is of both")
        if self.cuts is not None:
            settle(self, cuts=self._checked_cuts(self.cuts))
        _ = self.counted  # which bounds the number of cells

    def _checked_cuts(self, cuts: Any) -> tuple[float, ...]:
        values = tuple(float(each) for each in cuts) if isinstance(cuts, list | tuple) and _all_parts(cuts) else ()
        rising = all(low < high for low, high in pairwise((0.0, *values, 1.0)))
        if not (rising and 0.5 in values and len(values) == self.score_bins - 1) or self.classes != 2:
            raise SchemaError(
                "cuts are of two classes: score_bins - 1 probabilities that rise between 0 and 1, with 0.5 among them; "
                "ps.Scoring(head, releases=...) computes them"
            )
        if self.score != "probability":
            raise SchemaError("cuts are of probabilities; leave score out")
        return values

    @property
    def first_half(self) -> int:
        """Of two classes, how many bins are of scores for which the first is predicted."""
        return self.score_bins // 2 if self.cuts is None else self.cuts.index(0.5) + 1

    @property
    def _most_bytes(self) -> int:
        """Twice the largest rule, a float64 matrix for each class, and what the plan itself says of map and names."""
        said = repr((to_builtins(self.transform), self.class_names, self.feature_names))
        rule = 16 * self.classes * (self.features + 1) ** 2
        return min(_MOST_BYTES, _LEAST_ROOM + rule + 4 * len(said))

    @cached_property
    def rows(self) -> ClassSchema:
        """How records are read: as those of a class schema."""
        read = {"transform": self.transform, "class_names": self.class_names, "feature_names": self.feature_names}
        return ClassSchema(self.classes, self.features, "NA", 1.0, _ROW_BITS, **read)  # type: ignore[arg-type]

    @cached_property
    def labels(self) -> tuple[str, ...] | tuple[int, ...]:
        """The names of the classes, or the numbers 0..C-1."""
        return tuple(range(self.classes)) if self.class_names is None else self.class_names

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """Edges of the bins of a class's score, ``score_bins + 1`` of them."""
        if self.cuts is not None:
            return (0.0, *self.cuts, 1.0)
        low, high = (-self.reach, self.reach) if self.reach is not None else (0.0, 1.0)
        return _equal(low, high, self.score_bins)

    @cached_property
    def sure_edges(self) -> tuple[float, ...]:
        """The same of the predicted class's score, which is never low."""
        low, high = (0.0, self.reach) if self.reach is not None else (1 / self.classes, 1.0)
        return _equal(low, high, self.score_bins)

    @cached_property
    def counted(self) -> CountSchema:
        """The tables in which a record counts."""
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
        """What is known of a record once it is scored."""
        return self.counted.variables

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Which of these are crossed."""
        return self.counted.tables

    @property
    def sizes(self) -> dict[str, int]:
        """Number of cells of all tables together."""
        return self.counted.sizes

    def shape(self, table: tuple[str, ...]) -> tuple[int, ...]:
        """Cells along each variable of a table."""
        return self.counted.shape(table)

    def place(self, table: tuple[str, ...]) -> slice:
        """The slice of a table's cells in T, row by row."""
        return self.counted.place(table)

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.rows.record

    @property
    def clipping(self) -> str:
        """The sentence that explains the bound on a record's weight."""
        crossed = "; ".join(" by ".join(table) for table in self.tables)
        return (
            f"The published head {self.head[:16]} gives it a class and a score, and it counts 1 in exactly one cell of "
            f"every table ({crossed}), so that no record weighs more."
        )

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The bytes of the head, a number each."""
        return {HEAD: (self.head_bytes,)}


def bytes_of(values: Mapping[str, Values]) -> bytes:
    """The bytes of the head among the published values.

    Raises:
        PlanError: the values are no bytes.
    """
    whole_numbers = values[HEAD].integers
    if values[HEAD].exponent or whole_numbers.min() < 0 or whole_numbers.max() > 255:
        raise PlanError("the published head must be bytes, numbers from 0 to 255; ps.Scoring(head).published has them")
    return whole_numbers.astype(np.uint8).tobytes()


def published_head(data: bytes) -> Published:
    """The bytes of a head as values that a plan publishes."""
    whole_numbers: NDArray[np.int64] = np.frombuffer(data, np.uint8).astype(np.int64)
    return Published.of({HEAD: Values(whole_numbers, 0)})


def _all_parts(values: Sequence[Any]) -> bool:
    return all(type(each) in (int, float) and 0 < each < 1 for each in values)


def _checked_bins(value: object, classes: int, *, equal: bool) -> int:
    bins = whole("score_bins", value, 2, "20 suits most heads")
    if bins > _MOST_BINS or (classes == 2 and equal and bins % 2):
        raise SchemaError(
            f"score_bins must be at most {_MOST_BINS}, and of two classes an even number, so that one half is each "
            f"class's; got {bins}"
        )
    return bins


def _equal(low: float, high: float, bins: int) -> tuple[float, ...]:
    return tuple(float(each) for each in np.linspace(low, high, bins + 1))
