"""Containers of records other than arrays in memory: torch tensors, sparse matrices, DataFrames, .npy files.

Each is recognised without importing its library. Tensors in host memory become numpy arrays over the same memory. The
indices of a sparse matrix are checked before scipy's compiled code follows them: a damaged matrix would end in an
unclear error, a wrong sum or a crash. The columns of a DataFrame are put into the order of the plan, or refused.
``input_validation`` calls this module.

Files larger than memory are read piece by piece, never past the end. A memory map whose file is truncated kills the
process with a bus error when it is read; reading the same bytes from the file raises a short-read error instead.
``input_validation`` opens files here.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array

from privstats.errors import DataError, RecordError
from privstats.transforms.reading import Readings, array_of, read, require_records


def is_tensor(array: Any) -> bool:
    """Whether ``array`` is a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def is_list(values: Any) -> bool:
    """Whether values come one by one, as in a list, tuple or deque: each has a type of its own."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


def values_of(column: Any) -> Any:
    """One column of any container as an array; a masked one stays so, and of a list it is of objects where need be.

    A list within a list is one value, which says nothing, even if it holds one number.
    """
    if is_list(column):
        plain = plain_numbers(column)
        return plain if plain is not None and plain.ndim == 1 else np.fromiter(column, object, len(column))
    if is_tensor(column):
        require_plain(column, "a column")
        return host_rows(column.cpu())
    return column if isinstance(column, np.ma.MaskedArray) else array_of(column)


def on_device(array: Any) -> bool:
    """Whether ``array`` is a torch tensor outside host memory."""
    return is_tensor(array) and array.device.type != "cpu"


def host_rows(tensor: Any) -> NDArray[Any]:
    """A plain tensor in host memory as a numpy array over the same memory; bfloat16 is widened to float32, exactly."""
    return np.asarray((tensor.float() if is_bfloat16(tensor) else tensor).numpy())


def is_bfloat16(tensor: Any) -> bool:
    """Whether the entries are bfloat16, the one type that numpy does not have."""
    return str(tensor.dtype) == "torch.bfloat16"


def require_plain(tensor: Any, field: str) -> None:
    """Raise DataError for tensors that are sparse or require a gradient."""
    if str(tensor.layout) != "torch.strided":
        raise DataError(f"{field} is a sparse tensor; convert it with to_dense(), or pass a scipy csr_array")
    if tensor.requires_grad:
        raise DataError(f"{field} requires a gradient, which moments do not carry; pass {field}.detach()")


_COMPRESSED = {"csr": csr_array, "csc": csc_array, "bsr": bsr_array}


def sparse_rows(array: Any, field: str) -> csr_array:
    """A sparse matrix of any format in row form; the caller's matrix is not changed.

    Raises:
        DataError: its parts contradict each other.
    """
    try:
        return _by_rows(array)
    except (ValueError, TypeError, AttributeError, IndexError):
        raise DataError(
            f"{field} is a sparse matrix with indices outside its shape or parts that contradict each other; rebuild it"
        ) from None


def densified(tile: csr_array) -> NDArray[np.generic]:
    """Rows as a dense array; no entry may occur twice.

    Raises:
        RecordError: an entry occurs twice.
    """
    require_single(tile)
    return tile.toarray()


def require_single(tile: csr_array) -> None:
    """Refuse rows in which one entry occurs twice.

    Adding up duplicates is a choice of order, and their owner may not know of them: refuse rather than guess.

    Raises:
        RecordError: an entry occurs twice.
    """
    if not tile.has_canonical_format:
        rows = np.repeat(np.arange(tile.shape[0]), np.diff(tile.indptr))
        if len(np.unique(rows * tile.shape[1] + tile.indices)) < tile.nnz:
            raise RecordError("X is a sparse matrix with duplicate entries; call X.sum_duplicates() first")


def _by_rows(array: Any) -> csr_array:
    """Convert to row form; checked before the conversion, which trusts every index, and again after it."""
    if array.format in _COMPRESSED:
        _require_integers(array.indices, array.indptr)
        fresh = _COMPRESSED[array.format]((array.data, array.indices, array.indptr), shape=array.shape)  # shares memory
        fresh.check_format(full_check=True)
        array = fresh
    elif array.format == "coo":
        _require_integers(*array.coords)
        for index, size in zip(array.coords, array.shape, strict=True):
            if index.size and (index.min() < 0 or index.max() >= size):
                raise IndexError("an index lies outside the shape")
    rows = csr_array(array)
    rows.check_format(full_check=True)
    return rows


def _require_integers(*indices: NDArray[np.generic]) -> None:
    if any(index.dtype.kind not in "iu" for index in indices):
        raise TypeError("indices must be whole numbers")


_MOST_SHOWN = 8
_NUMBERS = frozenset((bool, int, float, *(kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "fiub")))


def ordered_columns(X: Any, names: tuple[str, ...] | None, *, gaps: bool = False) -> Any:
    """A DataFrame's columns in the order of ``names``, shape ``(n, len(names))``; anything else as it stands.

    Arrays, and columns without names (0, 1, 2, ... in order), are taken as they are; so is every container where the
    plan has no names.

    Args:
        X: any container of records; one with ``column_names`` or ``columns`` is taken for a DataFrame.
        names: the schema's ``feature_names``.
        gaps: a text stays a text, in an array of objects, and what is missing is NaN; else both are refused.

    Raises:
        DataError: the columns are not exactly the plan's.
        RecordError: without ``gaps``, a column holds a text.
    """
    columns = columns_of(X)
    if columns is None:
        return X
    if names is None or columns == list(range(len(columns))):
        names = None
    elif len(columns) != len(names) or set(columns) != set(names):
        missing = [name for name in names if name not in set(columns)]
        more = f"has columns besides the plan's, or one of them twice, {len(columns)} for its {len(names)}"
        lacks = f"lacks {listed(missing)}" if missing else more
        raise DataError(f"X {lacks}; give exactly the columns of the plan's feature_names, in any order")
    if hasattr(X, "iloc"):
        if _is_plain(X):
            return X if names is None or columns == list(names) else X[list(names)]
    elif (names is None or columns == list(names)) and (table := _numbers(X)) is not None:
        return table
    return _by_column(X, names, columns, gaps)


def listed(names: list[str] | tuple[str, ...]) -> str:
    """Names of the plan, which are public, for a message: all of a few, the first of many."""
    shown = ", ".join(map(repr, names[:_MOST_SHOWN]))
    return shown if len(names) <= _MOST_SHOWN else f"{shown} and {len(names) - _MOST_SHOWN} more"


def _is_plain(X: Any) -> bool:
    """Whether all columns of pandas' frame are plain numbers: a shortcut to what reading each value gives."""
    types = set(X.dtypes)
    return all(isinstance(each, np.dtype) and each.kind in ("fiub" if len(types) == 1 else "fiu") for each in types)


