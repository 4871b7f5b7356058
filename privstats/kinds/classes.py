"""Sum counts, vectors and second moments by class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import SchemaError
from privstats.kinds.base import Added
from privstats.kinds.worst import Record, Sums, WorstPair, added, rows_of, vectors, wire
from privstats.moments.base import ExactClass, Moments, RealMoments, readonly_array, require_room
from privstats.records.reading import Labels
from privstats.schema.base import COUNT_SCALE, Adjacency, Predicted, Schema, Statistic, classes_of, letters_of
from privstats.schema.checks import REQUIRED, as_int, checked_class_names, checked_vectors, settle
from privstats.schema.narrowing import bare
from privstats.transforms import Transform

if TYPE_CHECKING:
    from privstats.moments.adders import ClassAdder
    from privstats.moments.clip_report import ClipReport

# fmt: off
CLASS_TABLE: tuple[Statistic, ...] = (
    Statistic("N", "class", (), (0, 0), meaning="how many records each class has", share=0.02),
    Statistic("A", "class", ("feature",), (1, 0), meaning="for each class, the sum of its feature vectors", share=0.85),
    Statistic("B", "pooled", ("feature", "feature"), (2, 0), symmetric=True, implied_by="S",
        meaning="over all classes together, the sum of products of every two features"),
    Statistic("S", "class", ("feature", "feature"), (2, 0), symmetric=True,
        meaning="for each class, the sum of products of every two features"),
    Statistic("D", "class", ("feature",), (2, 0), implied_by="S",
        meaning="for each class, the sum of squares of every feature"),
    Statistic("T", "class", ("feature",), (3, 0), meaning="for each class, the sum of cubes of every feature"),
    Statistic("F", "class", ("feature",), (4, 0), meaning="for each class, the sum of fourth powers of every feature"),
)
"""Counts, sums, second moments pooled, per class, their diagonals, and third and fourth powers, in wire order."""
# fmt: on

CLASS_STATISTICS = letters_of(CLASS_TABLE)

_PROVED = 2  # the highest degree for which docs/proofs/records.md bounds a record

_EXACT_BITS = 53  # exact integer bits of float64


@dataclass(frozen=True)
class ClassSchema(Added["ClassMoments"]):
    """Moments of a classification task: counts N, sums A, and second moments B, S or D.

    Args:
        classes: number of classes C, at least 2; labels are 0..C-1.
        features: dimension d after ``transform``, at least 2; optional for declared columns.
        statistics: letters out of ``NABSDTF``, N and A always. B and D follow from S (B = sum_c S_c, D = diag S) and
            are then *derived*, never sent. T and F, third and fourth powers, have no proved sensitivity: no promise
            covers them.
        clip_norm: R, the norm to which vectors are clipped, in feature units; public, never computed from private data.
        grid_bits: f, 2 to 20; a vector of norm R is 2**f grid steps long. At most 17 with T, 13 with F.
        nonnegative: features are known to be >= 0; negative entries are clipped to 0, and replace-one sensitivities are
            never larger.
        transform: public maps before clipping, in order (``privstats.transforms``).
        class_names: public names of classes 0..C-1; labels are then these texts.
        feature_names: input columns (before ``transform``), in the order to which a DataFrame is sorted; None: as
            given.

    Example:
        >>> schema = ps.ClassSchema(classes=2, features=3, statistics="NABSD", clip_norm=1.0)
        >>> schema.statistics, [statistic.letter for statistic in schema.sent]  # B and D follow from S
        ('NAS', ['N', 'A', 'S'])
    """

    task: ClassVar[str] = "classes"
    purpose: ClassVar[str] = (
        "a rule that distinguishes the classes, from averages of the classes and from how values vary together"
    )
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = CLASS_TABLE
    predicts: ClassVar[Predicted | None] = "classes"
    optional: ClassVar[str] = CLASS_STATISTICS.replace("N", "").replace("A", "")
    suppressible: ClassVar[bool] = True
    proved: ClassVar[str] = "NABSD"
    nearer: ClassVar[bool] = True
    statements: ClassVar[tuple[str, ...]] = ("classes", "norms")

    classes: int
    features: int = REQUIRED
    statistics: str = REQUIRED
    clip_norm: float = REQUIRED
    grid_bits: int = 12
    _: KW_ONLY
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, classes=as_int("classes", self.classes, 2, "one class has nothing to separate: set two or more"))
        settle(self, **checked_vectors(self))
        if not isinstance(self.statistics, str) or not self.statistics:
            raise SchemaError(f"statistics must be letters out of {CLASS_STATISTICS}, for example 'NAB'")
        unknown = sorted(set(self.statistics) - set(CLASS_STATISTICS))
        if unknown:
            raise SchemaError(_about_letters(self.statistics, "".join(unknown)))
        missing = [s for s in "NA" if s not in self.statistics]
        if missing:
            raise SchemaError(f"statistics must contain N and A; add {' and '.join(missing)}")
        rows = [row for row in self.table if row.letter in self.statistics]
        sent = [row.letter for row in rows if not row.implied_by or row.implied_by not in self.statistics]
        settle(self, statistics="".join(sent))
        _check_grid(self)
        settle(self, class_names=checked_class_names(self.class_names, self.classes))

    @property
    def derived(self) -> str:
        """Statistics that follow from S: ``"BD"`` or none."""
        return "".join(row.letter for row in self.table if row.implied_by and row.implied_by in self.statistics)

    @property
    def goal(self) -> Labels:
        """What y holds."""
        return Labels.of(self.classes, self.class_names)

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths and cell counts."""
        return {"class": self.classes, "feature": self.features}

    @property
    def record(self) -> str:
        """Description of one record."""
        return f"{self.columns} and {classes_of(self.classes, self.class_names)}"

    def refusal(self, unit: str | None) -> str:
        """Return why no promise covers third and fourth powers."""
        unproved = " and ".join(row.letter for row in self.sent if row.degree > _PROVED)
        if unit is None or not unproved:
            return ""
        return (
            f"no sensitivity is proved for {unproved}, sums of third or fourth powers, so no promise may cover them: "
            "omit them from schema.statistics, or set NoPrivacy()"
        )

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "NABSD" if self.nonnegative else "ND"

    def longest(self, statistic: str) -> int | None:
        """Return the largest L1 length: a count's, that of a row of length r = 2**f, and a row's squared length r^2."""
        lengths = {"N": COUNT_SCALE, "A": longest_row(self.grid_steps**2, self.features), "D": self.grid_steps**2}
        return lengths.get(statistic)

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/records.md)."""
        radius_squared = self.clip_norm**2
        count = weights.get("N", 0.0)
        first = weights.get("A", 0.0) * radius_squared
        second = sum(weights.get(statistic, 0.0) for statistic in "BSD") * radius_squared**2
        add = count + first + second
        if adjacency == "add-remove":
            return add
        other_class = 2 * add
        return other_class if self.nonnegative else max(other_class, _opposed(first, second))

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(3, 4, "NABD", 1.0, class_names=("ash", "beech", "elm"))

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(vectors, added(_of_record))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return ClassMoments, RealClassMoments

    def adder(self) -> ClassAdder:
        """Return the adder of sums by class."""
        return moments.adders.ClassAdder(self)


def longest_row(square: int, entries: int) -> int:
    """Return the largest sum |x_1| + ... + |x_d| of integers with ``x_1^2 + ... + x_d^2 <= square``.

    Raising an entry from a to a + 1 costs 2 a + 1 of the square, so cheap raises come first. All entries reach
    ``a = isqrt(square // d)``, and the remainder raises some by 1.
    """
    each = math.isqrt(square // entries)
    return entries * each + (square - entries * each * each) // (2 * each + 1)


def _check_grid(schema: ClassSchema) -> None:
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
    letters = "".join(letter for letter in unknown if letter.upper() not in CLASS_STATISTICS)
    return f"statistics has unknown letters {letters!r}; use letters out of {CLASS_STATISTICS}"


# --- the sums

_CACHED = 1 << 16  # entries of a pooled sum that stay cached while classes are added up


@dataclass(frozen=True, eq=False)
class RealClassMoments(RealMoments):
    """Class moments in real units, float64; unmeasured statistics are None.

    Attributes:
        N, A: counts ``(C,)`` and class sums ``(C, d)``.
        B: pooled second moments, ``(d, d)``.
        S: class second moments, ``(C, d, d)``.
        D: diagonals of S, ``(C, d)``.
        T, F: sums of third and fourth powers, ``(C, d)``.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> real = ps.measure(schema, [[0.5, 0.0], [0.0, 0.25]], [0, 1]).real()
        >>> real.N.tolist(), real.A.tolist(), real.B is None
        ([1.0, 1.0], [[0.5, 0.0], [0.0, 0.25]], True)
    """

    N: NDArray[np.float64]
    A: NDArray[np.float64]
    B: NDArray[np.float64] | None = None
    S: NDArray[np.float64] | None = None
    D: NDArray[np.float64] | None = None
    T: NDArray[np.float64] | None = None
    F: NDArray[np.float64] | None = None

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, NDArray[Any]]) -> Self:
        """Build moments from wire-step sums by letter; S implies B and D."""
        return super().of_sums(schema, {**sums, **_derived(sums.get("S"))})


@dataclass(frozen=True, eq=False, repr=False)
class ClassMoments(Moments):
    """Exact class moments, int64: N in records, the others in grid steps to their degree's power.

    Sums over clipped, rounded records (docs/plan.md): N_c = #{y = c}, A_c = sum x, S_c = sum x x^T, B = sum_c S_c.
    D_c = sum x^2, T_c = sum x^3 and F_c = sum x^4 are by entry.

    Attributes:
        clip_report: the clip's effect; stays with the client.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, grid_bits=4)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 0.5]], [0, 1])
        >>> moments.N.tolist(), moments.A.tolist()  # records, and grid steps: 16 to the clip norm
        ([1, 1], [[16, 0], [0, 8]])
        >>> moments.real().A.tolist()
        [[1.0, 0.0], [0.0, 0.5]]
    """

    shown: ClassVar[tuple[str, ...]] = ("statistics", "classes", "features")

    schema: ClassSchema
    N: NDArray[np.int64]
    A: NDArray[np.int64]
    B: NDArray[np.int64] | None = None
    S: NDArray[np.int64] | None = None
    D: NDArray[np.int64] | None = None
    T: NDArray[np.int64] | None = None
    F: NDArray[np.int64] | None = None
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        unsent = {name: getattr(self, name) for name in CLASS_STATISTICS if name not in self.schema.statistics}
        for name, array in {**unsent, **_derived(self.S)}.items():
            object.__setattr__(self, name, readonly_array(array, np.int64))
        require_room(int(self.N.sum(dtype=np.float64)), self.schema.bound)  # overflowed counts would pass every limit

    @property
    def records(self) -> int:
        """Records measured. Private."""
        return int(self.N.sum())

    def real(self) -> RealClassMoments:
        """Return float64 moments in real units."""
        return RealClassMoments.of_sums(self.schema, self.wire())


def _derived(S: NDArray[Any] | None) -> dict[str, NDArray[Any]]:
    if S is None:
        return {}
    pooled, at_once = np.empty_like(S[0]), max(1, _CACHED // S.shape[2])
    for start in range(0, len(pooled), at_once):
        S[:, start : start + at_once].sum(axis=0, out=pooled[start : start + at_once])
    return {"B": pooled, "D": np.diagonal(S, axis1=1, axis2=2).copy()}


# --- the sensitivity, and the two data sets that the certificate compares


def _opposed(linear: float, quadratic: float) -> float:
    """Return the maximum over c of 2 w_A (R^2 - c) + 2 W (R^4 - c^2), where c = <x, x'> is between -R^2 and R^2.

    It is at c = -w_A / (2 W), or at c = -R^2 if that is larger.

    Args:
        linear, quadratic: w_A R^2 and W R^4.
    """
    return (linear + 2 * quadratic) ** 2 / (2 * quadratic) if linear < 2 * quadratic else 4 * linear


def _of_record(schema: ClassSchema, record: Record) -> Sums:
    small = replace(bare(schema), classes=2, features=2)
    return wire(moments.exact_moments(small, rows_of(schema, [record]), [record["cell"]]))
