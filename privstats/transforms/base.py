"""Define the base of all transforms: frozen definitions for a plan."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from inspect import get_annotations
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

from privstats.errors import MissingExtraError, SchemaError
from privstats.python_values import python_fields
from privstats.tables import load_all, register
from privstats.transforms.exact import Rows, arrays_of

_Result = TypeVar("_Result")

_ROOM = "privstats.transforms"
_TRANSFORMS: dict[str, type[Transform]] = {}
_KEYS = {"kind", "package"}
"""Keys of a map's table in a plan that are no fields."""


@dataclass(frozen=True)
class Transform(ABC):
    """One public map from feature rows to feature rows; it must not depend on private data.

    Attributes:
        kind: its name in a plan file.
        affine: whether it is x -> M x + m, up to rounding.
        local: whether it is fitted on the client's records, so that one record changes all rows; only promises
            per client admit it.
        unit: whether rows have norm 1, so that ``of_unit_norm`` appends no map; False for ``UnitNorm``, so that
            digests of earlier plans stay.
        reads_cells: whether inputs are a table's codes.

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
        taken = [name for name, hint in get_annotations(cls).items() if "ClassVar" not in str(hint) and name in _KEYS]
        if taken:
            raise SchemaError(f"{cls.__name__} has fields {', '.join(taken)}, which are keys of a plan; rename them")
        if "kind" in cls.__dict__:
            if not cls.__module__.startswith(f"{_ROOM}."):
                kinds()  # so that a class from elsewhere is refused where it takes a name of ours
            register(_TRANSFORMS, cls.kind, cls, "transform kind", SchemaError)

    def __post_init__(self) -> None:
        python_fields(self)

    @abstractmethod
    def apply(self, rows: Rows) -> Rows:
        """Map finite float64 rows ``(n, inputs)`` to ``(n, outputs)``.

        A row's result must have identical bits alone and in a batch, in numpy and torch on any device: sums use
        ``privstats.transforms.exact``.
        """

    @abstractmethod
    def outputs(self, inputs: int | None) -> int | None:
        """Return the number of output features, None where open; SchemaError on a mismatch."""

    def takes(self, outputs: int) -> int:
        """Return the number of input features for ``outputs``; by default equal."""
        return outputs

    def plain_table(self) -> dict[str, Any]:
        """Return the fields for a plan file, without the kind."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def kinds() -> Mapping[str, type[Transform]]:
    """Return kinds by name, other packages' included."""
    load_all(_ROOM)
    return MappingProxyType(_TRANSFORMS)


def maps_of(transform: Sequence[Transform] | Transform) -> tuple[Transform, ...]:
    """Return one or several maps as a tuple; SchemaError for other elements.

    Example:
        >>> ps.transforms.maps_of(ps.transforms.UnitNorm())
        (UnitNorm(),)
    """
    maps = (transform,) if isinstance(transform, Transform) else transform
    if not isinstance(maps, tuple | list) or not all(isinstance(map_, Transform) for map_ in maps):
        raise SchemaError("transform must be a tuple of maps from privstats.transforms, for example (UnitNorm(),)")
    return tuple(maps)


