"""Every door through which a party's records reach sums, and hostile records and persons for each of them.

The doors follow from ``containers.CONTAINERS``: each container through ``measure``, in parts through ``Partitioned``,
and through ``private_release``. Further doors are the containers of ``parts.measure``, its engines, and SQL.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

import privstats as ps
from privstats.contrib import parts
from privstats.contrib.parts import sql
from privstats.contrib.parts.partitioned import Partitioned, in_several_parts
from privstats.encoding import flatten
from privstats.errors import PrivstatsError
from tests.intake import containers_fuzz as fuzz
from tests.intake.containers import CONTAINERS, FEATURES, Held, NotHeldError, Row, Table, arrow_table

_CALM: Mapping[str, Sequence[Any]] = {
    "features": ((0.25, 0.5, -0.125), (0.5, -0.25, 0.75), (-0.5, 0.125, 0.25)),
    "table": ((0.02, "a", date(1995, 5, 5)), (-0.2, "b", date(1980, 1, 2)), (0.2, "a", date(2015, 3, 4))),
    "counts": ((0, "a", 0.5), (1, "b", -0.5), (2, "a", 0.25)),
}
"""Values of records that every door reads, by what a plan reads."""
_HOSTILE = (*fuzz.ODD, "\u0436", "a\0", "A\u0308", "x" * 1100, "1e999", datetime(9999, 12, 31), "'; DROP TABLE t; --")
_IDS = (*fuzz.ODD_IDS, "\u0436", "9" * 400, "unknown", 7.0, "x" * 300, datetime(2020, 1, 2, 3))


def tables() -> Iterator[Table]:
    """Yield calm records of three persons and, in each table, one hostile record or person more.

    In turn, each hostile value meets another plan, unit, column and place among the calm records.
    """
    plans, clips = list(fuzz.PLANS), (None, 2, "average")
    kinds = [
        *(("value", value) for value in _HOSTILE),
        *(("target", value) for value in (*fuzz.ODD_TARGETS, -1, 1e308, [1], "\u0436")),
        *(("id", value) for value in _IDS),
        *(("rows", value) for value in (1, 2, 3, 9, 40)),
        *(("ids", value) for value in ((7, "7"), ("007", 7.0), ("7", "0x7", "7e0"), ("anna", " anna"))),
    ]
    for place, (kind, value) in enumerate(kinds):
        for turn in range(len(plans) * len(clips)):
            plan, clip = plans[turn % len(plans)], clips[(turn + place) % len(clips)]
            yield _table(f"{kind} {value!r:.40}, {turn}", plan, clip, kind, value, place)


def _table(name: str, plan: str, clip: Any, kind: str, value: Any, place: int) -> Table:
    values = _CALM[fuzz.PLANS[plan].reads]
    target = {"names": "dog", "ridge": 0.25}.get(plan, 0)
    base = [Row(values[at % 3], target, person) for at, person in enumerate((101, 101, 102, 103, 103, 103))]
    calm, column = Row(values[0], target, 200), place % 3
    more = [calm]
    if kind == "value":
        more = [replace(calm, values=[value if at == column else each for at, each in enumerate(calm.values)])]
    elif kind == "target":
        more = [replace(calm, target=value)]
    elif kind == "id":
        more = [replace(calm, person=value)]
    elif kind == "rows":
        more = [Row(values[at % 3], target, 200) for at in range(value)]
    elif kind == "ids":
        more = [Row(values[at % 3], target, value[at % len(value)]) for at in range(2 * len(value) + 1)]
    return Table(name, plan, clip, base, more, more_first=place % 2 == 0, shared_file=place % 4 < 2)


@dataclass(frozen=True)
class Door:
    """One way from records to sums.

    Attributes:
        sums: integers, of shape ``(n,)``, of these rows of a table.
        reads: what its plans read.
        keeps: whether every calm value stays itself, so the sums are those of lists.
    """

    sums: Callable[[Sequence[Row], Table, Path], Any]
    reads: tuple[str, ...] = ("features", "table", "counts")
    keeps: bool = True


def outcome(door: Door, rows: Sequence[Row], table: Table, folder: Path) -> fuzz.Outcome:
    """Return a door's sums of some rows, or its refusal.

    Raises:
        NotHeldError: the door cannot hold such values.
    """
    try:
        return fuzz.Outcome(door.sums(rows, table, folder))
    except NotHeldError:
        raise
    except PrivstatsError as error:
        return fuzz.Outcome(refusal=f"{type(error).__name__}: {error}")
    except Exception as error:
        return fuzz.Outcome(refusal=f"not the package's own {type(error).__name__}: {error}")


def _terms(table: Table) -> tuple[Any, Any]:
    return fuzz.PLANS[table.plan].schema, None if table.clip is None else fuzz.clip_of(table.plan, table.clip)


def _held(name: str, rows: Sequence[Row], table: Table, folder: Path) -> Held:
    try:
        held = CONTAINERS[name].build(rows, table, folder)
    except Exception as error:
        raise NotHeldError from error
    if held.path is not None or (table.clip is not None and held.persons is None):
        raise NotHeldError
    return held if fuzz.PLANS[table.plan].reads != "counts" else replace(held, y=None)


def _at_once(name: str, rows: Sequence[Row], table: Table, folder: Path) -> Any:
    found = fuzz.outcome(name, rows, table, folder)
    if found.refusal:
        raise ps.DataError(found.refusal)
    return found.sums


def _one_by_one(name: str, rows: Sequence[Row], table: Table, folder: Path) -> Any:
    """Measure parts in the container, as an engine of one's own does."""
    (schema, clip), cut = _terms(table), [part for part in (rows[::2], rows[1::2]) if part]
    helds = [_held(name, part, table, _made(folder / str(place))) for place, part in enumerate(cut)]
    door = Partitioned(schema, None, "leave out", clip)
    if clip is None:
        return flatten(door.total(door.measure(held.X, held.y) for held in helds))
    groups = in_several_parts([door.present(held.X, persons=held.persons) for held in helds])
    sums = [door.measure(held.X, held.y, persons=held.persons, shared=groups) for held in helds]
    sums += [
        door.measure_shared(door.rows_of(held.X, held.y, persons=held.persons, chosen=group) for held in helds)
        for group in groups
    ]
    return flatten(door.total(map(door.encode, sums)))


