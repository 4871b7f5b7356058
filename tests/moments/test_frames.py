"""Tables of other libraries: the target by its name, columns by theirs, and one odd value moves its own record only."""

import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, LedgerError, PrivstatsError, RecordError
from privstats.intake import frames
from tests.made import refused

pa = pytest.importorskip("pyarrow")
COLUMNS = {"dose": [0.25, -0.5, 0.125, 0.75, 0.0], "age": [3, 1, 2, 0, 4], "ill": [0, 1, 1, 0, 1]}
ROWS, LABELS = np.column_stack([COLUMNS["age"], COLUMNS["dose"]]), COLUMNS["ill"]
PLAIN = ps.ClassSchema(2, 2, "NAB", 8.0, feature_names=("age", "dose"))
CELLS = ps.Cells((ps.Numeric("age", (0.5, 2.0), gaps=(-9,)), ps.Categories("dose", ("a", "7", "0.25"))))
TABLE = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(CELLS,))
PRIVATE: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove", "ledger": "uncharged"}


def of_pandas(table: Any) -> Any:
    return pytest.importorskip("pandas") and table.to_pandas()


def of_pandas_arrow(table: Any) -> Any:
    return table.to_pandas(types_mapper=pytest.importorskip("pandas").ArrowDtype)


def of_polars(table: Any) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def of_duckdb(table: Any) -> Any:
    connection = pytest.importorskip("duckdb").connect()
    connection.register("records", table)
    return connection.sql("select * from records")


CONTAINERS: Mapping[str, Callable[[Any], Any]] = {
    "an Arrow table": lambda table: table,
    "an Arrow batch": lambda table: pa.record_batch(
        [each.combine_chunks() for each in table.columns], table.column_names
    ),
    "an Arrow dataset": lambda table: pytest.importorskip("pyarrow.dataset").dataset(table),
    "pandas": of_pandas,
    "pandas over Arrow": of_pandas_arrow,
    "polars": of_polars,
    "polars, lazily": lambda table: of_polars(table).lazy(),
    "DuckDB": of_duckdb,
}
IN_BATCHES = ("an Arrow dataset", "polars, lazily", "DuckDB")


