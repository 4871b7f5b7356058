"""Read tables with a named target, and tables not in memory: DuckDB relations, lazy frames, Arrow datasets.

Of a declaration's table only its columns are read, in batches where sums are formed. No table library is imported here.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, TypeVar

from privstats.errors import DataError
from privstats.intake.accepted import RecordsLike, TargetsLike
from privstats.intake.column_names import place_of, same_names
from privstats.intake.columns import has_zone, read, with_zones
from privstats.intake.csv_dialect import Dialect
from privstats.intake.file_source import FileSource, file_source
from privstats.intake.meaning import in_utc
from privstats.intake.sources import INT96_UNIT, Declaration, Refusal, Source, columns_named, each_refusing, refusing
from privstats.intake.table_sources import path_of, table_file
from privstats.intake.tables import is_list, names_of_columns, table_of

_Records = TypeVar("_Records")
_RECORDS = 1 << 14
"""Records of one batch: the window in which declared columns become codes."""


class _Relation(Source):
    """A DuckDB relation; its connection serves one reader at a time."""

    @property
    def names(self) -> list[str]:
        return list(self.table.columns)

    def batches(self, names: list[str]) -> Generator[Any]:
        chosen = self._chosen(names)
        reader = getattr(chosen, "to_arrow_reader", None) or chosen.fetch_record_batch  # before DuckDB 1.4
        opened = reader(_RECORDS)
        try:
            yield from opened
        finally:
            opened.close()

    def load(self, names: list[str]) -> Any:
        chosen = self._chosen(names)
        return (getattr(chosen, "to_arrow_table", None) or chosen.fetch_arrow_table)()

    def _chosen(self, names: list[str]) -> Any:
        of = sys.modules["duckdb"].ColumnExpression
        return self.table.select(*map(of, names))


class _LazyFrame(Source):
    """A polars lazy frame; a pass holds the chosen columns of all records in memory."""

    @property
    def names(self) -> list[str]:
        return list(self.table.collect_schema().names())

    def batches(self, names: list[str]) -> Generator[Any]:
        yield from self.load(names).iter_slices(_RECORDS)

    def load(self, names: list[str]) -> Any:
        return self.table.select(names).collect()


class _Dataset(Source):
    """An Arrow dataset; each file is read with its own types.

    A cast to the first file's types would let a record decide how others are read. A dataset with a filter shows no
    files; the caller's query casts there.
    """

    @property
    def names(self) -> list[str]:
        names, own = list(self.table.schema.names), list[list[str]]()
        for part in self._parts:
            with refusing(_no_table(_path_of(part))):
                own.append(part.physical_schema.names)
        if own and set(own[0]) <= set(names):  # else the caller's schema selects the columns
            names = list(dict.fromkeys((*names, *chain(*own))))
        return names

    @property
    def _parts(self) -> list[Any]:
        try:
            parts = list(self.table.get_fragments())
        except ValueError:  # it has a filter
            return []
        return [_with_every_year(part) for part in parts]

    def batches(self, names: list[str]) -> Generator[Any]:
        parts = self._parts
        if not parts:
            yield from self.table.to_batches(columns=names, batch_size=_RECORDS, batch_readahead=1, use_threads=False)
        for part in parts:
            yield from each_refusing(_batches_of_file(part, names), _no_table(_path_of(part)))

    def load(self, names: list[str]) -> Any:
        batches = list(self.batches(names))
        return sys.modules["pyarrow"].table({name: _joined([batch[name] for batch in batches]) for name in names})


def _path_of(part: Any) -> str:
    return str(getattr(part, "path", None) or "the table")


def _with_every_year(part: Any) -> Any:
    """Return a dataset's file, with INT96 timestamps read in microseconds, which hold every year."""
    arrow = sys.modules["pyarrow.dataset"]
    kind: Any = getattr(arrow, "ParquetFileFragment", ())
    if not isinstance(part, kind):
        return part
    with refusing(_no_table(_path_of(part))):
        columns = part.metadata.schema
        if all(columns.column(place).physical_type != "INT96" for place in range(len(columns))):
            return part
        options, groups = part.format.read_options, [group.id for group in part.row_groups]
        options = arrow.ParquetReadOptions(options.dictionary_columns, coerce_int96_timestamp_unit=INT96_UNIT)
        scan = part.format.default_fragment_scan_options
        every_year = arrow.ParquetFileFormat(read_options=options, default_fragment_scan_options=scan)
        return every_year.make_fragment(part.path, part.filesystem, part.partition_expression, groups)


def _batches_of_file(part: Any, names: list[str]) -> Generator[Any]:
    arrow, schema = sys.modules["pyarrow"], part.physical_schema
    keys = sys.modules["pyarrow.dataset"].get_partition_keys(part.partition_expression)
    own = [name for name in names if name in schema.names]
    options = {"batch_size": _RECORDS, "batch_readahead": 1, "use_threads": False}
    for batch in part.to_batches(schema=schema, columns=own, **options):
        columns = [
            batch.column(name) if name in own else arrow.array([keys.get(name)] * batch.num_rows) for name in names
        ]
        yield arrow.RecordBatch.from_arrays(columns, names=names)


