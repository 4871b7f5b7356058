"""Persons who are summed many at once add, to the last integer, what each of them adds who is measured alone."""

import math
import warnings
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import privstats as ps
from privstats.encoding import PersonAverage, flatten
from privstats.encoding.client_clip import ClippedSums, clip_vector
from privstats.encoding.persons import AveragedSums
from privstats.errors import RecordError, SchemaError
from privstats.kinds.base import Kind
from privstats.moments import PersonMoments, adders, exact_moments, person_sums, persons
from privstats.schema import Schema
from tests import made
from tests.dp.test_averages import EFFECT, OVERLAP
from tests.moments.test_readable import published_of, records_of
from tests.schema.samples import SCHEMAS

CLIPS = (1.0, 2.5, "average")
SUMMED = (*(schema for schema in SCHEMAS if not schema.refuses_persons(averaged=True)), EFFECT, OVERLAP,
    ps.RidgeSchema(4, clip_norm=1.0, target_bound=2.0, folds=3), ps.ClassSchema(3, 4, "NAB", 1.0, grid_bits=20),
    ps.ClassSchema(3, 4, "NABD", 1.0, nonnegative=True, grid_bits=3),
    ps.ClassSchema(2, 40, "NAB", 1.0), ps.ClassSchema(3, 33, "NAS", 1.0, grid_bits=9))  # fmt: skip
ONE_BY_ONE = tuple(
    pytest.param(each, marks=pytest.mark.ci) if getattr(each, "module", None) else each for each in SUMMED
)
"""With a module each record is torch's."""


def clip_of(schema: Schema, clip: Any) -> Any:
    if clip == "average":
        return PersonAverage()
    privacy = made.promise(unit="person", max_records_per_person=9, person_clip=clip)
    return ps.dp.person_clip(schema, privacy)


def rows_of(schema: Any, n: int, seed: int) -> tuple[Any, Any]:
    """Records of any kind and of any length, of one direction or of none; few of them alike."""
    rng = np.random.default_rng(seed)
    if schema.task == "counts":
        columns = {"sex": rng.choice(["f", "m"], n), "age": rng.choice([1.0, 50.0, 59.0], n)}
        return columns | {each.name: rng.uniform(each.low, each.high, n) for each in schema.numbers or ()}, None
    if schema in (EFFECT, OVERLAP):
        return np.c_[rng.uniform(20, 90, n), rng.integers(0, 2, n)], rng.uniform(-1, 2, n)
    X, y = records_of(schema, n)
    if not schema.transform and schema.task != "effect":
        X = rng.choice([0.1, 1.0, 30.0]) * (rng.standard_normal(X.shape) + rng.choice([0.0, 3.0]))
        y = y[rng.permutation(n)]
    return X, y


def some(values: Any, where: Any) -> Any:
    if isinstance(values, dict):
        return {name: column[where] for name, column in values.items()}
    return None if values is None else values[where]


def one_by_one(schema: Schema, X: Any, y: Any, ids: np.ndarray, clip: Any, **how: Any) -> tuple[Any, ...]:
    """Each person measured as a party is, and clipped: the sums in wire steps, who shrank, rows, and the report."""
    vector, shrunk, counted, alone = 0, 0, 0, []
    for person in np.unique(ids):
        rows = np.flatnonzero(ids == person)
        alone.append(exact_moments(schema, some(X, rows), some(y, rows), **how))
        whole = len(rows) <= clip.records
        arrays, shorter = (alone[-1].wire(), False) if whole else clip.clipped(alone[-1])
        counted += alone[-1].records if whole else min(alone[-1].records, clip.most_records(schema))
        shrunk += shorter
        vector += flatten(PersonMoments(schema, arrays, clip)).astype(object)
    reports = [getattr(each, "clip_report", None) for each in alone]
    report = None if None in reports else reduce(add, reports)
    return vector, shrunk, sum(each.records for each in alone), counted, report


def same(found: PersonMoments, want: tuple[Any, ...]) -> None:
    assert (flatten(found) == want[0]).all()
    assert (found.shrunk, found.records, found.counted, found.clip_report) == want[1:]


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize(
    "schema", ONE_BY_ONE, ids=lambda schema: f"{schema.task}-{schema.statistics}-{schema.grid_bits}"
)
@given(
    owners=st.lists(st.integers(0, 7), min_size=1, max_size=40), clip=st.sampled_from(CLIPS), seed=st.integers(0, 99)
)
def test_many_at_once_are_bit_for_bit_what_one_by_one_is(schema: Any, owners: list[int], clip: Any, seed: int) -> None:
    """Sums, who shrank, rows and reports, whatever the tile."""
    if schema.refuses_persons(averaged=False) or ("T" in schema.statistics and schema.task == "classes"):
        clip = "average"  # of some no clip is proved
    ids, said = np.array(owners), published_of(schema)
    (X, y), how = rows_of(schema, len(ids), seed), {"published": said, "unreadable": "leave out"}
    want = one_by_one(schema, X, y, ids, clip_of(schema, clip), **how)
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(person_sums, "_TILE", 40)
            patch.setattr(person_sums, "_FORMED", 40)
            patch.setattr(persons, "_WINDOW_ROWS", 9)
        found: Any = exact_moments(schema, X, y, persons=ids, person_clip=clip_of(schema, clip), **how)
    same(found, want)


