"""The schema of a classification task: counts, sums and second moments by class.

It defines the contribution of a labelled record and its bounds; ``moments`` computes the sums.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema, classes_of
from privstats.schema.checks import GIVEN, checked_class_names, checked_vectors, settle, whole
from privstats.schema.statistic import Statistic, letters_of
from privstats.transforms import Transform

__all__ = ["CLASS_STATISTICS", "CLASS_TABLE", "ClassSchema"]

CLASS_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic("A", "class", ("feature",), (1, 0), meaning="for each class, the sum of its feature vectors", share=0.85),
    Statistic(
        "B",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="over all classes together, the sum of products of every two features",
        symmetric=True,
        implied_by="S",
    ),
    Statistic(
        "S",
        "class",
        ("feature", "feature"),
        (2, 0),
        meaning="for each class, the sum of products of every two features",
        symmetric=True,
    ),
    Statistic(
        "D",
        "class",
        ("feature",),
        (2, 0),
        meaning="for each class, the sum of squares of every feature",
        implied_by="S",
    ),
    Statistic("T", "class", ("feature",), (3, 0), meaning="for each class, the sum of cubes of every feature"),
    Statistic("F", "class", ("feature",), (4, 0), meaning="for each class, the sum of fourth powers of every feature"),
)
"""Counts, sums, second moments pooled, per class, their diagonals, and third and fourth powers, in wire order."""

CLASS_STATISTICS = letters_of(CLASS_TABLE)

_PROVED = 2  # the highest degree for which docs/sensitivity.md bounds a record
_EXACT_BITS = 53  # of float64


@dataclass(frozen=True)
class ClassSchema(Schema):
    """Moments of a classification task: counts N, sums A, and second moments B, S or D.

    Args:
        classes: number of classes C, at least 2; labels are 0..C-1.
        features: dimension d of the vectors that are clipped (after ``transform``), at least 2; of declared columns it
            is their width, and may be left out.
        statistics: letters out of ``NABSDTF``; N and A are always there. S makes B and D redundant (B = sum_c S_c and
            D = diag S), so they are *derived*, never sent: asking for ``"NABSD"`` sends ``"NAS"``. T and F, third and
            fourth powers, have no proved sensitivity: a plan with them makes no promise.
        clip_norm: R, the Euclidean norm to which every vector is clipped, in the units of the features. A public
            choice: there is no way to take it from private data.
        grid_bits: f; a vector of norm R is 2**f grid steps long. Between 2 and 20; at most 17 with T, and 13 with F.
        nonnegative: features are known to be >= 0 (ReLU outputs); negative entries are clipped to 0 at the client, and
            the replace-one sensitivities are smaller.
        transform: public maps applied in order before clipping; see ``privstats.transforms``.
        class_names: names of the classes 0..C-1, in order: labels are then these texts, for every party alike. Part of
            the plan, hence public; None for labels that are the numbers 0..C-1.
        feature_names: names of the columns that come in (before ``transform``), in order: columns of a DataFrame are
            then put into this order, for every party alike. None takes columns as they stand.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.ClassSchema(classes=2, features=3, statistics="NABSD", clip_norm=1.0)
        >>> schema.statistics, [statistic.letter for statistic in schema.sent]  # B and D follow from S
        ('NAS', ['N', 'A', 'S'])
    """

    task: ClassVar[str] = "classes"
    makes: ClassVar[str] = (
        "a rule that tells the classes apart, from averages of the classes and from how values vary together"
    )
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = CLASS_TABLE
    predicts: ClassVar[Predicted | None] = "classes"
    optional: ClassVar[str] = CLASS_STATISTICS.replace("N", "").replace("A", "")
    suppressible: ClassVar[bool] = True

    classes: int
    features: int = GIVEN
    statistics: str = GIVEN
    clip_norm: float = GIVEN
    grid_bits: int = 12
    _: KW_ONLY
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, classes=whole("classes", self.classes, 2, "one class has nothing to tell apart: give two or more"))
        settle(self, **checked_vectors(self))
        if not isinstance(self.statistics, str) or not self.statistics:
            raise SchemaError(f"statistics must be letters out of {CLASS_STATISTICS}, for example 'NAB'")
        unknown = sorted(set(self.statistics) - set(CLASS_STATISTICS))
        if unknown:
            raise SchemaError(_about_letters(self.statistics, "".join(unknown)))
        missing = [s for s in "NA" if s not in self.statistics]
        if missing:
            raise SchemaError(f"statistics must contain N and A; add {' and '.join(missing)}")
        asked = [row for row in self.table if row.letter in self.statistics]
        sent = [row.letter for row in asked if not row.implied_by or row.implied_by not in self.statistics]
        settle(self, statistics="".join(sent))
        _check_grid(self)
        settle(self, class_names=checked_class_names(self.class_names, self.classes))

    @property
    def derived(self) -> str:
        """Statistics that follow from the sent ones: ``"BD"`` when S is sent, else ``""``."""
        return "".join(row.letter for row in self.table if row.implied_by and row.implied_by in self.statistics)

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""
        return {"class": self.classes, "feature": self.features}

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return f"{self.columns} and {classes_of(self.classes, self.class_names)}"

    def refusal(self, unit: str | None) -> str:
        """Why no promise covers third and fourth powers: nothing bounds them together with the rest."""
        unproved = " and ".join(row.letter for row in self.sent if row.degree > _PROVED)
        if unit is None or not unproved:
            return ""
        return (
            f"no sensitivity is proved for {unproved}, sums of third or fourth powers, so no promise may cover them: "
            "leave them out of schema.statistics, or give NoPrivacy()"
        )


def _check_grid(schema: ClassSchema) -> None:
    """Refuse a grid on which an entry of one record is no exact float64."""
    row = max(schema.sent, key=lambda row: row.degree)
    finest = _EXACT_BITS // row.degree
    if schema.grid_bits > finest:
        raise SchemaError(
            f"grid_bits must be at most {finest} with statistic {row.letter}, whose entries have {row.degree} times as "
            f"many bits, got {schema.grid_bits}: lower it"
        )


def _about_letters(statistics: str, unknown: str) -> str:
    if set(statistics.upper()) <= set(CLASS_STATISTICS):
        return f"statistics must be in capitals, got {statistics!r}; write them in capitals: {statistics.upper()!r}"
    strangers = "".join(letter for letter in unknown if letter.upper() not in CLASS_STATISTICS)
    return f"statistics has unknown letters {strangers!r}; use letters out of {CLASS_STATISTICS}"