def _released(name: str, rows: Sequence[Row], table: Table, folder: Path) -> Any:
    """Release once; its sums are noisy, so only whether there is a release is compared."""
    held, schema = _held(name, rows, table, folder), fuzz.PLANS[table.plan].schema
    promise: dict[str, Any] = {"model": "central", "adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
    if table.clip is None:
        ps.private_release(schema, ps.Privacy(unit="record", **promise), held.X, held.y, ledger="uncharged")
    else:
        limits = {} if table.clip == "average" else {"max_records_per_person": 4}
        privacy = ps.Privacy(unit="person", person_clip=table.clip, **limits, **promise)
        ps.private_release(schema, privacy, held.X, held.y, persons=held.persons, ledger="uncharged")
    return np.zeros(1)


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _of_arrow(rows: Sequence[Row], table: Table) -> Any:
    try:
        return arrow_table(rows, table)
    except Exception as error:
        raise NotHeldError from error


def _measured(X: Any, table: Table) -> Any:
    """Measure a container of all columns in parts, by the names of its columns."""
    schema, clip = _terms(table)
    named = {} if clip is None else {"persons": "id", "person_clip": clip}
    y = None if fuzz.PLANS[table.plan].reads == "counts" else "y"
    return flatten(parts.measure(schema, X, y, unreadable="leave out", **named))


def _columns(made: Any, table: Table) -> Any:
    """Omit the ids under a promise per record, whose plans would read them."""
    return made if table.clip is not None else made.drop_columns(["id"])


def _tables(rows: Sequence[Row], table: Table, _: Path) -> Any:
    return _measured([_columns(_of_arrow(part, table), table) for part in (rows[::2], rows[1::2])], table)


def _mixed(rows: Sequence[Row], table: Table, _: Path) -> Any:
    first, second = (_columns(_of_arrow(part, table), table) for part in (rows[::2], rows[1::2]))
    return _measured(iter([first.to_pandas(), second]), table)


def of_engine(distributed: Callable[[pa.Table], Any]) -> Door:
    """Return the door of an engine whose table this function builds from one of Arrow."""

    def sums(rows: Sequence[Row], table: Table, _: Path) -> Any:
        made = _columns(_of_arrow(rows, table), table)
        try:
            X = distributed(made)
        except Exception as error:
            raise NotHeldError from error
        return _measured(X, table)

    return Door(sums)


def _daily(rows: Sequence[Row], table: Table, folder: Path) -> Path:
    try:
        path = CONTAINERS["Parquet folder"].build(rows, table, folder).path
    except Exception as error:
        raise NotHeldError from error
    assert path is not None
    if table.clip is None:
        for file in path.glob("*.parquet"):
            pa.parquet.write_table(pa.parquet.read_table(file).drop_columns(["id"]), file)
    return path


def _folder(rows: Sequence[Row], table: Table, folder: Path) -> Any:
    return _measured(_daily(rows, table, folder), table)


def _dataset(rows: Sequence[Row], table: Table, folder: Path) -> Any:
    return _measured(pads.dataset(_daily(rows, table, folder)), table)


def _dask_frame(made: pa.Table) -> Any:
    return _dask("dask.dataframe").from_pandas(made.to_pandas(), npartitions=3, sort=False)


def _dask_tables(rows: Sequence[Row], table: Table, _: Path) -> Any:
    delayed = _dask("dask").delayed
    return _measured([delayed(_columns(_of_arrow(part, table), table)) for part in (rows[::2], rows[1::2])], table)


def _dask_arrays(rows: Sequence[Row], table: Table, folder: Path) -> Any:
    held, arrays = _held("array", rows, table, folder), _dask("dask.array")
    schema, clip = _terms(table)
    X, y = (arrays.from_array(np.asarray(each), chunks=(3, 3)[: np.ndim(each)]) for each in (held.X, held.y))
    ids = {} if clip is None else {"persons": np.asarray(held.persons), "person_clip": clip}
    return flatten(parts.measure(schema, X, y, unreadable="leave out", **ids))


def _dask(name: str) -> Any:
    import importlib

    return importlib.import_module(name)


@cache
def _base() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1})


