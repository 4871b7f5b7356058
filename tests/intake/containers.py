"""The same records in every container: what its own library makes of values, as a caller or a file would hold them."""

import csv
import importlib
import io
import itertools
import json
import shutil
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

FEATURES = ("f0", "f1", "f2")
COLUMNS = (*FEATURES, "y", "id")


def _library(name: str) -> Any:
    with suppress(ImportError):
        return importlib.import_module(name)
    return None


_LIBRARIES = {
    name: _library(name)
    for name in ("pandas", "polars", "pyarrow", "pyarrow.parquet", "pyarrow.dataset", "duckdb", "torch", "scipy.sparse")
}
pandas, polars, arrow, parquet, dataset, duckdb, torch, sparse = _LIBRARIES.values()


class NotHeldError(Exception):
    """The container cannot hold these values, so the law says nothing of it."""


@dataclass(frozen=True, eq=False)
class Row:
    """One record.

    Attributes:
        values: of its features; nearly always one for each.
        target: label or target.
        person: id.
    """

    values: Sequence[Any]
    target: Any
    person: Any


@dataclass(frozen=True, eq=False)
class Table:
    """Records of some persons, and one record or one person more.

    Attributes:
        name: for messages.
        plan: name of the plan that measures it.
        clip: ``person_clip`` of a guarantee per person; None of a guarantee per record.
        base: records of some persons.
        more: the record, or the records of the person, that must not move others.
        more_first: whether ``more`` comes before ``base``.
        narrow: places of the columns that float32 holds.
        shared_file: whether ``more`` shares a file of the folder with half of ``base``.
        by_pandas: whether pandas writes the files of the folder, which makes floats of integers beside a gap.
        is_split: whether a split holds out some records of a file.
    """

    name: str
    plan: str
    clip: float | str | None
    base: Sequence[Row]
    more: Sequence[Row]
    more_first: bool = False
    narrow: frozenset[int] = frozenset()
    shared_file: bool = False
    by_pandas: bool = False
    is_split: bool = False

    @property
    def both(self) -> Sequence[Row]:
        """All records."""
        return [*self.more, *self.base] if self.more_first else [*self.base, *self.more]


@dataclass(frozen=True)
class Held:
    """Records in a container.

    Attributes:
        X, y: as ``measure`` takes them.
        persons: the ids; None where the container has no column of them.
        path: a file or folder instead of all of these.
    """

    X: Any = None
    y: Any = None
    persons: Any = None
    path: Path | None = None


Build = Callable[[Sequence[Row], Table, Path], Held]
"""From rows of a table, and a folder for files, to a container."""


def is_gap(value: Any) -> bool:
    """Whether nothing is given."""
    return value is None or (isinstance(value, float) and value != value)


def objects(values: Sequence[Any]) -> Any:
    """Values in an array of objects, each as it stands."""
    result = np.empty(len(values), object)
    for place, value in enumerate(values):
        result[place] = value
    return result


def _parts(rows: Sequence[Row]) -> tuple[dict[str, list[Any]], list[Any], list[Any]]:
    """Features by column, targets and ids."""
    if any(len(row.values) != len(FEATURES) for row in rows):
        raise NotHeldError
    columns = {name: [row.values[place] for row in rows] for place, name in enumerate(FEATURES)}
    return columns, [row.target for row in rows], [row.person for row in rows]


def is_narrow(value: Any) -> bool:
    """Whether a value has a type in which not every integer below 2**53 is itself."""
    return isinstance(value, np.float16 | np.float32)


def _typed_ids(persons: Sequence[Any]) -> Any:
    """Ids as a library has them that gives a column one type: float32 where all are, which is refused by type.

    Beside any other id it makes them wide floats, as a concatenation does. pandas keeps a float32 beside a text where
    it is given single values, and no library that joins columns does.
    """
    if persons and all(map(is_narrow, persons)):
        return np.array(persons, np.float32)
    return [float(person) if is_narrow(person) else person for person in persons]


def _text(value: Any) -> str:
    """A value as a file of texts has it."""
    if is_gap(value):
        return ""
    if isinstance(value, bytes | list | tuple | dict | complex | timedelta | np.datetime64):
        raise NotHeldError
    if isinstance(value, np.floating):
        return repr(float(value))
    return value.isoformat() if isinstance(value, date) else str(value)


def _plain_numbers(values: Sequence[Any]) -> Any:
    """Values as float64, NaN for a gap."""
    for value in values:
        if not is_gap(value) and type(value) not in (int, float, bool, np.float32):
            raise NotHeldError
        if type(value) is int and abs(value) >= 1 << 62:
            raise NotHeldError
    return np.array([np.nan if is_gap(value) else float(value) for value in values])


