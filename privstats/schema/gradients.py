"""The schema of one round of refinement: what a record adds to a gradient at published weights.

Bounds and shapes only; the map from records to integers is in ``moments.gradients``. For classes the gradient of a
softmax, or of a module that another package brings, without classes that of a least-squares regression of one target.

A round's numbers stand in its schema. ``expected_records`` and the course's mu, to nine digits, are what the recipe
follows from; in every round's plan, they reach clients and heads with the releases, and no side channel has to carry
the course.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from privstats.errors import PlanError, SchemaError
from privstats.schema.base import Schema
from privstats.schema.checks import GIVEN, checked_class_names, checked_vectors, settle, size, whole
from privstats.schema.classes import ClassSchema
from privstats.schema.modules import Module, module_of
from privstats.schema.public_values import VALUE_BITS, Values
from privstats.schema.ridge import RidgeSchema
from privstats.schema.statistic import Statistic, by_letter, letters_of
from privstats.transforms import Transform

__all__ = [
    "GRADIENT_STATISTICS",
    "ROW_BITS",
    "GradientSchema",
    "check_exact",
    "check_widths",
    "class_rows",
    "settle_classes",
    "settle_round",
]

_TABLE: tuple[Statistic, ...] = (
    Statistic(
        "g",
        "pooled",
        ("target", "feature"),
        (1, 1),
        meaning="the sum of what each record would change in the model",
        share=0.99,
    ),
    Statistic(
        "k",
        "pooled",
        (),
        (0, 1),
        meaning="the sum of a number of at most 1 of each record, which sets the size of the step",
        share=0.01,
    ),
)
"""Sum of residuals times mapped rows, and the one number kappa that sets the step size, in wire order."""

GRADIENT_STATISTICS = letters_of(_TABLE)

ROW_BITS = 16
"""Bits of a record's grid before the published map."""

_MOST_CLASSES = 1 << 13  # numerators of 2**40 each add up exactly
_MOST_FEATURES = 1 << 16
_MOST_WEIGHTS = 1 << 22
_MOST_MODULE_BITS = 13  # squared norms of 4**(2 f) are exact
_WEIGHT_EXPONENTS = range(-8, 65)
_MAP_EXPONENTS = range(-64, 129)


