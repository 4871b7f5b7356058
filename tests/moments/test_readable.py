"""Under a promise no record decides what another one is, nor whether it counts: over every kind, container and file."""

import dataclasses
import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError, RecordError, UnreadableRecordsWarning
from privstats.records import reasons
from privstats.schema.public_values import Published, Values
from privstats.testing import held, table_values
from tests.lengths import sized
from tests.made import refused
from tests.schema.samples import SCHEMAS, SCORED

STAGES = ps.CountSchema(
    (
        ps.Categories("stage", ("1", "2", "3"), other=True, missing=True),
        ps.Categories("ill", (0, 1)),
        ps.Bins("age", (0, 40.5, 60, 120), missing=True),
    ),
    (("stage", "age"), ("ill",)),
)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        yield


def counted(table: Any) -> Any:
    return ps.measure(STAGES, table, unreadable="leave out")


def rows_of(columns: dict[str, list[Any]], places: list[int]) -> dict[str, list[Any]]:
    return {name: [values[place] for place in places] for name, values in columns.items()}


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Any]]:
    records = draw(st.integers(0, 7))
    columns = {"stage": table_values("1", 2, "3"), "ill": table_values(0, 1, True), "age": table_values(40.5, 7, "60")}
    return {name: draw(st.lists(v, min_size=records, max_size=records)) for name, v in columns.items()}


def test_one_blank_moves_no_other_record() -> None:
    pandas = pytest.importorskip("pandas")
    schema = ps.CountSchema(STAGES.variables[:1], (("stage",),))
    stages = np.repeat([1, 2, 3], [315, 330, 355])
    before = ps.measure(schema, pandas.DataFrame({"stage": stages})).T
    assert before.tolist() == [315, 330, 355, 0, 0]
    for odd, place in ((None, 4), ("x", 3), (1.5, 3), ("2", 1), (True, 0), (2**53 + 1, 3), ("", 4)):
        for name, table in held({"stage": [*stages.tolist(), odd]}).items():
            assert (ps.measure(schema, table).T - before).tolist() == [*np.eye(5, dtype=int)[place]], (name, odd)


@pytest.mark.ci
@given(tables(), tables())
@settings(max_examples=sized(12, 300), suppress_health_check=list(HealthCheck))
def test_counts_of_parts_add_up_in_every_container(left, right):
    both = {name: [*left[name], *right[name]] for name in left}
    parts, whole = [held(left), held(right)], held(both)
    for name in whole.keys() & parts[0].keys() & parts[1].keys():
        assert counted(parts[0][name]) + counted(parts[1][name]) == counted(whole[name]), name
    others = [counted(table) for part in parts for table in part.values()]  # of other types than the whole
    assert all((counted(parts[0]["lists"]) + each).records >= each.records for each in others)


@given(st.lists(table_values("a", "b", 0, 1), max_size=8), st.integers(0, 8), st.sampled_from(["texts", "numbers"]))
def test_labels_of_parts_add_up_whatever_stands_beside_them(labels, cut, names):
    schema = ps.ClassSchema(3, 2, "NA", 1.0, class_names=("0", "1", "unknown") if names == "texts" else None)
    X = np.arange(2 * len(labels)).reshape(-1, 2) / 20

    def measured(at: slice) -> Any:
        y = held({"y": labels[at]})
        found = [
            ps.measure(schema, X[at], y[each]["y"], unreadable="leave out")
            for each in ("lists", "a frame")
            if each in y
        ]
        assert all(each == found[0] for each in found)
        return found[0]

    assert measured(slice(cut)) + measured(slice(cut, None)) == measured(slice(None))


