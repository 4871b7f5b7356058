"""Who is one person: ids through every door, and the sums of a file that lacks one person, or has another instead."""

import datetime as days
import io
import math
import uuid
import warnings
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privstats as ps
from privstats.contrib.streams import PersonRows
from privstats.errors import DataError
from privstats.intake.person_ids import names_of, persons_held_out, persons_of
from privstats.moments import RecordFile, exact_moments
from privstats.records.from_file import persons_in
from privstats.schema.public_values import Published, Values
from privstats.workflows.rehearsal.parties import read_file
from tests import made
from tests.lengths import sized
from tests.schema.samples import SCHEMAS, SCORED
from threat_models.audits.kinds import columns_of, in_arms, outcome_of

NOON, UUID = days.datetime(2020, 1, 2, 12), uuid.UUID(int=7)
PERSONS: Sequence[tuple[Any, ...]] = (
    ("7", 7, 7.0, "007", " 7.0 ", "+7", "7.", b"7", np.int8(7), np.float32(7), Decimal("7.0"), 7 + 0j),
    ("1e5", "10E4", "100000", "1.e+5", "100000.0000000000001", "0x186A0", "0b11000011010100000", " 100000", 1e5),
    ("-7", -7, "-07.0"),
    ("0", "-0", -0.0, b"00", "0e1", "0x0"),
    ("anna", b"anna", np.str_("anna"), "anna\0", "\tanna "),
    ("\u00e9", b"\xc3\xa9", " \u00e9"),
    (str(UUID), UUID),
    *(
        (text,)
        for text in ("Anna", "anna\u200b", "an na", "an\u00a0na", "\ufeffanna", "7,0", "7.0.0.0", "A1e5", "10e4x")
    ),
    *(
        (text,)
        for text in ("\uff17", "truth", "None of us", "info", "Null", "P2020-01-02", "123-45-6789", "A1.5", "1-2")
    ),
    *(
        (raw,)
        for raw in (b"\xff", b"\xfe", b"\xfe ", b"\xfe\t", b" \xfe", b"\xfe\0", b"e\xcc\x81\xfe", b"\xfe\xc2\x85")
    ),
    *((text,) for text in ("(1, 2]", "(1.0, 2.0]", str(2**53 - 1), "x" * 200)),
)
"""Ids of one person in a row, and of others in each other one: what is read alike, and what tells people apart."""
NOBODY: Sequence[Any] = (
    *(None, math.nan, "", " ", "n/a", b"NULL", math.inf, 1.5, 2**53, float(2**60), str(2**53), "x" * 201, 1 + 1j),
    *("M\ufffdller", b"M\xef\xbf\xbdller", "\ufffd", "a\0b", "\x01", b"\xff\xef\xbf\xbd", b"\xff" * 201),
    *(
        "e\u0301",
        b"e\xcc\x81",
        "\u00a0\u00e9",
        "anna\x85",
        "\u2000anna",
        b"anna ",
        b"\nanna",
        b"anna\0",
        b"anna\xc2\x85",
    ),
    *(True, np.False_, np.float32(2**24), np.float16(2**11), (1, 2), {}, object(), np.ma.masked, np.array(1.5)),
    *(NOON, NOON.replace(tzinfo=days.UTC), NOON.date(), NOON.time(), days.timedelta(1)),
    *(np.datetime64(1, "ns"), np.datetime64("2020-01-02"), np.timedelta64(1, "ns"), np.datetime64("NaT")),
)
LIKE_OTHERS: Sequence[str | bytes] = (
    *("12.1", "1.50", ".5", "1e-1", "1e16", "1e999", "7.000000000000001", "0xFFFFFFFFFFFFFFFF", " 1.5 ", b"1.5"),
    *("inf", "-Infinity", "Nan", "epoch", "true", "True", "F", "yes", "NO", "y"),
    *("2020-01-02", "2020-01-02 00:00", "2/1/2020", "02.01.20", "2020 01 02", "-2020-1-2", "2020-01-02T12:30:00Z"),
    *("20200102T123000Z", "12:30", "1:2:3", "12:30:00.5"),
)
"""Texts of which a reader of tables makes another value where all others in the column are alike."""
HOLD: dict[str, Callable[[Sequence[Any]], Any]] = {
    "list": list,
    "array of objects": lambda ids: np.fromiter(ids, object, len(ids)),
    "masked array": lambda ids: np.ma.array(np.fromiter(ids, object, len(ids)), mask=False),
}


