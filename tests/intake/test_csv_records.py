"""A file is the serialisation of records: no record's text decides how another record is read.

Three kinds of program write a table: one that quotes as RFC 4180 does, one that writes texts as they are but ends each
record's line, and one that also breaks lines within texts. No reader can mend the last one.
"""

from __future__ import annotations

import csv
import io
import warnings
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import privstats as ps
from privstats.errors import DataError
from privstats.intake import csv_records
from privstats.intake.csv_dialect import Dialect
from privstats.intake.csv_lines import csv_header, csv_lines
from privstats.intake.csv_records import fields_of, split_records
from privstats.moments import RecordFile

CELLS = ps.Cells((ps.Numeric("age", (40, 65)), ps.Categories("note", ("fever", "cough"))))
SCHEMA = ps.ClassSchema(2, CELLS.width, "NAB", 1.0, class_names=("no", "yes"), transform=(CELLS,))
NAMES = ("age", "note", "ill")
HOSTILE = st.text(st.sampled_from('",;\n\rax5 '), max_size=12) | st.sampled_from(
    [
        '"',
        '""',
        '"x',
        'x"',
        '",yes',
        "fever\n50,cough,yes\n50,cough,yes\nx",
        'a\n50,"',
        '",yes\n50,"fever',
        "\r",
        '\n"\n',
    ]
)
RECORD = st.tuples(
    st.integers(20, 90).map(str), st.sampled_from(["fever", "cough", ""]) | HOSTILE, st.sampled_from(["no", "yes"])
)
RECORDS = st.lists(RECORD, min_size=1, max_size=5)


def quoting(records, end="\n", **how) -> str:
    """What a program that quotes as RFC 4180 does writes."""
    out = io.StringIO()
    csv.writer(out, lineterminator=end, **how).writerows([NAMES, *records])
    return out.getvalue()


def naive(records, end="\n") -> str:
    """What a program writes that knows no quotes, and writes texts in one line."""
    return "".join(
        ",".join(text.replace("\n", " ").replace("\r", " ") for text in each) + end for each in [NAMES, *records]
    )


def written(tmp: Path, text: str) -> Path:
    path = tmp / "t.csv"
    path.write_bytes(text.encode())
    return path


def summed(path: Path, **how):
    """The sums of a file."""
    with warnings.catch_warnings(action="ignore"):
        batches = RecordFile(path, "ill", **how).batches(CELLS, unreadable="leave out")
        return ps.measure(SCHEMA, batches, unreadable="leave out")


def sums(path: Path, **how):
    """The sums of a file, or None where it is refused."""
    try:
        return summed(path, **how)
    except DataError as refusal:
        assert "--lines" in str(refusal)
        return None


def of_records(records):
    """The sums of the records themselves, which no file holds."""
    columns = {name: [each[place] for each in records] for place, name in enumerate(NAMES)}
    return ps.measure(SCHEMA, {name: columns[name] for name in NAMES[:2]}, columns["ill"], unreadable="leave out")


@pytest.fixture(scope="module")
def tmp(tmp_path_factory):
    return tmp_path_factory.mktemp("records")


@given(
    RECORDS,
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
)
@example([("50", "fever\n50,cough,yes\n50,cough,yes\nx", "yes")], "\n", csv.QUOTE_MINIMAL)
def test_a_file_with_quotes_of_rfc_4180_is_its_records_whatever_they_hold(tmp, records, end, quotes):
    """As its party promises with ``quoted``. Without it the file has the same sums, or is refused."""
    path = written(tmp, quoting(records, end, quoting=quotes))
    assert sums(path, quoted=True) == of_records(records)
    assert sums(path) in (of_records(records), None)


@given(RECORDS, RECORD, st.integers(0, 5), st.sampled_from(["\n", "\r\n"]))
def test_one_hostile_record_moves_the_sums_by_its_own_row_alone(tmp, records, hostile, place, end):
    """Or the file is refused: with it or, where the others are hostile, too, without it."""
    more = [*records[:place], hostile, *records[place:]]
    with_it, without = (sums(written(tmp, quoting(each, end))) for each in (more, records))
    if with_it is not None and without is not None:
        assert with_it == without + of_records([hostile])


@given(RECORDS, RECORD, st.integers(0, 5))
@example([("50", 'x"', "yes"), ("50", "fever", "yes")], ("50", '"x', "no"), 0)
@example([("50", "fever", "yes"), ("50", "x", "yes")], ("50", '"x', "no"), 0)
def test_a_stray_quote_of_a_program_without_quotes_costs_its_record_or_the_file(tmp, records, hostile, place):
    """And with ``lines`` its record alone. Neighbours are in the sums as if nobody had written a quote."""
    more = [*records[:place], hostile, *records[place:]]
    alone = [sums(written(tmp, naive([each])), lines=True) for each in more]
    expected = alone[0]
    for each in alone[1:]:
        expected = expected + each
    path = written(tmp, naive(more))
    assert sums(path, lines=True) == expected
    assert sums(path) in (expected, None)


@given(st.lists(st.text(st.sampled_from('",;\n\rab'), max_size=8), max_size=6))
def test_many_records_are_split_as_each_alone(texts):
    assert split_records(texts, ",") == [fields_of(text, ",") for text in texts]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), min_size=1, max_size=6))