@pytest.fixture(params=CONTAINERS)
def container(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(frames, "_RECORDS", 2)  # so that five records are three batches
    return SimpleNamespace(name=request.param, of=CONTAINERS[request.param])


def test_a_target_is_named_and_columns_are_put_into_the_plans_order(container: Any) -> None:
    table, expected = pa.table(COLUMNS), ps.measure(PLAIN, ROWS, LABELS)
    for names in (["dose", "age", "ill"], ["ill", "age", "dose"], ["age", "ill", "dose"]):
        assert ps.measure(PLAIN, container.of(table.select(names)), "ill") == expected
    unnamed = replace(PLAIN, feature_names=None)  # columns as they stand
    given = container.of(table.select(["age", "ill", "dose"]))
    assert ps.measure(unnamed, given, "ILL") == ps.measure(unnamed, ROWS, LABELS)
    two = ps.RidgeSchema(2, 2, clip_norm=8.0, target_bound=8.0)
    targets = np.column_stack([LABELS, LABELS[::-1]])
    given = container.of(table.append_column("well", pa.array(LABELS[::-1])))
    assert ps.measure(two, given, ["ill", "well"]) == ps.measure(two, ROWS[:, ::-1], targets)
    codes = ps.measure(TABLE, {name: COLUMNS[name] for name in ("age", "dose")}, LABELS)
    wide = table.append_column("name", pa.array(["x"] * 5))  # a column that is not declared is not read
    assert ps.measure(TABLE, container.of(wide), "ill") == codes
    counts = ps.CountSchema((ps.Categories("ill", (0, 1)),), (("ill",),))
    assert ps.measure(counts, container.of(wide)).T.tolist() == [2, 3]
    assert ps.measure(PLAIN, container.of(table.slice(0, 0)), "ill").records == 0


def test_what_no_table_can_mean_is_a_sentence(container: Any) -> None:
    table = pa.table(COLUMNS)
    for y, words in (("sick", "no column 'sick'"), ("ill", "lacks 'crp'")):
        refused(DataError, words, ps.measure, replace(PLAIN, feature_names=("age", "crp")), container.of(table), y)
    with pytest.raises(DataError, match="further columns"):
        ps.measure(PLAIN, container.of(table.append_column("more", pa.array([1.0] * 5))), "ill")
    refused(DataError, "lacks the column 'age'", ps.measure, TABLE, container.of(table.select(["dose", "ill"])), "ill")
    if container.name in IN_BATCHES:
        refused(DataError, "its predicted", ps.measure, PLAIN, container.of(table.select(["age", "dose"])), LABELS)


@pytest.mark.parametrize("batches", [iter, list], ids=["an iterator", "a list"])
def test_tables_in_batches_have_no_column_to_name(batches: Callable[[Any], Any]) -> None:
    table = pa.table(COLUMNS)
    with pytest.raises(DataError, match=r"y='ill' names a column.*pass pairs \(X, y\)"):
        ps.measure(PLAIN, batches([table, table]), "ill")
    pairs = ((each.select(["dose", "age"]), each["ill"]) for each in (table, table))
    once = ps.measure(PLAIN, ROWS, LABELS)
    assert ps.measure(PLAIN, pairs) == once + once


def test_a_file_of_a_table_is_no_array(tmp_path: Any) -> None:
    (tmp_path / "ward.csv").write_text("age,ill\n1,0\n")
    refused(DataError, "X lacks 'dose'", ps.measure, PLAIN, tmp_path / "ward.csv", "ill")
    refused(DataError, "X cannot be read from its file", ps.measure, PLAIN, str(tmp_path / "ward.npy"), [0])


def test_heads_take_tables_in_fits_and_scores(container: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_RECORDS", 150)
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 400)
    table = pa.table({"dose": rng.normal(0, 0.2, 400) + ill, "age": rng.random(400), "ill": ill})
    X = np.column_stack([table["dose"], table["age"]])
    given = container.of(table)
    for head in (ps.heads.LDA(), ps.heads.Ridge(), ps.heads.RefinedSoftmax()):
        assert head.fit(given, "ill").score(given, "ill") == type(head)().fit(X, ill).score(X, ill)
    ridge = ps.heads.Ridge().fit_private(given, "ill", clip_norm=2.0, target_bound=1.0, **PRIVATE)
    private = ps.heads.LDA().fit_private(given, "ill", clip_norm=2.0, classes=(0, 1), **PRIVATE)
    turned = container.of(table.select(["ill", "age", "dose"]))
    assert private.score(turned, "ill") == private.score(X, ill) > 0.8
    assert ridge.score(turned, "ill") == pytest.approx(ridge.score(X, ill))
    assert (private.predict(container.of(table.select(["age", "dose"]))) == private.predict(X)).all()
    with pytest.warns(ps.AssumedPublicWarning):
        rounds = ps.heads.RefinedSoftmax().fit_private(given, "ill", classes=(0, 1), **PRIVATE)
    assert rounds.provenance_.assumed_public == ("rows",)
    assert rounds.score(given, "ill") > 0.8
    columns = (ps.Numeric("age"), ps.Numeric("dose"))
    declared = ps.heads.LDA().fit_private(
        given, "ill", columns=columns, classes=(0, 1), expected_records=400, **PRIVATE
    )
    assert declared.score(given, "ill") > 0.8
    assert ps.heads.expected_calibration_error(private, given, "ill") < 0.5
    with pytest.raises(LedgerError):
        ps.heads.LDA().fit_private(given, "ill", clip_norm=2.0, classes=(0, 1), **{**PRIVATE, "ledger": None})


def test_parties_bring_tables_to_a_simulation(container: Any) -> None:
    plan = ps.Plan(schema=PLAIN, cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
    release = ps.simulate(plan, [(container.of(pa.table(COLUMNS)), "ill"), (ROWS, LABELS)])
    assert release.moments.N.tolist() == [4, 6]
    assert release.moments.A.tolist() == (2 * ps.measure(PLAIN, ROWS, LABELS).real().A).tolist()


TYPES: Mapping[str, tuple[Any, list[Any], list[Any]]] = {
    "integers": (pa.int64(), [3, 1, 2, 0], [None, 2**53 + 1, -9]),
    "small numbers": (pa.uint8(), [3, 1, 2, 0], [None, 255]),
    "numbers": (pa.float64(), [0.25, -0.5, 7.0, 1.0], [None, float("nan"), float("inf"), -float("inf"), 1e300, 5e-324]),
    "half": (pa.float32(), [0.25, -0.5, 7.0, 1.0], [None, float("nan"), float("inf"), 0.1]),
    "decimals": (pa.decimal128(38, 2), [Decimal("0.25"), Decimal(7), Decimal(1), Decimal(0)], [None, Decimal(10**30)]),
    "texts": (pa.string(), ["0.25", "7", "007", "1"], [None, "", "x", "inf", "NA", "1e3", "a"]),
    "texts with gaps": (pa.string(), ["a", None, "7", "1"], ["x", "0.25", None]),
    "numbers with gaps": (pa.float64(), [0.5, None, 7.0, float("nan")], [1.0, float("inf"), None]),
    "truths": (pa.bool_(), [True, False, True, True], [None]),
    "days": (pa.date32(), [date(2020, 1, 2), date(1969, 5, 1), date(2020, 1, 1), date(2021, 1, 1)],
        [None, date(9999, 12, 31)]),
    "moments": (pa.timestamp("us", "UTC"), [datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2, 3, 4)], [None]),
    "spans": (pa.duration("us"), [timedelta(days=day) for day in (1, 2, 3, 4)], [None]),
    "categories": (pa.dictionary(pa.int32(), pa.string()), ["a", "7", "a", "0.25"], [None, "x", "b"]),
    "lists": (pa.list_(pa.float64()), [[1.0], [2.0], [], [0.5]], [None, [1.0, 2.0], [float("nan")]]),
    "structures": (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 2}, {"a": 3}, {"a": None}], [None, {"a": 7}]),
    "bytes": (pa.binary(), [b"7", b"1", b"0.25", b"a"], [None, b"\xff", b""]),
    "nothing": (pa.null(), [None] * 4, [None]),
}  # fmt: skip


