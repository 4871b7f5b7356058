"""Programs that escape with a backslash: no patient's text may become records, and no neighbour may move.

RFC 4180 knows no such escape. Spark writes one before a quote, MySQL before a line's end. In each file that such a
program writes, a record contributes at most one record, or the file is refused before one is used.
"""

from __future__ import annotations

import csv

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from privstats.errors import DataError
from privstats.intake.csv_dialect import Dialect
from privstats.intake.csv_lines import csv_lines
from tests.intake.test_csv_records import NAMES, naive, of_records, quoting, sums, written

RECORDS_OF_ONE = "fever\n50,cough,yes\n50,cough,yes\nx"
HOSTILE = st.text(st.sampled_from('\\\\"",\n a5'), max_size=12) | st.sampled_from(
    ["\\", '"', 'x"', '\\"', '",yes', f'a",yes\n{RECORDS_OF_ONE}"', f'\\",yes\n{RECORDS_OF_ONE}\\', RECORDS_OF_ONE]
)
RECORD = st.tuples(
    st.integers(20, 90).map(str), st.sampled_from(["fever", "cough", ""]) | HOSTILE, st.sampled_from(["no", "yes"])
)
RECORDS = st.lists(RECORD, min_size=1, max_size=4)


def spark(records, *, doubled: bool) -> str:
    """What Spark writes, or a program that escapes backslashes in quoted texts, too."""

    def field(text: str) -> str:
        if not set('",\n\r') & set(text):
            return text
        return '"' + (text.replace("\\", "\\\\") if doubled else text).replace('"', '\\"') + '"'

    return "".join(",".join(map(field, each)) + "\n" for each in [NAMES, *records])


def mysql(records) -> str:
    """What MySQL writes: no quotes, and a backslash before itself, a separator and a line's end."""

    def field(text: str) -> str:
        return text.replace("\\", "\\\\").replace(",", "\\,").replace("\n", "\\\n")

    return "".join(",".join(map(field, each)) + "\n" for each in [NAMES, *records])


PROGRAMS = {
    "Spark": lambda records: spark(records, doubled=False),
    "backslashes doubled": lambda records: spark(records, doubled=True),
    "MySQL": mysql,
}


@pytest.fixture(scope="module")
def tmp(tmp_path_factory):
    return tmp_path_factory.mktemp("escapes")


@pytest.mark.parametrize("program", PROGRAMS)
@given(records=RECORDS)
@example([("50", f'a",yes\n{RECORDS_OF_ONE}"', "yes")])
@example([("60", "a\nb", "no"), ("50", f'a",yes\n{RECORDS_OF_ONE},', "yes")])
@example([("50", RECORDS_OF_ONE, "yes"), ("60", "fever", "no")])
@example([("50", f'\\",yes\n{RECORDS_OF_ONE}"', "yes")])
def test_a_file_with_backslashes_has_at_most_one_record_for_each_of_its_own(tmp, program, records):
    """And its sums are those of its records one by one, or it is refused with the remedy."""
    found = sums(written(tmp, PROGRAMS[program](records)))
    if found is None:
        return
    alone = [sums(written(tmp, PROGRAMS[program]([each]))) for each in records]
    assume(None not in alone)
    assert all(each.records <= 1 for each in alone)
    total = alone[0]
    for each in alone[1:]:
        total = total + each
    assert found == total


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (['1,"a\\",yes', "2,fever,yes", '3,b\\"",yes'], "line 2 has a backslash before a quote"),
        (['1,"a', 'b",yes', '2,"c\\",no'], "line 4 has a backslash before a quote"),
        (["1,a\\", "2,fever,yes"], "line 2 ends in a backslash, as MySQL writes a line break"),
    ],
)
def test_the_line_of_the_first_backslash_that_could_move_an_end_is_named(tmp_path, rows, told):
    path = written(tmp_path, "\n".join(["age,note,ill", *rows]) + "\n")
    with pytest.raises(DataError, match=told) as refused:
        next(csv_lines(path, NAMES, gaps=True))
    assert "--quoted" in str(refused.value)
    assert "--lines" in str(refused.value)
    assert next(csv_lines(path, NAMES, gaps=True, dialect=Dialect(lines=True)))["age"]


