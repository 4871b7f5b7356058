"""Turn a container of records into rows: what follows reads rows, whatever held them.

A container is turned into rows once, before a sum is formed, and a batch when it is read.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, sparray, spmatrix

from privstats.errors import DataError, RecordError, SchemaError
from privstats.intake.accepted import RecordsLike
from privstats.intake.arrays import (
    FileRows,
    GuardedRows,
    densified,
    file_rows,
    host_rows,
    is_bfloat16,
    is_mapped,
    is_tensor,
    mapped_rows,
    on_device,
    require_plain,
    sparse_rows,
)
from privstats.intake.columns import array_of, read
from privstats.intake.tables import ReadRows, is_list, names_of_columns, of_list, ordered_columns, rectangle
from privstats.records.code_rows import CodeRows
from privstats.records.reading import Reading

if TYPE_CHECKING:
    from torch import Tensor

Rows: TypeAlias = "NDArray[Any] | csr_array | FileRows | GuardedRows | CodeRows | Tensor"
"""Rows ``(n, inputs)`` of an opened container, with a dtype and slices."""
CheckedRows: TypeAlias = "Rows | ReadRows"
"""Rows of an opened container, of which some may hold texts."""
Loaded: TypeAlias = "NDArray[Any] | csr_array | Tensor"
"""Rows in memory, of the host or of a device."""
AnyRecords: TypeAlias = "RecordsLike | CheckedRows | Iterable[tuple[Any, Any]]"
"""Records in a user's container, or opened before, or batches of them with their labels or targets."""

_Rows = TypeVar("_Rows", bound="CheckedRows")


def pairs(batches: object) -> Iterator[tuple[Any, Any]]:
    """Yield the ``(X, y)`` pairs of batches."""
    if hasattr(batches, "ndim") or isinstance(batches, str | bytes | os.PathLike) or not isinstance(batches, Iterable):
        raise DataError("y is missing; give labels or targets next to X, or an iterable of (X, y) batches as X")
    empty = True
    for batch in batches:
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise DataError("a batch iterable must yield (X, y) pairs; wrap other batches in a generator that does")
        empty = False
        yield batch[0], batch[1]
    if empty:
        raise DataError("the batch iterable yielded nothing; give at least one (X, y) batch, possibly of no rows")


def feature_rows(reading: Reading, X: AnyRecords, *, one_by_one: bool = False) -> CheckedRows:
    """Return a container of records as rows; opened ones unchanged.

    Args:
        one_by_one: whether each record is read by itself later: texts stay, a list's row of another length is a row of
            gaps, and so is a masked entry.
    """
    rows: Any = X
    if type(X) is not np.ndarray and not is_list(X):  # an array has no names, and in small batches each question costs
        rows = ordered_columns(X, reading.names, gaps=one_by_one)
    return rows if isinstance(rows, ReadRows) else rows_of(rows, reading.inputs, one_by_one=one_by_one)


def rows_of(X: AnyRecords, width: int, *, one_by_one: bool = False) -> Rows:
    """Return a container whose columns have no names, or have their order, as rows; as :func:`feature_rows`."""
    if isinstance(X, np.ndarray):
        return X if one_by_one and isinstance(X, np.ma.MaskedArray) else as_rows(X, "X")
    if is_list(X) and (one_by_one or not len(X)):  # an empty list does not show its width
        return rectangle(X, width)
    return as_rows(X, "X")


def fitting(reading: Reading, rows: CheckedRows) -> Rows:
    """Return rows of real numbers that fit the reading."""
    return real("X", check_shape(reading, rows))


def check_shape(reading: Reading, rows: _Rows) -> _Rows:
    """Require the number of columns that is read."""
    if len(rows.shape) != 2:
        how = "reshape it" if rows.shape else "if X has one row per record, pass y too"
        raise DataError(f"X must have shape (records, features), got {len(rows.shape)} dimensions; {how}")
    try:
        outputs = reading.outputs(rows.shape[1])
    except SchemaError as error:
        raise DataError(f"X does not fit the transform: {error}") from None
    if outputs != reading.features:
        raise DataError(_about_features(reading, rows.shape[1], outputs))
    return rows


