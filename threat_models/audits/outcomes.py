"""What a kind of schema reads beside its rows, labels or numbers, for audits that make records of it up.

A kind without a row is refused by its name: records of one kind planted under another would audit nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.schema import (
    GradientSchema,
    Schema,
    ScoreSchema,
    row_of,
)
from privstats.transforms import input_features

__all__ = ["Outcome", "columns_of", "outcome_of"]

Values: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """Labels, by name where the schema names them, or numbers.

    Attributes:
        classes: how many labels there are; None: numbers.
        targets: how many numbers a record has.
        names: of the labels.
    """

    classes: int | None = None
    targets: int = 1
    names: tuple[str, ...] | None = None

    def alike(self, count: int, number: float = 0.0) -> Values:
        """The first label, or this number, for every record."""
        if self.classes is not None:
            return self._labels(np.zeros(count, np.int64))
        return np.full((count, self.targets) if self.targets > 1 else count, number)

    def drawn(self, count: int, chance: np.random.Generator) -> Values:
        """Labels or numbers by chance."""
        if self.classes is not None:
            return self._labels(chance.integers(0, self.classes, count))
        return chance.normal(size=(count, self.targets) if self.targets > 1 else count)

    def _labels(self, numbers: NDArray[np.int64]) -> Values:
        return numbers if self.names is None else np.array(self.names)[numbers]


def outcome_of(schema: Schema) -> Outcome:
    """What a record of such a schema has beside its row.

    Raises:
        SchemaError: no records are made up for schemas of this kind.
    """
    return row_of(_ROWS, schema, "record to make up")(schema)


def columns_of(schema: Schema) -> int:
    """How many columns come in."""
    return input_features(schema.transform, schema.features - schema.appended)


def _labelled(schema: Any) -> Outcome:
    return Outcome(schema.classes, names=schema.class_names)


def _unread(_: Schema) -> Outcome:
    """Labels that are given and not read."""
    return Outcome(1)


def _scored(schema: ScoreSchema) -> Outcome:
    return {"logistic": Outcome(2), "poisson": Outcome()}[schema.family]


def _by_classes(schema: GradientSchema) -> Outcome:
    return Outcome() if schema.classes is None else _labelled(schema)


_ROWS: Mapping[str, Callable[[Any], Outcome]] = {
    "classes": _labelled,
    "ridge": lambda schema: Outcome(targets=schema.targets),
    "sites": lambda _: Outcome(),
    "score": _scored,
    "gradients": _by_classes,
    "calibration": _labelled,
    "mean": _unread,
    "within": _labelled,
    "gaussians": _unread,
    "party-softmax": _labelled,
    "party-update": _labelled,
}