_TYPES = {"table": ("DOUBLE", "VARCHAR", "TIMESTAMP"), "counts": ("VARCHAR", "VARCHAR", "DOUBLE")}


def _sql(rows: Sequence[Row], table: Table, _: Path) -> Any:
    schema, clip = _terms(table)
    reads, base = fuzz.PLANS[table.plan].reads, _base()
    types = dict(zip((*FEATURES, "y", "id"), (*_TYPES[reads], "INTEGER", "BIGINT"), strict=True))
    base.execute(f"CREATE OR REPLACE TABLE records ({', '.join(f'{name} {kind}' for name, kind in types.items())})")
    for row in rows:
        held = [*row.values, row.target, row.person]
        if len(held) != len(types) or not all(map(_fits, held, types.values())):
            raise NotHeldError
        try:
            base.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(types))})", held)
        except Exception as error:
            raise NotHeldError from error
    named: dict[str, Any] = {} if clip is None else {"persons": "id", "person_clip": clip}
    y = None if reads == "counts" else "y"
    query = sql.query_of(schema, "records", y, dialect="duckdb", unreadable="leave out", **named)
    return flatten(query.moments(base.execute(query.text).fetchall()))


def _fits(value: Any, kind: str) -> bool:
    """Whether the data base stores the value as it is, so that no cast of its own reads it."""
    types = {"DOUBLE": (float, int), "VARCHAR": (str, int), "TIMESTAMP": date, "INTEGER": int, "BIGINT": int}
    return value is None or (isinstance(value, types[kind]) and not isinstance(value, bool))


def _holds(name: str, plan: str) -> bool:
    """Whether a container in memory holds the calm records of a plan."""
    table = _table("calm", plan, None, "rows", 1, 0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            _held(name, table.both, table, Path(folder))
            return fuzz.PLANS[plan].reads in CONTAINERS[name].plans
        except NotHeldError:
            return False


# A split does not add up; ``containers_fuzz`` tries it under a rule of its own.
_HERE = [name for name, container in CONTAINERS.items() if container.is_available and not container.is_split]
_IN_MEMORY = [name for name in _HERE if any(_holds(name, plan) for plan in fuzz.PLANS)]
DOORS: Mapping[str, Door] = {
    **{f"measure: {name}": Door(partial(_at_once, name), CONTAINERS[name].plans, keeps=False) for name in _HERE},
    **{
        f"Partitioned: {name}": Door(partial(_one_by_one, name), CONTAINERS[name].plans, keeps=CONTAINERS[name].keeps)
        for name in _IN_MEMORY
    },
    # Without a declaration it refuses what cannot be read, which the data holder alone sees.
    **{
        f"private_release: {name}": Door(partial(_released, name), ("table",), keeps=False)
        for name in _IN_MEMORY
        if _holds(name, "cells")
    },
    "parts: Arrow tables": Door(_tables),
    "parts: tables of two libraries": Door(_mixed),
    "parts: DuckDB": of_engine(lambda made: _base().from_arrow(made)),
    "parts: a folder": Door(_folder),
    "parts: a dataset": Door(_dataset),
    "parts: a Dask frame": of_engine(_dask_frame),
    "parts: delayed tables": Door(_dask_tables),
    "parts: Dask arrays": Door(_dask_arrays, ("features",)),
    "SQL": Door(_sql, ("table", "counts")),
}
"""By name. Spark and Ray start slowly, and have their tests in ``tests/contrib/parts/test_engines.py``."""