def _plain_targets(values: Sequence[Any]) -> Any:
    kinds = {type(value) for value in values}
    if kinds <= {int, float} or kinds in ({int, type(None)}, {float, type(None)}):
        return np.array([np.nan if is_gap(value) else value for value in values])
    return objects(values)


def _plain_ids(values: Sequence[Any]) -> Any:
    values = _typed_ids(values)
    if isinstance(values, np.ndarray):
        return values
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and all(value is None or abs(value) < 1 << 63 for value in values):
        return (
            np.array([np.nan if value is None else value for value in values]) if None in values else np.array(values)
        )
    return objects(values)


def _arrow_type(values: Sequence[Any], *, narrow: bool) -> Any:
    """The type that readers of tables give to all values together; texts where they have none."""
    kinds = {type(value) for value in values}
    single: Mapping[type, Any] = {
        bool: arrow.bool_(),
        Decimal: arrow.decimal128(20, 4),
        date: arrow.date32(),
        datetime: arrow.timestamp("us"),
        timedelta: arrow.duration("us"),
        bytes: arrow.binary(),
    }
    if kinds == {int}:
        for low, high, kind in ((-(1 << 63), 1 << 63, arrow.int64()), (0, 1 << 64, arrow.uint64())):
            if all(low <= value < high for value in values):
                return kind
    if kinds <= {int, float, np.float32, np.float16}:
        if any(type(value) is int and abs(value) >= 1 << 1000 for value in values):
            return arrow.string()
        fits = narrow and all(float(np.float32(value)) == float(value) for value in values)
        return arrow.float32() if fits else arrow.float64()
    return single[next(iter(kinds))] if len(kinds) == 1 and kinds <= single.keys() else arrow.string()


def inferred(values: Sequence[Any], *, narrow: bool = False) -> Any:
    """Values as an Arrow array of the type that readers of tables give to all of them."""
    clean = [None if is_gap(value) else value for value in values]
    given = [value for value in clean if value is not None]
    if not given:
        return arrow.array(
            clean, arrow.float64() if any(isinstance(value, float) for value in values) else arrow.null()
        )
    kind = _arrow_type(given, narrow=narrow)
    if kind == arrow.string():
        clean = [None if value is None else _text(value) for value in clean]
    elif arrow.types.is_floating(kind):
        clean = [None if value is None else float(value) for value in clean]
    return arrow.array(clean, kind)


def arrow_table(rows: Sequence[Row], table: Table) -> Any:
    """All columns as an Arrow table."""
    columns, targets, persons = _parts(rows)
    features = {name: inferred(columns[name], narrow=place in table.narrow) for place, name in enumerate(FEATURES)}
    return arrow.table(
        {**features, "y": inferred(targets), "id": inferred(persons, narrow=all(map(is_narrow, persons)))}
    )


# --- lists and arrays


def _of_lists(make: Callable[[Any], Any]) -> Build:
    def build(rows: Sequence[Row], table: Table, folder: Path) -> Held:
        return Held(
            make(make(row.values) if make is not deque else list(row.values) for row in rows),
            make(row.target for row in rows),
            make(row.person for row in rows),
        )

    return build


