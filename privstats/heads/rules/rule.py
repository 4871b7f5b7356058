"""The base of decision rules, and the public map in front."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privstats.doors import Door
from privstats.errors import DataError, HeadError
from privstats.heads.evidence import Array, Released
from privstats.intake.arrays import is_tensor, require_values
from privstats.intake.columns import read
from privstats.intake.frames import in_memory, named_target
from privstats.intake.meaning import listed
from privstats.intake.tables import as_table, numbers_of, ordered_columns
from privstats.records.table import codes_of
from privstats.row_fields import RowError, shown
from privstats.tables import load_all, register
from privstats.transforms import Transform, apply, input_features
from privstats.transforms.exact import arrays_of

if TYPE_CHECKING:
    from privstats.transforms import Cells


_ROOM = "privstats.heads.rules"
_RULES: dict[str, type[Rule]] = {}
_WINDOW = 64
TILE = 1024  # rows per tile: a tile of X and its products stay in the second-level cache


@dataclass(frozen=True, eq=False)
class Rule(ABC):
    """A decision rule: scores ``(n, C)`` for rows ``(n, d)``, log-densities up to a common term."""

    kind: ClassVar[str]

    def __init_subclass__(cls) -> None:
        if not cls.__module__.startswith(_ROOM):
            kinds()  # so that a class from elsewhere is refused where it takes a name of ours
        register(_RULES, cls.kind, cls, "rule", HeadError)

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Return scores of float64 rows; never allocates n x C x d."""

    @abstractmethod
    def lifted(self, basis: Array) -> Rule:
        """Turn a rule of ``basis.T x`` into a rule of x; ``basis`` ``(d, k)`` is orthonormal."""

    @abstractmethod
    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Return :meth:`scores` of tensors or graph symbols, by the same operations for any rows.

        ``buffers`` holds :meth:`arrays` as attributes.
        """

    def best(self, X: Array) -> NDArray[np.intp]:
        """Return each row's winning class index, ``(n,)``."""
        return np.asarray(self.scores(X).argmax(axis=1))

    def sole(self, rows: Array) -> int | None:
        """Return the one class of all rows ``(n, d)``, or None at the second."""
        classes: set[int] = set()
        for at in range(0, len(rows), _WINDOW):
            classes.update(self.best(rows[at : at + _WINDOW]).tolist())
            if len(classes) > 1:
                return None
        return next(iter(classes), None)

    def arrays(self) -> dict[str, Array]:
        """Return named arrays for a model file."""
        return {field.name: np.ascontiguousarray(getattr(self, field.name)) for field in fields(self)}


def _is_rule(row: Any, name: str) -> bool:
    if not (isinstance(row, type) and issubclass(row, Rule)):
        raise RowError(f"it is {shown(row)}, and must be a class over Rule")
    if (own := getattr(row, "kind", None)) != name:
        raise RowError(f"its kind is {shown(own)}, and must be {name!r}, the name of the entry point")
    return _RULES.get(name) is row


RULES: Door[type[Rule]] = Door("privstats.rules", "rule", HeadError, _is_rule)
"""The rules that packages announce; a rule registers itself, so this room's own need no row."""


def kinds() -> Mapping[str, type[Rule]]:
    """Return all kinds of rules by name, other packages' included."""
    load_all(_ROOM)
    return MappingProxyType(_RULES)


def rule_of(kind: str, arrays: Mapping[str, Array]) -> Rule:
    """Return the rule of arrays from :meth:`Rule.arrays`.

    Raises:
        HeadError: no package provides this kind.
        ValueError: wrong names, or arrays that are not finite float64.
    """
    cls = _RULES.get(kind) or kinds().get(kind) or RULES.needed(kind, "this head")
    if set(arrays) != {field.name for field in fields(cls)}:
        raise ValueError(f"no rule of kind {kind!r} has these arrays")
    if not all(array.dtype == np.float64 and np.isfinite(array).all() for array in arrays.values()):
        raise ValueError("a rule's arrays must be finite float64")
    return cls(**arrays)


def tail(distance: Array, degrees: float, d: int) -> Array:
    """Return minus the log density at a squared Mahalanobis distance, up to a constant."""
    return distance / 2 if degrees == 0 else (d + degrees) / 2 * np.log1p(np.maximum(distance, 0.0) / degrees)


