"""Read tables of records in any in-memory container.

Static types alone decide how columns are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import issparse, sparray, spmatrix

from privstats.errors import DataError, RecordError
from privstats.intake.accepted import ColumnLike
from privstats.intake.arrays import sparse_rows
from privstats.intake.column_names import require_records
from privstats.intake.columns import Readings, array_of, read
from privstats.intake.meaning import MISSING, has_decimal_comma, listed

if TYPE_CHECKING:
    from privstats.intake.declared.unlisted import Lost

Selected: TypeAlias = NDArray[np.intp] | NDArray[np.bool_] | slice
"""Selected rows: their indices, a mask ``(n,)``, or consecutive ones."""

_Records = TypeVar("_Records")
_MAX_REMARKS = 8
_NUMBERS = frozenset((bool, int, float, *(kind for kind in np.sctypeDict.values() if np.dtype(kind).kind in "fiub")))


class Codes:
    """Codes of records of declared columns.

    Attributes:
        codes: float64 ``(n, J)``; NaN where nothing is given.
        lost: by column, its ``intake.declared.unlisted.Lost``: values that are in no cell of their own; private.
    """

    def __init__(self, codes: NDArray[np.float64], lost: Mapping[str, Lost]) -> None:
        self.codes, self.lost = codes, lost
        self.shape, self.dtype = codes.shape, codes.dtype

    def __len__(self) -> int:
        return len(self.codes)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.generic]:
        return np.array(self.codes, dtype, copy=copy)

    def __getitem__(self, where: Selected) -> Codes:
        return Codes(self.codes[where], self.lost)

    @property
    def unread(self) -> dict[str, int]:
        """Unreadable values by column, which count as missing."""
        return {name: lost.unread for name, lost in self.lost.items() if lost.unread}


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """Columns of some records by name, each as its file has it."""

    by_name: Mapping[str, Any]

    @property
    def columns(self) -> list[str]:
        """The names."""
        return list(self.by_name)

    def __len__(self) -> int:
        return len(next(iter(self.by_name.values()), ()))

    def __getitem__(self, name: str) -> Any:
        return self.by_name[name]

    def select(self, names: Sequence[str]) -> Columns:
        """Return some of the columns, in this order."""
        return Columns({name: self.by_name[name] for name in names})


def is_list(values: object) -> TypeGuard[Sequence[Any]]:
    """Return whether values come one by one, each with its own type."""
    return isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray | memoryview)


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Records in one container, or one column of them.

    Attributes:
        take: selects rows by index or slice.
        select: selects columns by index.
    """

    records: int
    take: Callable[[Selected], Any]
    columns: Callable[[], list[Any]]
    select: Callable[[Sequence[int]], Any]


def table_of(X: Any) -> Table:
    """Return the table of a container of records, or of one column.

    Example:
        >>> table = table_of({"age": [40, 50], "sex": ["f", "m"]})
        >>> table.records, table.take(np.array([1])), table.select([0])
        (2, {'age': [50], 'sex': ['m']}, {'age': [40, 50]})
    """
    names = names_of_columns(X) or []
    if is_list(X):
        rows_of = lambda rows: X[rows] if isinstance(rows, slice) else [X[place] for place in rows.tolist()]  # noqa: E731
        return Table(len(X), rows_of, lambda: [X], lambda _: X)
    if hasattr(X, "take") and hasattr(X, "to_pylist"):  # Arrow
        rows_of = lambda rows: X[rows] if isinstance(rows, slice) else X.take(rows)  # noqa: E731
        return Table(len(X), rows_of, lambda: [X[name] for name in names], lambda places: X.select(list(places)))
    if isinstance(X, Mapping) or (names and not hasattr(X, "shape")):
        parts, like = {name: table_of(X[name]) for name in names}, Columns if isinstance(X, Columns) else dict
        return Table(
            min((part.records for part in parts.values()), default=0),
            lambda rows: like({name: part.take(rows) for name, part in parts.items()}),
            lambda: [X[name] for name in names],
            lambda places: like({names[place]: X[names[place]] for place in places}),
        )
    if not hasattr(X, "shape") or not hasattr(X, "__getitem__"):
        kind = type(X).__name__
        raise DataError(f"one person's rows cannot be selected from a {kind}; pass arrays, a frame or columns by name")
    records = int(X.shape[0]) if X.shape else 0
    if hasattr(X, "iloc"):  # pandas
        columns = lambda: [X.iloc[:, place] for place in range(len(names))]  # noqa: E731
        return Table(records, lambda rows: X.iloc[rows], columns, lambda places: X.iloc[:, places])
    if names:  # polars, or another library
        columns = lambda: [X[name] for name in names]  # noqa: E731
        return Table(records, lambda rows: X[rows], columns, lambda places: X.select([names[at] for at in places]))
    held = sparse_rows(X, "X") if isinstance(X, sparray | spmatrix) else X
    return Table(records, lambda rows: held[rows], lambda: list(held.T), lambda places: held[:, places])


