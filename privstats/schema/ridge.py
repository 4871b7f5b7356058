"""The schema of a least-squares task: Gram matrix, cross moments and target energy, by fold.

It defines the contribution of a record with its targets and its bounds; ``moments`` computes the sums.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, TypeAlias

from privstats.errors import SchemaError
from privstats.schema.base import Predicted, Schema
from privstats.schema.checks import GIVEN, check_coarseness, checked_vectors, settle, size, whole
from privstats.schema.statistic import Statistic, by_letter, letters_of
from privstats.transforms import Transform

__all__ = ["RIDGE_STATISTICS", "RIDGE_TABLE", "LeftOut", "RidgeSchema"]

RIDGE_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "G",
        "fold",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features",
        symmetric=True,
        share=0.5,
    ),
    Statistic(
        "h", "fold", ("feature", "target"), (1, 1), meaning="the sum of products of features and targets", share=0.48
    ),
    Statistic("q", "fold", (), (0, 2), meaning="the sum of squared targets", share=0.02),
)
"""Gram matrix, cross moments and target energy, in wire order."""

LeftOut: TypeAlias = Literal["left out"]

RIDGE_STATISTICS = letters_of(RIDGE_TABLE)

_MAX_FOLDS = 64


@dataclass(frozen=True)
class RidgeSchema(Schema):
    """Moments of a least-squares task: G = sum a a^T, h = sum a b^T, q = sum ||b||^2.

    Args:
        features: dimension d of a (after ``transform``), at least 2.
        targets: number of regression targets T, the columns of b.
        clip_norm: R, the norm to which every feature vector a is clipped.
        target_bound: Y, the norm to which every target vector b is clipped (for one target: the largest |b|).
        grid_bits: f; vectors of norm R and targets of norm Y are 2**f grid steps long. Between 2 and 20.
        folds: F; every record lies in exactly one fold and each fold has its own (G, h, q), so that the penalty can be
            chosen from the released sums without another round. The sensitivity does not grow with F. At most 64.
        nonnegative: features are known to be >= 0.
        transform: public maps applied to the features before clipping.
        feature_names: names of the columns that come in (before ``transform``), in order, as in :class:`ClassSchema`.
        missing: ``"left out"``: the one target may be missing, and such a record adds nothing; None: it is refused, or
            counts as one that cannot be read.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.RidgeSchema(2, clip_norm=2.0, target_bound=1.0)
        >>> moments = ps.measure(schema, [[1.0, 0.0], [0.0, 2.0]], [0.5, -1.0]).real()
        >>> moments.G.tolist(), moments.h.ravel().tolist(), moments.q
        ([[1.0, 0.0], [0.0, 4.0]], [0.5, -2.0], 1.25)
    """

    task: ClassVar[str] = "ridge"
    makes: ClassVar[str] = "a regression, which is a formula that predicts the targets from the columns"
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = RIDGE_TABLE
    statistics: ClassVar[str] = RIDGE_STATISTICS
    predicts: ClassVar[Predicted | None] = "ridge"

    features: int = GIVEN
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
        settle(self, targets=whole("targets", self.targets, 1, "a regression needs a target"))
        settle(self, folds=_checked_folds(self.folds))
        settle(self, target_bound=size("target_bound", self.target_bound, "the largest target norm, publicly known"))
        settle(self, **checked_vectors(self))
        check_coarseness("targets", self.targets, self.grid_bits)
        if self.missing not in (None, "left out") or (self.missing and self.targets > 1):
            raise SchemaError(f"missing must be 'left out', and of one target, got {self.missing!r}")

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""
        return {"fold": self.folds, "feature": self.features, "target": self.targets}

    @property
    def target_scale(self) -> float:
        """Grid steps per target unit."""
        return self.steps / self.target_bound

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        targets = "a target" if self.targets == 1 else f"{self.targets} targets"
        gap = ", where it is not missing" if self.missing else ""
        return f"{self.columns}, and {targets} of at most {self.target_bound:g}{gap}"

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit of a statistic."""
        return by_letter(self.table, statistic)[0].scale(self.scale, self.target_scale)


def _checked_folds(value: object) -> int:
    folds = whole("folds", value, 1, "1 means no cross-validation")
    if folds > _MAX_FOLDS:  # each has noise and an upload of its own
        raise SchemaError(f"folds must be at most {_MAX_FOLDS}, got {folds}: the upload grows with each; 5 is plenty")
    return folds
