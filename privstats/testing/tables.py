"""Strategies for columns of tables: odd values, and the containers that hold them.

:func:`held` reveals a reader by which one record changes how others are read.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from privstats.testing.extra import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

_MISSING = (None, float("nan"), "", " ", "NA", "n/a", "None")
_NUMBERS = (0, 1, 2, 3, -1, 7.0, 40.5, 0.1, 0.30000000000000004, 1e300, -0.0, 2**53 + 1, float("inf"), 10**400)
_TEXTS = (
    "1",
    "2",
    "007",
    "7.0",
    "1e3",
    " 1",
    "+1",
    "x",
    "stage II",
    "\u00e9",
    "e\u0301",
    "1_000",
    "１",
    "03/04/2020",
    "inf",
)
_OTHERS = (
    True,
    False,
    "True",
    "FALSE",
    b"1",
    np.int8(2),
    np.datetime64("2020-01-02"),
    "2020-01-02 00:00",
    datetime(9999, 12, 31, tzinfo=UTC),
)


def table_values(*among: Any) -> SearchStrategy[Any]:
    """Draw one cell of a table: blanks, numbers, texts, truths, dates and other objects.

    Args:
        among: further values, drawn half of the time.
    """
    odd = st.sampled_from((*_MISSING, *_NUMBERS, *_TEXTS, *_OTHERS, (1, 2)))
    return st.one_of(st.sampled_from(among), odd) if among else odd


def held(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the columns in every installed container, by name."""
    containers = {}
    for name, container in CONTAINERS.items():
        table = container(columns)
        if table is not None:
            containers[name] = table
    return containers


def _objects(columns: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    out = {}
    for name, values in columns.items():
        out[name] = np.empty(len(values), object)
        out[name][:] = values
    return out


def _frame(change: Callable[[Any], Any]) -> Callable[[Mapping[str, Sequence[Any]]], Any]:
    def build(columns: Mapping[str, Sequence[Any]]) -> Any:
        if find_spec("pandas") is None:
            return None
        pandas: Any = import_module("pandas")
        try:
            with warnings.catch_warnings(action="ignore"):  # pandas warns about tuples next to texts
                return change(pandas.DataFrame({name: list(values) for name, values in columns.items()}))
        except (ValueError, TypeError, OverflowError):  # this container cannot hold these values
            return None

    return build


def _typed(kind: str, of: str = "iufbO") -> Callable[[Any], Any]:
    def change(frame: Any) -> Any:
        for name in frame.columns:
            if frame[name].dtype.kind not in of:
                continue
            try:
                with np.errstate(invalid="ignore"):  # pandas looks at the outcome
                    frame[name] = frame[name].astype(kind)
            except (ValueError, TypeError, OverflowError):
                continue
        return frame

    return change


def _reread(frame: Any) -> Any:
    """``read_csv`` infers a column's type from all of its texts."""
    pandas: Any = import_module("pandas")
    text = frame.to_csv(index=False, lineterminator="\n")
    return pandas.read_csv(io.StringIO(text), skip_blank_lines=False)


def _arrow(columns: Mapping[str, Sequence[Any]]) -> Any:
    if find_spec("pyarrow") is None:
        return None
    pyarrow: Any = import_module("pyarrow")
    kinds = [{type(value) for value in values if value is not None} for values in columns.values()]
    if not all(kind <= {int, float} or kind in ({str}, {bool}) for kind in kinds):  # an Arrow column has one type
        return None
    try:
        return pyarrow.table({name: pyarrow.array(list(values), from_pandas=True) for name, values in columns.items()})
    except (pyarrow.ArrowException, OverflowError):
        return None


def _polars(change: Callable[[Any], Any]) -> Callable[[Mapping[str, Sequence[Any]]], Any]:
    def build(columns: Mapping[str, Sequence[Any]]) -> Any:
        if find_spec("polars") is None:
            return None
        polars: Any = import_module("polars")
        try:
            return change(polars.DataFrame({name: list(values) for name, values in columns.items()}))
        except (ValueError, TypeError, OverflowError, polars.exceptions.PolarsError):
            return None

    return build


def _as_categories(frame: Any) -> Any:
    polars: Any = import_module("polars")
    return frame.cast({polars.String: polars.Categorical})


CONTAINERS: Mapping[str, Callable[[Mapping[str, Sequence[Any]]], Any]] = {
    "lists": lambda columns: {name: list(values) for name, values in columns.items()},
    "arrays of objects": _objects,
    "a frame": _frame(lambda frame: frame),
    "a frame of objects": _frame(lambda frame: frame.astype(object)),
    "nullable types": _frame(lambda frame: frame.convert_dtypes()),
    "integers with gaps": _frame(_typed("Int64", "iuf")),
    "Arrow's integers": _frame(_typed("int64[pyarrow]", "iuf")),
    "categories": _frame(_typed("category")),
    "floats": _frame(_typed("float64", "iufb")),
    "texts": _frame(_typed("string")),
    "a CSV file read by pandas": _frame(_reread),
    "an Arrow table": _arrow,
    "polars": _polars(lambda frame: frame),
    "polars' categories": _polars(_as_categories),
    "polars as Arrow": _polars(lambda frame: frame.to_arrow()),
}
"""Functions from columns of values to a table, by the table's name; None where it cannot hold them."""