@dataclass(frozen=True)
class GradientSchema(Schema):
    """A gradient at published weights: g = sum r u', and kappa = sum k, one number.

    For classes ``u = (sqrt(1 - a^2) Mx / |Mx|, a)``, ``p = softmax(W u)``, ``r = q (p - e_y)`` with
    ``q = min(1, c / |p - e_y|)``, ``k = q (1 - |p|^2)``; g has shape ``(classes, features + 1)``. Without classes
    ``u = Mx``, shortened to norm 1, ``r = clip(y - w'x, -c, c) / c`` and k says whether it was not clipped; g has shape
    ``(1, features)``. With a module, g is the sum over records of the gradient of the cross entropy by all its P
    weights, shortened to ``residual_norm``, of shape ``(1, P)``, and k as for classes. In all three what a record adds
    to g is at most ``residual_norm`` long and 0 <= k <= 1, for *every* record and every M, W, w, c.

    Args:
        features: dimension d of the rows (after ``transform``), at least 2.
        classes: C, at least 2; None for a regression.
        module: the word of a :class:`~privstats.schema.modules.Module` that another package brings: the gradient is
            that of the module instead of a linear softmax.
        residual_norm: the norm that r, or a module's whole gradient, is shortened to: c for classes. A regression
            publishes its c, and r is in units of it: 1.
        expected_records: n, stated by the owners of the course and never counted from the records; the server's
            recipe follows from it, so it stands in every round's plan. No bound rests on it.
        course_mu: mu of the whole course for one record, rounded; likewise.
        clip_norm: R, the norm that rows are clipped to. For classes 1; there only a row's direction counts.
        target_bound: Y, for a regression.
        grid_bits: f; u and r of norm 1 and ``residual_norm`` are 2**f steps long. Between 2 and 20; of a module at most
            13.
        nonnegative, transform, class_names, feature_names: as in :class:`ClassSchema` and :class:`RidgeSchema`.

    Raises:
        SchemaError: naming the field, its bound and the remedy.

    Example:
        >>> schema = ps.GradientSchema(3, classes=2, residual_norm=0.5, expected_records=1_000, course_mu=0.3)
        >>> schema.sizes, schema.needs  # what is summed, and the published values that the measurement reads
        ({'target': 2, 'feature': 4}, {'M': (3, 3), 'W': (2, 4)})
    """

    task: ClassVar[str] = "gradients"
    makes: ClassVar[str] = (
        "a step in which a model is improved: which way its numbers should move, on average over all records"
    )
    no_persons: ClassVar[str] = ""
    table: ClassVar[tuple[Statistic, ...]] = _TABLE
    statistics: ClassVar[str] = GRADIENT_STATISTICS

    features: int = GIVEN
    classes: int | None = None
    _: KW_ONLY
    residual_norm: float
    expected_records: int
    course_mu: float
    clip_norm: float = 1.0
    target_bound: float | None = None
    grid_bits: int = 12
    nonnegative: bool = False
    transform: tuple[Transform, ...] = ()
    class_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None
    module: str | None = None

    def __post_init__(self) -> None:
        settle_round(self)
        _check_module(self)
        settle(self, residual_norm=size("residual_norm", self.residual_norm, ".3 suits a softmax, 1 a regression"))
        if self.classes is None:
            if self.target_bound is None or self.class_names is not None:
                raise SchemaError("a gradient without classes is a regression's: give target_bound, and no class_names")
            bound = size("target_bound", self.target_bound, "the largest target norm, publicly known")
            settle(self, target_bound=bound)
            return
        if self.target_bound is not None:
            raise SchemaError("a gradient of classes has no target_bound; leave it out")

    @property
    def sizes(self) -> dict[str, int]:
        """Length of every axis: rows of g, and entries of u; of a module one row of all P weights."""
        if self.network is not None:
            return {"target": 1, "feature": self.network.weights(self.features, self.classes or 1)}
        return {"target": self.classes or 1, "feature": self.features + (self.classes is not None)}

    @property
    def network(self) -> Module | None:
        """The module that ``module`` names."""
        return None if self.module is None else module_of(self.module)

    @property
    def rows(self) -> ClassSchema | RidgeSchema:
        """How records are read, before the published map: as those of a class or ridge schema on a finer grid."""
        if self.classes is not None:
            return class_rows(self, self.classes)
        return RidgeSchema(
            self.features,
            clip_norm=self.clip_norm,
            target_bound=self.target_bound or 1.0,
            grid_bits=ROW_BITS,
            nonnegative=self.nonnegative,
            transform=self.transform,
            feature_names=self.feature_names,
        )

    @property
    def record(self) -> str:
        """One record, as a phrase for data owners."""
        return self.rows.record

    def scale_of(self, statistic: str) -> float:
        """Grid steps per real unit: u has 2**f steps per 1, r 2**f per ``residual_norm``, kappa 2**f per 1."""
        targets = 1.0 if statistic == "k" else self.residual_norm
        return by_letter(self.table, statistic)[0].scale(self.steps, self.steps / targets)

    @property
    def needs(self) -> Mapping[str, tuple[int, ...]]:
        """M ``(d, d)``, and W ``(C, d + 1)`` for classes, w ``(P,)`` of a module, w ``(d,)`` and c for a regression."""
        square = (self.features, self.features)
        if self.classes is None:
            return {"M": square, "w": (self.features,), "c": ()}
        if self.module is not None:
            return {"M": square, "w": (self.sizes["feature"],)}
        return {"M": square, "W": (self.classes, self.features + 1)}

    @property
    def packages(self) -> tuple[str, ...]:
        """Those with which a module measures; none for a linear model."""
        return () if self.network is None else self.network.packages

    def check_values(self, values: Mapping[str, Values]) -> None:
        """Refuse values of another shape, wider than 20 bits, tiny or enormous, before any record is read."""
        super().check_values(values)
        check_widths(values)
        if "c" in values and int(values["c"].integers) < 1:
            raise PlanError("published c must be above 0: it is what residuals are clipped to")

    def refusal(self, unit: str | None) -> str:
        """Why no plan may go without DP: two rounds at chosen weights reveal one record, in any sum."""
        if unit is not None:
            return ""
        return (
            "a gradient cannot be released without differential privacy: two rounds at chosen weights give one "
            "record's row exactly; give the plan a Privacy"
        )


