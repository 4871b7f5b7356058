"""The columns and labels of a CSV file, for ``plan init`` and without pandas."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from privstats.errors import DataError
from privstats.moments import Records
from privstats.moments.csv_lines import csv_header, csv_lines
from privstats.moments.record_files import as_labels
from privstats.transforms.reading import read, reading

__all__ = ["read_csv"]


def read_csv(path: Path, target: str | None, drop: Sequence[str]) -> Records:
    """Every row of a CSV file: numbers beside the target, whose labels are whole numbers, numbers, truths or texts.

    Args:
        path: the file; its first row names the columns.
        target: the column that is predicted.
        drop: columns that are left out, unread.

    Raises:
        DataError: the file cannot be read, lacks a column, or has texts or gaps in one that is used.
    """
    columns = csv_header(path)
    _check_named(path, columns, target, drop)
    used = [name for name in columns if name not in drop]
    texts: dict[str, list[str]] = {name: [] for name in used}
    for part in csv_lines(path, used, gaps=False):
        for name, lines in part.items():
            texts[name] += [text or "" for text in lines]
    if not texts[str(target)]:
        raise DataError(f"cannot read {path} as a table with a row of names and a column per feature: it has no record")
    gaps = [name for name in used if any(reading(text) is None for text in texts[name])]
    if gaps:
        raise DataError(f"{path} has missing values in {', '.join(gaps)}; leave out or impute these records first")
    labels = as_labels(texts.pop(str(target)))
    found = {name: read(lines) for name, lines in texts.items()}
    words = [name for name, column in found.items() if column.texts]
    if words:
        drops = " ".join(f"--drop {name}" for name in words)
        raise DataError(
            f"{path} holds no numbers in {', '.join(words)}; encode these columns, or leave them out: {drops}"
        )
    return Records(np.column_stack([column.numbers for column in found.values()]), labels, tuple(found))


def _check_named(path: Path, columns: Sequence[str], target: str | None, drop: Sequence[str]) -> None:
    """Refuse a target, or a column to be left out, that is not there."""
    has = ", ".join(columns)
    if target is None or target not in columns:
        asked = "" if target is None else f" has no column {target!r}"
        raise DataError(f"{path}{asked}: say with --target which column is predicted; it has {has}")
    unknown = [name for name in drop if name not in columns]
    if unknown:
        raise DataError(f"{path} has no column {', '.join(unknown)} to leave out with --drop; it has {has}")
    if target in drop:
        raise DataError(f"--drop leaves out {target!r}, which --target predicts: name another column in one of them")
