"""The records that can be read, of any container: what a party measures under a promise.

A refusal that one record causes would tell of it: the server sees who is absent. So under a promise a record with a
gap, a text where a number belongs, or a label that is no class is left out, and whether it is follows from that record
and public values alone. The party is told how many, on its own screen. Columns that are missing, or arrays of another
shape, are refused as ever: they are no matter of one record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from privstats.errors import DataError, SchemaError
from privstats.moments.arrays import is_list, is_tensor, ordered_columns, rectangle
from privstats.moments.code_rows import CodeRows, cells_of
from privstats.moments.input_validation import as_rows, check_shape, numbers_in, pairs
from privstats.moments.labels import classes_of, places_of
from privstats.schema import ClassSchema, RidgeSchema, Schema
from privstats.schema.public_values import Values
from privstats.transforms import apply, input_features

__all__ = ["Found", "Measured", "of_readable", "whole_of_readable"]

Measured: TypeAlias = Callable[[Any, Any, Any, Mapping[str, Values], bool], Any]
Found: TypeAlias = Callable[[Any, Any, Any, Mapping[str, Values], bool], tuple[Any, int]]
"""As :data:`Measured`; the moments, and how many records were left out."""
Beside: TypeAlias = Literal["labels", "targets", "unread"]
"""What stands beside the rows: labels of classes, targets of a regression, or what is not read."""

_ROWS = 1 << 14
_ENTRIES = 1 << 22  # of rows that are dense at once, for one gap must not make sparse rows larger than memory


def of_readable(measured: Measured, beside: Beside | None = None, *, kept: bool = False) -> Found:
    """A kind's ``measured`` over the records that can be read.

    Args:
        measured: of batches.
        beside: what y is; None: what the schema's ``rows`` say.
        kept: a record that cannot be read stays, as zeros, because the number of records is no secret of the kind.
    """

    def found(schema: Schema, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, int]:
        batches = _Readable(schema, beside or _beside(schema.rows), kept)  # type: ignore[attr-defined]
        return measured(schema, batches.of(X, y), None, values, progress), batches.left_out

    return found


def whole_of_readable(measured: Measured) -> Found:
    """The same of a kind that takes all rows at once, and no labels."""

    def found(schema: Schema, X: Any, y: Any, values: Mapping[str, Values], progress: bool) -> tuple[Any, int]:
        batches, rows = _Readable(schema, "unread", kept=False), _rows(schema, X)
        parts = [part for part, _ in batches.of(rows, np.zeros(rows.shape[0]))]
        return measured(schema, np.concatenate(parts), y, values, progress), batches.left_out

    return found


def _beside(rows: Schema) -> Beside:
    match rows:
        case ClassSchema():
            return "labels"
        case RidgeSchema():
            return "targets"
    raise SchemaError(f"no code tells which records of a {type(rows).__name__} can be read; measure another kind")


class _Readable:
    """Batches of records that can be read; ``left_out`` counts the others as they pass."""

    def __init__(self, schema: Schema, beside: Beside, kept: bool) -> None:
        self._schema, self._beside, self._kept = schema, beside, kept
        self.left_out = 0

    def of(self, X: Any, y: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """From arrays, or batches without y."""
        for rows, rest in pairs(X) if y is None else ((X, y),):
            yield from self._windows(_rows(self._schema, rows), _rest(self._schema, rest))

    def _windows(self, rows: Any, rest: Any) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        if not rest.shape or rows.shape[0] != rest.shape[0]:
            raise DataError(f"X has {rows.shape[0]} rows and y has shape {tuple(rest.shape)}; give one for each row")
        if self._is_plain(rows, rest):
            yield rows, rest
            return
        step = max(1, min(_ROWS, _ENTRIES // max(rows.shape[1], 1)))
        for start in range(0, max(rows.shape[0], 1), step):  # once for no records
            at = slice(start, min(start + step, rows.shape[0]))
            X, fine = _features(self._schema, rows[at])
            y, told = self._read(rest[at])
            fine &= told
            self.left_out += int((~fine).sum())
            if self._kept:
                X[~fine], y[~fine] = 0.0, 0.0
                fine[:] = True
            yield X[fine], y[fine]

    def _is_plain(self, rows: Any, rest: Any) -> bool:
        """Whether all are finite numbers of the right kind in memory: a shortcut to what reading each would give."""
        if self._schema.transform or not (_is_finite(rows) and _is_finite(rest)):
            return False
        match self._beside:
            case "labels":
                classes = classes_of(getattr(self._schema, "rows", self._schema))
                whole = isinstance(classes, range) and len(rest.shape) == 1 and not _is_real(rest)
                return whole and (not rest.shape[0] or bool(rest.min() >= 0 and rest.max() < len(classes)))
            case "targets" | "unread":
                return True

    def _read(self, rest: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Labels or targets as they are measured, and which of them can be."""
        match self._beside:
            case "labels":
                if len(rest.shape) != 1:
                    raise DataError(f"y must have shape (records,), got {len(rest.shape)} dimensions")
                classes = classes_of(getattr(self._schema, "rows", self._schema))
                places = places_of(classes, rest)
                return (places if isinstance(classes, range) else np.asarray(classes)[places]), places >= 0
            case "targets":
                numbers = numbers_in(rest)[0]
                return numbers, np.asarray(np.isfinite(numbers.reshape(len(numbers), -1)).all(axis=1))
            case "unread":
                return np.zeros(rest.shape[0], np.intp), np.ones(rest.shape[0], np.bool_)