def _joined(parts: list[Any]) -> Any:
    """Return one column of several files, as texts where types differ: readers read a number and its text alike."""
    arrow = sys.modules["pyarrow"]
    kinds = {part.type for part in parts if part.type != arrow.null()} or {arrow.null()}
    if len(kinds) > 1:
        parts, kinds = list(map(_as_texts, parts)), {arrow.string()}
    (kind,) = kinds
    return arrow.chunked_array([part if part.type == kind else arrow.nulls(len(part), kind) for part in parts], kind)


def _as_texts(column: Any) -> Any:
    readings = read(with_zones(column))
    texts = readings.each(
        [*map(in_utc, readings.distinct)] if has_zone(str(column.type)) else readings.distinct, nothing=None
    )
    numbers = [repr(number) if number == number else None for number in readings.numbers.tolist()]
    arrow = sys.modules["pyarrow"]
    return arrow.array([text or number for text, number in zip(texts, numbers, strict=True)], arrow.string())


_SOURCES: Mapping[tuple[str, str], type[Source]] = {
    ("duckdb", "DuckDBPyRelation"): _Relation,
    ("polars", "LazyFrame"): _LazyFrame,
    ("pyarrow.dataset", "Dataset"): _Dataset,
}
"""By the module that has the class of the table, and its name there."""


ENGINES: Mapping[str, str] = {"dask": "Dask", "pyspark": "Spark", "ray": "Ray"}
"""Engines whose collections have parts on other machines, by their package."""


def engine_of(X: object) -> str:
    """Return the engine whose collection this is; "" for a table here.

    Example:
        >>> from privstats.intake.frames import engine_of
        >>> engine_of([1, 2])
        ''
    """
    return ENGINES.get(type(X).__module__.partition(".")[0], "")


class Unopened(ABC):
    """A file of records that holds none until it is read."""

    @property
    @abstractmethod
    def is_table(self) -> bool:
        """Whether the file is a table, and not an archive of arrays."""

    @abstractmethod
    def with_target(self, y: Any, declared: Sequence[str] | None = None) -> tuple[Any, Any]:
        """Return the file's table, and ``y`` or else its own target, as ``measure`` accepts them.

        Args:
            declared: the columns that a plan declares; None: it declares none.
        """


def opened_file(X: Any, y: Any, declared: Sequence[str] | None = None) -> tuple[Any, Any]:
    """Return a record file's table and target; other records unchanged."""
    return X.with_target(y, declared) if isinstance(X, Unopened) else (X, y)


def opened_files(
    X: Any, y: Any, requested: Declaration | tuple[str, ...] | None, *, persons: object = None
) -> tuple[Any, Any, Iterator[tuple[str, Any]] | None]:
    """Return a record file's table and target, and a table's files by path, each as a table that is not in memory.

    Other records are returned unchanged, and None for their files.

    Args:
        requested: declared columns, or names of features; None: the plan states none.
        persons: name of the column of ids, if any.
    """
    X, y = opened_file(X, y, columns_named(requested, y, persons))
    if isinstance(X, str | os.PathLike):
        X = FileSource(table_file(path_of(X), Dialect(), columns_named(requested, y, persons)))
    if not isinstance(X, FileSource):
        return X, y, None
    return X, y, X.files(columns_named(requested or (), y, persons) or ())


def require_here(*containers: object) -> None:
    """Refuse a file in place of y, and an engine's collection, except an array that converts itself."""
    for container in containers:
        if isinstance(container, Unopened):
            raise DataError("a RecordFile cannot be y: pass it as X, with its target, or pass X and y of its read()")
        if (engine := engine_of(container)) and not hasattr(type(container), "rechunk"):
            raise DataError(
                f"X and y must be in this process, and {engine} has the parts of this {type(container).__name__}: pass "
                "it to privstats.contrib.parts.measure, which sums each part where it is"
            )


class Batches:
    """X and y of a table that is not in memory; every pass reads it anew.

    Args:
        flat: whether y has one entry per record.
    """

    def __init__(
        self,
        source: Source,
        features: list[str],
        target: list[str],
        *,
        flat: bool,
        change: Callable[[TargetsLike], TargetsLike] | None = None,
    ) -> None:
        self._source, self._features, self._target, self._flat, self._change = source, features, target, flat, change
        self._requested = list(dict.fromkeys((*features, *target)))
        self._passes: list[Generator[Any]] = []

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        batches = each_refusing(self._source.batches(self._requested), _no_table())
        self._passes.append(batches)
        none = True
        for batch in batches:
            none = False
            yield self._pair(batch)
        if none:
            yield self.all_records

    def changed(self, change: Callable[[TargetsLike], TargetsLike]) -> Batches:
        """Return the same records with another y."""
        return Batches(self._source, self._features, self._target, flat=self._flat, change=change)

    def close(self) -> None:
        """End every pass, so that a database serves others."""
        while self._passes:
            self._passes.pop().close()

    @property
    def first(self) -> tuple[Any, Any]:
        """The first batch."""
        try:
            return next(iter(self))
        finally:
            self.close()

    @property
    def all_records(self) -> tuple[Any, Any]:
        """All records at once."""
        return self._pair(_read_all(self._source, self._requested))

    def _pair(self, batch: Any) -> tuple[Any, Any]:
        y = batch[self._target[0]] if self._flat else batch.select(self._target)
        return batch.select(self._features), y if self._change is None else self._change(y)


