"""Sum a least-squares task's moments by fold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import moments
from privstats.errors import DataError, SchemaError
from privstats.kinds.base import Added
from privstats.kinds.classes import ClassSchema
from privstats.kinds.column_facts import gap_facts
from privstats.kinds.worst import Record, Sums, WorstPair, added, dense, record_of, rows_of, wire
from privstats.moments.base import ExactClass, Moments, RealMoments
from privstats.records.reading import Targets
from privstats.schema.base import OUTCOME, Adjacency, Predicted, Schema, Statistic, by_letter, letters_of
from privstats.schema.checks import REQUIRED, as_int, check_coarseness, checked_vectors, settle, size
from privstats.schema.narrowing import bare
from privstats.transforms import ConstantFeature, Transform

if TYPE_CHECKING:
    from privstats.moments.adders import FoldAdder
    from privstats.moments.clip_report import ClipReport
    from privstats.moments.grid import Grid

# fmt: off
RIDGE_TABLE: tuple[Statistic, ...] = (
    Statistic("G", "fold", ("feature", "feature"), (2, 0), symmetric=True, share=0.5,
        meaning="the sum of products of every two features"),
    Statistic("h", "fold", ("feature", "target"), (1, 1), share=0.48,
        meaning="the sum of products of features and targets"),
    Statistic("q", "fold", (), (0, 2), meaning="the sum of squared targets", share=0.02),
)
"""Gram matrix, cross moments and target energy, in wire order."""
# fmt: on

LeftOut: TypeAlias = Literal["left out"]

RIDGE_STATISTICS = letters_of(RIDGE_TABLE)

_MAX_FOLDS = 64


@dataclass(frozen=True)
class RidgeSchema(Added["RidgeMoments"]):
    """Least-squares moments: G = sum a a^T, h = sum a b^T, q = sum ||b||^2.

    Args:
        features: d, of a after ``transform``, at least 2.
        targets: T, the columns of b.
        clip_norm: R, the norm to which feature vectors a are clipped.
        target_bound: Y, the norm to which target vectors b are clipped.
        grid_bits: f, 2 to 20; vectors of norm R and targets of norm Y are 2**f grid steps long.
        folds: F, at most 64; every record is in one fold, and each fold has separate sums, which can choose the
            penalty. The sensitivity does not grow beyond F = 2.
        nonnegative, transform, feature_names: as in :class:`ClassSchema`, for the features.
        missing: ``"left out"``: a record without its one target adds nothing; None: it is unreadable.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0]).real()
        >>> moments.G.tolist(), moments.h.ravel().tolist(), moments.q
        ([[1.0, 0.0], [0.0, 4.0]], [0.5, -2.0], 1.25)
    """

    task: ClassVar[str] = "ridge"
    purpose: ClassVar[str] = "a regression, which is a formula that predicts the targets from the columns"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = RIDGE_TABLE
    statistics: ClassVar[str] = RIDGE_STATISTICS
    predicts: ClassVar[Predicted | None] = "ridge"
    proved: ClassVar[str] = "Ghq"
    nearer: ClassVar[bool] = True
    statements: ClassVar[tuple[str, ...]] = ("folds", "norms")
    ignorable: ClassVar[str] = OUTCOME

    features: int = REQUIRED
    targets: int = 1
    _: KW_ONLY
    clip_norm: float
    target_bound: float
    grid_bits: int = 12
    folds: int = 1
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    missing: LeftOut | None = None

    def __post_init__(self) -> None:
        settle(self, targets=as_int("targets", self.targets, 1, "a regression needs a target"))
        settle(self, folds=_checked_folds(self.folds))
        settle(self, target_bound=size("target_bound", self.target_bound, "the largest target norm, publicly known"))
        settle(self, **checked_vectors(self))
        check_coarseness("targets", self.targets, self.grid_bits)
        if self.missing not in (None, "left out") or (self.missing and self.targets > 1):
            raise SchemaError(f"missing must be 'left out', and of one target, got {self.missing!r}")

    @property
    def goal(self) -> Targets:
        """What y holds."""
        return Targets(self.targets, gaps=self.missing is not None)

    @property
    def excludes_gaps(self) -> bool:
        """Whether a record with a gap is in no sum, under a promise or without one."""
        return self.missing is not None or super().excludes_gaps

    @property
    def sizes(self) -> dict[str, int]:
        """Axis lengths and cell counts."""
        return {"fold": self.folds, "feature": self.features, "target": self.targets}

    @property
    def target_scale(self) -> float:
        """Grid steps per target unit."""
        return self.grid_steps / self.target_bound

    @property
    def constant(self) -> float | None:
        """Value of a last ``ConstantFeature`` as sums hold it; None without an intercept."""
        last = self.transform[-1] if self.transform else None
        return self.on_grid(last.value) if isinstance(last, ConstantFeature) else None

    @property
    def record(self) -> str:
        """Description of one record."""
        targets = "a target" if self.targets == 1 else f"{self.targets} targets"
        gap = ", where it is not missing" if self.missing else ""
        return f"{self.columns}, and {targets} of at most {self.target_bound:g}{gap}"

    @property
    def column_facts(self) -> tuple[str, ...]:
        """Facts on gaps in declared columns, for a regression."""
        return gap_facts(self)

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit."""
        return by_letter(self.table, statistic)[0].scale(self.scale, self.target_scale)

    @property
    def unsigned(self) -> str:
        """Letters with entries that are never negative."""
        return "Gq" if self.nonnegative else "q"

    def move(self, weights: Mapping[str, float], adjacency: Adjacency) -> float:
        """Return mu^2 of one record (docs/proofs/records.md)."""
        radius_squared, target = self.clip_norm**2, self.target_bound**2
        gram = weights.get("G", 0.0) * radius_squared**2
        cross = weights.get("h", 0.0) * radius_squared * target
        energy = weights.get("q", 0.0) * target**2
        add = gram + cross + energy
        if adjacency == "add-remove":
            return add
        other_fold = 2 * add if self.folds > 1 else 0.0
        return max(other_fold, _replaced(gram, cross, energy))

    @classmethod
    def example(cls) -> Self:
        """Return a small schema of this kind."""
        return cls(4, 2, clip_norm=1.0, target_bound=3.0, feature_names=("a", "b", "c", "d"))

    @classmethod
    def worst(cls) -> WorstPair:
        """Return the rule for two data sets that attain the bound."""
        return WorstPair(_pairs, added(_of_record))

    @classmethod
    def containers(cls) -> tuple[ExactClass, type[RealMoments]]:
        """Return the classes of exact sums and of sums in real units."""
        return RidgeMoments, RealRidgeMoments

    def adder(self) -> FoldAdder:
        """Return the adder of sums by fold."""
        return moments.adders.FoldAdder(self, target_grid(self))


