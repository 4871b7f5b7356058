"""DataFrames at the door, recognised by their columns: put into the order of the plan, or refused.

No pandas, polars or pyarrow is imported. In front of every other container; what leaves is an array, and from there on
columns are told apart by position alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from privstats.errors import DataError

__all__ = ["columns_of", "listed", "ordered_columns"]

_MOST_SHOWN = 8


def ordered_columns(X: Any, names: tuple[str, ...] | None) -> Any:
    """A DataFrame's columns in the order of ``names``, shape ``(n, len(names))``; anything else as it stands.

    Columns that are not named (0, 1, 2, ... in order) and arrays have nothing to go by: they are taken as they stand,
    and so is everything where the plan has no names.

    Args:
        X: whatever holds records; what has ``column_names`` or ``columns`` is taken for a DataFrame.
        names: the schema's ``feature_names``.

    Raises:
        DataError: the columns are not exactly the plan's.
    """
    columns = columns_of(X)
    if columns is None:
        return X
    if names is None or columns == list(range(len(columns))):
        return _of_one_type(X)
    if len(columns) != len(names) or set(columns) != set(names):
        missing = [name for name in names if name not in set(columns)]
        lacks = f"lacks {listed(missing)}" if missing else "has columns besides the plan's, or one of them twice"
        raise DataError(f"X {lacks}; give exactly the columns of the plan's feature_names, in any order")
    if hasattr(X, "iloc"):
        return _of_one_type(X if columns == list(names) else X[list(names)])
    if columns == list(names) and hasattr(X, "__array__"):
        return X
    return np.column_stack([np.asarray(X[name]) for name in names])


def listed(names: list[str] | tuple[str, ...]) -> str:
    """Names of the plan, which are public, for a message: all of a few, the first of many."""
    shown = ", ".join(map(repr, names[:_MOST_SHOWN]))
    return shown if len(names) <= _MOST_SHOWN else f"{shown} and {len(names) - _MOST_SHOWN} more"


def _of_one_type(X: Any) -> Any:
    """A pandas frame of numbers of several types, or of pandas' own, as float64, with NaN where one is missing.

    Left to itself it becomes an array of objects. Anything else as it stands: it is numbers already, or is refused.
    """
    types = list(X.dtypes) if hasattr(X, "iloc") else []
    if len(set(types)) <= 1 and all(isinstance(each, np.dtype) for each in types):
        return X
    if not all(getattr(each, "kind", "O") in "fiub" for each in types):
        return X
    columns = (X.iloc[:, place] for place in range(len(types)))
    return np.column_stack([column.to_numpy(dtype=np.float64, na_value=np.nan) for column in columns])


def columns_of(X: Any) -> list[Any] | None:
    """The column names of a DataFrame; None for what is none."""
    columns = getattr(X, "column_names", None)  # pyarrow's `columns` are the data
    if columns is None:
        columns = getattr(X, "columns", None)
    return None if columns is None or callable(columns) else list(columns)
