"""A table that is read once gives every session of a course what a second reading gives it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import privstats as ps
from privstats.course.alone import single_party_plan
from privstats.course.read_once import ReadOnce
from privstats.intake.declared.unlisted import Lost
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.records.table import in_codes
from privstats.transforms import Cells

N = 400
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-6)
OPEN = Cells(
    (
        ps.Numeric("age", gaps=(-9,)),
        ps.Dates("seen"),
        ps.Numeric("sodium", (135.1, 145.0)),
        ps.Categories("sex", ("f", "m")),
        ps.Truth("smoker"),
    )
)
CLOSED = OPEN.with_edges({"age": [40.1, 60.0], "seen": [18262.0, 18628.0]})


def table() -> dict[str, list[Any]]:
    """Values of many types, with numbers that equal a cut point at 15 digits alone."""
    rng = np.random.default_rng(0)
    near = [40.1, 40.1 + 1e-14, "40.10", 40, None, -9, "-0", "x", 60]
    days = ["2020-01-01", "2021-01-01", "no", None, "2019-05-05"]
    return {
        "age": [near[place] for place in rng.integers(0, len(near), N)],
        "seen": [days[place] for place in rng.integers(0, len(days), N)],
        "sodium": rng.choice([135.1, 135.1 - 1e-13, 140.0, np.nan], N).tolist(),
        "sex": [["f", "m", "?", None][place] for place in rng.integers(0, 4, N)],
        "smoker": [[True, "false", 1, None, 7][place] for place in rng.integers(0, 5, N)],
    }


def schema(cells: Cells) -> ps.ClassSchema:
    return ps.ClassSchema(2, cells.width, "NAB", clip_norm=1.0, transform=(cells,))


def counting(cells: Cells) -> Any:
    """The schema of a count of the open columns, or of the sums behind closed ones."""
    if not cells.open:
        return schema(cells)
    return ps.Binned.within(single_party_plan(schema(cells), PRIVACY), expected_records=N).first.schema


def read(reader: Any, X: Any) -> tuple[np.ndarray, dict[str, Lost]]:
    rows, _, lost = in_codes(reader.reading, X, 0, refuse=False)
    return rows[0 : len(rows)], dict(lost)


@pytest.mark.parametrize("wrapped", [dict, pd.DataFrame, pa.table], ids=["mapping", "pandas", "Arrow"])
def test_codes_behind_cut_points_are_those_of_a_second_reading(wrapped: Callable[[Any], Any]) -> None:
    columns = table()
    if wrapped is pa.table:
        columns = {name: list(map(str, column)) for name, column in columns.items()}
    X, y = wrapped(columns), [0, 1] * (N // 2)
    once = ReadOnce(X, y)
    for cells in (OPEN, CLOSED, CLOSED, OPEN):
        reader = counting(cells)
        codes, lost = read(reader, X)
        found = once.rows(reader)
        np.testing.assert_array_equal(found.codes, codes)
        assert dict(found.lost) == lost
        assert sum(each.unread for each in lost.values())
    assert once.rows(schema(CLOSED)) is once.rows(schema(CLOSED))


def test_other_columns_are_read_anew() -> None:
    X, y = table(), [0, 1] * (N // 2)
    once = ReadOnce(X, y)
    once.rows(schema(CLOSED))
    for cells in (
        CLOSED.__class__((ps.Numeric("age", (41.0,)), *CLOSED.columns[1:])),
        CLOSED.__class__(CLOSED.columns[:2]),
    ):
        np.testing.assert_array_equal(once.rows(schema(cells)).codes, read(schema(cells), X)[0])


@pytest.mark.parametrize("case", ["named target", "batches", "an array", "lengths", "little memory", "no columns"])
def test_whatever_is_no_table_in_memory_is_passed_on(case: str) -> None:
    X: Any = table()
    y: Any = [0, 1] * (N // 2)
    made = {
        "named target": lambda: ReadOnce({**X, "ill": y}, "ill"),
        "batches": lambda: ReadOnce(iter([(X, y)]), None),
        "an array": lambda: ReadOnce(np.zeros((N, 5)), y),
        "lengths": lambda: ReadOnce(X, y[:-1]),
        "little memory": lambda: ReadOnce(X, y, most_bytes=8 * N * 5 - 1),
        "no columns": lambda: ReadOnce(X, y),
    }[case]()
    reader = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0) if case == "no columns" else schema(CLOSED)
    assert made.rows(reader) is made._X


def test_a_course_reads_the_columns_that_it_counts_and_then_all_of_them_once(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = pd.DataFrame(table()), np.arange(N) % 2
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=8.0, delta=1e-6)
    course = ps.Binned.within(single_party_plan(schema(OPEN), privacy), "rounds", expected_records=N)
    given: dict[str, Any] = {"ledger": "uncharged", "allow_reproducible": True}
    again = [
        each.digest
        for each in ps.private_releases(course, ({**X}), y.tolist(), rng=seeded(1), **given)
        if each is not None
    ]
    right, names = Cells.read, list[int]()
    monkeypatch.setattr(Cells, "read", lambda cells, columns: names.append(1) or right(cells, columns))
    releases = ps.private_releases(course, X, y, rng=seeded(1), **given)
    assert len(names) == 2
    assert [each.digest for each in releases if each is not None] == again
    for each in releases:
        if each is not None:
            once = ReadOnce(X, y).rows(each.plan.schema)
            two: Any = [
                exact_moments(each.plan.schema, rows, labels, published=each.plan.published, unreadable="leave out")
                for rows, labels in ((X, y), (once, y))
                if each.plan.schema.task != "counts"
            ]
            assert not two or two[0] == two[1]