@pytest.mark.parametrize("held", HOLD)
def test_one_name_is_one_person_and_no_two_share_it(held: str) -> None:
    ids = [each for alike in PERSONS for each in alike] + [*NOBODY, *LIKE_OTHERS]
    want = [place for place, alike in enumerate(PERSONS) for _ in alike] + [-1] * len(NOBODY) + [-2] * len(LIKE_OTHERS)
    given_ids = HOLD[held](ids)
    assert persons_of(given_ids).tolist() == want
    names = names_of(given_ids)
    known = {place: name for place, name in zip(want, names, strict=True) if place >= 0}
    assert len(set(known.values())) == len(known) == len(PERSONS)
    assert names == [known.get(place) for place in want]
    assert names_of(names) == names  # registries and rehearsals read names again
    sides = persons_held_out(given_ids, 0.5, 3)
    assert np.array_equal(sides, persons_held_out(names, 0.5, 3))
    assert not sides[np.array(want) < 0].any()


@given(st.lists(st.text("a7.0 \0\u00e9e\u0301\u2000\ufffd\x85", max_size=5) | st.binary(max_size=4), max_size=9))
def test_a_name_is_read_as_itself(ids: list[Any]) -> None:
    names = names_of(ids)
    assert names_of(names) == names
    codes = np.maximum(persons_of(ids), -1).tolist()
    assert [code < 0 for code in codes] == [name is None for name in names]
    assert len(set(zip(codes, names, strict=True))) == len(set(codes)) == len(set(names))


def _numpys(ids: Sequence[Any], kind: str) -> Any:
    return np.array(ids, kind)


def _masked(ids: Sequence[Any], kind: str) -> Any:
    return np.ma.array(np.array(ids, kind), mask=False)


def _tensor(ids: Sequence[Any], kind: str) -> Any:
    torch = pytest.importorskip("torch")
    return torch.tensor(ids, dtype=getattr(torch, kind))


def _array(ids: Sequence[Any], kind: str) -> Any:
    return array(kind, ids)


def _buffer(ids: Sequence[Any], kind: str) -> Any:
    return memoryview(np.array(ids, kind))


def _pandas(ids: Sequence[Any], kind: str) -> Any:
    wide = np.array(ids, float if kind.startswith("float") else None)  # Arrow refuses integers that it would round
    return pytest.importorskip("pandas").Series(wide).astype(kind)


def _arrow(ids: Sequence[Any], kind: str) -> Any:
    arrow = pytest.importorskip("pyarrow")
    made = {
        "narrow": lambda: arrow.array([float(each) for each in ids], arrow.float32()),
        "dictionary": lambda: arrow.array([float(each) for each in ids], arrow.float32()).dictionary_encode(),
        "list": lambda: arrow.array([[each] for each in ids]),
        "structure": lambda: arrow.array([{"id": each} for each in ids]),
    }
    if kind in made:
        return made[kind]()
    kinds = {"time[ns]": arrow.timestamp("ns"), "span[ns]": arrow.duration("ns"), "day": arrow.date32()}
    return arrow.array(ids, arrow.int64()).cast(kinds[kind]) if kind != "day" else arrow.array(
        [days.date(2020, 1, each) for each in ids], kinds[kind]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("hold", "kind"),
    [
        *((hold, kind) for hold in (_numpys, _masked) for kind in ("M8[ns]", "m8[ns]", "M8[D]", "bool")),
        *((_pandas, kind) for kind in ("datetime64[ns]", "timedelta64[ns]", "datetime64[ns, UTC]", "bool")),
        *((_arrow, kind) for kind in ("time[ns]", "span[ns]", "day")),
    ],
)
def test_times_and_truths_are_nobodys_in_every_container(hold: Any, kind: str) -> None:
    """1 to 5 nanoseconds were one person, and so were a date and its midnight, an aware and a naive noon."""
    ids = hold([1, 2, 3, 4, 5], kind)
    assert (persons_of(ids).tolist(), names_of(ids)) == ([-1] * 5, [None] * 5)
    assert not persons_held_out(ids, 0.999, 0).any()