def tail_in_graph(distance: Any, degrees: float, d: int) -> Any:
    """Return :func:`tail` of a tensor or graph symbol."""
    xp = arrays_of(distance)
    return distance / 2 if degrees == 0 else xp.log1p(xp.relu(distance) / degrees) * ((d + degrees) / 2)


@dataclass(frozen=True, eq=False)
class LinearRule(Rule):
    """``X @ coef.T + intercept``; coef ``(C, d)``, intercept ``(C,)``."""

    coef: Array
    intercept: Array
    kind: ClassVar[str] = "linear"

    def lifted(self, basis: Array) -> LinearRule:
        """Fold the basis into the coefficients."""
        return LinearRule(self.coef @ basis.T, self.intercept)

    def scores(self, X: Array) -> Array:
        """Compute scores by one matrix product."""
        out: Array = X @ self.coef.T
        out += self.intercept
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record one matrix product."""
        return rows @ buffers.coef.T + buffers.intercept

    def before(self, transform: Sequence[Transform]) -> tuple[Array, Array]:
        """Return weights ``(C, k)`` and intercept ``(C,)`` in front of the affine maps that end ``transform``."""
        coef, intercept = self.coef, self.intercept
        for map_ in reversed(transform):
            if not map_.affine:
                break
            coef, intercept = _before(map_, coef, intercept)
        return coef, intercept


@dataclass(frozen=True, eq=False)
class WhitenedRule(Rule):
    """``(x M / |x M|) @ coef.T + intercept``, M = ``matrix`` ``(d, m)``; the intercept alone where x M = 0."""

    matrix: Array
    coef: Array
    intercept: Array
    kind: ClassVar[str] = "whitened"

    def lifted(self, basis: Array) -> WhitenedRule:
        """Fold the basis into the map."""
        return replace(self, matrix=basis @ self.matrix)

    def scores(self, X: Array) -> Array:
        """Compute scores by two matrix products."""
        mapped = X @ self.matrix
        out: Array = mapped @ self.coef.T
        out /= lengths(mapped)
        out += self.intercept
        return out

    def in_graph(self, buffers: Any, rows: Any) -> Any:
        """Record two matrix products."""
        return units_in_graph(rows @ buffers.matrix) @ buffers.coef.T + buffers.intercept


def _before(map_: Transform, coef: Array, intercept: Array) -> tuple[Array, Array]:
    """Return the weights in front of x -> x M + m: coef M' and intercept + coef m."""
    inputs = map_.takes(coef.shape[1])
    shift = map_.apply(np.zeros((1, inputs)))[0]
    size = max(1.0, float(np.abs(shift).max()))  # about the size of m, so that subtracting m again loses no digits
    weights = np.empty((len(coef), inputs))
    for at in range(0, inputs, TILE):
        units = np.zeros((min(TILE, inputs - at), inputs))
        np.fill_diagonal(units[:, at:], size)
        weights[:, at : at + len(units)] = coef @ (map_.apply(units) - shift).T / size
    return weights, intercept + coef @ shift


def lengths(rows: Array) -> Array:
    """Return norms of rows, ``(n, 1)``; 1 for zero rows."""
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return np.where(norms > 0, norms, 1.0)[:, None]


def units_in_graph(rows: Any) -> Any:
    """Return rows divided by their :func:`lengths`."""
    xp = arrays_of(rows)
    norms = xp.sqrt(xp.vecdot(rows, rows))
    return rows / (norms + (norms == 0))[:, None]


@runtime_checkable
class _Tensor(Protocol):
    def detach(self) -> Any: ...


def as_numpy(values: Any, field: str = "X") -> Any:
    """Convert a torch tensor to numpy; return anything else unchanged."""
    if is_tensor(values):
        require_values(values, field)
    return values.detach().cpu().numpy() if isinstance(values, _Tensor) else values


def local(X: Any, y: Any) -> tuple[Any, Any]:
    """Load records into memory, tensors as arrays; y may name a column of X."""
    X, y = named_target(X, y)
    return as_numpy(X), as_numpy(y, "y")


