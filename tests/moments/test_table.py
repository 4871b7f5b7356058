"""Tables as they are: the same integers from every container, and nothing about one value raises under a promise."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError, RecordError, SchemaError, UnreadableRecordsWarning
from privstats.moments import quantize
from privstats.moments.cell_sums import sums_by_cells
from privstats.schema.public_values import Published, Values
from privstats.testing import held, table_values
from tests.made import refused

AGE, SEX, RACE = ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m")), ps.Categories("race", (1, 2, 3))
CELLS = ps.Cells((AGE, SEX, RACE), signs=3)
CLASSES = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, transform=(CELLS,))
TABLE = {"age": [50, None, 70.5, 39], "sex": ["f", "m", "", "m"], "race": [1, 3, 9, None]}
LABELS = [0, 1, 1, 0]


def read(schema, X, y=None):
    with warnings.catch_warnings(action="ignore", category=UnreadableRecordsWarning):
        return ps.measure(schema, X, y, unreadable="leave out")


@pytest.mark.parametrize("statistics", ["NA", "NAB", "NABSD", "NAD"])
@pytest.mark.parametrize("ramp", [False, True])
def test_sums_by_counting_are_those_of_the_rows(monkeypatch, statistics, ramp):
    cells = replace(CELLS, ramp=ramp)
    schema = ps.ClassSchema(3, cells.width, statistics, 1.0, grid_bits=14, transform=(cells,))
    chance = np.random.default_rng(3)
    table = {
        "age": np.where(chance.random(500) < 0.1, np.nan, chance.normal(50, 20, 500)),
        "sex": chance.choice(["f", "m", "?"], 500),
        "race": chance.integers(0, 5, 500),
    }
    labels = chance.integers(0, 3, 500)
    assert sums_by_cells(schema)
    counted = read(schema, table, labels)
    monkeypatch.setattr("privstats.moments.cell_sums.sums_by_cells", lambda _: False)
    summed = read(schema, table, labels)
    assert (counted, counted.clip_report) == (summed, summed.clip_report)
    rows = quantize(schema, {**table, "sex": np.where(table["sex"] == "?", "", table["sex"])})
    assert ([rows[labels == label].sum(axis=0) for label in range(3)] == counted.A).all()
    if counted.B is not None:
        assert (rows.T @ rows == counted.B).all()
    if counted.S is not None:
        assert ([rows[labels == c].T @ rows[labels == c] for c in range(3)] == counted.S).all()


def test_powers_are_counted_too(monkeypatch):
    cells = ps.Cells((AGE, RACE), bits=10)
    schema = ps.ClassSchema(2, cells.width, "NADTF", 1.0, grid_bits=10, transform=(cells,))
    counted = read(schema, TABLE, LABELS)
    monkeypatch.setattr("privstats.moments.cell_sums.sums_by_cells", lambda _: False)
    assert counted == read(schema, TABLE, LABELS)


@pytest.mark.ci
@given(
    st.lists(table_values(1, 2, 3, 40, 65, "f", "m"), min_size=1, max_size=6),
    st.lists(st.sampled_from([0, 1]), min_size=6, max_size=6),
)
def test_every_container_gives_the_same_integers(values, labels):
    values = [value for value in values if not isinstance(value, bytes | tuple)]  # files write them in their own way
    labels = labels[: len(values)]
    columns = {"age": values, "sex": values, "race": values}
    expected = read(CLASSES, columns, labels)
    halves = [({name: each[at] for name, each in columns.items()}, labels[at]) for at in (slice(0, 2), slice(2, None))]
    assert read(CLASSES, iter(halves)) == read(CLASSES, *halves[0]) + read(CLASSES, *halves[1]) == expected
    for name, table in held(columns).items():
        assert read(CLASSES, table, labels) == expected, name
    rows = np.empty((len(values), 3), object)
    for place, value in enumerate(values):
        rows[place] = [value] * 3
    assert read(CLASSES, rows, labels) == read(CLASSES, rows.tolist(), labels) == expected
    order = np.random.default_rng(0).permutation(len(values))
    shuffled = {name: [each[at] for at in order] for name, each in reversed(columns.items())}
    assert read(CLASSES, shuffled, [labels[at] for at in order]) == expected


def test_numbers_in_files_tensors_and_archives(tmp_path):
    torch = pytest.importorskip("torch")
    X = np.array([[50.0, 1.0, 1.0], [np.nan, 2.0, 3.0], [70.5, np.nan, 9.0]])
    cells = ps.Cells((AGE, ps.Categories("sex", (1, 2)), RACE))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    y = [0, 1, 1]
    expected = ps.measure(schema, X, y)
    np.save(tmp_path / "rows.npy", X)
    np.save(tmp_path / "columns.npy", np.asfortranarray(X))
    np.savez(tmp_path / "named.npz", age=X[:, 0], sex=X[:, 1], race=X[:, 2], note=["a", "b", "c"])
    records = np.rec.fromarrays(X.T, names="age,sex,race")
    for table in (
        X.tolist(),
        str(tmp_path / "rows.npy"),
        tmp_path / "columns.npy",
        np.load(tmp_path / "rows.npy", mmap_mode="r"),
        np.load(tmp_path / "named.npz"),
        torch.from_numpy(X),
        records,
        np.ma.masked_invalid(X),
    ):
        assert ps.measure(schema, table, y) == expected, type(table)


def test_a_frame_without_names_is_in_the_order_of_the_plan():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(list(zip(*TABLE.values(), strict=True)))
    assert ps.measure(CLASSES, frame, LABELS) == ps.measure(CLASSES, TABLE, LABELS)
    nullable = pandas.DataFrame(TABLE).convert_dtypes().assign(other="x")
    assert ps.measure(CLASSES, nullable, LABELS) == ps.measure(CLASSES, TABLE, LABELS)


def test_without_a_promise_a_value_that_cannot_be_read_is_refused_by_its_column():
    with pytest.raises(RecordError, match="column 'age' holds values that are no numbers: correct them"):
        ps.measure(CLASSES, {**TABLE, "age": ["50", "12 mg", 3, 4]}, LABELS)
    with pytest.raises(RecordError, match="column 'sex' holds values that are not among its listed values"):
        quantize(CLASSES, {**TABLE, "sex": ["f", "F", "m", "m"]})


def test_under_a_promise_it_is_missing_and_said_to_its_holder_alone():
    odd = {**TABLE, "age": ["50", "12 mg", "x", 4], "sex": ["f", "F", "m", "m"]}
    with pytest.warns(UnreadableRecordsWarning, match="2 of 'age' are no numbers; 1 of 'sex' are not among"):
        found = ps.measure(CLASSES, odd, LABELS, unreadable="leave out")
    same = {**TABLE, "age": [50, None, None, 4], "sex": ["f", None, "m", "m"]}
    assert found == ps.measure(CLASSES, same, LABELS)
    with pytest.warns(UnreadableRecordsWarning, match="2 of 'age' are no numbers; 1 of 'sex' are not among"):
        ps.measure(CLASSES, odd, [0, "?", 1, 0], unreadable="leave out")


@given(st.lists(table_values(0, 1), min_size=1, max_size=6), st.lists(table_values(0, 1), min_size=6, max_size=6))
def test_no_value_and_no_label_raises_under_a_promise(values, labels):
    columns, labels = {"age": values, "sex": values, "race": values}, labels[: len(values)]
    both = read(CLASSES, columns, labels)
    alone = [
        read(CLASSES, {name: [each[at]] for name, each in columns.items()}, [labels[at]]) for at in range(len(values))
    ]
    assert both == sum(alone)


def kinds():
    constant = ps.transforms.ConstantFeature(1.0)
    fields = {"clip_norm": 1.0, "transform": (CELLS,)}
    yield ps.ClassSchema(2, CELLS.width, "NABS", **fields)
    yield ps.ClassSchema(2, CELLS.width, "NAB", clip_norm=1.0, transform=(CELLS, ps.transforms.UnitNorm()))
    yield ps.RidgeSchema(CELLS.width, target_bound=1.0, **fields)
    yield ps.RidgeSchema(CELLS.width + 1, clip_norm=1.5, target_bound=1.0, transform=(CELLS, constant))
    yield ps.MeanSchema(CELLS.width, **fields)
    yield ps.SitesSchema(CELLS.width + 1, **fields)
    yield ps.WithinSchema(2, CELLS.width, 1.0, pull=1.0, n_max=20, transform=(CELLS,))
    yield ps.PartySchema(2, CELLS.width, transform=(CELLS,))
    yield ps.GaussianSchema(CELLS.width, 1.0, shrinkage=0.1, rounds=2, transform=(CELLS,))
    yield ps.ScoreSchema(CELLS.width, 1.0, transform=(CELLS,))
    yield ps.GradientSchema(CELLS.width, 2, residual_norm=0.3, expected_records=100, course_mu=1.0, transform=(CELLS,))


@pytest.mark.parametrize("schema", [*kinds()], ids=lambda schema: type(schema).__name__)
def test_every_kind_with_maps_reads_a_table(schema):
    needs = {name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()}
    if "M" in needs:
        needs["M"] = Values.rounded(np.eye(CELLS.width))
    values = Published.of(needs) if needs else None
    rows = quantize(CLASSES, TABLE) / 4096
    bare = replace(schema, transform=schema.transform[1:])
    with warnings.catch_warnings(action="ignore"):
        found, expected = (
            ps.moments.exact_moments(each, X, LABELS, published=values, unreadable="leave out")
            for each, X in ((schema, TABLE), (bare, rows))
        )
    for row in schema.sent:
        assert (found.sums(row) == expected.sums(row)).all()


@pytest.mark.parametrize(
    ("X", "said"),
    [
        ({"age": [1], "sex": ["f"]}, "the table lacks the column 'race'"),
        ({"age": [1], "Age": [1], "AGE": [2], "sex": ["f"], "race": [1]}, None),
        ({"AGE": [1], "Age": [1], "sex": ["f"], "race": [1]}, "the table has the column 'age' twice"),
        ({"age": [1, 2], "sex": ["f"], "race": [1]}, "different lengths"),
        (np.zeros((1, 2)), r"an array of shape \(records, 3\)"),
        (np.zeros(3), r"an array of shape \(records, 3\)"),
    ],
)
def test_tables_that_do_not_fit_the_plan(X, said):
    if said is None:
        assert ps.measure(CLASSES, X, [0]).records == 1
        return
    for unreadable in ("refuse", "leave out"):
        refused(DataError, said, ps.measure, CLASSES, X, [0], unreadable=unreadable)


def test_open_cut_points_are_refused_before_a_record_is_read():
    cells = ps.Cells((ps.Numeric("age"), ps.Dates("seen"), SEX))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    refused(SchemaError, "the cut points of age, seen are open: run Binned", ps.measure, schema, object(), [0])


def test_count_tables_of_declared_columns_count_codes():
    cells = ps.Cells((ps.Numeric("age", gaps=(-9,)), ps.Dates("seen"), SEX))
    variables = ps.Bins("age", (0, 40, 60), missing=True), ps.Bins("seen", (0, 18262, 20000), missing=True)
    schema = ps.CountSchema(variables, (("age",), ("seen",)), transform=(cells,))
    table = {"age": [-9, 50, "x", 1e9], "seen": ["2020-01-01", None, "1999-01-01", "soon"], "sex": [1, 2, 3, 4]}
    counts = read(schema, table)
    assert counts.T.tolist() == [0, 2, 2, 1, 1, 2]
    parts = [{name: each[at : at + 1] for name, each in table.items()} for at in range(4)]
    assert sum(read(schema, part) for part in parts) == counts
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(3, 2, 1000), privacy=ps.NoPrivacy())
    assert ps.Plan.from_toml(plan.to_toml()) == plan
    for wrong in ((ps.transforms.UnitNorm(),), (replace(cells, columns=cells.columns[1:]),)):
        refused(SchemaError, "Cells alone|age must be Bins of a numeric column", replace, schema, transform=wrong)


def test_one_text_that_is_not_utf8_is_missing_in_every_container():
    arrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    parts = [b"f", b"M\xfcller, HIV+", b"", b"m"]
    ends = arrow.py_buffer(np.cumsum([0, *map(len, parts)]).astype(np.int32).tobytes())
    texts = arrow.StringArray.from_buffers(len(parts), ends, arrow.py_buffer(b"".join(parts)))
    columns = {name: arrow.array(values) for name, values in (("age", [50, 60, 70, 39]), ("race", [1, 3, 9, 2]))}
    expected = read(
        CLASSES, {**{name: each.to_pylist() for name, each in columns.items()}, "sex": ["f", "?", "", "m"]}, LABELS
    )
    series = pandas.Series(pandas.arrays.ArrowExtensionArray(arrow.chunked_array([texts])))
    for table in (
        arrow.table({**columns, "sex": texts}),
        {**columns, "sex": texts},
        {**columns, "sex": series},
        pandas.DataFrame({"sex": series, **{name: each.to_pandas() for name, each in columns.items()}}),
    ):
        assert read(CLASSES, table, LABELS) == expected
    counts = ps.CountSchema((ps.Categories("sex", ("f", "m"), other=True, missing=True),), (("sex",),))
    assert read(counts, {"sex": texts}).T.tolist() == read(counts, {"sex": ["f", "?", "", "m"]}).T.tolist()
    named = replace(CLASSES, class_names=("f", "m"))
    ages = {name: TABLE[name] for name in TABLE}
    assert read(named, ages, texts) == read(named, ages, ["f", "?", "", "m"])


@pytest.mark.parametrize("column", [(each for each in "fmfm"), {"f", "m", "x", "y"}, {"f": 1}, 5, None, np.array(5)])
def test_what_has_no_order_is_no_column(column):
    refused(DataError, "a column of the table has no order", read, CLASSES, {**TABLE, "sex": column}, LABELS)


def test_frames_of_polars_are_read_as_lists_are():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({**TABLE, "age": [50.0, None, 70.5, 39.0], "sex": ["f", "m", None, "m"]})
    assert read(CLASSES, frame, LABELS) == read(CLASSES, TABLE, LABELS)
    assert read(CLASSES, frame.to_arrow(), LABELS) == read(CLASSES, TABLE, LABELS)
    wide = {**TABLE, "age": [10**30, None, 70, 50]}  # integers of 128 bits, which numpy lacks
    assert read(CLASSES, polars.DataFrame(wide), LABELS) == read(CLASSES, wide, LABELS)


def test_a_pandas_frame_may_have_a_column_of_any_name() -> None:
    """A column of a frame is its attribute, too: one named column_names was taken for the names of all."""
    frame = pd.DataFrame({"column_names": [0.5, 0.25, 0.0], "columns": [0.0, 0.25, 0.5]})
    schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, feature_names=("column_names", "columns"))
    assert ps.measure(schema, frame, [0, 1, 0]) == ps.measure(schema, frame.to_numpy(), [0, 1, 0])
    cells = ps.Cells((ps.Truth("column_names"), ps.Truth("columns")))
    declared = ps.ClassSchema(2, cells.width, "NA", clip_norm=1.0, transform=(cells,))
    truths = pd.DataFrame({"column_names": [1, 0, 1], "columns": [0, 0, 1]})
    assert ps.measure(declared, truths, [0, 1, 0]) == ps.measure(declared, truths.to_dict("list"), [0, 1, 0])