def _numbers(X: Any) -> NDArray[Any] | None:
    """Return another library's frame as one array of numbers; None unless the types of all columns are of numbers.

    The types alone decide. A shortcut that asked the array would read a column of dates in two ways: as numbers beside
    numbers, and as dates beside a gap in any other column.
    """
    types = getattr(X, "dtypes", None)
    types = getattr(getattr(X, "schema", None), "types", None) if types is None else types
    names = {str(kind) for kind in types} if isinstance(types, list) else set()
    return np.asarray(X) if names and names <= _TYPES_OF_NUMBERS else None


_TYPES_OF_NUMBERS = frozenset(
    (
        *("halffloat", "float", "double", "Float32", "Float64"),
        *(f"{name}{bits}" for name in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)),
    )
)
"""Names that Arrow and polars give to the types of columns whose values are all numbers or missing."""


def _by_column(X: Any, names: tuple[str, ...] | None, columns: list[Any], gaps: bool) -> NDArray[Any]:
    """Every column by itself, each value read by itself: of numbers, texts, pandas' own types, or objects."""
    order = columns if names is None else list(names)
    if hasattr(X, "iloc"):
        places = range(len(columns)) if names is None else [columns.index(name) for name in names]
        result = [read(numbers_of(X.iloc[:, place])) for place in places]
    else:
        result = [read(values_of(X[name])) for name in order]
    texts = [name for name, column in zip(order, result, strict=True) if column.are_texts.any()]
    if texts and not gaps:
        where = "" if names is None else f" in {listed(texts)}"  # names of the plan are public, others may not be
        raise RecordError(
            f"X holds values that are no numbers{where}; code them as numbers, such as 0 and 1, or count them as "
            "Categories of a CountSchema"
        )
    return side_by_side(result) if result else np.empty((len(X), 0))