def test_what_csv_writes_is_split_as_it_was(fields):
    out = io.StringIO()
    csv.writer(out).writerow(fields)
    assert fields_of(out.getvalue(), ",") == fields


@pytest.mark.parametrize(
    "encoding", ["utf-8", "cp1252", "utf-8-sig", "shift_jis", "gb18030", "iso2022_jp", "euc_kr", "hz"]
)
def test_bytes_that_are_no_text_cost_their_own_line_in_every_encoding(tmp_path, encoding):
    """Line by line the same texts as in one piece: no byte of a line swallows the next line's end or its quote."""
    for byte in range(256):
        if byte in (10, 13, 34):
            continue
        for place, more in enumerate((b"", b"\x1b$B", b"~{", b"\x81")):
            if more and byte % 4 != place:  # each byte alone, and behind one of the three
                continue
            lines = [b"age,note,ill", b"1," + more + bytes((byte,)), b'2,"fever",no', b"3,x,yes"]
            for how, text in (({"lines": True}, b"2,x,no"), ({"quoted": True}, b'2,"fe\nver",no')):
                lines[2] = text
                (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
                (found,) = csv_lines(tmp_path / "t.csv", ["age"], gaps=True, dialect=Dialect(encoding, **how))
                assert found["age"][1:] == ["2", "3"]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (['1,"x', "2,y,no"], "a quoted text begins in line 2 and does not end, in column 2"),
        (['1,"x', '2,y"z,no'], "a quoted text begins in line 2 and is followed by a stray quote"),
        (['1,"x', 'y",no', "3,5' 4\",no"], "goes from line 2 to line 3, and line 4 has a stray quote in column 2"),
        (['1,"x', 'y",no', "3,no"], "goes from line 2 to line 3, and line 4 has 2 fields for 3 names"),
        (['1,"x,no', "2,y,no", '3,"z",no"'], "a quoted text begins in line 2 and is followed by a stray quote"),
        (['1,y,"x', "2,y,no", '3,z,no"'], "lines 2 to 4 are one record with line breaks in quotes, or records of"),
    ],
)
def test_quotes_that_can_be_read_in_two_ways_are_refused_before_a_record_is_used(tmp_path, rows, told):
    """By line, with the remedy; with ``lines`` the same file is read, and its other lines are in the sums."""
    path = written(tmp_path, "\n".join(["age,note,ill", *rows, *["9,cough,no"] * 20000]))
    used = csv_lines(path, NAMES, gaps=True)
    with pytest.raises(DataError, match=told) as refused:
        next(used)
    assert "--lines (in Python lines=True)" in str(refused.value)
    assert sums(path, lines=True).records >= 20000


def test_lines_of_a_note_that_look_like_records_are_one_record_where_it_can_be_told(tmp_path):
    """Its first line has fewer fields than a record. Where it has as many, the party's promise decides."""
    note = "see lab:\n" + "70,cough,yes\n" * 5 + "end"
    assert sums(written(tmp_path, quoting([("40", "fever", "no"), ("70", note, "yes")]))).records == 2
    last = "x,y\n70,cough,yes\nu,v"
    path = written(tmp_path, quoting([("40", "fever", "no"), ("70", last, "yes")]))
    assert sums(path) is None
    assert sums(path, quoted=True).records == 2
    clear = written(tmp_path, quoting([("40", "a\nb", "no"), ("70", last, "yes")]))
    assert sums(clear).records == 2


def test_a_line_or_a_record_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_records, "LONGEST_RECORD", 1 << 10)
    monkeypatch.setattr(csv_records, "_BLOCK", 1 << 8)
    path = written(tmp_path, "age,note,ill\n1," + "x" * 5000 + ",no\n")
    with pytest.raises(DataError, match="a line has more than 1,024 bytes"):
        list(csv_lines(path, NAMES, gaps=True))
    path = written(tmp_path, 'age,note,ill\n1,"' + "x\n" * 5000 + '",no\n')
    with pytest.raises(DataError, match="begins in line 2 and has more than 1,024 characters"):
        list(csv_lines(path, NAMES, gaps=True))


def test_a_long_note_is_a_field_however_long_csv_allows_fields_to_be(tmp_path):
    path = written(tmp_path, quoting([("50", 'a "quoted" word\n' * 20000, "yes"), ("60", "fever", "no")]))
    (found,) = csv_lines(path, NAMES, gaps=True)
    assert found["age"] == ["50", "60"]
    assert len(found["note"][0]) == 320_000 - 1  # without the blank at its end


@settings(max_examples=30)
@given(RECORDS, st.integers(1, 40))
def test_where_a_file_is_cut_into_pieces_changes_nothing(tmp, records, block):
    path = written(tmp, quoting(records))
    how = Dialect(quoted=True)
    whole = list(csv_lines(path, NAMES, gaps=True, dialect=how))
    with pytest.MonkeyPatch.context() as patched:
        header = csv_header(path, how)
        patched.setattr(csv_records, "_BLOCK", block)
        assume(header == csv_header(path, how))
        parts = list(csv_lines(path, NAMES, gaps=True, dialect=how))
    for name in NAMES:
        assert [each for part in parts for each in part[name]] == [each for part in whole for each in part[name]]