@pytest.mark.parametrize(
    ("hold", "kind"),
    [
        *(
            (_numpys, "f4"),
            (_numpys, ">f2"),
            (_pandas, "float32"),
            (_pandas, "Float32"),
            (_masked, "f4"),
            (_array, "f"),
        ),
        *((_buffer, "f4"), (_numpys, "c8"), (_masked, "c16"), (_tensor, "float64"), (_tensor, "complex64")),
        *((_tensor, "bfloat16"), (_pandas, "float[pyarrow]"), (_pandas, "Sparse[float32]"), (_arrow, "narrow")),
        *((_arrow, "dictionary"), (_arrow, "list"), (_arrow, "structure"), (_numpys, "i8,i8")),
    ],
)
def test_a_type_in_which_two_persons_may_have_one_id_is_refused(hold: Any, kind: str) -> None:
    """By the type alone: a wider one, beside others, would make persons of what is nobody's in it."""
    for ids in ([7, 2**24, 2**24 + 1], [7]):
        for read in (persons_of, names_of, lambda each: persons_held_out(each, 0.5, 3)):
            with pytest.raises(DataError, match="do not distinguish persons: pass texts, or integers of 64 bits"):
                read(hold(ids, kind))


def test_each_number_of_a_list_is_read_by_its_own_type() -> None:
    ids = [np.float32(7), 2**24 + 1, np.float32(2**24), float(2**24), np.float16(2**11), 2**11]
    assert names_of(ids) == ["7", str(2**24 + 1), None, str(2**24), None, str(2**11)]


def test_ids_of_a_column_of_uuids_are_their_texts() -> None:
    arrow = pytest.importorskip("pyarrow")
    bytes_of = arrow.array([UUID.bytes, None], arrow.binary(16))
    assert names_of(arrow.ExtensionArray.from_storage(arrow.uuid(), bytes_of)) == [str(UUID), None]


BINARY = [bytes.fromhex("65a1b2c3aabbccddee1234") + bytes([last]) for last in range(256)]


def test_ids_of_bytes_that_differ_in_one_byte_are_as_many_persons() -> None:
    """11 of any 256 ObjectIds were one person, because their last byte is a blank."""
    assert len(set(names_of(BINARY)) - {None}) == 256
    assert len(set(persons_of(BINARY).tolist())) == 256


@pytest.mark.parametrize("other", ["A7", "zoe", "", "12", "12.5", "1e5", "0x10", "inf", "True", "2020-01-02"])
@pytest.mark.parametrize(
    "ids",
    [
        [f"12.{k}" for k in range(1, 9)],
        [f"{k}e1" for k in range(1, 9)],
        ["inf"] * 8,
        ["True"] * 8,
        ["1.5", "7", "nan", "8"] * 2,
    ],
)
def test_one_id_in_a_file_moves_no_other_person(ids: list[str], other: str) -> None:
    """pandas gives a column one type: eight persons 12.1, 12.2, ... were nobody's until one id was A7."""
    pandas = pytest.importorskip("pandas")

    def read(texts: list[str]) -> list[str | None]:
        return names_of(pandas.read_csv(io.StringIO("\n".join(["id,x", *(f"{text},1" for text in texts)])))["id"])

    assert read([*ids, other]) == [*read(ids), *read([other])]


