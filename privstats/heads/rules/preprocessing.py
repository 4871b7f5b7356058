"""Preprocessing of a user's rows for a rule: numpy or torch in, the release's public transform, the clip.

A head that was fitted on a release must see rows as the release saw them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from privstats.errors import DataError
from privstats.heads.evidence import Array
from privstats.heads.evidence.released import Released
from privstats.moments.arrays import ordered_columns
from privstats.moments.frames import in_memory, named_target
from privstats.moments.table import codes_of
from privstats.transforms import Transform, apply, input_features

if TYPE_CHECKING:
    from privstats.transforms import Cells

__all__ = ["Preprocessing", "as_numpy", "local", "rows_of", "take_columns"]


@runtime_checkable
class _Tensor(Protocol):
    """The method by which a torch tensor is recognised without importing torch."""

    def detach(self) -> Any: ...


def as_numpy(values: Any) -> Any:
    """A torch tensor as a numpy array on the CPU; anything else unchanged."""
    return values.detach().cpu().numpy() if isinstance(values, _Tensor) else values


def local(X: Any, y: Any) -> tuple[Any, Any]:
    """Local records in memory, tensors as arrays; y may name a column of a table X.

    Raises:
        DataError: X has no such column, or cannot be read.
    """
    X, y = named_target(X, y)
    return as_numpy(X), as_numpy(y)


@dataclass(frozen=True)
class Preprocessing:
    """The public map in front of a rule.

    Attributes:
        features: d, columns that the rule expects.
        transform: public maps, applied in order.
        clip_norm: rows longer than this are shortened to it, as they were when the moments were measured; None after
            ``fit`` on local records.
        feature_names: the plan's names of the columns that a caller gives, in order; None where it has none.
        nonnegative: negative entries become 0 before the clip, as they did when the moments were measured.
    """

    features: int
    transform: tuple[Transform, ...] = ()
    clip_norm: float | None = None
    feature_names: tuple[str, ...] | None = None
    nonnegative: bool = False

    @classmethod
    def of_release(cls, release: Released) -> Self:
        """The preprocessing that a release's schema prescribes."""
        return cls.of_schema(release.plan.schema)

    @classmethod
    def of_schema(cls, schema: Any) -> Self:
        """The same of a schema, before anything is released."""
        return cls(schema.features, tuple(schema.transform), schema.clip_norm, schema.feature_names, schema.nonnegative)

    @property
    def inputs(self) -> int:
        """Columns that a caller must give."""
        return input_features(self.transform, self.features)

    @property
    def cells(self) -> Cells | None:
        """The declaration of the table that comes in; None where features do."""
        first: Any = self.transform[0] if self.transform else None
        return first if first is not None and first.reads_cells else None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns that a caller gives; None where they have none."""
        return self.feature_names if self.cells is None else tuple(each.name for each in self.cells.columns)

    def ordered(self, X: Any) -> Any:
        """A DataFrame's columns in the order of the plan, as an array; of declared columns the codes of any table.

        Raises:
            DataError: the columns are not exactly the plan's; or a declared one is missing.
        """
        X = in_memory(X)
        if self.cells is not None:
            return codes_of(self.cells, X)
        ordered = ordered_columns(X, self.feature_names)
        return X if self.feature_names is None else np.asarray(ordered)

    def apply(self, X: Any) -> Array:
        """Rows as the rule expects them, shape ``(n, d)``; the input array is never changed.

        Raises:
            DataError: not a finite matrix, or the wrong number of columns.
        """
        rows = np.asarray(X, dtype=np.float64)
        if self.transform:
            if self.cells is None and (rows.ndim != 2 or not np.isfinite(rows).all()):
                raise DataError("X must be a finite matrix of shape (n, features); drop or impute missing values")
            rows = apply(self.transform, rows)
        if rows.shape[1] != self.features:
            raise DataError(f"X gives {rows.shape[1]} features but the head was fitted with {self.features}")
        if self.nonnegative:
            rows = np.maximum(rows, 0.0)
        return rows if self.clip_norm is None else _clip(rows, self.clip_norm)


def take_columns(head: Any, preprocessing: Preprocessing) -> None:
    """Give a head its preprocessing, and scikit-learn's attributes of the columns that it takes."""
    head.preprocessing_, head.n_features_in_ = preprocessing, preprocessing.inputs
    if preprocessing.columns is not None:
        head.feature_names_in_ = np.array(preprocessing.columns, dtype=object)
    elif hasattr(head, "feature_names_in_"):  # of an earlier fit
        del head.feature_names_in_


def rows_of(head: Any, X: Any) -> Array:
    """Rows as the rule of a fitted head expects them, ``(n, d)``.

    Raises:
        NotFittedError: the head has no rule.
        DataError, ValueError: not a finite matrix of its columns.
    """
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