def test_a_statistic_to_which_no_record_adds_is_refused_and_not_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    """A letter without a term was released as noise around zero, at its full price."""
    monkeypatch.setattr(adders, "POWERS", {"A": 1})
    X, y = rows_of(SCHEMAS[0], 40, 1)
    with pytest.raises(SchemaError, match="forms no sum for statistic D;"):
        exact_moments(SCHEMAS[0], X, y, persons=np.arange(40) % 8, person_clip=PersonAverage())


def test_every_kind_that_takes_persons_says_what_each_record_adds() -> None:
    takes = {schema.task: False for schema in SCHEMAS}
    for schema in SCHEMAS:
        takes[schema.task] |= not schema.refuses_persons(averaged=True)
    assert {schema.task: type(schema).terms_of is not Kind.terms_of for schema in SCHEMAS} == takes


@pytest.mark.filterwarnings("ignore::privstats.errors.UnreadableRecordsWarning")
@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("schema", [SCHEMAS[0], SCHEMAS[2]], ids=["classes", "ridge"])
def test_rows_that_cannot_be_read_leave_their_person_in_every_container(schema: Any, clip: Any) -> None:
    """So what is summed at once has other sizes than the rows that came."""
    X, y = rows_of(schema, 60, 1)
    ids, said = np.arange(60) % 13, {"unreadable": "leave out"}
    X[::7, 1] = math.nan
    want = one_by_one(schema, X, y, ids, clip_of(schema, clip), **said)
    for rows in [X, X.tolist(), X.astype(object), csr_array(X)]:
        rest = y.tolist() if isinstance(rows, list) else y
        same(exact_moments(schema, rows, rest, persons=ids, person_clip=clip_of(schema, clip), **said), want)  # type: ignore[arg-type]
    with pytest.raises(RecordError):
        exact_moments(schema, X, y, persons=ids, person_clip=clip_of(schema, clip))


@pytest.mark.parametrize("clip", CLIPS)
def test_a_person_of_very_many_rows_is_measured_alone_with_the_same_result(clip: Any, monkeypatch: Any) -> None:
    X, y = rows_of(SCHEMAS[0], 90, 3)
    ids = np.array([0] * 60 + [1] * 20 + [2] * 3 + [3] * 7)
    want = one_by_one(SCHEMAS[0], X, y, ids, clip_of(SCHEMAS[0], clip))
    for most in (1024, 25, 5, 1):
        monkeypatch.setattr(person_sums, "_MAX_BATCHED_ROWS", most)
        same(exact_moments(SCHEMAS[0], X, y, persons=ids, person_clip=clip_of(SCHEMAS[0], clip)), want)  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**32), bits=st.integers(1, 50), error=st.sampled_from([2.0**-48, 2.0**-36, 2.0**-32]))
def test_a_clip_of_many_vectors_is_that_of_each(seed: int, bits: int, error: float) -> None:
    """In float64 where that is sure and in integers where not, which a large error makes of nearly all."""
    schema, rng = ps.ClassSchema(2, 3, "NAB", 1.0), np.random.default_rng(seed)
    flat = rng.integers(-(2**bits), 2**bits + 1, (6, 14))
    flat[:2] = np.sign(flat[:2]) << rng.integers(0, bits + 1, (2, 14))
    weights, norm = {"N": 0.3, "A": 1.0, "B": 2.0}, float(rng.choice([2.0**-9, 1.0, 2.0, 2.0**20]))
    at, twice = {"N": slice(0, 2), "A": slice(2, 8), "B": slice(8, 14)}, np.array([1] * 11 + [2] * 3)
    squares = [{s: int(sum((row.astype(object) ** 2 * twice)[w])) for s, w in at.items()} for row in flat]
    floats = {s: np.array([float(each[s]) for each in squares]) for s in at}
    found = ClippedSums.by_squares(schema, floats, weights, norm, error, lambda place: squares[place])
    cut = found.of(flat.astype(np.float64), np.arange(6))
    each = [clip_vector(schema, np.ascontiguousarray(row), weights, norm) for row in flat]
    assert found.shrunk == sum(one.shrink < 1 for one in each)
    for row, one in zip(cut, each, strict=True):
        np.testing.assert_array_equal(row.astype(np.int64), one.vector)