def test_a_class_that_no_record_has_keeps_nobody_out():
    schema = ps.ClassSchema(3, 2, "NA", 1.0, class_names=("0", "1", "unknown"))
    X = np.eye(2)
    for y in (np.array([0, 1]), np.array([0.0, 1.0]), ["0", "1"], np.array([False, True]), [0, "1"]):
        assert ps.measure(schema, X, y).N.tolist() == [1, 1, 0]
    assert ps.measure(schema, np.eye(3)[:, :2], [0, "unknown", 1.0]).N.tolist() == [1, 1, 1]


DENSE = [schema for schema in SCHEMAS if not isinstance(schema, ps.CountSchema | ps.HazardSchema)]

ROUNDS = ("gradients", "calibration", "score")
"""Kinds in which a record that is not finite adds nothing whoever measures: they come after sums that refuse it."""


def records_of(schema: Any, count: int) -> tuple[Any, Any]:
    """Records that can be read, of any kind."""
    rng = np.random.default_rng(count)
    X = rng.normal(size=(count, ps.transforms.input_features(schema.transform, schema.features - schema.appended))) / 4
    if any(isinstance(step, ps.transforms.ByArm) for step in schema.transform):
        X[:, -1] = np.arange(count) % 2
    if getattr(schema, "subgroups", ()):
        X[:, 1] = np.arange(count) % 3
    kind = getattr(schema, "rows", schema)
    if isinstance(kind, ps.ClassSchema | ps.WithinSchema):
        labels = np.arange(count) % kind.classes
        return X, labels if kind.class_names is None else np.array(kind.class_names)[labels]
    wide = getattr(kind, "targets", 1)
    return X, rng.random((count, wide)) if wide > 1 else rng.random(count)


def published_of(schema: Any) -> Published | None:
    """Values of 1 where the kind reads some; of a score the head's own."""
    if not schema.needs:
        return None
    for scored in SCORED:
        if scored.schema == schema:
            return scored.published
    return Published.of(
        {
            name: Values.rounded(np.eye(*shape) if len(shape) == 2 else np.ones(shape))
            for name, shape in schema.needs.items()
        }
    )


def measured(schema: Any, X: Any, y: Any, unreadable: Any = "leave out") -> Any:
    return ps.measure(schema, X, y, unreadable=unreadable, published=published_of(schema))


def objects(array: Any) -> Any:
    return np.array(array).astype(object)