@dataclass(frozen=True, eq=False, repr=False)
class Several:
    """Records of several tables, numbered through; each table keeps its own containers and types.

    Attributes:
        tables: X and y of each table.
    """

    tables: Sequence[tuple[Any, Any]]

    @property
    def shape(self) -> tuple[int]:
        """The number of all records."""
        return (sum(table_of(X).records for X, _ in self.tables),)

    def __getitem__(self, rows: NDArray[np.intp]) -> Several:
        """Select rows, in ascending order; a table without one is omitted, unless all are."""
        starts = np.cumsum([0, *(table_of(X).records for X, _ in self.tables)])
        parts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
        named = list(zip(self.tables, parts, starts.tolist(), strict=False))
        some = [each for each in named if len(each[1])] or named[:1]
        return Several(
            [
                (table_of(X).take(part - start), None if y is None else table_of(y).take(part - start))
                for (X, y), part, start in some
            ]
        )


def column_of(column: ColumnLike) -> Table:
    """Return the table of one column."""
    return table_of(column if hasattr(column, "__getitem__") else array_of(column))


def has_order(column: object) -> bool:
    """Return whether a column's values have an order: a set or a single value has none."""
    return any(hasattr(column, name) for name in ("__getitem__", "__array__")) and getattr(column, "ndim", 1) != 0


def names_of_columns(X: object) -> list[Any] | None:
    """Return a frame's or mapping's column names, if any; refuse synthetic rows."""
    if isinstance(X, Mapping):
        require_records(X)
        return list(X)
    # Arrow's `columns` are the data. A column of a pandas frame is an attribute, whatever its name.
    columns = None if hasattr(X, "iloc") else getattr(X, "column_names", None)
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    require_records(names := list(columns))
    return names


def _as_numbers(X: Any) -> NDArray[Any] | None:
    """Return a frame as one array, if all columns' static types are of numbers.

    If the converted array decided, a column of dates would be read in two ways, depending on its neighbours.
    """
    if isinstance(X, Columns):  # an array of numbers comes of a column whose type has no other values
        columns = list(X.by_name.values())
        plain = all(isinstance(values, np.ndarray) and values.dtype.kind in "fiu" for values in columns)
        return np.column_stack(columns) if plain and columns else None
    if hasattr(X, "iloc"):  # pandas: its nullable types share names with polars
        fits = all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in X.dtypes)
    else:
        types = getattr(X, "dtypes", None) or getattr(getattr(X, "schema", None), "types", None)
        fits = isinstance(types, list) and len(types) > 0 and {str(kind) for kind in types} <= _TYPES_OF_NUMBERS
    return np.asarray(X) if fits else None


_TYPES_OF_NUMBERS = frozenset(
    (
        *("halffloat", "float", "double", "Float32", "Float64"),
        *(f"{name}{bits}" for name in ("int", "uint", "Int", "UInt") for bits in (8, 16, 32, 64)),
    )
)
"""Names that Arrow and polars give to the types of columns whose values are all numbers or missing."""


@overload
def ordered_columns(
    X: _Records, names: tuple[str, ...] | None, *, gaps: Literal[False] = False
) -> _Records | NDArray[Any]: ...
@overload
def ordered_columns(
    X: _Records, names: tuple[str, ...] | None, *, gaps: bool
) -> _Records | NDArray[Any] | ReadRows: ...
def ordered_columns(
    X: _Records, names: tuple[str, ...] | None, *, gaps: bool = False
) -> _Records | NDArray[Any] | ReadRows:
    """Return a named frame's columns in the order of ``names``, as ``(n, columns)``; anything else unchanged.

    Args:
        gaps: keep texts, in :class:`ReadRows`, and turn gaps into NaN; else texts are refused.

    Raises:
        DataError: the columns are not exactly the plan's.
        RecordError: texts, without ``gaps``.
    """
    columns = names_of_columns(X)
    if columns is None or isinstance(X, Mapping):
        return X
    if names is None or columns == list(range(len(columns))):
        names = None
    elif len(columns) != len(names) or set(columns) != set(names):
        missing = [name for name in names if name not in set(columns)]
        more = f"has further columns, or one of the plan's twice, {len(columns)} for its {len(names)}"
        lacks = f"lacks {listed(missing)}" if missing else more
        raise DataError(f"X {lacks}; pass exactly the columns of the plan's feature_names, in any order")
    places = list(range(len(columns))) if names is None else [columns.index(name) for name in names]
    if (numbers := _as_numbers(X)) is not None:
        return numbers if places == sorted(places) else numbers[:, places]
    held = table_of(X)
    columns = held.columns()
    result = [read(columns[place]) for place in places]
    if gaps and any(column.distinct for column in result):  # a word may be a value that the schema declares
        return ReadRows(result)
    return numbers_of(result, names) if result else np.empty((held.records, 0))