@given(seed=st.integers(0, 2**32), bits=st.integers(1, 52), norm=st.sampled_from([2.0**-9, 1.0, 2.0, 2.0**20]))
def test_an_exact_factor_truncates_every_sum_up_to_its_limit_as_integers_do(seed: int, bits: int, norm: float) -> None:
    schema, rng = ps.ClassSchema(2, 3, "NAB", 1.0), np.random.default_rng(seed)
    flat = rng.integers(-(2**bits), 2**bits + 1, (6, 14))
    weights, squares = {"N": 0.3, "A": 1.0, "B": 2.0}, {"N": slice(0, 2), "A": slice(2, 8), "B": slice(8, 14)}
    exact = [{s: int((row[w].astype(object) ** 2).sum()) for s, w in squares.items()} for row in flat]
    floats = {s: np.array([float(each[s]) for each in exact]) for s in squares}
    cut = ClippedSums.by_squares(schema, floats, weights, norm, 2.0**-48, lambda place: exact[place])
    factors = cut.exact_factors(np.arange(6), np.abs(flat).max(axis=1).astype(np.float64))
    assert bits > 20 or (factors > 0).all()
    for row, factor, t, k in zip(flat, factors, cut.factors, cut.shifts, strict=True):
        if factor:
            want = [int(v) if t == 0 else int(np.sign(v)) * (abs(int(v)) * int(t) >> int(k)) for v in row]
            assert np.trunc(row * factor).tolist() == want


@given(rows=st.integers(1, 1024), seed=st.integers(0, 2**32))
def test_an_exact_factor_divides_every_sum_up_to_its_limit_as_integers_do(rows: int, seed: int) -> None:
    """Also multiples of the number of rows and their neighbours, where a rounded quotient would be one off."""
    most = 1 << 25
    whole = np.random.default_rng(seed).integers(0, most // rows, 200) * rows
    sums = np.concatenate([whole - 1, whole, whole + 1, [most, most - 1]]).clip(0, most)
    factor = AveragedSums(rows).exact_factors(np.zeros(1, np.intp), np.array([float(most)]))[0]
    np.testing.assert_array_equal(np.trunc(sums * factor), sums // rows)
    np.testing.assert_array_equal(np.trunc(-sums * factor), -(sums // rows))
    assert AveragedSums(rows).exact_factors(np.zeros(1, np.intp), np.array([most + 1.0]))[0] == 0


def test_what_a_person_adds_is_the_same_beside_persons_of_other_rows_and_types() -> None:
    """A text, a gap or a giant among the rows of one moves nobody else."""
    X, y = rows_of(SCHEMAS[0], 40, 5)
    ids = np.arange(40) % 8
    clip = clip_of(SCHEMAS[0], 1.0)
    base: Any = exact_moments(SCHEMAS[0], X, y, persons=ids, person_clip=clip)
    labels = np.array(["ash", "beech", "elm"])
    for odd in ("x", None, 1e300, math.inf):
        rows = [*X.tolist(), [odd, 0.0, 0.0, 0.0], *[[0.5] * 4] * 2]
        nine: Any = {"person_clip": clip, "unreadable": "leave out"}
        with warnings.catch_warnings(action="ignore"):
            more: Any = exact_moments(SCHEMAS[0], rows, [*y.tolist(), *labels], persons=[*ids, 9, 9, 9], **nine)
            alone: Any = exact_moments(SCHEMAS[0], rows[40:], labels.tolist(), persons=[9, 9, 9], **nine)
        np.testing.assert_array_equal(flatten(more) - flatten(alone), flatten(base))


@pytest.mark.parametrize("unreadable", ["refuse", "leave out"])
@pytest.mark.parametrize("schema", ONE_BY_ONE, ids=lambda schema: f"{schema.task}-{schema.statistics}")
def test_lists_in_which_nobody_has_few_rows_are_read_as_arrays_are(schema: Any, unreadable: Any) -> None:
    """The rows of those who count in full were none, and a list of none "must have shape (records, features)"."""
    (X, y), ids = rows_of(schema, 12, 2), np.arange(12) % 4
    how: Any = {"published": published_of(schema), "unreadable": unreadable, "persons": ids}
    rows, rest = (each if isinstance(each, dict | None) else each.tolist() for each in (X, y))
    found, want = (exact_moments(schema, *each, person_clip=PersonAverage(), **how) for each in ((rows, rest), (X, y)))
    assert (flatten(found) == flatten(want)).all()
    if not isinstance(rows, dict):
        assert exact_moments(schema, [], [], published=how["published"], unreadable=unreadable).records == 0