def _about_features(reading: Reading, inputs: int, outputs: int | None) -> str:
    if reading.appended:
        return (
            f"X has {inputs} columns, {outputs} after the transform, and the schema's "
            f"features={reading.features + reading.appended} count the target too; measure the schema's columns, and "
            "give the target as y"
        )
    if reading.maps:
        return (
            f"the transform turns the {inputs} columns of X into {outputs} features but the schema has "
            f"{reading.features}; set features={outputs}"
        )
    return f"X has {inputs} features but the schema has {reading.features}; measure the same features"


def count_of(X: object) -> int | None:
    """Return the number of records, if a shape shows it."""
    shape = getattr(X, "shape", None)
    return shape[0] if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[0], int) else None


def dense(tile: Loaded | ReadRows) -> NDArray[np.generic]:
    """Return a tile as a numpy array in host memory."""
    if is_tensor(tile):
        return host_rows(tile.cpu())
    if isinstance(tile, csr_array):
        return densified(tile)
    return tile if isinstance(tile, np.ma.MaskedArray) else np.asarray(tile)


def as_rows(array: Any, field: str) -> Rows:
    """Return a container as an object with a shape, a dtype and slices; an opened one unchanged."""
    if isinstance(array, CodeRows) or (type(array) is np.ndarray and array.dtype.kind in "fiub"):
        return array
    if isinstance(array, str | os.PathLike):
        return file_rows(array, field)
    if is_mapped(array):
        return mapped_rows(array, field)
    if is_tensor(array):
        require_plain(array, field)
        return array if on_device(array) or is_bfloat16(array) else host_rows(array)
    if isinstance(array, sparray | spmatrix):
        return sparse_rows(array, field)
    if isinstance(array, Mapping):
        raise DataError(
            f"{field} is a mapping of columns, which only declared columns and counts accept; this schema needs rows: "
            f"give pandas.DataFrame({field}), or numpy.column_stack of its columns in the order of the plan"
        )
    require_unmasked(field, array)
    if names_of_columns(array) is not None:  # several targets: each column has its own type
        array = ordered_columns(array, None, gaps=True)
    try:
        rows = of_list(array) if is_list(array) else array_of(array)
    except ValueError:
        raise RecordError(f"{field} has rows of different lengths; give a rectangular array") from None
    if field == "X" and rows.dtype.kind in "US":
        warnings.warn(
            "X is an array of texts: numpy converts a float32 to a text with fewer digits, so a text in one "
            "record changes the numbers of others; give lists, an array of objects, or a table",
            stacklevel=2,
        )
    return rows


def require_unmasked(field: str, array: object) -> None:
    """Refuse a masked array where every entry is read as a number."""
    if isinstance(array, np.ma.MaskedArray):
        raise RecordError(f"{field} is a masked array, whose masked entries have no meaning here; fill it first")


def real(field: str, array: CheckedRows) -> Rows:
    """Return real numbers: unchanged where the array's type is real, else read one by one."""
    require_unmasked(field, array)
    if not isinstance(array, ReadRows) and (not array.is_complex() if is_tensor(array) else array.dtype.kind in "fiub"):
        return array
    numbers, numeric = numbers_in(array[0 : array.shape[0]])
    if not numeric:
        raise RecordError(f"{field} must hold real numbers, got dtype {array.dtype}; convert it to float32 or float64")
    return numbers


def numbers_in(array: Loaded | ReadRows) -> tuple[NDArray[np.float64], bool]:
    """Return entries as float64, NaN where missing or no number; and whether all are numbers or missing."""
    plain = dense(array)
    column = read(plain.reshape(-1))
    return column.numbers.reshape(plain.shape), not column.texts
