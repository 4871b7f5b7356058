"""What is measured, and the bound every record obeys.

A schema is a frozen value: the statistics, their shapes, the clip norm, the grid and the public transform in front.
It is not data and not a plan; moments, layout and sensitivities are all derived from it.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Real
from typing import Any, TypeAlias, TypeVar

from privstats.errors import SchemaError
from privstats.statistic import CLASS_TABLE, COUNT_SCALE, RIDGE_TABLE, Statistic, by_letter
from privstats.transforms import Transform, output_features

__all__ = [
    "CLASS_STATISTICS",
    "COUNT_SCALE",
    "RIDGE_STATISTICS",
    "ClassSchema",
    "RidgeSchema",
    "Schema",
    "bare",
    "require_schema",
]

CLASS_STATISTICS = "".join(row.letter for row in CLASS_TABLE)
RIDGE_STATISTICS = "".join(row.letter for row in RIDGE_TABLE)

_MAX_GRID_BITS = 20
_MAX_FOLDS = 64
_LONGEST_SHOWN = 40
_LONGEST_NAME = 200
_LARGEST = 1e30  # beyond, products of squares with noise levels come near the ends of float64


@dataclass(frozen=True)
class ClassSchema:
    """Moments of a classification task: counts N, sums A, and second moments B, S or D.

    Args:
        classes: number of classes C, at least 2; labels are 0..C-1.
        features: dimension d of the vectors that are clipped (after ``transform``), at least 2.
        statistics: letters out of ``NABSD``; N and A are always there. S makes B and D redundant (B = sum_c S_c and
            D = diag S), so they are *derived*, never sent: asking for ``"NABSD"`` sends ``"NAS"``.
        clip_norm: R, the Euclidean norm to which every vector is clipped, in the units of the features. A public
            choice: there is no way to take it from private data.
        grid_bits: f; a vector of norm R is 2**f grid steps long. Between 2 and 20.
        nonnegative: features are known to be >= 0 (ReLU outputs); negative entries are clipped to 0 at the client, and
            the replace-one sensitivities are smaller.
        transform: public maps applied in order before clipping; see ``privstats.transforms``.
        class_names: names of the classes 0..C-1, in order: labels are then these texts, for every party alike. Part of
            the plan, hence public; None for labels that are the numbers 0..C-1.
        feature_names: names of the columns that come in (before ``transform``), in order: columns of a DataFrame are
            then put into this order, for every party alike. None takes columns as they stand.

    Raises:
        SchemaError: naming the field, its bound and the remedy.
    """

    classes: int
    features: int
    statistics: str
    clip_norm: float
    grid_bits: int = 12
    _: KW_ONLY
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _settle(
            self, classes=_whole("classes", self.classes, 2, "one class has nothing to tell apart: give two or more")
        )
        _settle(self, **_checked_vectors(self))
        if not isinstance(self.statistics, str) or not self.statistics:
            raise SchemaError(f"statistics must be letters out of {CLASS_STATISTICS}, for example 'NAB'")
        unknown = sorted(set(self.statistics) - set(CLASS_STATISTICS))
        if unknown:
            raise SchemaError(_about_letters(self.statistics, "".join(unknown)))
        missing = [s for s in "NA" if s not in self.statistics]
        if missing:
            raise SchemaError(f"statistics must contain N and A; add {' and '.join(missing)}")
        asked = [row for row in CLASS_TABLE if row.letter in self.statistics]
        sent = [row.letter for row in asked if not row.implied_by or row.implied_by not in self.statistics]
        _settle(self, statistics="".join(sent))
        _settle(self, class_names=_checked_names("class_names", self.class_names, self.classes, "classes"))

    @property
    def sent(self) -> tuple[Statistic, ...]:
        """The rows of the statistics that are sent, in wire order."""
        return by_letter(CLASS_TABLE, self.statistics)

    @property
    def derived(self) -> str:
        """Statistics that follow from the sent ones: ``"BD"`` when S is sent, else ``""``."""
        return "".join(row.letter for row in CLASS_TABLE if row.implied_by and row.implied_by in self.statistics)

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""
        return {"class": self.classes, "feature": self.features}

    @property
    def steps(self) -> int:
        """Grid steps in the clip norm: 2**grid_bits, the integer radius of the ball every grid vector lies in."""
        return 1 << self.grid_bits

    @property
    def scale(self) -> float:
        """Grid steps per feature unit, s = 2**f / R."""
        return self.steps / self.clip_norm

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit of a statistic as it stands in the layout (N carries ``COUNT_SCALE``)."""
        return by_letter(CLASS_TABLE, statistic)[0].scale(self.scale)

    @property
    def bound(self) -> int:
        """The most that one record adds to any exact sum or to the square of its norm, in grid steps."""
        return _largest(self)


