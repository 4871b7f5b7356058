"""Types of the containers of records that a user may pass.

A type checker reads them from scripts that call :func:`privstats.measure`. No optional library is imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import sparray, spmatrix


class ArrayLike(Protocol):
    """A container that converts itself to a numpy array: an array, a torch tensor, a column of pandas or polars."""

    def __array__(self) -> NDArray[np.generic]:
        """Return the values as an array."""


class Frame(Protocol):
    """A table with names: a frame of pandas or polars, also a lazy one, or a DuckDB relation."""

    @property
    def columns(self) -> Iterable[object]:
        """The names of the columns; in an Arrow table the columns."""


class Dataset(Protocol):
    """An Arrow dataset, which is read file by file."""

    @property
    def schema(self) -> object:
        """Names and types of the columns."""

    def get_fragments(self) -> Iterable[object]:
        """Return the parts, one per file."""


class FileWithTarget(Protocol):
    """A file of records that names its target and how it is written: ``RecordFile``."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The target columns."""

    @property
    def is_table(self) -> bool:
        """Whether the file is a table, and not an archive of arrays."""


ColumnLike: TypeAlias = ArrayLike | Sequence[object]
"""One value per record, ``(n,)``: an array, list or tensor, or a column of a frame."""

RowsLike: TypeAlias = ArrayLike | Sequence[object] | sparray | spmatrix | os.PathLike[str]
"""One row per record, ``(n, columns)``: an array, a tensor, a scipy sparse matrix, lists, or a file's path."""

TableLike: TypeAlias = Frame | Dataset | Mapping[str, ColumnLike] | FileWithTarget
"""Columns by name: a frame, an Arrow dataset, a mapping, or a file that names its target."""

TargetsLike: TypeAlias = ColumnLike | Frame | os.PathLike[str]
"""Labels or targets: an array, list or frame, a .npy file's path, or the name of a table's column, or several."""

Batches: TypeAlias = Iterable[tuple[RowsLike | TableLike, TargetsLike]]
"""Batches of records and their labels or targets, such as a torch ``DataLoader``."""

RecordsLike: TypeAlias = RowsLike | TableLike | Batches
"""All records of one party."""
