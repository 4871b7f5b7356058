"""Cells: rows of norm 1 whatever a table holds, from each value alone."""

import math
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.transforms.cells import step_of
from tests.made import refused

AGE, SEX, RACE = ps.Numeric("age", (40, 65)), ps.Categories("sex", ("f", "m")), ps.Categories("race", (1, 2, 3))
SMOKER, SEEN = ps.Truth("smoker"), ps.Dates("seen", ("2020-01-01",))
STAGE, NOTE = ps.Categories("stage", ("I", "II", "III"), ordered=True), ps.Categories("note", ())
MIXED = (AGE, SEX, RACE, SMOKER, SEEN, STAGE, NOTE)
ODD = (
    None,
    "",
    "x",
    1.5,
    True,
    "007",
    "1e3",
    2**53 + 1,
    math.inf,
    -0.0,
    "9999-12-31",
    "2020-01-01T00:00+05:00",
    "m",
    2,
)


def squares(rows):
    return (rows.astype(object) ** 2).sum(axis=1)


def test_no_sum_of_squares_passes_the_norm_for_any_number_of_columns_and_cuts():
    for bits in range(10, 21):
        full = 1 << 2 * bits
        for columns in (*range(1, 201), 500):
            for cuts in range(1, 65):
                q = step_of(bits, columns * cuts)
                assert columns * cuts * q * q <= full < columns * cuts * (q + 1) ** 2


@pytest.mark.parametrize("ramp", [False, True])
@pytest.mark.parametrize("bits", [10, 12, 20])
@pytest.mark.parametrize("copies", [1, 3, 20])
def test_every_cell_of_every_column_keeps_the_norm(bits, copies, ramp):
    columns = [ps.Numeric(f"n{place}", tuple(range(1 + place % 7))) for place in range(copies)] + [
        ps.Categories(f"c{place}", tuple(range(2 + place % 5)), ordered=place % 2 == 0) for place in range(copies)
    ]
    cells = ps.Cells(tuple(columns), bits=bits, ramp=ramp)
    most = sum(max(squares(table)) for table in cells.tables)
    assert most <= 1 << 2 * bits
    assert most > (1 - 2 * len(columns) / 64) * (1 << 2 * bits)
    assert all((squares(table) > 0).all() for table in cells.tables)


def test_the_map_is_what_it_says():
    cells = ps.Cells(MIXED, signs=3, ramp=False)
    table = {
        "age": [39.9, 40, 65, None],
        "sex": ["f", "m", "d", "m"],
        "race": [1, 3, 4, ""],
        "smoker": [0, "True", "?", 1],
        "seen": ["2019-12-31", "2020-01-01", "soon", None],
        "stage": ["I", "II", "III", "IV"],
        "note": ["a", None, 7, ""],
    }
    whole, seven = cells.grid_rows(cells.codes(table)), step_of(12, 7)
    pair, found = step_of(12, 14), dict(zip(cells.names, whole.T.tolist(), strict=True))
    assert (found["age >= 40"], found["age >= 65"]) == ([-pair, pair, pair, 0], [-pair, -pair, pair, 0])
    assert (found["age: place 3"], found["age: missing"]) == ([0, 0, 0, 0], [0, 0, 0, seven])
    assert (found["sex: m"], found["sex: missing"]) == ([-seven, seven, 0, seven], [0, 0, seven, 0])
    assert [found[f"race: {name}"] for name in ("1", "2", "3", "other", "missing")] == [
        [seven if at == place else 0 for at in range(4)] for place in (0, -1, 1, 2, 3)
    ]
    assert found["smoker: true"] == [-seven, seven, 0, seven]
    assert found["seen >= 2020-01-01"] == [-seven, seven, 0, 0]
    assert found["stage >= II"] == [-pair, pair, pair, 0]
    assert (found["stage >= III"], found["note: given"]) == ([-pair, -pair, pair, 0], [seven, 0, seven, 0])
    assert cells.read(table).unread == {"sex": 1, "smoker": 1, "seen": 1, "stage": 1}
    assert (ps.transforms.apply((cells,), cells.codes(table)) * 4096 == whole).all()


def test_the_ramp_goes_up_by_even_steps_between_the_outer_cuts():
    cells = ps.Cells((ps.Numeric("v", (0, 3, 15)),), signs=3, ramp=True)
    rows = cells.grid_rows(cells.codes({"v": [-1, *range(16), None]}))
    q = step_of(12, 2)
    assert rows[:, 3].tolist() == [*(int(q * (2 * i - 16) / 16) for i in range(17)), 0]
    assert cells.names[3:] == ("v: ramp", "v: missing")
    one = ps.Cells((ps.Numeric("v", (5,)),), signs=2, ramp=True)
    assert one.grid_rows(one.codes({"v": [4, 5]}))[:, 2].tolist() == [-q, q]