def _rows(schema: Schema, X: Any) -> Any:
    """Rows of the schema's columns, whatever they hold."""
    if isinstance(X, CodeRows):
        return check_shape(schema, X)
    X = ordered_columns(X, schema.feature_names, gaps=True)
    if is_list(X):
        X = rectangle(X, input_features(schema.transform, schema.features - schema.appended))
    return check_shape(schema, X if isinstance(X, np.ma.MaskedArray) else as_rows(X, "X"))


def _rest(schema: Schema, y: Any) -> Any:
    """Labels or targets, whatever they are."""
    if not is_list(y):
        return y if isinstance(y, np.ma.MaskedArray) else as_rows(y, "y")
    width = getattr(getattr(schema, "rows", schema), "targets", 1)
    found = rectangle(y, width)
    return found if width > 1 else found[:, 0]


def _is_finite(rows: Any) -> bool:
    if is_tensor(rows):
        return not rows.is_complex() and bool(rows.isfinite().all())
    if isinstance(rows, csr_array):
        return rows.dtype.kind in "fiub" and rows.has_canonical_format and bool(np.isfinite(rows.data).all())
    return (
        type(rows) is np.ndarray and rows.dtype.kind in "fiub" and rows.itemsize <= 8 and bool(np.isfinite(rows).all())
    )


def _is_real(rest: Any) -> bool:
    return bool(rest.is_floating_point()) if is_tensor(rest) else rest.dtype.kind == "f"


def _features(schema: Schema, tile: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Rows as float64, and which of them are finite numbers before and behind the transform."""
    X = _entries(tile)
    declared = cells_of(schema) is not None  # then every value has a cell, and maps behind the cells may still lose it
    fine = np.ones(len(X), np.bool_) if declared else np.asarray(np.isfinite(X).all(axis=1))
    if len(schema.transform) > declared:
        wide = apply(schema.transform, np.where(fine[:, None], X, 0.0))
        fine &= np.isfinite(wide).all(axis=1)
    return X, fine


def _entries(tile: Any) -> NDArray[np.float64]:
    """Entries as float64; a sparse row in which one occurs twice is NaN."""
    if not isinstance(tile, csr_array) or tile.has_canonical_format:
        return numbers_in(tile)[0]
    X = tile.toarray().astype(np.float64)
    members = np.repeat(np.arange(tile.shape[0]), np.diff(tile.indptr))
    places = np.sort(members * tile.shape[1] + tile.indices)
    X[places[1:][np.diff(places) == 0] // tile.shape[1]] = np.nan
    return X