@dataclass(frozen=True)
class Preprocessing:
    """The public map in front of a rule, as the release measured rows.

    Attributes:
        features: d, columns that the rule expects.
        clip_norm: norm to which longer rows are clipped; None after ``fit``.
        feature_names: the plan's input columns, or None.
        nonnegative: set negative entries to 0 before the clip.
    """

    features: int
    transform: tuple[Transform, ...] = ()
    clip_norm: float | None = None
    feature_names: tuple[str, ...] | None = None
    nonnegative: bool = False

    @classmethod
    def of_release(cls, release: Released) -> Self:
        """Build the map of a release's schema."""
        return cls.of_schema(release.plan.schema)

    @classmethod
    def of_schema(cls, schema: Any) -> Self:
        """Build a schema's map."""
        return cls(schema.features, tuple(schema.transform), schema.clip_norm, schema.feature_names, schema.nonnegative)

    @property
    def inputs(self) -> int:
        """Number of input columns."""
        return input_features(self.transform, self.features)

    @property
    def cells(self) -> Cells | None:
        """Declaration of the input table, if any."""
        first: Any = self.transform[0] if self.transform else None
        return first if first is not None and first.reads_cells else None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of input columns, or None."""
        return self.feature_names if self.cells is None else tuple(each.name for each in self.cells.columns)

    def ordered(self, X: Any) -> Any:
        """Return a DataFrame's columns in the plan's order, or a declared table's codes.

        Raises:
            RecordError: texts in a column of numbers; the plan's column is named with their number.
        """
        X = as_table(in_memory(X))
        if self.cells is not None:
            return codes_of(self.cells, X)
        if self.feature_names is None:
            ordered_columns(X, None)  # refuses texts
            return X
        if isinstance(X, Mapping):
            return self._rows_by_name(X, self.feature_names)
        rows = np.asarray(ordered_columns(X, self.feature_names, gaps=True))
        if rows.dtype.kind not in "OSU" or rows.ndim != 2:
            return rows
        fits = rows.shape[1] == len(self.feature_names)
        return numbers_of([*map(read, rows.T)], self.feature_names if fits else None)

    def _rows_by_name(self, X: Mapping[str, Any], names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return a mapping of columns as rows in the plan's order."""
        if lacking := [name for name in names if name not in X]:
            raise DataError(f"X lacks {listed(lacking)}; pass exactly the columns of the plan's feature_names")
        return numbers_of([read(X[name]) for name in names], names)

    def apply(self, X: Any) -> Array:
        """Return rows as the rule expects, ``(n, d)``; DataError for another width and, with maps, unless finite."""
        array = np.asarray(X)
        if np.iscomplexobj(array):
            raise DataError(f"X must hold real numbers, got dtype {array.dtype}; convert it to float64")
        rows = np.asarray(array, dtype=np.float64)
        if self.transform and self.cells is None and (rows.ndim != 2 or not np.isfinite(rows).all()):
            raise DataError("X must be a finite matrix of shape (n, features); drop or impute missing values")
        if rows.shape[1] != self.inputs:
            raise DataError(f"X has {rows.shape[1]} columns but the head takes {self.inputs}; give those of the plan")
        rows = apply(self.transform, rows)
        if self.nonnegative:
            rows = np.maximum(rows, 0.0)
        return rows if self.clip_norm is None else _clip(rows, self.clip_norm)


def take_columns(head: Any, preprocessing: Preprocessing) -> None:
    """Set a head's preprocessing and scikit-learn's column attributes."""
    head.preprocessing_, head.n_features_in_ = preprocessing, preprocessing.inputs
    if preprocessing.columns is not None:
        head.feature_names_in_ = np.array(preprocessing.columns, dtype=object)
    elif hasattr(head, "feature_names_in_"):  # left by an earlier fit
        del head.feature_names_in_


def rows_of(head: Any, X: Any) -> Array:
    """Return rows as a fitted head's rule expects them, ``(n, d)``."""
    check_is_fitted(head, "rule_")
    first: Preprocessing = head.preprocessing_
    X = first.ordered(as_numpy(X))
    if not first.transform:  # by name the columns are in order already, and scikit-learn would miss the names
        named = first.feature_names is not None
        X = check_array(X, dtype=np.float64) if named else validate_data(head, X, dtype=np.float64, reset=False)
    return first.apply(X)


def _clip(rows: Array, clip_norm: float) -> Array:
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    long = norms > clip_norm
    if not long.any():
        return rows
    return rows * np.where(long, clip_norm / np.where(long, norms, 1.0), 1.0)[:, None]