def in_memory(X: _Records, names: Sequence[str] | None = None) -> _Records | Any:
    """Load a table that is not in memory, or only its columns ``names``; return other values unchanged."""
    source = _source(X, None if names is None else tuple(names))
    if source is None:
        return X
    result = source.names if names is None else source.present(names)
    return _read_all(source, result) if result else {}  # a query of no column is none


def batches_of(
    X: RecordsLike, y: TargetsLike | None, only: Declaration | tuple[str, ...] | None, *, several: bool = False
) -> Batches | None:
    """Return the batches of a table that is not in memory, where y names its target; None for other containers.

    Args:
        only: a declaration's columns are read; else all but the target.
        several: whether y may name several targets.
    """
    source = _source(X, only, y)
    if source is None:
        return None
    names = source.names
    target = _named(y, names, several=several)
    if target is None:
        raise DataError(
            "X is a table that is read in batches, whose order is its own: name its predicted column, such as "
            "y='outcome', or load both into memory first"
        )
    if only is None or isinstance(only, tuple):
        source.present(only or ())  # refuses a file that lacks one of them
        features = [name for name in names if name not in target]
    else:
        features = source.present([each.name for each in only.columns])
    return Batches(source, features, target, flat=isinstance(y, str))


def named_target(
    X: RecordsLike,
    y: TargetsLike | None,
    only: Declaration | tuple[str, ...] | None = None,
    *,
    several: bool = False,
) -> tuple[RecordsLike, TargetsLike | None]:
    """Return X and y in memory; where y names a column of table X, split X into the other columns and that one.

    Args:
        y: a name; anything else stays, and so does a path where X has no such column.
        only, several: as in :func:`batches_of`.
    """
    if y is None:
        return in_memory(X), y
    batches = batches_of(X, y, only, several=several)
    if batches is not None:
        return batches.all_records
    names = names_of_columns(X)
    target = None if names is None else _named(y, names, several=several)
    if names is None and isinstance(y, str) and not hasattr(X, "shape") and not isinstance(X, str | os.PathLike):
        _require_path(y)
    if names is None or target is None:
        return X, y
    others = [place for place, name in enumerate(names) if name not in target]
    table = table_of(X)
    y = table.columns()[names.index(target[0])] if isinstance(y, str) else table.select(list(map(names.index, target)))
    return table.select(others), y


def _named(y: TargetsLike | None, names: Sequence[Any], *, several: bool) -> list[Any] | None:
    values = [y] if isinstance(y, str) else list(y) if several and is_list(y) else []
    texts = [value for value in values if isinstance(value, str)]
    if not texts or len(texts) < len(values):
        return None
    result = [place_of(text, names) for text in texts]
    if None not in result:
        return [names[at] for at in result if at is not None]
    if isinstance(y, str) and y.endswith(".npy"):
        return None
    raise DataError(
        f"the table has no column {texts[result.index(None)]!r}: y names the column that is predicted, or is its values"
    )


def _require_path(y: str) -> None:
    if not y.endswith(".npy"):
        raise DataError(
            f"y={y!r} names a column, and X is no table that has names; for tables in batches pass pairs (X, y), or "
            "one table of all"
        )


def _source(X: object, requested: Declaration | tuple[str, ...] | None = None, y: object = None) -> Source | None:
    if isinstance(X, Source):
        return X
    if isinstance(X, str | os.PathLike):
        return file_source(path_of(X), columns_named(requested, y))
    if is_of("pyarrow", "RecordBatchReader", X):
        raise DataError("a reader of Arrow can be read only once: pass reader.read_all(), or its dataset")
    for (module, name), kind in _SOURCES.items():
        if is_of(module, name, X):
            source = kind(X)
            if twice := same_names(source.names):
                raise DataError(f"the table has the column {twice[0]!r} twice, perhaps in other letters; keep one")
            return source
    return None


def is_of(module: str, name: str, X: object) -> bool:
    """Return whether X has this class of a library; a value that another process sent came without its module.

    Example:
        >>> from privstats.intake.frames import is_of
        >>> is_of("pyarrow.dataset", "Dataset", [0.5])
        False
    """
    package = module.partition(".")[0]
    if any(each.__name__ == name and each.__module__.partition(".")[0] == package for each in type(X).__mro__):
        import_module(module)
    library = sys.modules.get(module)
    return library is not None and isinstance(X, getattr(library, name))


def _no_table(table: str = "the table") -> Refusal:
    return lambda kind: DataError(
        f"{table} could not be read ({kind}): run its query by itself to see where; that message may hold a value of "
        "a record. Name a folder of files by its path, because queries cast its files"
    )


def _read_all(source: Source, names: list[str]) -> Any:
    with refusing(_no_table()):
        return source.load(names)