def _check_module(schema: GradientSchema) -> None:
    if schema.module is None:
        return
    module = module_of(schema.module)
    if schema.classes is None:
        raise SchemaError("a module's scores tell classes apart: give classes, or leave module out")
    if schema.grid_bits > _MOST_MODULE_BITS:
        raise SchemaError(
            f"grid_bits of a module must be at most {_MOST_MODULE_BITS}, got {schema.grid_bits}; lower it"
        )
    weights = module.weights(schema.features, schema.classes)
    if weights > _MOST_WEIGHTS:
        raise SchemaError(f"module has {weights:,} weights, and a round takes at most {_MOST_WEIGHTS:,}: narrow it")


def settle_round(schema: Any) -> None:
    """Check and keep the fields that the schemas of all rounds share.

    Args:
        schema: with ``features``, ``classes``, ``expected_records``, ``course_mu`` and the fields of vectors.

    Raises:
        SchemaError: naming the field, its bound and the remedy.
    """
    settle(schema, **checked_vectors(schema))
    settle(schema, expected_records=whole("expected_records", schema.expected_records, 1, "write down how many"))
    settle(schema, course_mu=size("course_mu", schema.course_mu, "take it from the course"))
    check_exact(schema)
    if schema.classes is None:
        return
    settle_classes(schema)
    if schema.clip_norm != 1.0:
        raise SchemaError("a round of classes takes rows of norm 1: leave clip_norm at 1, as UnitNorm() has it")


def check_exact(schema: Schema) -> None:
    """Refuse so many features that a logit is no exact sum of whole numbers.

    Raises:
        SchemaError: features beyond 65,536.
    """
    if schema.features > _MOST_FEATURES:
        raise SchemaError(f"features must be at most {_MOST_FEATURES}, got {schema.features}; project them first")


def settle_classes(schema: Any) -> None:
    """Check and keep ``classes`` and ``class_names`` of what is measured by a softmax.

    Raises:
        SchemaError: naming the field, its bound and the remedy.
    """
    settle(schema, classes=whole("classes", schema.classes, 2, "one class has nothing to tell apart: give two or more"))
    if schema.classes > _MOST_CLASSES:
        raise SchemaError(f"classes must be at most {_MOST_CLASSES}, got {schema.classes}; merge some")
    settle(schema, class_names=checked_class_names(schema.class_names, schema.classes))


def class_rows(schema: Schema, classes: int) -> ClassSchema:
    """How the records of a round of classes are read, before the published map: on a finer grid."""
    return ClassSchema(
        classes,
        schema.features,
        "NA",
        schema.clip_norm,
        ROW_BITS,
        nonnegative=schema.nonnegative,
        transform=schema.transform,
        class_names=schema.class_names,
        feature_names=schema.feature_names,
    )


def check_widths(values: Mapping[str, Values]) -> None:
    """Refuse published values that are wider than 20 bits, tiny or enormous.

    Raises:
        PlanError: naming the value.
    """
    most = 1 << (VALUE_BITS - 1)
    for name, value in values.items():
        exponents = _MAP_EXPONENTS if name == "M" else _WEIGHT_EXPONENTS
        if value.exponent not in exponents or (value.integers <= -most).any() or (value.integers >= most).any():
            raise PlanError(
                f"published {name} is wider than {VALUE_BITS} bits, or tiny or enormous: publish Values.rounded"
            )