def side_by_side(columns: Sequence[Readings]) -> NDArray[Any]:
    """Columns of readings as rows, float64 ``(n, columns)``; of objects where one holds a text, which stays there."""
    return np.column_stack([column.plain for column in columns])


def numbers_of(series: Any) -> NDArray[Any]:
    """The values of pandas' column; of a nullable type of numbers with NaN for what is missing."""
    if isinstance(series.dtype, np.dtype) or getattr(series.dtype, "kind", "O") not in "fiub":
        return array_of(series)
    return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))


def of_list(rows: Sequence[Any]) -> NDArray[Any]:
    """A list as an array: of numbers where all are, else of objects, each as it stands.

    numpy alone would give all of them the type of one, and write a float32 anew beside a text.

    Raises:
        ValueError: its rows have different lengths.
    """
    if (plain := plain_numbers(rows)) is not None:
        return plain
    several = [row_entries(row) for row in rows]
    widths = {-1 if entries is None else len(entries) for entries in several}
    if len(widths) > 1:
        raise ValueError("rows of different lengths")
    if (width := widths.pop()) >= 0:
        return rectangle(rows, width)
    out = np.empty(len(rows), object)
    for place, value in enumerate(rows):
        out[place] = value
    return out


def rectangle(rows: Sequence[Any], width: int) -> NDArray[Any]:
    """Lists as an array, of numbers where all are, else of objects; a row of another length is None throughout."""
    plain = plain_numbers(rows)
    if plain is not None and (plain.shape == (len(rows), width) or (width == 1 and plain.shape == (len(rows),))):
        return plain.reshape(len(rows), width)
    out = np.full((len(rows), width), None, object)
    for place, row in enumerate(rows):
        entries = row_entries(row)
        if entries is None:
            entries = (row,)
        if len(entries) == width:
            for column, entry in enumerate(entries):
                out[place, column] = entry
        elif width == 1:
            out[place, 0] = row  # which is read as what no value is
    return out


def plain_numbers(rows: Sequence[Any]) -> NDArray[Any] | None:
    """Lists as numpy reads them, where all are numbers and of one length: a shortcut to what each is read as."""
    kinds = set(map(type, rows))
    if not kinds <= _NUMBERS:
        kinds = set()
        for row in rows:
            if type(row) in (list, tuple):
                kinds.update(map(type, row))
            elif type(row) is not np.ndarray or row.dtype.kind not in "fiub":
                return None
    if not kinds <= _NUMBERS:
        return None
    try:
        array = np.asarray(rows)
    except (OverflowError, ValueError):
        return None
    return array if array.dtype.kind in "fiub" else None


def row_entries(row: Any) -> Sequence[Any] | None:
    """The entries of a row that is a list, or an array of one dimension; None of a single value."""
    try:
        if is_list(row):
            return list(row) if isinstance(row, list | tuple) else row  # a class may have methods of its own
        return list(row) if hasattr(row, "__array__") and getattr(row, "ndim", 1) == 1 else None
    except Exception:  # it is no row
        return ()


def columns_of(X: Any) -> list[Any] | None:
    """Return the column names of a DataFrame; None for any other object.

    Raises:
        DataError: it holds synthetic rows.
    """
    columns = getattr(X, "column_names", None)  # pyarrow's `columns` are the data
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    require_records(names := list(columns))
    return names