def test_ids_that_read_as_other_values_are_counted_with_the_remedy() -> None:
    plan = _plan(ps.MeanSchema(2, 1.0), "add-remove", averaged=False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        moments = ps.measure(
            plan.schema,
            np.full((4, 2), 0.5),
            np.zeros(4),
            persons=["12.1", "True", "anna", None],
            person_clip=plan.person_clip,
        )
    said = "\n".join(str(each.message) for each in heard if each.category is ps.errors.UnreadableRecordsWarning)
    assert moments.records == 1
    assert "2 of the records have an id that a reader of tables may convert to another number" in said
    assert "put a letter before these ids" in said
    assert "1 of the records have no id of a person" in said


def _csv(path: Path, ids: Sequence[Any]) -> Path:
    lines = [b"pid,x,z,ill", *(each + b",0.5,0.5,no" for each in ids)]
    (path / "visits.csv").write_bytes(b"\n".join(lines))
    return path / "visits.csv"


def _parquet(path: Path, ids: Sequence[Any]) -> Path:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = {"pid": ids, "x": [0.5] * len(ids), "z": [0.5] * len(ids), "ill": ["no"] * len(ids)}
    parquet.write_table(arrow.table(table), path / "visits.parquet")
    return path / "visits.parquet"


def _npz(path: Path, ids: Sequence[Any]) -> Path:
    np.savez(path / "visits.npz", X=np.full((len(ids), 2), 0.5), y=np.zeros(len(ids)), pid=np.array(ids))
    return path / "visits.npz"


LATIN = [b"M\xfcller", b"M\xf6ller", b"anna"]
READ = [each.decode("utf-8", "replace") for each in LATIN]
DOORS = [
    (_csv, LATIN, [None, None, "anna"]),
    (_csv, [each.encode() for each in READ], [None, None, "anna"]),
    (_csv, [b"2020-01-02", b"12.1", b"anna"], [None, None, "anna"]),
    (_csv, [b"2020-01-03 ", b"anna\xc2\xa0", b"anna"], [None, None, "anna"]),
    (_parquet, READ, [None, None, "anna"]),
    (_parquet, LATIN, ["M\udcfcller", "M\udcf6ller", "anna"]),
    (_parquet, [NOON.replace(tzinfo=days.UTC)] * 3, [None] * 3),
    (_parquet, [NOON.date(), None, NOON.date()], [None] * 3),
    (_parquet, [True, False, True], [None] * 3),
    (_parquet, [7, None, 9], ["7", None, "9"]),
    (_npz, READ, [None, None, "anna"]),
    (_npz, LATIN, ["M\udcfcller", "M\udcf6ller", "anna"]),
]


@pytest.mark.parametrize(("write", "ids", "said"), DOORS)
def test_a_file_has_the_persons_whom_nobody_else_looks_like(write, ids, said, tmp_path):
    file = RecordFile(write(tmp_path, ids), "ill" if write is not _npz else None, persons="pid")
    found = file.read()
    assert names_of(found.persons) == said
    nobody = said.count(None)
    rows = PersonRows.of(found.X, found.y, found.persons)
    assert (list(rows.persons), rows.unnamed) == ([each for each in said if each is not None], nobody)
    assert len(found.held_out(0.999, 0).X) <= len(said) - nobody
    schema = ps.MeanSchema(2, 1.0)
    plan = _plan(schema, "add-remove", averaged=False)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        moments = ps.measure(schema, found.X, found.y, persons=found.persons, person_clip=plan.person_clip)
    told = [str(each.message) for each in heard if each.category is ps.errors.UnreadableRecordsWarning and nobody]
    assert moments.records == len(said) - nobody
    assert any("character in decoding (name the file's --encoding" in each for each in told) == (
        -1 in persons_of(found.persons)
    )
    if write is not _npz:
        assert read_file(file, ["x", "z"], "pid").ids.tolist() == said


def test_values_of_a_file_that_lost_a_character_are_none_that_is_listed(tmp_path: Path) -> None:
    """Nor is one of them the other: each counts as what is not listed."""
    path = tmp_path / "wards.csv"
    path.write_bytes(b"\n".join([b"ward,ill", b"M\xfcnchen,ja", b"M\xf6nchen,j\xe4", b"Ulm,j\xfc"]))
    wards = ps.CountSchema((ps.Categories("ward", ("M\u00fcnchen", "M\u00f6nchen", "Ulm"), other=True),), (("ward",),))
    counted = ps.measure(wards, RecordFile(path).table(["ward"]).columns)
    assert ps.encoding.flatten(counted).tolist() == [0, 0, 4096, 8192]
    names = ps.ClassSchema(2, 2, "NA", 1.0, class_names=("ja", "j\u00fc"))
    told = RecordFile(path, "ill").table(["ill"]).values("ill")
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="2 of the records cannot be read"):
        found = ps.measure(names, np.full((3, 2), 0.5), told, unreadable="leave out")
    assert found.N.tolist() == [1, 0]


RAW = (b"M\xfcller", b"M\xf6ller", b"M\xe4ller", b"\xff7", b"\xfe7", "M\ufffdller".encode(), b"anna", b"7")
"""Ids as a file of another encoding has them: each a person of its own, for who wrote it."""
SUMMED = [schema for schema in SCHEMAS if "F" not in schema.statistics and getattr(schema, "module", None) is None]
WIDE = [schema for schema in SUMMED if not schema.refuses_persons(averaged=True)]
CLIPPED = [schema for schema in WIDE if not schema.refuses_persons(averaged=False)]