def _checked_folds(value: object) -> int:
    folds = as_int("folds", value, 1, "1 means no cross-validation")
    if folds > _MAX_FOLDS:  # each fold has separate noise and upload
        raise SchemaError(f"folds must be at most {_MAX_FOLDS}, got {folds}: the upload grows with each; 5 is plenty")
    return folds


# --- the sums


@dataclass(frozen=True, eq=False)
class RealRidgeMoments(RealMoments):
    """Ridge moments in real units, float64.

    Attributes:
        G: sum of a a^T, ``(d, d)``.
        h: sum of a b^T, ``(d, targets)``.
        q: sum of ||b||^2, a number.
        fold_G, fold_h, fold_q: per fold, folds first.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> real = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0]).real()
        >>> np.linalg.solve(real.G, real.h).ravel().tolist()  # the least-squares weights
        [0.5, -0.5]
    """

    G: NDArray[np.float64]
    h: NDArray[np.float64]
    q: float
    fold_G: NDArray[np.float64]
    fold_h: NDArray[np.float64]
    fold_q: NDArray[np.float64]

    @classmethod
    def of_sums(cls, schema: Schema, sums: Mapping[str, NDArray[Any]]) -> Self:
        """Build moments from wire-step sums by letter and fold."""
        real: dict[str, Any] = {s: array.sum(axis=0) / schema.scale_of(s) for s, array in sums.items()}
        real |= {f"fold_{s}": array / schema.scale_of(s) for s, array in sums.items()}
        return cls(**real)