@dataclass(frozen=True)
class FileRows:
    """An array in a file, with reading of consecutive rows.

    Attributes:
        field: the caller's name for it, for messages.
        path: the file.
        dtype: of the entries.
        shape: ``(n,)`` or ``(n, columns)``.
        offset: byte position of the first entry.
        by_column: entries lie column by column (Fortran order).
    """

    field: str
    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    by_column: bool = False

    def __getitem__(self, where: slice) -> NDArray[Any]:
        """Rows ``where.start`` to ``where.stop``, read from the file now.

        Raises:
            DataError: the file cannot be read, or ends before the rows do.
        """
        start, stop, _ = where.indices(self.shape[0])
        width, size = self.shape[1:], self.dtype.itemsize
        try:
            with Path(self.path).open("rb", buffering=0) as file:
                if self.by_column and width:
                    starts = [self.offset + (column * self.shape[0] + start) * size for column in range(width[0])]
                    return np.stack([self._read(file, first, (stop - start,)) for first in starts], axis=1)
                return self._read(file, self.offset + start * math.prod(width) * size, (stop - start, *width))
        except OSError as error:
            raise DataError(f"{self.field} cannot be read from its file: {error.strerror}") from None

    def _read(self, file: FileIO, first: int, shape: tuple[int, ...]) -> NDArray[Any]:
        out = np.empty(shape, self.dtype)
        left = memoryview(out.reshape(-1).view(np.uint8).data)
        file.seek(first)
        while left and (got := file.readinto(left)):
            left = left[got:]
        if left:
            raise DataError(f"{self.field} is cut short: its file ends before its rows do; write the file again")
        return out


@dataclass(frozen=True)
class GuardedRows:
    """Rows of a memory map that are no contiguous block of its file: copied piece by piece, after a check of the size.

    A file that is truncated between check and copy still kills the process; contiguous blocks are read from the file.
    """

    field: str
    mapped: NDArray[Any]
    filename: str | None
    needed: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.mapped.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its entries."""
        return self.mapped.dtype

    def __getitem__(self, where: slice) -> NDArray[Any]:
        """A copy of some rows.

        Raises:
            DataError: the file has become smaller than the map.
        """
        if self.filename is not None and Path(self.filename).stat().st_size < self.needed:
            raise DataError(f"{self.field} is cut short: its file is smaller than the memory map; write it again")
        return np.array(self.mapped[where], subok=False)


def file_rows(path: str | os.PathLike[str], field: str) -> FileRows:
    """The array of a .npy file, by its header alone.

    Raises:
        DataError: the file is missing, is not a .npy file, or is shorter than its header says.
    """
    try:
        mapped = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise DataError(f"{field} cannot be read from its file: {error.strerror or 'it is no .npy file'}") from None
    except (ValueError, OverflowError):  # the shape in its header is any text
        raise DataError(
            f"{field} is no whole .npy file of numbers; write it again with numpy.save, and read a file of a table "
            "first, for example with pandas.read_parquet"
        ) from None
    return FileRows(field, os.fspath(path), mapped.dtype, mapped.shape, mapped.offset, not mapped.flags.c_contiguous)


def is_mapped(array: Any) -> bool:
    """Whether ``array`` is a memory map of a file."""
    return isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None


def mapped_rows(array: np.memmap[Any, Any], field: str) -> FileRows | GuardedRows:
    """A memory map as rows that are read from its file, or copied out of the map where it is no contiguous block of
    it."""
    mapping = array._mmap  # type: ignore[attr-defined]
    first = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # maps start at a page
    name = None if array.filename is None else os.fspath(array.filename)
    plain = array.flags.c_contiguous or array.flags.f_contiguous
    if name is None or array.mode == "c" or not plain:  # "c": changes that are in memory only
        return GuardedRows(field, array, name, first + len(mapping))
    offset = first + array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    return FileRows(field, name, array.dtype, array.shape, offset, not array.flags.c_contiguous)
