"""Records in .npy files and memory maps, larger than memory: read piece by piece, never past the end.

A memory map whose file is truncated kills the process with a bus error when it is read; reading the same bytes from the
file raises a short-read error instead. ``input_validation`` opens files here.
"""

from __future__ import annotations

import math
import mmap
import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

__all__ = ["FileRows", "GuardedRows", "file_rows", "is_mapped", "mapped_rows"]


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
