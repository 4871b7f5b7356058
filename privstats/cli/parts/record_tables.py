"""Records for commands, from CSV and Parquet files with a column to predict, and from archives of arrays.

It reads and splits; the plan defines what the numbers mean. pandas is imported only if a table is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats import optional_dependencies
from privstats.errors import DataError
from privstats.moments.arrays import ordered_columns

__all__ = ["Records", "is_table", "read_archive", "read_table"]

_READERS = {".csv": "read_csv", ".parquet": "read_parquet"}


@dataclass(frozen=True)
class Records:
    """Features, and the labels or targets that are predicted from them.

    Attributes:
        X: ``(n, features)``.
        y: ``(n,)``.
    """

    X: NDArray[Any]
    y: NDArray[Any]

    def split(self, share: float, seed: int) -> tuple[Records, Records]:
        """Two parts, of which the second has this share of the records, drawn by the seed.

        Raises:
            DataError: a part would be empty, or X and y have different numbers of records.
        """
        if len(self.X) != len(self.y):
            raise DataError(f"X has {len(self.X)} rows but y has {len(self.y)}; give one label or target per row")
        held = round(share * len(self.X)) if 0 < share < 1 else 0
        if not 0 < held < len(self.X):
            raise DataError(
                f"--split {share:g} leaves one part of {len(self.X)} records empty; give a share between 0 and 1, such "
                "as 0.25"
            )
        order = np.random.default_rng(seed).permutation(len(self.X))
        scored, learned = order[:held], order[held:]
        return Records(self.X[learned], self.y[learned]), Records(self.X[scored], self.y[scored])


def is_table(path: Path) -> bool:
    """Whether the file's name says that it is a table."""
    return path.suffix.lower() in _READERS


def read_table(path: Path, target: str | None, names: tuple[str, ...] | None = None) -> Records:
    """The records of a CSV or Parquet file: one column is predicted, all others are features.

    Args:
        path: the file.
        target: the column that is predicted.
        names: the plan's names of the features, in its order; the file's own order where it has none.

    Raises:
        DataError: no such file or column, a feature that holds no numbers, a missing value, or other columns than the
            plan's.
        MissingExtraError: pandas, or pyarrow for Parquet, is not installed.
    """
    frame = _frame(path)
    if target is None or target not in frame.columns:
        asked = "say with --target" if target is None else f"has no column {target!r}: give with --target"
        raise DataError(f"{path} {asked} which column is predicted; it has {', '.join(map(str, frame.columns))}")
    missing = [str(name) for name in frame.columns if frame[name].isna().any()]
    if missing:
        raise DataError(f"{path} has missing values in {', '.join(missing)}; leave out or impute these records first")
    features = frame.drop(columns=[target])
    texts = [str(name) for name in features.columns if features[name].dtype.kind not in "biuf"]
    if texts:
        raise DataError(f"{path} holds no numbers in {', '.join(texts)}; encode these columns, or leave them out")
    columns = ordered_columns(features, names) if names is not None else features
    predicted = np.asarray(frame[target].tolist())
    return Records(np.asarray(columns, np.float64), predicted)


def read_archive(path: Path, *wanted: str) -> Mapping[str, NDArray[Any]]:
    """Arrays of an npz file; the first set of names that is there whole.

    Args:
        path: the file.
        wanted: sets of names, each with spaces between.

    Raises:
        DataError: not an npz file, or no set is whole in it.
    """
    sets = " or ".join(", ".join(names.split()) for names in wanted)
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise DataError(f"{path} holds one array; give {sets}, so write it with numpy.savez")
        with archive:
            for names in wanted:
                if set(names.split()) <= set(archive):
                    return {name: archive[name] for name in names.split()}
            missing = [name for name in wanted[0].split() if name not in archive]
            raise DataError(f"{path} lacks {', '.join(missing)}; give {sets}")
    except (OSError, ValueError, EOFError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"cannot read {path} as an npz file of plain arrays; write it with numpy.savez") from None


def _frame(path: Path) -> Any:
    pandas = optional_dependencies.load("pandas", by=f"a {path.suffix} file")
    if path.suffix.lower() == ".parquet":
        optional_dependencies.require("pyarrow", by="a .parquet file")
    try:
        return getattr(pandas, _READERS[path.suffix.lower()])(path)
    except (OSError, ValueError, UnicodeError):  # pandas' own errors of parsing are ValueErrors
        raise DataError(f"cannot read {path} as a table with a row of names and a column per feature") from None
