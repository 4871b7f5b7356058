"""The schema of one round of a logistic or Poisson regression: score and information at published weights.

Bounds and shapes only; the map from records to integers is in ``moments.score``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar, Literal, TypeAlias, get_args

from privstats.errors import PlanError, SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_vectors, settle, size, whole
from privstats.schema.classes import ClassSchema
from privstats.schema.public_values import VALUE_BITS, Values
from privstats.schema.ridge import RidgeSchema
from privstats.schema.statistic import Statistic, by_letter, letters_of
from privstats.transforms import ByArm, ConstantFeature, Transform, output_features

__all__ = ["NEEDS_PRIVACY", "Family", "ScoreSchema", "Seen", "require_narrow"]

_LOGISTIC: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("feature",),
        (1, 1),
        meaning="the sum of what each record would change in the model",
        share=0.591,
    ),
    Statistic(
        "H",
        "pooled",
        ("feature", "feature"),
        (2, 0),
        meaning="the sum of products of every two features, weighted by the variance of each predicted outcome",
        symmetric=True,
        share=0.409,
    ),
)
"""Score and information of a logistic regression; at these shares the information costs nothing beside the score."""

_POISSON = tuple(replace(row, share=share) for row, share in zip(_LOGISTIC, (0.7, 0.3), strict=True))
"""Score and information of a Poisson regression."""

NEEDS_PRIVACY = (
    "a score cannot be released without differential privacy: weights can be chosen so that one record alone counts; "
    "give the plan a Privacy"
)
"""Why no plan of scores may go without."""

Family: TypeAlias = Literal["logistic", "poisson"]

Seen: TypeAlias = Literal["outcome"]

_TABLES: Mapping[str, tuple[Statistic, ...]] = {"logistic": _LOGISTIC, "poisson": _POISSON}
_MOST_FEATURES = 1 << 12  # products of 12 x 20 bits and their sums are exact in float64
_WEIGHT_EXPONENTS = range(-8, 65)


@dataclass(frozen=True)
class ScoreSchema(Schema):
    """Score and information of a generalised linear model at published weights w.

    ``g = sum (y - m) u`` and ``H = sum v u u'`` over rows u of norm at most R: logistic ``m = 1 / (1 + exp(-w'u))``,
    ``v = m (1 - m)``, y in {0, 1}; Poisson ``m = exp(w'u)``, cut to Y, ``v = m``, y cut to 0..Y. The bounds hold for
    *every* w. A course builds the rounds (:class:`~privstats.course.Newton`).

    Args:
        features: dimension d of the rows (after ``transform``), at least 2; end the transform in ``ConstantFeature``
            for an intercept.
        clip_norm: R, the norm that rows are clipped to.
        family: ``"logistic"`` or ``"poisson"``.
        target_bound: Y, for a Poisson regression: counts beyond it are cut.
        rate: a public guess of the mean outcome, which the first round starts from; helps where outcomes are rare.
        outcomes: of rows by arm: how many columns y has, where it has several; they are not read here.
        grid_bits, nonnegative, transform, feature_names: as in :class:`ClassSchema`. Where the transform ends in
            ``ByArm``, the outcome is the arm that it takes out, u is the row of either arm, and y is read beside it
            and adds nothing: a propensity of treatment (:class:`~privstats.Effect`).
        missing: ``"outcome"``: the outcome is whether y is there, 1, or missing, 0, u is the whole row, and what y says
            adds nothing: a propensity of being observed.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.ScoreSchema(2, clip_norm=2.0, transform=(ps.transforms.ConstantFeature(1.0),))
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'feature': 2}, {'w': (2,)})
    """

    task: ClassVar[str] = "score"
    makes: ClassVar[str] = "a step of a regression for an outcome that is yes or no, or a count"
    no_persons: ClassVar[str] = ""
    statistics: ClassVar[str] = letters_of(_LOGISTIC)

    features: int = GIVEN
    clip_norm: float = GIVEN
    _: KW_ONLY
    family: Family = "logistic"
    target_bound: float | None = None
    rate: float | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None
    outcomes: int | None = None
    missing: Seen | None = None

    def __post_init__(self) -> None:
        settle(self, **checked_vectors(self))
        _check_outcomes(self)
        _check_missing(self)
        if self.by_arm and self.family != "logistic":
            raise SchemaError("the outcome is an arm where the transform ends in ByArm: take family='logistic'")
        if self.family not in get_args(Family):
            raise SchemaError(f"family must be 'logistic' or 'poisson', got {self.family!r}")
        if self.features > _MOST_FEATURES:
            raise SchemaError(f"features must be at most {_MOST_FEATURES}, got {self.features}; project them first")
        if (self.family == "poisson") != (self.target_bound is not None):
            raise SchemaError(
                "target_bound is the largest count of a Poisson regression: give it there, and only there"
            )
        if self.target_bound is not None:
            settle(self, target_bound=size("target_bound", self.target_bound, "the largest count, publicly known"))
        _check_rate(self)

    @property
    def table(self) -> tuple[Statistic, ...]:
        """The rows of the statistics, with the shares of the family."""
        return _TABLES[self.family]

    @property
    def by_arm(self) -> bool:
        """Whether the outcome is the arm that the transform takes out."""
        return self.missing is None and self._in_arms

    @property
    def _in_arms(self) -> bool:
        return bool(self.transform) and isinstance(self.transform[-1], ByArm)

    @property
    def parts(self) -> tuple[slice, ...]:
        """Entries of w that no record reads together: those of either arm, where rows are by arm."""
        half = self.features // 2
        return (slice(0, half), slice(half, None)) if self._in_arms and self.missing else (slice(None),)

    @property
    def appended(self) -> int:  # type: ignore[override]
        """Of rows by arm the transform gives twice as many entries."""
        if not self.by_arm:
            return 0
        outputs = output_features(self.transform)  # of declared columns, which may say the features
        return -self.features if outputs is None else -(outputs // 2)

    @property
    def sizes(self) -> dict[str, int]:
        """Length of the one axis."""
        return {"feature": self.features}

    @property
    def outcome(self) -> float:
        """The largest outcome: 1, or Y."""
        return self.target_bound or 1.0

    @property
    def constant(self) -> float | None:
        """Value of the last column where that is an intercept feature."""
        if self._in_arms and self.missing:
            return None
        last = self.transform[-1 - self.by_arm] if len(self.transform) > self.by_arm else None
        return last.value if isinstance(last, ConstantFeature) else None

    @property
    def rows(self) -> ClassSchema | RidgeSchema:
        """How records are read: as those of two classes, or of a regression."""
        if self.by_arm or self.missing:
            return RidgeSchema(
                self.features if self.missing else 2 * self.features,
                self.outcomes or 1,
                missing="left out" if self.missing else None,
                clip_norm=self.clip_norm,
                target_bound=1.0,
                grid_bits=self.grid_bits,
                transform=self.transform,
                feature_names=self.feature_names,
            )
        if self.family == "logistic":
            return ClassSchema(
                2,
                self.features,
                "NA",
                self.clip_norm,
                self.grid_bits,
                nonnegative=self.nonnegative,
                transform=self.transform,
                feature_names=self.feature_names,
            )
        return RidgeSchema(
            self.features,
            clip_norm=self.clip_norm,
            target_bound=self.outcome,
            grid_bits=self.grid_bits,
            nonnegative=self.nonnegative,
            transform=self.transform,
            feature_names=self.feature_names,
        )

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        if self.by_arm:
            return f"{self.columns}, the arm of a treatment among them, and an outcome that is not read here"
        if self.missing:
            return f"{self.columns}, and whether an outcome is there, which is not read here itself"
        outcome = "an outcome of 0 or 1" if self.family == "logistic" else f"a count of at most {self.outcome:g}"
        return f"{self.columns} and {outcome}"

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: rows have 2**f per R, residuals 2**f per largest outcome, v in units of it."""
        row = by_letter(self.sent, statistic)[0]
        if statistic == "H":
            return row.scale(self.scale) / self.outcome
        return row.scale(self.scale, self.steps / self.outcome)

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """The weights w, ``(d,)``."""
        return {"w": (self.features,)}

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse weights of another shape, wider than 20 bits, tiny or enormous, before any record is read."""
        super().check_values(values)
        require_narrow(values["w"])

    def refusal(self, unit: str | None) -> str:
        """Why no plan may go without DP: a chosen w isolates a record, whatever else is in the sum."""
        return NEEDS_PRIVACY if unit is None else ""


def require_narrow(w: Values) -> None:
    """Refuse weights whose products with rows of a grid are not exact in float64.

    Raises:
        PlanError: wider than 20 bits, tiny or enormous.
    """
    most = 1 << (VALUE_BITS - 1)
    if w.exponent not in _WEIGHT_EXPONENTS or (w.integers <= -most).any() or (w.integers >= most).any():
        raise PlanError(f"published w is wider than {VALUE_BITS} bits, or tiny or enormous: publish Values.rounded")


def _check_missing(schema: ScoreSchema) -> None:
    if schema.missing not in (None, "outcome"):
        raise SchemaError(f"missing must be 'outcome' or left out, got {schema.missing!r}")
    if schema.missing and (schema.family != "logistic" or schema.nonnegative or schema.rate or schema.outcomes):
        raise SchemaError(
            "whether y is there is 1 or 0, of one y: take family='logistic'; leave rate, outcomes and nonnegative out"
        )


def _check_outcomes(schema: ScoreSchema) -> None:
    if schema.outcomes is None:
        return
    if not schema.by_arm:
        raise SchemaError("outcomes are the columns of y beside rows by arm, which others lack: leave it out")
    settle(schema, outcomes=whole("outcomes", schema.outcomes, 2, "leave it out where there is one"))


def _check_rate(schema: ScoreSchema) -> None:
    if schema.rate is None:
        return
    rate = size("rate", schema.rate, "a public guess of the mean outcome")
    if rate >= schema.outcome or not math.isfinite(rate):
        raise SchemaError(f"rate must be below the largest outcome, {schema.outcome:g}, got {rate:g}")
    if schema.constant is None:
        raise SchemaError("rate is a guess for the intercept: end the transform in ConstantFeature, or leave rate out")
    settle(schema, rate=rate)