def _plan(schema: ps.schema.Schema, adjacency: str, *, averaged: bool) -> ps.Plan:
    most = {"person_clip": "average"} if averaged else {"person_clip": 2.0, "max_records_per_person": 2}
    promise = made.promise(unit="person", adjacency=adjacency, **most)
    return made.plan(schema, ps.Cohort(3, 3, 1000), promise, published=_published(schema))


def _published(schema: ps.schema.Schema) -> Published | None:
    for scored in SCORED:
        if scored.schema == schema:
            return scored.published
    flat = {name: np.eye(*shape) if name == "S" else np.ones(shape) for name, shape in schema.needs.items()}
    return Published.of({name: Values.rounded(0.01 * each) for name, each in flat.items()}) if flat else None


def _rows(schema: ps.schema.Schema, n: int, rng: np.random.Generator) -> list[list[str]]:
    """Equal rows of one person, by column; the targets behind."""
    if schema.task == "counts":
        return [[str(rng.choice(["f", "m"])), str(rng.choice([1, 50, 70])), str(rng.choice([-9, 37, 999]))]] * n
    X = in_arms(schema, rng.normal(size=(1, columns_of(schema))) * rng.choice([0.3, 30.0]))
    y = np.reshape(outcome_of(schema).drawn(1, rng), (1, -1))
    return [[str(each) for each in (*X[0].tolist(), *y[0].tolist())]] * n


def _columns(schema: ps.schema.Schema, row: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The header without that of ids, and which of them are targets."""
    if schema.task == "counts":
        return ["sex", "age", "hours"], ()
    asked = schema.reading.source
    X = list(asked) if isinstance(asked, tuple) else [f"x{place}" for place in range(columns_of(schema))]
    targets = tuple(f"goal{place}" for place in range(len(row) - len(X)))
    return [*X, *targets], targets


def _summed(plan: ps.Plan, people: dict[bytes, list[list[str]]], path: Path) -> np.ndarray:
    """The sums of a file as a party measures it."""
    header, targets = _columns(plan.schema, next(iter(people.values()))[0])
    lines = [",".join(["pid", *header]).encode()]
    lines += [b",".join([pid, *(cell.encode() for cell in row)]) for pid, rows in people.items() for row in rows]
    path.write_bytes(b"\n".join(lines) + b"\n")
    file = RecordFile(path, targets if len(targets) > 1 else targets[0] if targets else None, persons="pid")
    X, y, ids = persons_in(file, plan.schema.reading, "leave out")
    with warnings.catch_warnings(action="ignore"):
        given: Any = {"published": plan.published, "unreadable": "leave out"}
        return ps.encoding.flatten(exact_moments(plan.schema, X, y, persons=ids, person_clip=plan.person_clip, **given))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    ("schema", "averaged"),
    [*((schema, True) for schema in WIDE), *((schema, False) for schema in CLIPPED)],
    ids=lambda each: {True: "average", False: "clip"}.get(each) or f"{each.task}-{each.statistics}",
)
def test_a_file_without_one_person_or_with_another_moves_by_the_promise(schema, averaged, adjacency, tmp_path):
    """Ids of a Latin-1 file that is read as UTF-8 were one person: two of them moved a mean by twice the promise."""
    plan, rng = _plan(schema, adjacency, averaged=averaged), np.random.default_rng(0)
    for _ in range(sized(4, 40)):
        chosen = rng.permutation(len(RAW))[: rng.integers(2, 5)]
        people = {RAW[place]: _rows(schema, int(rng.integers(1, 20)), rng) for place in chosen}
        whole = _summed(plan, people, tmp_path / "visits.csv")
        for pid in people:
            others = {each: rows for each, rows in people.items() if each != pid}
            if adjacency == "replace-one":  # by somebody else, whose id is told or lost
                new = (next(each for each in RAW if each not in people), b"weber")[int(rng.integers(2))]
                others[new] = _rows(schema, int(rng.integers(1, 20)), rng)
            assert made.worth(plan, whole - _summed(plan, others, tmp_path / "others.csv")) <= 1 + 1e-9


def test_a_column_of_polars_without_any_id_is_nobodys() -> None:
    """Its type is Null, of which numpy makes float32: it was refused for that."""
    ids = pytest.importorskip("polars").Series([None, None])
    assert names_of(ids) == [None, None]
