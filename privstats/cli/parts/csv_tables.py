"""The columns and labels of a CSV file, for ``plan init`` and without pandas."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privstats.errors import DataError
from privstats.moments import Records

__all__ = ["read_csv"]

_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_TRUTHS = {"true": True, "false": False}


def read_csv(path: Path, target: str | None, drop: Sequence[str]) -> Records:
    """Every row of a CSV file: numbers beside the target, whose labels are whole numbers, numbers, truths or texts.

    Args:
        path: the file; its first row names the columns.
        target: the column that is predicted.
        drop: columns that are left out, unread.

    Raises:
        DataError: the file cannot be read, lacks a column, or has texts or gaps in one that is used.
    """
    columns = _columns(path)
    _check_named(path, columns, target, drop)
    used = {name: texts for name, texts in columns.items() if name not in drop}
    gaps = [name for name, texts in used.items() if any(text.lower() in _MISSING for text in texts)]
    if gaps:
        raise DataError(f"{path} has missing values in {', '.join(gaps)}; leave out or impute these records first")
    labels = _labels(used.pop(str(target)))
    read = {name: _numbers(texts) for name, texts in used.items()}
    words = [name for name, numbers in read.items() if numbers is None]
    if words:
        drops = " ".join(f"--drop {name}" for name in words)
        raise DataError(
            f"{path} holds no numbers in {', '.join(words)}; encode these columns, or leave them out: {drops}"
        )
    return Records(np.array(list(read.values()), np.float64).T, np.asarray(labels), tuple(read))


def _columns(path: Path) -> dict[str, list[str]]:
    """The texts of a file by the names in its first row; rows without anything are passed over."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [[text.strip() for text in row] for row in csv.reader(file) if row]
    except (OSError, UnicodeError, csv.Error):
        rows = []
    if len(rows) < 2 or len(set(rows[0])) < len(rows[0]) or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"cannot read {path} as a table with a row of names and a column per feature")
    return {name: list(texts) for name, *texts in zip(*rows, strict=True)}


def _check_named(path: Path, columns: Sequence[str] | dict[str, Any], target: str | None, drop: Sequence[str]) -> None:
    """Refuse a target, or a column to be left out, that is not there."""
    has = ", ".join(columns)
    if target is None or target not in columns:
        asked = "say with --target" if target is None else f"has no column {target!r}: say with --target"
        raise DataError(f"{path} {asked} which column is predicted; it has {has}")
    unknown = [name for name in drop if name not in columns]
    if unknown:
        raise DataError(f"{path} has no column {', '.join(unknown)} to leave out with --drop; it has {has}")
    if target in drop:
        raise DataError(f"--drop leaves out {target!r}, which --target predicts: name another column in one of them")


def _numbers(texts: Sequence[str]) -> list[float] | None:
    """Texts as numbers; None where one is none."""
    try:
        numbers = [_TRUTHS[text.lower()] if text.lower() in _TRUTHS else float(text) for text in texts]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _labels(texts: list[str]) -> Sequence[int | float | str]:
    """The target's values in the narrowest kind that fits all of them."""
    if all(text.lower() in _TRUTHS for text in texts):
        return [_TRUTHS[text.lower()] for text in texts]
    try:
        return [int(text) for text in texts]
    except ValueError:
        return _numbers(texts) or texts