@pytest.mark.parametrize(
    ("text", "note"),
    [("1,5' 11\\\",no\n", "5' 11\\\""), ('1,"C:\\a, b",no\n', "C:\\a, b"), ("1,C:\\\\,no\n", "C:\\\\")],
    ids=["inches", "a path", "a share"],
)
def test_a_backslash_elsewhere_is_a_character_of_its_text(tmp_path, text, note):
    path = written(tmp_path, f"age,note,ill\n{text}")
    (found,) = csv_lines(path, NAMES, gaps=True)
    assert found == {"age": ["1"], "note": [note], "ill": ["no"]}


def test_a_quoted_text_may_end_in_a_backslash_where_the_party_promises_quotes(tmp_path):
    """Without the promise it may where its line ends alike in both readings."""
    records = [("50", "C:\\, D:\\", "no"), ("60", "a,\nb\\", "yes")]
    path = written(tmp_path, quoting(records))
    assert sums(path) is None
    assert sums(path, quoted=True) == of_records(records)
    assert sums(written(tmp_path, quoting(records, quoting=csv.QUOTE_ALL))) == of_records(records)


@given(
    st.lists(
        st.tuples(
            st.integers(20, 90).map(str),
            st.text(st.sampled_from('",\n\u0a0a\u220d\u2c22\U0001f600é\u2028x'), max_size=6) | st.just("fever"),
            st.sampled_from(["no", "yes"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["utf-16", "utf-16-le", "utf-16-be"]),
    st.sampled_from([quoting, naive]),
    st.booleans(),
)
def test_utf_16_has_the_sums_of_utf_8(tmp, records, encoding, program, lines):
    """Bytes of its characters look like separators, quotes and line ends, and are none."""
    text, how = program(records), {"lines": lines, "quoted": not lines}
    path = tmp / "wide.csv"
    path.write_bytes(text.encode(encoding))
    assert sums(path, encoding=encoding, **how) == sums(written(tmp, text), **how)


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_half_a_pair_of_surrogates_costs_its_own_field(tmp_path, order):
    """It swallows neither the line's end nor a quote behind it."""
    lines = ["age,note,ill", "1,\ud83d", "2,\ude00\ud83d,no", '3,"\ud83d",no', "4,x,yes"]
    (tmp_path / "t.csv").write_bytes("\n".join(lines).encode(order, "surrogatepass"))
    (found,) = csv_lines(tmp_path / "t.csv", ["age"], gaps=True, dialect=Dialect(order))
    assert found["age"] == [None, "2", "3", "4"]


def test_where_utf_16_is_cut_into_pieces_changes_nothing(tmp_path, monkeypatch):
    from privstats.intake import csv_records

    text = quoting([(str(place), 'a "note"\nof \U0001f600 lines', "no") for place in range(40)])
    (tmp_path / "t.csv").write_bytes(text.encode("utf-16"))
    how = Dialect("utf-16", quoted=True)
    (expected,) = csv_lines(tmp_path / "t.csv", NAMES, gaps=True, dialect=how)
    for block in (64, 65, 127, 1001):
        monkeypatch.setattr(csv_records, "_BLOCK", block)
        parts = list(csv_lines(tmp_path / "t.csv", NAMES, gaps=True, dialect=how))
        for name in NAMES:
            assert [each for part in parts for each in part[name]] == expected[name]


@pytest.mark.parametrize(
    ("declared", "stored", "told"),
    [
        ("utf-8", "utf-16", "it is written as UTF-16: set --encoding utf-16-le"),
        ("cp1252", "utf-16-le", "it is written as UTF-16: set --encoding utf-16-le"),
        ("utf-8", "utf-16-be", "it is written as UTF-16: set --encoding utf-16-be"),
        ("utf-16", "utf-8", "it is not written as UTF-16: set --encoding"),
    ],
)
def test_utf_16_is_declared_where_it_is_written_and_only_there(tmp_path, declared, stored, told):
    (tmp_path / "t.csv").write_bytes("age,note,ill\n1,x,no\n".encode(stored))
    with pytest.raises(DataError, match=told):
        next(csv_lines(tmp_path / "t.csv", NAMES, gaps=True, dialect=Dialect(declared)))
