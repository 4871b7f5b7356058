"""Read an npz file's arrays after checking their sizes, because numpy allocates what a header claims.

An array must be as large as its archive member, a member no larger than its compressed bytes can make it, and all
together at most 16 GiB.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError

MOST_BYTES = 16 << 30
"""The most that the arrays of one file may hold together."""

_GROWS = {zipfile.ZIP_STORED: 1, zipfile.ZIP_DEFLATED: 1032}
"""Maximum number of bytes that one compressed byte expands to, by compression."""

_SUFFIX = ".npy"
_FEWER = "give fewer records, or a CSV or Parquet file, which is read in parts"
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_DAMAGED: tuple[type[Exception], ...] = (OSError, ValueError, EOFError, KeyError, TypeError, ArithmeticError)
_DAMAGED += (RuntimeError, SyntaxError, TokenError, struct.error, zipfile.BadZipFile, zlib.error)
"""What a member that is damaged, locked or of another kind ends in."""


def read_arrays(
    path: str | os.PathLike[str], pick: Callable[[Collection[str]], Iterable[str]] = tuple
) -> Mapping[str, NDArray[Any]]:
    """Return an npz file's arrays by name; nothing in it is executed.

    Raises:
        DataError: it cannot be read as plain arrays, or an array claims too many bytes.

    Example:
        >>> from privstats.files.arrays import read_arrays
        >>> np.savez("study.npz", X=np.eye(2), y=np.arange(2))
        >>> read_arrays("study.npz", lambda names: sorted(names)[-1:])
        {'y': array([0, 1])}
    """
    try:
        if not Path(path).is_file():  # opening a pipe would block
            raise ValueError
        with zipfile.ZipFile(path) as archive:
            members = {entry.filename.removesuffix(_SUFFIX): entry for entry in archive.infolist()}
            picked = {name: members[name] for name in pick(tuple(members))}
            _check_sizes(path, archive, picked)
            return {name: _read(archive, entry) for name, entry in picked.items()}
    except DataError:
        raise
    except MemoryError:
        raise DataError(f"{path} holds more than this machine has memory for: {_FEWER}") from None
    except _DAMAGED:
        raise DataError(f"cannot read {path} as an npz file of plain arrays; write it with numpy.savez") from None


def _check_sizes(path: str | os.PathLike[str], archive: zipfile.ZipFile, asked: Mapping[str, zipfile.ZipInfo]) -> None:
    size, total = Path(path).stat().st_size, 0
    for name, entry in asked.items():
        claimed, most = _claimed(archive, entry), _GROWS[entry.compress_type] * min(entry.compress_size, size)
        if claimed > min(entry.file_size, most):
            raise DataError(
                f"{path}: the header of {name} claims {claimed:,} bytes, and the file has at most "
                f"{min(entry.file_size, most):,} of it; write it again with numpy.savez"
            )
        total += claimed
    if total > MOST_BYTES:
        raise DataError(
            f"{path}: {', '.join(asked)} hold {total:,} bytes, and at most {MOST_BYTES:,} are read: {_FEWER}"
        )


def _claimed(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> int:
    if not entry.filename.endswith(_SUFFIX) or entry.compress_type not in _GROWS:
        raise ValueError
    with archive.open(entry) as file:
        shape, _, kind = _HEADERS[np.lib.format.read_magic(file)](file)
        if kind.hasobject or not kind.itemsize or min(shape, default=0) < 0:
            raise ValueError
        return math.prod(shape) * kind.itemsize + file.tell()


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(entry) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