@pytest.mark.parametrize("schema", DENSE, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_a_record_that_cannot_be_read_changes_nothing_else(schema):
    X, y = records_of(schema, 12)
    clean = measured(schema, X, y)
    for gap in (None, "x", float("nan"), float("inf"), "", {}):
        odd = objects(np.insert(X, 5, X[5], axis=0))
        odd[5, 1] = gap
        labels = np.insert(y, 5, y[5], axis=0)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = measured(schema, odd, labels)
        if schema.task not in ROUNDS:
            assert str(said[0].message).startswith("1 of the records cannot be read and are excluded. ")
        if getattr(schema, "left_out", None) == "counted":
            assert found.O.sum() == clean.O.sum() + 1
            assert dataclasses.replace(found, O=clean.O) == clean
        else:
            assert found == clean
        if schema.task not in ROUNDS or gap in ("x", {}):
            refused(RecordError, "", measured, schema, odd, labels, "refuse")


@pytest.mark.parametrize("schema", DENSE, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_features_of_every_type_are_read_alike(schema):
    X, y = records_of(schema, 12)
    X = np.round(X, 3)
    X[:, 1] = np.arange(12) % 3
    expected = measured(schema, X, y)
    names = [f"c{place}" for place in range(X.shape[1])]
    if schema.feature_names is not None:
        names = list(schema.feature_names)
    for name, table in held({each: X[:, place].tolist() for place, each in enumerate(names)}).items():
        if isinstance(table, dict):
            table = np.array(list(table.values()), object).T
        assert measured(schema, table, y, "refuse") == expected, name


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_one_line_of_a_file_costs_no_other_line(tmp_path, suffix):
    pandas = pytest.importorskip("pandas")
    schema = ps.ClassSchema(2, 2, "NAB", 1.0, class_names=("no", "yes"), feature_names=("age", "crp"))
    plain = "age,crp,ill,note\n0.5,0.25,yes,a\n0.125,007e-2,no,b\n"
    odd = ["x,1,yes,", ",1,no,", "1,1,perhaps,", "1,1,,c", "inf,0,yes,d"]
    broken, open_quotes = ["1,2,yes", "1,1,no,d,e"], ['"1,1,no,c', '1,1,yes,"o\x00']
    path = tmp_path / f"ward.{suffix}"

    def counts(text: str, unreadable: Any = "leave out", **how: Any) -> Any:
        if suffix == "csv":
            path.write_bytes(text.encode("latin-1"))
        else:
            pytest.importorskip("pyarrow")
            lines = [line.split(",") for line in text.splitlines()]
            pandas.DataFrame(lines[1:], columns=lines[0]).to_parquet(path)
        records = ps.moments.RecordFile(path, "ill", **how).read(schema.feature_names, unreadable=unreadable)
        return ps.measure(schema, records.X, records.y, unreadable=unreadable)

    assert counts(plain, "refuse").records == 2
    for line in odd if suffix == "parquet" else [*odd, *broken, "1,1,\xe9\xff,f", ""]:
        assert counts(f"{plain}{line}\n1,0,yes,é\n".replace("é", "\xe9")) == counts(plain + "1,0,yes,g\n"), line
        if line:
            refused(DataError, "", counts, f"{plain}{line}\n", "refuse")
    for line in open_quotes if suffix == "csv" else ():  # the border to the next record cannot be told
        refused(DataError, "a quoted text begins in line 4 and does not end", counts, f"{plain}{line}\n1,0,yes,g\n")
        assert counts(f"{plain}{line}\n1,0,yes,g\n", lines=True) == counts(plain + "1,0,yes,g\n"), line


def test_batches_lists_and_sparse_rows_are_read_record_by_record():
    sparse = pytest.importorskip("scipy.sparse")
    schema = ps.ClassSchema(2, 2, "NAB", 1.0)
    clean = ps.measure(schema, np.eye(2), [0, 1])
    ragged = [[1.0, 0.0], [1.0], [0.0, 1.0], [1.0, 2.0, 3.0]]
    assert ps.measure(schema, ragged, [0, 0, 1, 1], unreadable="leave out") == clean
    batches = (
        (np.array([row], object), [label])
        for row, label in [([1, 0], 0), (["x", 0], 1), ([0, "1"], 1.0), ([0, 1], None)]
    )
    assert ps.measure(schema, batches, unreadable="leave out") == clean
    twice = sparse.csr_array((np.ones(4), np.array([0, 0, 0, 1]), np.array([0, 1, 3, 4])), shape=(3, 2))
    assert ps.measure(schema, twice, [0, 0, 1], unreadable="leave out") == clean
    torch = pytest.importorskip("torch")
    gaps = torch.tensor([[1.0, 0.0], [float("nan"), 0.0], [0.0, 1.0]])
    assert ps.measure(schema, gaps, torch.tensor([0, 0, 1]), unreadable="leave out") == clean
    assert ps.measure(schema, gaps, torch.tensor([0.0, 0.0, 1.0]), unreadable="leave out") == clean


def test_a_value_outside_of_all_intervals_moves_no_other():
    pandas = pytest.importorskip("pandas")
    schema = ps.CountSchema((ps.Categories("age", ("(0, 40]", "(40, 80]"), missing=True),), (("age",),))
    for edges in ([0, 40, 80], [0.0, 40.0, 80.0]):
        ages = [pandas.cut(pandas.Series(years), edges) for years in ([5, 50, 60], [5, 50, 60, 99])]
        assert [ps.measure(schema, {"age": each}).T.tolist() for each in ages] == [[1, 2, 0], [1, 2, 1]]


def test_a_gap_in_arrows_dictionary_is_no_other_records_value():
    pyarrow = pytest.importorskip("pyarrow")
    y = pyarrow.chunked_array([pyarrow.array(["1", None, "0"]).dictionary_encode()])
    numbers = pyarrow.chunked_array([pyarrow.array([0.5, None, 0.25]).dictionary_encode()])
    schema = ps.CountSchema((ps.Categories("y", (0, 1), missing=True),), (("y",),))
    assert ps.measure(schema, pyarrow.table({"y": y})).T.tolist() == [1, 1, 1]
    classes = ps.ClassSchema(2, 2, "NAB", 1.0)
    X = pyarrow.table({"a": numbers, "b": pyarrow.array([0.0, 0.5, 0.0])})
    clean = ps.measure(classes, [[0.5, 0.0], [0.25, 0.0]], [1, 0])
    for table, labels in ((X, [1, 0, 0]), (X, y), (np.array([[0.5, 0.0], [1, 1], [0.25, 0.0]]), y)):
        assert ps.measure(classes, table, labels, unreadable="leave out") == clean


def test_masked_entries_are_missing():
    schema, masked = ps.ClassSchema(2, 2, "NAB", 1.0), np.ma.masked_invalid([[1.0, 0.0], [np.nan, 1.0], [0.0, 1.0]])
    clean = ps.measure(schema, np.eye(2), [0, 1])
    assert ps.measure(schema, masked, [0, 0, 1], unreadable="leave out") == clean
    labels = np.ma.array([0, 0, 1], mask=[0, 1, 0])
    assert ps.measure(schema, masked.data, labels, unreadable="leave out") == clean
    assert ps.measure(schema, np.array([[1.0, 0], [1, 1], [0, 1]]), labels, unreadable="leave out") == clean
    column = {"stage": np.ma.array([1, 2], mask=[False, True]), "ill": [0, 1], "age": [1, 1]}
    assert counted(column).T[: STAGES.place(STAGES.tables[0]).stop].reshape(5, -1).sum(axis=1).tolist() == [
        1,
        0,
        0,
        0,
        1,
    ]


def test_what_is_no_matter_of_one_record_is_refused_as_ever():
    schema = ps.ClassSchema(2, 2, "NA", 1.0, feature_names=("a", "b"))
    for X, y in ((np.ones((3, 3)), [0, 0, 1]), (np.ones((3, 2)), [0, 1]), (np.ones(3), [0, 0, 1])):
        refused(DataError, "", ps.measure, schema, X, y, unreadable="leave out")
    refused(DataError, "lacks the column", ps.measure, STAGES, {"stage": [1]}, unreadable="leave out")
    with pytest.raises(DataError, match="unreadable must be 'refuse' or 'leave out'"):
        ps.measure(schema, np.ones((1, 2)), [0], unreadable="drop")


def test_a_promise_leaves_out_what_a_plan_without_one_refuses():
    plan = ps.Plan(
        schema=ps.ClassSchema(2, 2, "NAB", 1.0),
        cohort=ps.Cohort(2, 2, 100),
        privacy=ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5),
    )
    shards = [(np.eye(2), [0, 1]), ([[0.5, None], [1.0, 0.0]], [0, 1])]
    with pytest.warns(UnreadableRecordsWarning, match="1 of the records"):
        assert ps.simulate(plan, shards).survivors == (0, 1)
    refused(RecordError, "", ps.simulate, dataclasses.replace(plan, privacy=ps.NoPrivacy()), shards)


@pytest.mark.parametrize("step", [ps.transforms.Scale((5e-309, 1.0, 1.0, 1.0)), ps.transforms.ByArm(0)])
def test_a_map_behind_declared_columns_that_loses_a_row_costs_no_other(step):
    """Whether a party answers would be a bit on one record: a server chooses the maps."""
    pandas = pytest.importorskip("pandas")
    cells = ps.Cells((ps.Truth("arm"), ps.Truth("sex")))
    width = 2 * (cells.width - 1) if isinstance(step, ps.transforms.ByArm) else cells.width
    schema = ps.ClassSchema(2, width, "NA", 2.0, transform=(cells, ps.transforms.Centre((-0.70703125, 0, 0, 0)), step))

    def counts(arms: list[Any], labels: list[int], unreadable: Any = "leave out") -> Any:
        table = pandas.DataFrame({"arm": pandas.Series(arms, dtype=object), "sex": [True] * len(arms)})
        return ps.measure(schema, table, labels, unreadable=unreadable)

    assert counts([False, True, None, False], [0, 1, 1, 1]).records <= 4
    assert counts([False, False], [0, 1]) == counts([False, False], [0, 1])


def _matrices(rows: list[list[float]]) -> dict[str, Any]:
    """The same rows in containers whose types say that they hold numbers, and as objects."""
    X = np.array(rows)
    found: dict[str, Any] = {"list": rows, "array": X, "objects": X.astype(object), "sparse": scipy.sparse.csr_array(X)}
    for name, of in (
        ("pandas", "DataFrame"),
        ("polars", "DataFrame"),
        ("torch", "tensor"),
    ):
        if importlib.util.find_spec(name) is not None:
            found[name] = getattr(importlib.import_module(name), of)(X)
    if importlib.util.find_spec("pyarrow") is not None:
        found["Arrow"] = importlib.import_module("pyarrow").table({str(j): column for j, column in enumerate(X.T)})
    return found


@pytest.mark.parametrize("clip", [None, 2])
def test_rounds_warn_of_what_they_leave_out_in_every_container(clip: int | None) -> None:
    """Sums of a round add nothing for a row that is not finite, and raise no error that could be counted."""
    gradients = ps.GradientSchema(4, 3, residual_norm=0.3, expected_records=100, course_mu=1.0)
    for schema in (ps.ScoreSchema(4, 1.0), gradients):
        needs = {name: Values.rounded(np.zeros(shape)) for name, shape in schema.needs.items()}
        terms: dict[str, Any] = {"published": Published.of(needs), "unreadable": "leave out"}
        if clip is not None:
            unit: dict[str, Any] = {"unit": "person", "person_clip": clip, "max_records_per_person": 4}
            privacy = ps.Privacy(model="central", adjacency="add-remove", epsilon=1.0, delta=1e-5, **unit)
            terms |= {"persons": list("abbb"), "person_clip": ps.dp.person_clip(schema, privacy)}
        rows = [[0.5, 0.25, 0.1, 0.0], [float("nan"), 0.5, 0.1, 1.0], [0.5, 0.5, 0.1, 1.0], [0.25, 0.25, 0.1, 0.0]]
        sums = {}
        for name, X in _matrices(rows).items():
            with pytest.warns(UnreadableRecordsWarning, match="1 of the records cannot be read") as warned:
                sums[name] = ps.measure(schema, X, np.array([0, 1, 1, 0]), **terms)
            assert len(warned) == 1, name
        assert all(each == sums["list"] for each in sums.values())


def test_the_page_for_data_holders_names_every_reason():
    page = (Path(__file__).parents[2] / "docs" / "left_out.md").read_text("utf-8")
    stated = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert {reasons.GAP, reasons.UNCODED, reasons.LABEL} <= stated
    short = {reason.partition(" (")[0] for reason in stated}  # without its remedy
    assert [reason for reason in short if f"| {reason} |" not in page] == []


def test_a_label_in_another_case_is_named_beside_the_labels_that_are_none():
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, class_names=("well", "ill"))
    with pytest.warns(UnreadableRecordsWarning, match="2 hold none of the plan's labels, 1 hold 'ill' in another case"):
        ps.measure(schema, np.zeros((4, 2)), ["well", "ILL", "dead", "ill"], unreadable="leave out")