def table_of(kind: Any, values: list[Any]) -> Any:
    """The values as ages, beside plain doses."""
    count = len(values)
    return pa.table({"dose": np.arange(count) / 8, "age": pa.array(values, kind), "ill": np.arange(count) % 2})


def counted(schema: ps.ClassSchema, table: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):
        return ps.measure(schema, table, "ill", unreadable="leave out")


def one_more(schema: ps.ClassSchema, more: Any, fewer: Any, most: int) -> bool:
    """The sums differ by one record's, no longer than one may be, or by none's."""
    counts, sums, second = more.N - fewer.N, more.A - fewer.A, more.B - fewer.B
    if counts.sum() == 0:
        return not (counts.any() or sums.any() or second.any())
    (label,) = np.flatnonzero(counts)
    alone = counts[label] == 1 and not np.delete(sums, label, axis=0).any()
    return bool(alone and (second == np.outer(sums[label], sums[label])).all() and np.trace(second) <= most)


@pytest.mark.parametrize("kind", TYPES)
def test_one_odd_value_moves_its_own_record_only_in_every_container(container: Any, kind: str) -> None:
    arrow, base, odd = TYPES[kind]
    for schema in (PLAIN, TABLE):
        most = schema.grid_steps**2
        fewer, plain = (
            counted_or_refused(schema, container, arrow, base),
            counted_or_refused(schema, SimpleNamespace(of=lambda table: table), arrow, base),
        )
        for value in odd:
            more = counted_or_refused(schema, container, arrow, [*base, value])
            if isinstance(fewer, str):  # of the column's type, which no value changes
                assert more == fewer
                continue
            assert one_more(schema, more, fewer, most), (schema.transform, value)
        if kind not in ("lists", "structures", "spans"):  # which libraries hold as they like
            assert fewer == plain, schema.transform