def _array(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    return Held(
        np.column_stack([_plain_numbers(each) for each in columns.values()]),
        _plain_targets(targets),
        _plain_ids(persons),
    )


def _narrow_array(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    held = _array(rows, table, folder)
    return Held(held.X.astype(np.float32), held.y, held.persons)


def _object_array(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    return Held(np.column_stack(list(map(objects, columns.values()))), objects(targets), objects(persons))


def _text_array(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    texts = [np.array(list(map(_text, values))) for values in (*columns.values(), targets)]
    return Held(np.column_stack(texts[:-1]), texts[-1], objects(persons))


def _masked_array(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    X = np.column_stack([_plain_numbers(values) for values in columns.values()])
    gaps = np.column_stack([list(map(is_gap, values)) for values in columns.values()])
    ids = np.ma.array(objects(persons), mask=[value is None for value in persons])
    return Held(np.ma.array(np.where(gaps, 0.0, X), mask=gaps), _plain_targets(targets), ids)


def _structured(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    arrays = {name: np.asarray(inferred(values)) for name, values in columns.items()}
    result = np.empty(len(rows), [(name, array.dtype) for name, array in arrays.items()])
    for name, array in arrays.items():
        result[name] = array
    return Held(result, objects(targets), objects(persons))


def _mapping(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return Held(*_parts(rows))


def _tensor(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    held = _array(rows, table, folder)
    if held.y.dtype == object:
        raise NotHeldError
    return Held(torch.tensor(held.X), torch.tensor(held.y), held.persons)


def _sparse(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    held = _array(rows, table, folder)
    return Held(sparse.csr_array(held.X), held.y, held.persons)


# --- frames


def _pandas(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    X = pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})
    return Held(X, pandas.Series(targets), pandas.Series(_typed_ids(persons)))


def _pandas_objects(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    columns, targets, persons = _parts(rows)
    made = {
        name: pandas.Series(objects(values), dtype=object)
        for name, values in {**columns, "y": targets, "id": persons}.items()
    }
    return Held(pandas.DataFrame({name: made[name] for name in FEATURES}), made["y"], made["id"])


def _pandas_nullable(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    held = _pandas(rows, table, folder)
    return Held(*(each.convert_dtypes() for each in (held.X, held.y, held.persons)))


def _pandas_arrow(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return _framed(arrow_table(rows, table).to_pandas(types_mapper=pandas.ArrowDtype))


def _pandas_categories(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    held = _pandas(rows, table, folder)
    return Held(held.X.apply(lambda column: column.astype("category")), held.y, held.persons.astype("category"))


def _framed(frame: Any) -> Held:
    """A frame of pandas or polars by its columns."""
    return Held(frame[list(FEATURES)], frame["y"], frame["id"])


def _arrow(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return _of_arrow(arrow_table(rows, table))


def _of_arrow(table: Any) -> Held:
    return Held(table.select(list(FEATURES)), table.column("y"), table.column("id"))


def _arrow_chunks(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    whole = arrow_table(rows, table)
    middle = len(whole) // 2
    return _of_arrow(arrow.concat_tables([whole.slice(0, middle), whole.slice(middle)]))


def _arrow_dictionaries(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    whole = arrow_table(rows, table)
    columns = {
        name: column if arrow.types.is_null(column.type) else column.dictionary_encode()
        for name, column in zip(whole.column_names, whole.columns, strict=True)
    }
    return _of_arrow(arrow.table(columns))


def _polars(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return _framed(polars.from_arrow(arrow_table(rows, table)))


def _lazy(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return Held(polars.from_arrow(arrow_table(rows, table)).lazy().select(*FEATURES, "y"), "y")


def _relation(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    records = arrow_table(rows, table).select([*FEATURES, "y"])
    return Held(_database().from_arrow(records), "y")


@cache
def _database() -> Any:
    """One database in memory: to open one takes longer than to measure a table."""
    return duckdb.connect()


def _dataset(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return Held(dataset.dataset(arrow_table(rows, table).select([*FEATURES, "y"])), "y")


# --- files


def _csv_text(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    lines = [[*map(_text, row.values), _text(row.target), _text(row.person)] for row in rows]
    if any("\n" in each for each in itertools.chain(*lines)):
        raise NotHeldError
    csv.writer(text).writerows([COLUMNS, *lines])
    return text.getvalue()


def _csv(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    path = folder / "records.csv"
    path.write_text(_csv_text(rows), encoding="utf-8", newline="")
    return Held(path=path)


def _json_lines(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    path = folder / "records.ndjson"
    lines = [{**dict(zip(FEATURES, row.values, strict=False)), "y": row.target, "id": row.person} for row in rows]
    by_text = lambda value: value.isoformat() if isinstance(value, date) else json.JSONEncoder().default(value)  # noqa: E731
    path.write_text("".join(json.dumps(line, default=by_text) + "\n" for line in lines), encoding="utf-8")
    return Held(path=path)


def _guessed(rows: Sequence[Row]) -> io.StringIO:
    """A file for readers that guess types; a line of another number of fields is theirs to refuse."""
    _parts(rows)
    return io.StringIO(_csv_text(rows))


def _pandas_csv(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return _framed(pandas.read_csv(_guessed(rows)))


def _polars_csv(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return _framed(polars.read_csv(_guessed(rows), infer_schema_length=None, try_parse_dates=True))


def _parquet(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    path = folder / "records.parquet"
    parquet.write_table(arrow_table(rows, table), path)
    return Held(path=path)


def _archive(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    """A file of arrays, each of one type; an array of objects would be a pickle."""
    held, path = _array(rows, table, folder), folder / "records.npz"
    arrays = {"X": np.asarray(held.X), "y": np.asarray(held.y)}
    if table.clip is not None:
        ids = np.asarray(held.persons)
        arrays["id"] = ids.astype(str) if all(isinstance(each, str) for each in ids) else ids
    if any(each.dtype.kind == "O" for each in arrays.values()):
        raise NotHeldError
    np.savez(path, **arrays)
    return Held(path=path)


def _daily_files(rows: Sequence[Row], table: Table, folder: Path, *, ids: bool) -> Path:
    """A folder of files, as parties write one a day: each file has the types of its own values."""
    path = folder / "days.parquet"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    more = [row for row in rows if row in table.more]
    base = [row for row in rows if row not in table.more]
    days = ([*more, *base[::2]], base[1::2]) if table.shared_file else (more, base)
    for place, day in enumerate(day for day in (days if table.more_first else days[::-1]) if day):
        records = arrow_table(day, table)
        if table.by_pandas and pandas is not None:
            records = arrow.Table.from_pandas(records.to_pandas(), preserve_index=False)
        parquet.write_table(records if ids else records.drop_columns("id"), path / f"{place}.parquet")
    return path


def _folder(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return Held(path=_daily_files(rows, table, folder, ids=True))


def _dataset_of_folder(rows: Sequence[Row], table: Table, folder: Path) -> Held:
    return Held(dataset.dataset(_daily_files(rows, table, folder, ids=False)), "y")


@dataclass(frozen=True)
class Container:
    """How records are held.

    Attributes:
        build: from rows to the container.
        needs: libraries that it needs.
        plans: what its plans read: "features", "table" or "counts".
        keeps: whether every value stays as it was drawn, so the sums are those of a list.
        is_split: whether its rows go through a split first.
        types_ids: whether its column of ids has one type for all, which may widen some of them.
    """

    build: Build
    needs: tuple[str, ...] = ()
    plans: tuple[str, ...] = ("features", "table", "counts")
    keeps: bool = False
    is_split: bool = False
    types_ids: bool = False

    @property
    def is_available(self) -> bool:
        """Whether its libraries are installed."""
        return all(_LIBRARIES[name] is not None for name in self.needs)


_ARROW, _PANDAS, _POLARS = ("pyarrow",), ("pandas",), ("pyarrow", "polars")
_FILES = ("pyarrow", "pyarrow.parquet", "pyarrow.dataset")

CONTAINERS: Mapping[str, Container] = {
    "list": Container(_of_lists(list), keeps=True),
    "tuple": Container(_of_lists(tuple), keeps=True),
    "deque": Container(_of_lists(deque), keeps=True),
    "array": Container(_array, keeps=True, types_ids=True),
    "float32 array": Container(_narrow_array),
    "object array": Container(_object_array, keeps=True),
    "text array": Container(_text_array),
    "masked array": Container(_masked_array, keeps=True),
    "mapping": Container(_mapping, plans=("table", "counts"), keeps=True),
    "structured array": Container(_structured, _ARROW, plans=("table",)),
    "tensor": Container(_tensor, ("torch",), plans=("features",), keeps=True, types_ids=True),
    "sparse matrix": Container(_sparse, ("scipy.sparse",), plans=("features",), keeps=True, types_ids=True),
    "pandas": Container(_pandas, _PANDAS, keeps=True, types_ids=True),
    "pandas, objects": Container(_pandas_objects, _PANDAS, keeps=True),
    "pandas, nullable": Container(_pandas_nullable, _PANDAS, keeps=True, types_ids=True),
    "pandas, Arrow": Container(_pandas_arrow, (*_PANDAS, *_ARROW)),
    "pandas, categories": Container(_pandas_categories, _PANDAS, keeps=True, types_ids=True),
    "pandas, CSV": Container(_pandas_csv, _PANDAS),
    "pandas, split": Container(_pandas, _PANDAS, plans=("features", "table"), is_split=True),
    "polars": Container(_polars, _POLARS),
    "polars, lazy": Container(_lazy, _POLARS),
    "polars, CSV": Container(_polars_csv, _POLARS),
    "Arrow": Container(_arrow, _ARROW),
    "Arrow, chunks": Container(_arrow_chunks, _ARROW),
    "Arrow, dictionaries": Container(_arrow_dictionaries, _ARROW),
    "Arrow dataset": Container(_dataset, _FILES),
    "DuckDB": Container(_relation, (*_ARROW, "duckdb")),
    "CSV file": Container(_csv),
    "JSON lines": Container(_json_lines, plans=("table", "counts")),
    "npz file": Container(_archive, plans=("features",), types_ids=True),
    "Parquet file": Container(_parquet, _FILES),
    "Parquet folder": Container(_folder, _FILES),
    "dataset of a folder": Container(_dataset_of_folder, _FILES),
}