@dataclass(frozen=True)
class RidgeSchema:
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

    Raises:
        SchemaError: naming the field, its bound and the remedy.
    """

    features: int
    targets: int = 1
    _: KW_ONLY
    clip_norm: float
    target_bound: float
    grid_bits: int = 12
    folds: int = 1
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    feature_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        _settle(self, targets=_whole("targets", self.targets, 1, "a regression needs a target"))
        _settle(self, folds=_checked_folds(self.folds))
        _settle(self, target_bound=_size("target_bound", self.target_bound, "the largest target norm, publicly known"))
        _settle(self, **_checked_vectors(self))
        _check_coarseness("targets", self.targets, self.grid_bits)

    @property
    def statistics(self) -> str:
        """Always ``"Ghq"``."""
        return RIDGE_STATISTICS

    @property
    def sent(self) -> tuple[Statistic, ...]:
        """The rows of the statistics that are sent, in wire order."""
        return RIDGE_TABLE

    @property
    def derived(self) -> str:
        """Nothing is derived: always ``""``."""
        return ""

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis and number of every kind of cell."""
        return {"fold": self.folds, "feature": self.features, "target": self.targets}

    @property
    def steps(self) -> int:
        """Grid steps in the clip norm and in the target bound: 2**grid_bits."""
        return 1 << self.grid_bits

    @property
    def scale(self) -> float:
        """Grid steps per feature unit."""
        return self.steps / self.clip_norm

    @property
    def target_scale(self) -> float:
        """Grid steps per target unit."""
        return self.steps / self.target_bound

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit of a statistic."""
        return by_letter(RIDGE_TABLE, statistic)[0].scale(self.scale, self.target_scale)

    @property
    def bound(self) -> int:
        """The most that one record adds to any exact sum or to the square of its norm, in grid steps."""
        return _largest(self)


Schema: TypeAlias = ClassSchema | RidgeSchema
_Either = TypeVar("_Either", bound=ClassSchema | RidgeSchema)


def bare(schema: _Either) -> _Either:
    """The same moments of rows that are behind the public transform already, of labels 0..C-1 and without names."""
    unnamed: dict[str, Any] = {"class_names": None} if isinstance(schema, ClassSchema) else {}
    return replace(schema, transform=(), feature_names=None, **unnamed)


def require_schema(schema: object, call: str | None = None) -> None:
    """Refuse what is not a schema: records put in its place, or the plan that holds it.

    Args:
        schema: what came.
        call: the call that was meant, for the message.

    Raises:
        SchemaError: with the call that was meant.
    """
    if isinstance(schema, ClassSchema | RidgeSchema):
        return
    wrong = f"schema must be a ClassSchema or RidgeSchema, got {type(schema).__name__}"
    if isinstance(getattr(schema, "schema", None), ClassSchema | RidgeSchema):  # a plan, which is built further up
        raise SchemaError(f"{wrong}; give plan.schema")
    raise SchemaError(f"{wrong}; call {call}" if call else f"{wrong}; give one of these")


def _largest(schema: Schema) -> int:
    return max(schema.steps**2, *(row.bound(schema.steps) // row.resolution for row in schema.sent))


def _settle(schema: Schema, **values: object) -> None:
    """Store checked values in a frozen schema, as plain Python types."""
    for field, value in values.items():
        object.__setattr__(schema, field, value)


def _about_letters(statistics: str, unknown: str) -> str:
    if set(statistics.upper()) <= set(CLASS_STATISTICS):
        return f"statistics must be in capitals, got {statistics!r}; write them in capitals: {statistics.upper()!r}"
    strangers = "".join(letter for letter in unknown if letter.upper() not in CLASS_STATISTICS)
    return f"statistics has unknown letters {strangers!r}; use letters out of {CLASS_STATISTICS}"


def _checked_vectors(schema: Schema) -> dict[str, object]:
    """What both schemas say about their feature vectors, checked."""
    features = _whole("features", schema.features, 2, "one feature has no covariance: add another or a constant one")
    grid_bits = _whole("grid_bits", schema.grid_bits, 2, "12 suits most data")
    if grid_bits > _MAX_GRID_BITS:
        raise SchemaError(f"grid_bits must be at most {_MAX_GRID_BITS}, got {grid_bits}; 12 suits most data")
    _check_coarseness("features", features, grid_bits)
    if not isinstance(schema.nonnegative, bool):
        raise SchemaError(f"nonnegative must be True or False, got {type(schema.nonnegative).__name__}")
    transform = schema.transform
    if not isinstance(transform, tuple | list) or not all(isinstance(step, Transform) for step in transform):
        raise SchemaError("transform must be a tuple of maps from privstats.transforms, for example (UnitNorm(),)")
    outputs = output_features(transform)
    if outputs is not None and outputs != features:
        raise SchemaError(f"transform gives {outputs} features but features={features}; make them equal")
    clip_norm = _size("clip_norm", schema.clip_norm, "choose it from public data, as `privstats plan suggest` does")
    names = _checked_columns(schema.feature_names, tuple(transform), features)
    settled = {"features": features, "grid_bits": grid_bits, "clip_norm": clip_norm, "transform": tuple(transform)}
    return {**settled, "feature_names": names}


def _checked_columns(names: Any, transform: tuple[Transform, ...], features: int) -> tuple[str, ...] | None:
    """Names of the columns that come in, as many as the transform turns into ``features``."""
    checked = _checked_names("feature_names", names)
    if checked is None:
        return None
    try:
        outputs = output_features(transform, len(checked))
    except SchemaError as error:
        raise SchemaError(f"feature_names must name the columns before the transform: {error}") from None
    if outputs != features:
        became = f", which the transform turns into {outputs}," if transform else ""
        raise SchemaError(
            f"feature_names names {len(checked)} columns{became} but features={features}; name each that comes in"
        )
    return checked


def _checked_names(field: str, names: Any, count: int | None = None, of: str = "") -> tuple[str, ...] | None:
    """Different texts without control characters, as a tuple; None where there are none."""
    if names is None:
        return None
    if not isinstance(names, tuple | list) or not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{field} must be a tuple of texts, for example ('cat', 'dog'), got {_shown(names)}")
    for name in names:
        if not 0 < len(name) <= _LONGEST_NAME or not name.isprintable() or name != name.strip():
            raise SchemaError(
                f"{field} holds {_shown(name)}; a name has 1 to {_LONGEST_NAME} printable characters, "
                "and no space at either end"
            )
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise SchemaError(f"{field} holds {_shown(twice)} twice; names tell things apart, so use each once")
    if count is not None and len(names) != count:
        raise SchemaError(f"{field} holds {len(names)} names but {of}={count}; name each once, in order")
    return tuple(str(name) for name in names)


def _checked_folds(value: object) -> int:
    folds = _whole("folds", value, 1, "1 means no cross-validation")
    if folds > _MAX_FOLDS:  # each has noise and an upload of its own
        raise SchemaError(f"folds must be at most {_MAX_FOLDS}, got {folds}: the upload grows with each; 5 is plenty")
    return folds


def _check_coarseness(field: str, columns: int, grid_bits: int) -> None:
    """Rounding moves a vector by up to sqrt(columns)/2 steps, which must leave a ball to shrink into."""
    coarse = math.sqrt(columns) / 2
    if coarse >= 1 << grid_bits:
        raise SchemaError(
            f"grid_bits={grid_bits} is too coarse for {field}={columns}: rounding could exceed the clip norm; "
            f"use at least {math.floor(math.log2(coarse)) + 1}"
        )


def _whole(field: str, value: object, least: int, remedy: str) -> int:
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:  # whole numbers of numpy and torch have passed
        raise SchemaError(f"{field} must be a whole number of at least {least}, got {_shown(value)}")
    if number < least:
        raise SchemaError(f"{field} must be at least {least}, got {number}: {remedy}")
    return number


def _shown(value: object) -> str:
    """A schema is public: a short text or number may be shown, anything else is named by its type."""
    plain = isinstance(value, str | float | bool) and len(repr(value)) <= _LONGEST_SHOWN
    return repr(value) if plain else type(value).__name__


def _size(field: str, value: object, remedy: str) -> float:
    if isinstance(value, str):
        raise SchemaError(f"{field} must be a number, got the text {_shown(value)}; remove the quotes")
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not 1 / _LARGEST <= number <= _LARGEST:
        raise SchemaError(f"{field} must be a number between 1e-30 and 1e30, got {value!r}: {remedy}")
    return number