def apply(transform: Sequence[Transform] | Transform, rows: Rows) -> Rows:
    """Apply the maps in order; overflowing entries become infinite, which the clip refuses.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.apply(maps, np.array([[3.0, 4.0]])).tolist()
        [[0.6, 0.8, 1.0]]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for map_ in maps_of(transform):
            rows = map_.apply(rows)
    return rows


def rows_to_sum(transform: Sequence[Transform], rows: Rows) -> Rows:
    """Apply the maps in order to rows that are summed, as :func:`apply` does; refuse other shapes than they state.

    The clip bounds rows of the declared length: numpy would repeat a row of one entry, behind the clip, over all. A row
    at which another package's map fails is NaN, which excludes that record alone.

    Raises:
        SchemaError: a map returned other rows than one of ``outputs`` entries for each row.
    """
    for map_ in transform:
        columns: Any = map_.outputs(rows.shape[1])
        if not isinstance(columns, int):
            raise SchemaError(f"{type(map_).__name__}.outputs must be an integer for {rows.shape[1]} columns; mend it")
        mapped = apply(map_, rows) if is_ours(map_) else _mapped(map_, rows, columns)
        if getattr(mapped, "ndim", 0) != 2 or tuple(mapped.shape) != (rows.shape[0], columns):
            raise _misshapen(map_, columns)
        rows = mapped
    return rows


def is_ours(value: object) -> bool:
    """Return whether a value's class is in a module of privstats, by that module's name.

    Example:
        >>> from privstats.transforms.base import is_ours
        >>> is_ours(ps.transforms.UnitNorm()), is_ours(np.zeros(1))
        (True, False)
    """
    return type(value).__module__.partition(".")[0] == "privstats"


def attempted(code: Callable[..., _Result], *given: Any) -> _Result | None:
    """Return what another package's code returns; None where it raises, whatever it raises.

    An error that ended a party's session would show the server a record, and its text may quote that record. An
    interrupt, and an extra that is not installed, pass: no record causes them.

    Example:
        >>> from privstats.transforms.base import attempted
        >>> attempted(lambda x: 1 / x, 4), attempted(lambda x: 1 / x, 0)
        (0.25, None)
    """
    try:
        with np.errstate(all="ignore"):
            return code(*given)
    except (KeyboardInterrupt, MissingExtraError):
        raise
    except BaseException:  # such as SystemExit, or the cancellation of a task
        return None


def _misshapen(map_: Transform, columns: int) -> SchemaError:
    return SchemaError(
        f"{type(map_).__name__}.apply returned no array of {columns} columns with a row for each record, as its"
        " outputs states; mend this map"
    )


def _mapped(map_: Transform, rows: Rows, columns: int) -> Any:
    """Return rows after another package's map, in float64; NaN in a row at which the map fails.

    Rows are mapped alone where the map fails for all together: which record is excluded follows from that record.
    """
    if (mapped := _real_rows(map_, rows, columns)) is not None:
        return mapped
    out = arrays_of(rows).empty(len(rows), columns)
    out[:] = math.nan
    for place in range(len(rows)):
        if (alone := _real_rows(map_, rows[place : place + 1], columns)) is not None:
            out[place] = alone[0]
    return out


def _real_rows(map_: Transform, rows: Rows, columns: int) -> Any:
    """Return mapped rows, copied; None where the map fails, omits a row, or returns other entries than real numbers."""
    of_numpy = isinstance(rows, np.ndarray)
    container: type[Any] = np.ndarray if of_numpy else type(rows)
    mapped: Any = attempted(map_.apply, np.array(rows) if of_numpy else rows.clone())
    if mapped is None:
        return None
    # Exactly: a masked array or a matrix has other operations.
    if type(mapped) is not container or mapped.ndim != 2 or mapped.shape[1] != columns:
        raise _misshapen(map_, columns)
    if len(mapped) != len(rows) or (mapped.dtype.kind not in "biuf" if of_numpy else mapped.is_complex()):
        return None
    with np.errstate(over="ignore"):
        return np.array(mapped, np.float64) if of_numpy else mapped.to(rows.dtype, copy=True)


def output_features(transform: Sequence[Transform], inputs: int | None = None) -> int | None:
    """Return the number of output features, None where open.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.output_features(maps, inputs=4), ps.transforms.output_features(maps)
        (5, None)
    """
    for map_ in transform:
        inputs = map_.outputs(inputs)
    return inputs


def input_features(transform: Sequence[Transform], outputs: int) -> int:
    """Return the number of input features.

    Example:
        >>> maps = (ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0))
        >>> ps.transforms.input_features(maps, outputs=5)
        4
    """
    for map_ in reversed(transform):
        outputs = map_.takes(outputs)
    return outputs


def to_builtins(transform: Sequence[Transform]) -> list[dict[str, Any]]:
    """Return plain tables for a plan file; SchemaError for a map that they would not give back.

    Example:
        >>> ps.transforms.to_builtins((ps.transforms.UnitNorm(), ps.transforms.ConstantFeature(1.0)))
        [{'kind': 'unit-norm'}, {'kind': 'constant-feature', 'value': 1.0}]
    """
    for map_ in transform:
        if _TRANSFORMS.get(map_.kind) is not type(map_):
            raise SchemaError(f"{type(map_).__name__} shares the kind {map_.kind!r}; give its class a kind of its own")
    return [{"kind": map_.kind, **map_.plain_table()} | {"kind": map_.kind} for map_ in transform]


def from_builtins(tables: Sequence[Mapping[str, Any]]) -> tuple[Transform, ...]:
    """Invert :func:`to_builtins`; unknown kinds and keys are refused.

    Example:
        >>> ps.transforms.from_builtins([{"kind": "constant-feature", "value": 1.0}])
        (ConstantFeature(value=1.0),)
    """
    return tuple(_from_table(table) for table in tables)


def is_kind(kind: object) -> bool:
    """Return whether a map of this kind is loaded, or ours."""
    return isinstance(kind, str) and _class_of(kind) is not None


def _class_of(kind: str) -> type[Transform] | None:
    if kind not in _TRANSFORMS:
        import_module(f"{_ROOM}.rowwise")
    return _TRANSFORMS.get(kind) or kinds().get(kind)


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