@dataclass(frozen=True, eq=False, repr=False)
class RidgeMoments(Moments):
    """Exact ridge moments, int64, by fold.

    A record's fold is a public hash of its own grid vectors. So no record moves another to a different fold, as the
    sensitivity requires.

    Attributes:
        fold_G, fold_h, fold_q: ``(folds, d, d)``, ``(folds, d, targets)``, ``(folds,)``.
        clip_report: the clip's effect and the record count; stays with the client.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0, grid_bits=4)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0])
        >>> moments.G.tolist(), moments.real().G.tolist()  # squared grid steps of 2 / 16, and real units
        ([[64, 0], [0, 256]], [[1.0, 0.0], [0.0, 4.0]])
    """

    prefix: ClassVar[str] = "fold_"
    shown: ClassVar[tuple[str, ...]] = ("features", "targets", "folds")

    schema: RidgeSchema
    fold_G: NDArray[np.int64]
    fold_h: NDArray[np.int64]
    fold_q: NDArray[np.int64]
    clip_report: ClipReport | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.records is not None and self.records < 0:
            raise DataError("clip_report.records must be at least 0, got a negative number; pass measure()'s result")

    @property
    def G(self) -> NDArray[np.int64]:
        """Sum of a a^T, ``(d, d)``, in squared grid steps."""
        return np.asarray(self.fold_G.sum(axis=0))

    @property
    def h(self) -> NDArray[np.int64]:
        """Sum of a b^T, ``(d, targets)``, in feature times target steps."""
        return np.asarray(self.fold_h.sum(axis=0))

    @property
    def q(self) -> int:
        """Sum of ||b||^2 in squared target steps."""
        return int(self.fold_q.sum())

    @property
    def records(self) -> int | None:
        """Records measured; None: unknown. Private, never sent."""
        return None if self.clip_report is None else self.clip_report.records

    def real(self) -> RealRidgeMoments:
        """Return float64 moments in real units."""
        return RealRidgeMoments.of_sums(self.schema, self.wire())


# --- the sensitivity, and the two data sets that the certificate compares


def _replaced(gram: float, cross: float, energy: float) -> float:
    """Return max over c, t in [0, 1] of 2 gram (1 - c^2) + cross (1 + t^2 + 2 c t) + energy (1 - t^2)^2.

    c is the cosine of a and a', t the length of -b' over Y. The maximum has t = 0, t = 1 or the smaller root of 2
    energy t (1 - t) = cross.
    """
    lengths = [0.0, 1.0]
    if energy > 2 * cross:
        lengths.append((1 - math.sqrt(1 - 2 * cross / energy)) / 2)
    return max(_at_length(gram, cross, energy, t) for t in lengths)


def _at_length(gram: float, cross: float, energy: float, t: float) -> float:
    c = min(1.0, cross * t / (2 * gram)) if gram > 0 else 1.0
    return 2 * gram * (1 - c * c) + cross * (1 + t * t + 2 * c * t) + energy * (1 - t * t) ** 2


def _pairs(schema: RidgeSchema, weights: Mapping[str, float]) -> list[tuple[Record, Record]]:
    R = schema.grid_steps
    one = record_of([[0, R]], b=[[0, R]])
    g, k, e = (weights.get(letter, 0.0) for letter in "Ghq")
    lengths = [0.0, 1.0, *([(1 - math.sqrt(1 - 2 * k / e)) / 2] if e > 2 * k else [])]
    pairs = [(one, record_of([[1, R]], b=[[0, R]])), (one, record_of([[0, R]], b=[]))]
    for t in lengths:
        c = min(1.0, k * t / (2 * g)) if g else 1.0
        x = [[0, int(c * R)], [1, int(math.sqrt(1 - c * c) * R)]]
        pairs.append((one, record_of(x, b=[[0, -int(t * R)]] if int(t * R) else [])))
    return pairs + ([(one, {**one, "cell": 1})] if schema.folds > 1 else [])


def target_grid(schema: RidgeSchema) -> Grid:
    """Return the grid of the regression targets."""
    return moments.grid.Grid("y", schema.targets, schema.grid_steps, schema.target_scale)


def _of_record(schema: RidgeSchema, record: Record) -> Sums:
    target = [[dense(record["b"], 1)[0] / schema.target_scale]]
    small = replace(bare(schema), features=2, targets=1, folds=1)
    return wire(moments.exact_moments(small, rows_of(schema, [record]), target), record["cell"])


RecordSchema: TypeAlias = ClassSchema | RidgeSchema
"""The kinds that add up records' own terms, without a published map, and release no function of one party's sums."""