def test_the_width_and_the_names_of_places_are_public_before_any_cut():
    opened = ps.Cells((ps.Numeric("a"), ps.Dates("d"), SEX))
    closed = opened.with_edges({"a": (1.0, 2.0), "d": (18262.0,)})
    assert (opened.open, closed.open) == (("a", "d"), ())
    assert opened.width == closed.width == 20
    assert opened.blocks == closed.blocks == (slice(0, 9), slice(9, 18), slice(18, 20))
    assert (closed.names[:3], len(set(closed.names))) == (("a >= 1", "a >= 2", "a: place 3"), 20)
    assert ps.Cells((ps.Numeric("a", tuple(range(9))),)).width == 11
    assert ps.Cells((ps.Numeric("a"), ps.Dates("d"), SEX), ramp=False).width == 18


@given(st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=20))
def test_any_bits_of_a_number_keep_the_norm_and_stand_alone(drawn):
    values = np.array([struct.unpack("<d", each)[0] for each in drawn])
    cells = ps.Cells((ps.Numeric("v", (-1e300, -5e-324, 0, 5e-324, 1e300)),), ramp=True)
    whole = cells.grid_rows(cells.codes({"v": values}))
    assert (squares(whole) <= 1 << 24).all()
    assert (whole == [cells.grid_rows(cells.codes({"v": [value]}))[0] for value in values.tolist()]).all()
    for value, row in zip(values.tolist(), whole, strict=True):
        if math.isfinite(value):
            assert [entry > 0 for entry in row[:5]] == [value >= cut for cut in (-1e300, -5e-324, 0, 5e-324, 1e300)]
        else:
            assert row[-1] == 4096


def test_a_value_on_a_cut_has_reached_it():
    cells = ps.Cells((ps.Numeric("v", (-1, 0, 0.5)),), signs=3)
    signs = np.sign(cells.grid_rows(cells.codes({"v": [-1, 0, -0.0, 0.5, np.nextafter(0, -1)]})))[:, :3]
    assert signs.tolist() == [[1, -1, -1], [1, 1, -1], [1, 1, -1], [1, 1, 1], [1, -1, -1]]


def test_signs_count_as_bins_do():
    values = [0, -0.0, 1, 1.0, 0.1 + 0.2, 0.3, 0.7999999999999999, 0.8, -3, 5, None, "x"]
    cuts = (0.0, 0.3, 0.8)
    schema = ps.CountSchema((ps.Bins("v", (-1e9, *cuts, 1e9), missing=True),), (("v",),))
    counts = ps.measure(schema, {"v": values}, unreadable="leave out").T
    cells = ps.Cells((ps.Numeric("v", cuts),), signs=3, ramp=False)
    whole = cells.grid_rows(cells.codes({"v": values}))
    reached = [(whole[:, place] > 0).sum() for place in range(3)]
    assert reached == [counts[place + 1 : 4].sum() for place in range(3)]
    assert (whole[:, 3] > 0).sum() == counts[4]


@pytest.mark.ci
@given(
    st.lists(ps.testing.table_values("m", "f"), min_size=1, max_size=4),
    st.lists(ps.testing.table_values(1, 39, 40, 70), min_size=4, max_size=4),
    st.sampled_from(ODD),
)
def test_one_record_more_moves_no_other_in_any_container(sexes, ages, odd):
    cells = ps.Cells(MIXED)
    sexes = [value for value in sexes if not isinstance(value, bytes | tuple)]  # files write them in their own way
    ages = [1 if isinstance(value, bytes | tuple) else value for value in ages]
    columns = {column.name: (ages if column.name == "age" else sexes)[: len(sexes)] for column in MIXED}
    alone = cells.codes(columns)
    with_one = {name: [*values, odd] for name, values in columns.items()}
    for name, table in ps.testing.held(with_one).items():
        assert np.array_equal(cells.codes(table)[:-1], alone, equal_nan=True), name
    assert np.array_equal(cells.codes(with_one)[-1:], cells.codes({n: [odd] for n in columns}), equal_nan=True)


