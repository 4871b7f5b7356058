"""The base of all transforms: a frozen definition that a plan can store, and the map that follows from it.

Subclasses are frozen dataclasses of numbers and strings; registering them under ``kind`` lets a plan write and read
them. No matrix is ever stored: it is expanded from the definition, the same bits on every machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from privstats.errors import SchemaError
from privstats.python_values import python_fields
from privstats.tables import load_all, register
from privstats.transforms.exact import Rows

_ROOM = "privstats.transforms"
_KINDS: dict[str, type[Transform]] = {}


@dataclass(frozen=True)
class Transform(ABC):
    """One public map from feature rows to feature rows; it must not depend on private data.

    Attributes:
        kind: its name in a plan file.
        affine: whether it is x -> M x + m for a fixed M and m (but for rounding).
        local: whether it is fitted on the records of the client that applies it, so that one record moves all of them;
            a plan that promises a record refuses it.
        unit: whether its rows have norm 1 by construction, so that nothing puts a ``UnitNorm`` behind it. False for
            ``UnitNorm``: courses of old plans end in two, and their digests stay.
        reads_cells: whether codes of a table's values come in, with NaN for gaps, and not features (:class:`Cells`).

    Example:
        >>> unit = ps.transforms.UnitNorm()
        >>> isinstance(unit, ps.transforms.Transform), unit.kind, unit.affine
        (True, 'unit-norm', False)
    """

    kind: ClassVar[str]
    affine: ClassVar[bool] = False
    local: ClassVar[bool] = False
    unit: ClassVar[bool] = False
    reads_cells: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "kind" in cls.__dict__:
            if not cls.__module__.startswith(_ROOM):
                kinds()  # so that a class from elsewhere is refused where it takes a name of ours
            register(_KINDS, cls.kind, cls, "transform kind", SchemaError)

    def __post_init__(self) -> None:
        python_fields(self)

    @abstractmethod
    def apply(self, rows: Rows) -> Rows:
        """Map finite float64 rows of shape ``(n, inputs)`` to ``(n, outputs)``, row by row: numpy array or tensor.

        The result for a row must be the same bits alone and in company, from numpy and from torch on any device: sums
        go through ``privstats.transforms.exact``.
        """

    @abstractmethod
    def outputs(self, inputs: int | None) -> int | None:
        """Features out for ``inputs`` features in; None where that is open. Raises SchemaError on a mismatch."""

    def takes(self, outputs: int) -> int:
        """Return the number of input features for ``outputs`` features: the same, unless a map overrides this."""
        return outputs

    def plain_table(self) -> dict[str, Any]:
        """The fields as a plan file holds them, without the kind."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def kinds() -> Mapping[str, type[Transform]]:
    """Every kind by its name: those of the package, and those that were defined elsewhere."""
    load_all(_ROOM)
    return _KINDS


def steps_of(transform: Sequence[Transform] | Transform) -> tuple[Transform, ...]:
    """The maps in order; a map alone is a chain of one.

    Raises:
        SchemaError: an element of it is no map.

    Example:
        >>> ps.transforms.steps_of(ps.transforms.UnitNorm())
        (UnitNorm(),)
    """
    steps = (transform,) if isinstance(transform, Transform) else transform
    if not isinstance(steps, tuple | list) or not all(isinstance(step, Transform) for step in steps):
        raise SchemaError("transform must be a tuple of maps from privstats.transforms, for example (UnitNorm(),)")
    return tuple(steps)


def apply(transform: Sequence[Transform] | Transform, rows: Rows) -> Rows:
    """Apply the maps in order; entries that overflow float64 become infinite, which the clip refuses.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.apply(maps, np.array([[3.0, 4.0]])).tolist()
        [[0.6, 0.8, 1.0]]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for step in steps_of(transform):
            rows = step.apply(rows)
    return rows


def output_features(transform: Sequence[Transform], inputs: int | None = None) -> int | None:
    """Features that come out of the chain, or None where the chain leaves it open.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.output_features(maps, inputs=4), ps.transforms.output_features(maps)
        (5, None)
    """
    for step in transform:
        inputs = step.outputs(inputs)
    return inputs


def input_features(transform: Sequence[Transform], outputs: int) -> int:
    """Features that must come in so that ``outputs`` come out of the chain.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.input_features(maps, outputs=5)
        4
    """
    for step in reversed(transform):
        outputs = step.takes(outputs)
    return outputs


def to_builtins(transform: Sequence[Transform]) -> list[dict[str, Any]]:
    """The definition as plain tables, for a plan file.

    Example:
        >>> ps.transforms.to_builtins((ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0)))
        [{'kind': 'unit-norm'}, {'kind': 'constant-feature', 'value': 1.0}]
    """
    return [{"kind": step.kind, **step.plain_table()} for step in transform]


def from_builtins(tables: Sequence[Mapping[str, Any]]) -> tuple[Transform, ...]:
    """Inverse of :func:`to_builtins`; unknown kinds and keys are refused.

    Example:
        >>> ps.transforms.from_builtins([{"kind": "constant-feature", "value": 1.0}])
        (ConstantFeature(value=1.0),)
    """
    return tuple(_from_table(table) for table in tables)


def _class_of(kind: str) -> type[Transform] | None:
    """The class of a kind; maps of rows, which most plans have, are looked for before all modules are loaded."""
    if kind not in _KINDS:
        import_module(f"{_ROOM}.rowwise")
    return _KINDS.get(kind) or kinds().get(kind)


def _from_table(table: Mapping[str, Any]) -> Transform:
    kind = table.get("kind")
    cls = _class_of(kind) if isinstance(kind, str) else None
    if cls is None:
        raise SchemaError(f"transform kind {kind!r} is unknown; use one of {', '.join(sorted(kinds()))}")
    known = {f.name for f in fields(cls)}
    unknown = sorted(set(table) - known - {"kind"})
    if unknown:
        raise SchemaError(f"transform {kind!r} has unknown keys {unknown}; it knows {sorted(known)}")
    missing = [f.name for f in fields(cls) if f.name not in table and f.default is MISSING]
    if missing:
        raise SchemaError(f"transform {kind!r} lacks {', '.join(missing)}; add it to the transform's table")
    return cls(**{key: value for key, value in table.items() if key != "kind"})