def counted_or_refused(schema: ps.ClassSchema, container: Any, arrow: Any, values: list[Any]) -> Any:
    try:
        given = container.of(table_of(arrow, values))
    except Exception as error:  # the library has no such type
        pytest.skip(f"{type(error).__name__}")
    try:
        return counted(schema, given)
    except RecordError:
        raise
    except PrivstatsError as error:
        return str(error)


def test_a_database_serves_others_after_a_refusal_and_says_no_value() -> None:
    connection = pytest.importorskip("duckdb").connect()
    ill = "case when i = 8999 then 'secret' else '1' end{} as ill"
    query = f"select i / 9000.0 as dose, i % 7 as age, {ill} from range(9000) t(i)"
    with pytest.raises(RecordError) as caught:
        ps.measure(PLAIN, connection.sql(query.format("")), "ill")
    assert connection.sql("select 1").fetchall() == [(1,)]  # while the error, and what it holds, is still there
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="could not be read") as caught:
        ps.measure(PLAIN, connection.sql(query.format("::int")), "ill")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_names_that_a_database_would_take_for_one_are_refused() -> None:
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(DataError, match="twice"):
        ps.measure(PLAIN, duckdb.sql('select 1 as age, 2 as "Age", 1 as dose, 0 as ill'), "ill")


def test_a_dataset_that_another_process_sent_is_read(tmp_path: Path) -> None:
    """Its pickle loads no module ``pyarrow.dataset``."""
    parquet, dataset = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow.dataset")
    parquet.write_table(pa.table(COLUMNS), tmp_path / "records.parquet")
    sent = pickle.dumps((PLAIN, dataset.dataset(tmp_path / "records.parquet")))
    code = """import pickle, sys
import privstats as ps
schema, X = pickle.load(sys.stdin.buffer)
assert "pyarrow.dataset" not in sys.modules
sys.stdout.buffer.write(pickle.dumps(ps.measure(schema, X, "ill")))"""
    done = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True)
    assert pickle.loads(done.stdout) == ps.measure(PLAIN, pa.table(COLUMNS), "ill")


def test_a_reader_that_is_read_once_is_refused() -> None:
    reader = pa.RecordBatchReader.from_batches(pa.table(COLUMNS).schema, pa.table(COLUMNS).to_batches())
    refused(DataError, "only once: pass", ps.measure, PLAIN, reader, "ill")


def test_a_table_is_read_in_batches_and_only_in_the_columns_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, asked = pytest.importorskip("pyarrow.dataset"), list[Any]()
    monkeypatch.setattr(frames, "_RECORDS", 2)

    def batches(self: Any, names: list[str]) -> Iterator[Any]:
        for batch in original(self, names):
            asked.append((batch.schema.names, len(batch)))
            yield batch

    original = frames._Dataset.batches
    monkeypatch.setattr(frames._Dataset, "batches", batches)
    monkeypatch.setattr(frames._Dataset, "load", None)
    given = dataset.dataset(pa.table(COLUMNS).append_column("name", pa.array(["x"] * 5)))
    assert ps.measure(TABLE, given, "ill").records == 5
    assert [(sorted(names), rows) for names, rows in asked] == [(["age", "dose", "ill"], rows) for rows in (2, 2, 1)]