def test_columns_come_by_name_in_any_order_and_case():
    pandas = pytest.importorskip("pandas")
    cells = ps.Cells((AGE, SEX))
    frame = pandas.DataFrame({"note": ["?", "!"], " Sex ": ["m", "f"], "AGE": [50, 30]})
    assert cells.codes(frame).tolist() == [[50, 1], [30, 0]]
    frame[" Sex "] = pandas.Categorical(frame[" Sex "], categories=["m", "f", "x"])
    assert cells.codes(frame).tolist() == [[50, 1], [30, 0]]
    assert cells.codes({"age": [1], "Age": [2], "sex": ["f"]}).tolist() == [[1, 0]]
    refused(ps.DataError, "the table has the column 'age' twice", cells.codes, {"AGE": [1], "Age": [2], "sex": ["f"]})
    refused(ps.DataError, "lacks the column 'sex'", cells.codes, {"age": [1]})
    refused(ps.DataError, "different lengths", cells.codes, {"age": [1], "sex": ["f", "m"]})


def test_rows_of_torch_are_the_same_bits():
    torch = pytest.importorskip("torch")
    cells = ps.Cells((*MIXED, ps.Numeric("v", (1, 2, 4))), ramp=True)
    values = [*ODD, 1, 2, 3, 4, 5, 41, 66, "f", "II", "III"]
    codes = cells.codes({column.name: values for column in cells.columns})
    assert (cells.apply(torch.from_numpy(codes)).numpy() == cells.apply(codes)).all()


def test_a_table_in_a_plan_file_is_the_same_transform():
    cells = ps.Cells(MIXED, signs=5, ramp=True, bits=14)
    assert ps.transforms.from_builtins(ps.transforms.to_builtins((cells,))) == (cells,)
    wanted = "transform 'cells' has unknown keys"
    refused(
        ps.SchemaError, wanted, ps.transforms.from_builtins, [{**ps.transforms.to_builtins((cells,))[0], "cuts": 3}]
    )


def test_codes_are_the_same_in_another_process():
    text = (
        "import privstats as ps; cells = ps.Cells((ps.Numeric('age', (40, 65)), ps.Categories('race', (1, 2, 3))));"
        "print(cells.grid_rows(cells.codes({'age': ['41', None], 'race': ['02', 'new']})).tolist())"
    )
    there = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
    cells = ps.Cells((AGE, RACE))
    assert there.strip() == str(cells.grid_rows(cells.codes({"age": [41, ""], "race": [2, "unseen"]})).tolist())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ps.Cells(()), "columns must be a tuple of declared columns"),
        (lambda: ps.Cells((ps.Numeric("a"), ps.Numeric("A"))), "columns has 'a' and 'A', one name in any case"),
        (lambda: ps.Cells((ps.Categories("a", tuple(range(257))),)), "a has 257 values and at most 256"),
        (lambda: ps.Cells((ps.Numeric("a", tuple(range(257))),)), "a has 257 edges and at most 256"),
        (
            lambda: ps.Cells(tuple(ps.Categories(f"c{at}", tuple(range(250))) for at in range(17))),
            "4284 entries and at most 4096 are allowed; list the frequent values",
        ),
        (lambda: ps.Cells((ps.Numeric("a", tuple(range(70))),), bits=8), "at least 32 are needed; use more bits"),
        (lambda: ps.Cells(tuple(ps.Numeric(f"c{at}") for at in range(10)), bits=8), "a step of c0 is 21 of 2\\*\\*8"),
        (lambda: ps.Cells((AGE,), signs=0), "signs must be an integer from 1 to 64"),
        (lambda: ps.Cells((AGE,), bits=21), "bits must be an integer from 8 to 20"),
        (lambda: ps.Cells((AGE,), ramp=1), "ramp must be True or False"),
        (lambda: ps.Cells((ps.Categories("a", (1, 2), other=False),)), "other of a must not be False in Cells"),
        (lambda: ps.Cells((ps.Categories("a", (1, 2), missing=False),)), "missing of a must not be False in Cells"),
        (lambda: ps.Cells((ps.Numeric("a"),)).apply(np.zeros((1, 1))), "cut points of a are open: run Binned"),
        (lambda: ps.Cells((AGE,)).with_edges({"age": (1,)}), "'age' is no open column"),
        (lambda: ps.Cells((ps.Numeric("a"),)).with_edges({"a": tuple(range(8))}), "a has 8 cuts and places for 7"),
        (lambda: ps.Cells((AGE,)).outputs(3), "1 columns are declared but 3 come in"),
    ],
)
def test_what_is_refused(make, said):
    refused(ps.SchemaError, said, make)
