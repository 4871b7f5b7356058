"""Read torch tensors, sparse matrices and .npy files, without importing their libraries.

Files are read piece by piece, because a truncated file behind a memory map kills the process.
"""

from __future__ import annotations

import math
import mmap
import os
import sys
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array

from privstats.errors import DataError, RecordError
from privstats.system import open_plain

if TYPE_CHECKING:
    from scipy.sparse import sparray, spmatrix
    from torch import Tensor
    from typing_extensions import TypeIs


def is_tensor(array: object) -> TypeIs[Tensor]:
    """Return whether ``array`` is a torch tensor."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def on_device(array: object) -> TypeGuard[Tensor]:
    """Return whether ``array`` is a torch tensor outside host memory."""
    return is_tensor(array) and array.device.type != "cpu"


def host_rows(tensor: Tensor) -> NDArray[Any]:
    """Return a host tensor as a numpy array over its memory; bfloat16 is widened to float32, exactly."""
    return np.asarray((tensor.float() if is_bfloat16(tensor) else tensor).numpy())


def is_bfloat16(tensor: Tensor) -> bool:
    """Return whether the entries are bfloat16, which numpy lacks."""
    return str(tensor.dtype) == "torch.bfloat16"


def require_plain(tensor: Tensor, field: str) -> None:
    """Raise DataError for tensors that are sparse, have no values or require a gradient."""
    if str(tensor.layout) != "torch.strided":
        raise DataError(f"{field} is a sparse tensor; convert it with to_dense(), or pass a scipy csr_array")
    require_values(tensor, field)
    if tensor.requires_grad:
        raise DataError(f"{field} requires a gradient, which moments do not carry; pass {field}.detach()")


def require_values(tensor: Tensor, field: str) -> None:
    """Raise DataError for a tensor of torch's meta device."""
    if tensor.is_meta:
        raise DataError(
            f"{field} is a meta tensor, which has a shape and no values; compute {field} on a device, such as "
            "'cpu' or 'cuda', from a model whose weights are loaded there"
        )


_COMPRESSED = {"csr": csr_array, "csc": csc_array, "bsr": bsr_array}


def sparse_rows(array: sparray | spmatrix, field: str) -> csr_array:
    """Return a sparse matrix in row form; the caller's matrix is not changed."""
    try:
        return _by_rows(array)
    except (ValueError, TypeError, AttributeError, IndexError):
        raise DataError(
            f"{field} is a sparse matrix with indices outside its shape or parts that contradict each other; rebuild it"
        ) from None


def densified(tile: csr_array) -> NDArray[np.generic]:
    """Return rows as a dense array; an entry that occurs twice is refused."""
    require_single(tile)
    return tile.toarray()


def require_single(tile: csr_array) -> None:
    """Refuse rows in which one entry occurs twice: adding them up is only a guess."""
    if len(repeated_rows(tile)):
        raise RecordError("X is a sparse matrix with duplicate entries; call X.sum_duplicates() first")


def repeated_rows(tile: csr_array) -> NDArray[np.intp]:
    """Return the indices of rows in which one entry occurs twice."""
    if tile.has_canonical_format:
        return np.empty(0, np.intp)
    rows = np.repeat(np.arange(tile.shape[0]), np.diff(tile.indptr))
    places = np.sort(rows * tile.shape[1] + tile.indices)
    return np.asarray(places[1:][np.diff(places) == 0] // tile.shape[1])


def _by_rows(array: Any) -> csr_array:
    """Check before and after: the conversion trusts every index."""
    if array.format in _COMPRESSED:
        _require_integers(array.indices, array.indptr)
        fresh = _COMPRESSED[array.format]((array.data, array.indices, array.indptr), shape=array.shape)  # shares memory
        fresh.check_format(full_check=True)
        array = fresh
    elif array.format == "coo":
        _require_integers(*array.coords)
        for index, size in zip(array.coords, array.shape, strict=True):
            if index.size and (index.min() < 0 or index.max() >= size):
                raise IndexError("an index is outside the shape")
    rows = csr_array(array)
    rows.check_format(full_check=True)
    return rows


def _require_integers(*indices: NDArray[np.generic]) -> None:
    if any(index.dtype.kind not in "iu" for index in indices):
        raise TypeError("indices must be integers")


@dataclass(frozen=True)
class FileRows:
    """An array in a file, read by consecutive rows; ``offset`` is the byte position of the first entry."""

    field: str
    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    by_column: bool = False

    def __getitem__(self, where: slice) -> NDArray[Any]:
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
            raise DataError(f"{self.field} is truncated: its file ends before its rows do; write the file again")
        return out


@dataclass(frozen=True)
class GuardedRows:
    """Rows of a memory map, copied after a check of its file's size.

    A file truncated between check and copy still kills the process.
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
        if self.filename is not None and Path(self.filename).stat().st_size < self.needed:
            raise DataError(f"{self.field} is truncated: its file is smaller than the memory map; write it again")
        return np.array(self.mapped[where], subok=False)


def file_rows(path: str | os.PathLike[str], field: str) -> FileRows:
    """Open the array of a .npy file by its header alone."""
    try:
        open_plain(path).close()  # numpy would wait for a pipe
        mapped = np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise DataError(f"{field} cannot be read from its file: {error.strerror or 'it is no .npy file'}") from None
    except (ValueError, OverflowError):  # the header's shape may be any text
        raise DataError(
            f"{field} is no complete .npy file of numbers; write it again with numpy.save, and read a file of a "
            "table first, for example with pandas.read_parquet"
        ) from None
    return FileRows(field, os.fspath(path), mapped.dtype, mapped.shape, mapped.offset, not mapped.flags.c_contiguous)


def is_mapped(array: object) -> TypeGuard[np.memmap[Any, Any]]:
    """Return whether ``array`` is a memory map of a file."""
    return isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None


def mapped_rows(array: np.memmap[Any, Any], field: str) -> FileRows | GuardedRows:
    """Return a memory map's rows, from its file where contiguous."""
    mapping = array._mmap  # type: ignore[attr-defined]
    first = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY  # maps start at a page
    name = None if array.filename is None else os.fspath(array.filename)
    plain = array.flags.c_contiguous or array.flags.f_contiguous
    if name is None or array.mode == "c" or not plain:  # "c": changes stay in memory
        return GuardedRows(field, array, name, first + len(mapping))
    offset = first + array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    return FileRows(field, name, array.dtype, array.shape, offset, not array.flags.c_contiguous)