def as_table(X: Any) -> Any:
    """Return columns by name for a list of mappings, a mapping of single values or a pandas row; else X unchanged.

    Example:
        >>> as_table([{"age": 40}, {"age": 50, "sex": "f"}]), as_table({"age": 40, "sex": "f"})
        ({'age': [40, 50], 'sex': [None, 'f']}, {'age': [40], 'sex': ['f']})
    """
    if issparse(X):  # one of its formats is a mapping
        return X
    if is_list(X) and len(X) and all(isinstance(each, Mapping) for each in X):
        names = dict.fromkeys(name for each in X for name in each)
        return {name: [each.get(name) for each in X] for name in names}
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 1 and hasattr(X, "to_dict"):  # a row of a pandas frame
        X = X.to_dict()
    if isinstance(X, Mapping) and X and not any(map(_is_column, X.values())):
        return {name: [value] for name, value in X.items()}
    return X


def _is_column(value: object) -> bool:
    return not isinstance(value, str | bytes) and (is_list(value) or has_order(value))


class ReadRows:
    """Rows of columns already read, at least one of which holds a text or a word that may mean a gap."""

    dtype = np.dtype(object)

    def __init__(self, readings: Sequence[Readings]) -> None:
        self.readings, self.shape = readings, (len(readings[0].numbers), len(readings))

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[np.generic]:
        return np.array(side_by_side(self.readings, MISSING), dtype, copy=copy)

    def __getitem__(self, where: slice) -> ReadRows:
        return ReadRows([column.part(where) for column in self.readings])


def side_by_side(columns: Sequence[Readings], words: Collection[str]) -> NDArray[Any]:
    """Return columns as rows, float64 ``(n, columns)``; of objects where one holds a text, or one of these words."""
    return np.column_stack([column.keeping(words) for column in columns])


def numbers_of(columns: Sequence[Readings], names: Sequence[object] | None) -> NDArray[np.float64]:
    """Return read columns as rows of numbers, float64 ``(n, columns)``; NaN for a gap.

    Args:
        names: the plan's names of the columns, which are public; None: columns are not named.

    Raises:
        RecordError: a column holds texts; it is named with their number, and no text is shown.

    Example:
        >>> from privstats.intake.columns import read
        >>> from privstats.intake.tables import numbers_of
        >>> numbers_of([read(["61.5", "NA"]), read([1, 0])], ("age", "arm")).tolist()
        [[61.5, 1.0], [nan, 0.0]]
    """
    if any(column.are_texts.any() for column in columns):
        named = [] if names is None else [*filter(None, map(_remark, names, columns))]
        more = f" and {len(named) - _MAX_REMARKS} columns more" if len(named) > _MAX_REMARKS else ""
        where = f" in {', '.join(named[:_MAX_REMARKS])}{more}" if named else ""
        raise RecordError(
            f"X holds values that are no numbers{where}; code them as numbers, such as 0 and 1, or count them as "
            "Categories of a CountSchema"
        )
    return np.column_stack([column.numbers for column in columns])


def _remark(name: object, column: Readings) -> str:
    """Return a column with the numbers of its texts and of those with a decimal comma; "" without a text."""
    texts = int(column.are_texts.sum())
    commas = int(column.each([*map(has_decimal_comma, column.distinct)], nothing=False).sum())
    hint = f", a decimal comma in {commas:,}: write a point" if commas else ""
    return f"{name!r} ({texts:,}{hint})" if texts else ""


def of_list(rows: Sequence[object]) -> NDArray[Any]:
    """Return a list as an array: of numbers where all entries are numbers, else of unchanged objects.

    numpy would convert all entries to one type, which changes a float32 next to a text.
    """
    if (plain := plain_numbers(rows)) is not None:
        return plain
    several = [row_entries(row) for row in rows]
    widths = {-1 if entries is None else len(entries) for entries in several}
    if len(widths) > 1:
        raise ValueError("rows of different lengths")
    if (width := widths.pop()) >= 0:
        return rectangle(rows, width)
    return np.fromiter(rows, object, len(rows))


def rectangle(rows: Sequence[object], width: int) -> NDArray[Any]:
    """Return lists as an array, of numbers where possible; a row of another length is None throughout."""
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
            out[place, 0] = row  # unreadable
    return out


def plain_numbers(rows: Sequence[Any]) -> NDArray[Any] | None:
    """Return lists as numpy reads them, if all are numbers of one shape."""
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


def row_entries(row: Any) -> Sequence[object] | None:
    """Return the entries of a list or a one-dimensional array."""
    try:
        if is_list(row):
            return list(row) if isinstance(row, list | tuple) else row  # a class may have methods of its own
        return list(row) if hasattr(row, "__array__") and getattr(row, "ndim", 1) == 1 else None
    except Exception:  # not a row
        return ()


def is_frame(values: object) -> bool:
    """Return whether this is a table in memory with names."""
    return names_of_columns(values) is not None and any(hasattr(values, name) for name in ("to_numpy", "to_pylist"))
