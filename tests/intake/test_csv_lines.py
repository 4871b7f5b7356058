"""A file's header and fields are read as its party declared; what it did not declare is never guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import privstats as ps
from privstats.errors import DataError, RecordError
from privstats.intake.column_names import place_of
from privstats.intake.csv_dialect import Dialect
from privstats.intake.csv_lines import csv_header, csv_lines, first_misfit
from privstats.intake.meaning import meaning_of
from privstats.moments import RecordFile

GERMAN = {"encoding": "cp1252", "separator": ";", "decimal": ","}


def whole(path: Path, **how):
    return RecordFile(path, "ill", **how).all_records(("größe", "crp"), unreadable="leave out")


@pytest.mark.parametrize(
    ("field", "said"),
    [("3,5", 3.5), ("-,5", -0.5), ("1,5e3", 1500.0), ("12", 12.0), ("1.5", "\x01"), ("1.234,5", "1.234,5"),
     ("2020-01-02", "2020-01-02"), ("3,5 mg", "3,5 mg"), ("a.b", "a.b"), ("", None), ("1,234,5", "1,234,5")],
)  # fmt: skip
def test_a_comma_before_decimals_is_one_and_a_point_is_no_number_then(field, said):
    assert meaning_of(Dialect(separator=";", decimal=",").read(field)) == said


@pytest.mark.parametrize(
    ("how", "field", "said"),
    [((",", "."), "1.299,99", 1299.99), ((",", "."), "1.299", 1299.0), ((",", "."), "-1.000.000", -1e6),
     ((",", "."), "1.29", "\x01"), ((",", "."), "28.03.19", "28.03.19"), ((",", "."), "12,5", 12.5),
     ((".", ","), "1,299.9", 1299.9), ((".", ","), "1,29", "1,29"), ((".", ","), "12.5", 12.5),
     ((".", "'"), "1'299.5", 1299.5), ((".", "'"), "1\u2019299", 1299.0), ((",", " "), "1\u202f299,5", 1299.5),
     ((",", " "), "1 299", 1299.0), ((",", " "), "12 99", "12 99")],
)  # fmt: skip
def test_thousands_are_groups_of_three_digits(how, field, said):
    decimal, thousands = how
    assert meaning_of(Dialect(separator=";", decimal=decimal, thousands=thousands).read(field)) == said


def test_a_file_s_signs_are_read_around_a_number_and_never_in_a_code(tmp_path):
    """A code has the same text in every file, and a number with a suffix the same value."""
    (tmp_path / "t.csv").write_text("code;share;ill\n250.0;39,9%;no\n1.234;<1.000,5 %;yes\n")
    cells = ps.Cells(
        (ps.Categories("code", ("250.0", "1.234"), as_text=True), ps.Numeric("share", suffix="%", censored=True))
    )
    file = RecordFile(tmp_path / "t.csv", "ill", separator=";", decimal=",", thousands=".")
    codes = file.read(cells, unreadable="leave out").X.codes
    np.testing.assert_allclose(codes, [[0, 39.9], [1, 1000.5]])


def test_a_decimal_comma_may_stand_in_quotes_between_commas(tmp_path):
    (tmp_path / "t.csv").write_text('größe,crp,ill\n"1,5","1.299,5",no\n')
    assert whole(tmp_path / "t.csv", decimal=",", thousands=".").X.tolist() == [[1.5, 1299.5]]


def test_a_file_of_another_place_is_read_as_declared(tmp_path):
    text = "note;GRÖSSE;CRP;ill\r\nx;1,5;2;no\r\nx;2.5;3;yes\r\nx;4;;no\r\n"
    (tmp_path / "t.csv").write_bytes(text.encode("cp1252"))
    found = whole(tmp_path / "t.csv", **GERMAN)
    np.testing.assert_array_equal(found.X, [[1.5, 2], [np.nan, 3], [4, np.nan]])
    assert found.y.tolist() == ["no", "yes", "no"]


@pytest.mark.parametrize("separator", ["\t", "tab", "\\t"])
def test_a_tab_may_be_called_so(separator, tmp_path):
    (tmp_path / "t.csv").write_text("größe\tcrp\till\n1\t2\tno\n", "utf-8-sig")
    assert whole(tmp_path / "t.csv", separator=separator).X.tolist() == [[1, 2]]


@pytest.mark.parametrize("separator", [",", ";", "|", ":", "\t"])
def test_a_record_of_empty_fields_is_a_record_and_a_blank_line_is_none(separator, tmp_path):
    lines = ["größe,crp,ill", "1,2,no", ",,", "", "  ", " , , ", "3,4,yes"]
    (tmp_path / "t.csv").write_text("\n".join(lines).replace(",", separator) + "\n\n", "utf-8")
    found = whole(tmp_path / "t.csv", separator=separator)
    np.testing.assert_array_equal(found.X, [[1, 2], [np.nan] * 2, [np.nan] * 2, [3, 4]])


@pytest.mark.parametrize("separator", [",", "\t"])
def test_an_empty_field_of_a_file_of_one_column_is_a_blank_line(separator, tmp_path):
    (tmp_path / "t.csv").write_bytes(b"crp\n1\n\n  \n2\r\n")
    (found,) = csv_lines(tmp_path / "t.csv", ["crp"], gaps=True, dialect=Dialect(separator=separator))
    assert found == {"crp": ["1", "2"]}


@pytest.mark.parametrize(
    ("broken", "left"),
    [(b"1,\xff\xfe,no", [[1, np.nan]]), (b'1,"2"x,no', []), (b"1,2,3,no", [])],
    ids=["bytes that are no text", "a stray quote", "a field too many"],
)  # fmt: skip
def test_what_is_broken_costs_its_own_line_alone(broken, left, tmp_path):
    lines = [b"gr\xc3\xb6\xc3\x9fe,crp,ill", b"5,6,yes", broken, b"7,8,yes"]
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
    np.testing.assert_array_equal(whole(tmp_path / "t.csv").X, [[5, 6], *left, [7, 8]])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"encoding": "utf-32"}, "encoding 'utf-32' has other line ends than ASCII, or is unknown"),
        ({"encoding": "klingon"}, "encoding 'klingon'"),
        ({"encoding": "idna"}, "encoding 'idna'"),
        ({"encoding": "unicode_escape"}, "encoding 'unicode_escape'"),
        ({"encoding": "rot13"}, "encoding 'rot13'"),
        ({"separator": "::"}, "separator must be one of"),
        ({"separator": "1"}, "separator must be one of"),
        ({"decimal": "'"}, "decimal must be a point or a comma"),
        ({"thousands": "_"}, "thousands must be one of"),
        ({"thousands": "."}, "decimal and thousands are both '.'"),
        ({"lines": True, "quoted": True}, "lines and quoted are both set"),
        ({"lines": "yes"}, "lines and quoted must be True or False"),
    ],
)  # fmt: skip
def test_what_no_file_is_written_in_is_refused(how, told):
    with pytest.raises(DataError, match=told):
        RecordFile("t.csv", **how)


@pytest.mark.parametrize("first", ["5147,bert,3", "anna,2020-01-02,3", "anna,03/04/2020,x", "secret,secret,x"])
@pytest.mark.parametrize("below", ["1,2,3", "7,ward a,9\n8,ward a,9"], ids=["one record", "texts that recur"])
def test_a_first_record_in_the_place_of_names_is_not_told(first, below, tmp_path):
    (tmp_path / "t.csv").write_text(f"{first}\n{below}\n")
    with pytest.raises(DataError) as refused:
        RecordFile(tmp_path / "t.csv", "ill").all_records()
    said = str(refused.value).replace(str(tmp_path), "")
    assert not [value for value in first.split(",") if len(value) > 1 and value in said]


def test_the_wrong_words_for_a_file_are_said_with_its_header(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe;crp;ill\n1;2;no\n".encode("cp1252"))
    with pytest.raises(DataError, match="line 1, column 1 holds bytes that are no utf-8: set --encoding"):
        csv_header(tmp_path / "t.csv")
    with pytest.raises(DataError, match=r"its first line is one name with ';' in it: set --separator"):
        whole(tmp_path / "t.csv", encoding="cp1252")


def test_a_name_is_found_as_written_before_it_is_found_in_other_letters():
    assert place_of("Age", ["AGE", "Age", "age"]) == 1
    assert place_of("e\u0301ge", ["sex", "\u00c9GE"]) == 1
    with pytest.raises(DataError, match="has the column 'aGE' twice, perhaps in other letters"):
        place_of("aGE", ["AGE", "Age"])


def columns_of(path: Path, text: bytes, **how):
    """Every named column's texts, of a file with this content."""
    path.write_bytes(text)
    dialect = Dialect(**how)
    parts = list(csv_lines(path, csv_header(path, dialect).names, gaps=True, dialect=dialect))
    return {name: [each for part in parts for each in part[name]] for name in parts[0]}


@pytest.mark.parametrize(
    "text",
    [",a,b\n0,1,2\n1,3,\n", '"","a","b"\n"1",1,2\n"2",3,""\n', "a,b,\n1,2,\n3,,\n", "a,b,,\n1,2,,\n3,\n",
     "a,b\n1,2,\n3,,\n", "a,b\n1,2,,,\n3,, ,\n", "sep=,\na,b\n1,2\n3,\n"],
    ids=["pandas' row numbers", "R's row numbers", "every line ends in a separator", "so do some", "but for the header",
         "empty cells beyond the header", "Excel's first line"],
)  # fmt: skip
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_what_programs_write_around_a_table_is_no_column_of_it(tmp_path, text, end):
    assert columns_of(tmp_path / "t.csv", text.replace("\n", end).encode()) == {"a": ["1", "3"], "b": ["2", ""]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\n1,2\n", "line 1 is no row of names: write one there. It was read as utf-8, separated by ','"),
        ("a,b\x07\n", "in line 1, the row of names, column 2 has a character that cannot be printed"),
        ("a,b,a\n", "in line 1, columns 1 and 3 have one name"),
        ('a,"b\n1,2\n', "in line 1, its row of names, a quote in column 2 is not closed"),
        ('a,"b\n1,2",\n', "in line 1, its row of names, a quote in column 2 is not closed"),
        ('sep=,\na,"b"c\n1,2\n', "in line 2, its row of names, column 2 has a stray quote"),
        ("sep=;\na;b\n", "its first line names the separator ';': set --separator"),
    ],
)
def test_a_header_is_refused_with_its_line_or_column_and_the_cause(tmp_path, text, told):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=told) as refused:
        csv_header(tmp_path / "t.csv")
    assert "1,2" not in str(refused.value)


def test_a_repeated_row_of_names_is_no_record(tmp_path):
    """Files written one behind the other have it; a record that holds one name is a record."""
    text = "a,b\r\n1,2\r\na,b\r\n\ufeffa,b\r\na,4\r\n"
    assert columns_of(tmp_path / "t.csv", text.encode()) == {"a": ["1", None, None, "a"], "b": ["2", None, None, "4"]}


def test_a_title_above_the_names_is_named_by_its_line(tmp_path):
    (tmp_path / "t.csv").write_text("Patients of 2019\n\nage,ill\n50,no\n")
    with pytest.raises(DataError, match=r"has no column 'ill'.*\(its line 3 names it: delete the lines above\)"):
        RecordFile(tmp_path / "t.csv", "ill").all_records()


def test_a_name_with_a_line_break_has_a_space_there(tmp_path):
    assert columns_of(tmp_path / "t.csv", b'"age\r\n(years)",ill\r\n40,no\r\n') == {
        "age (years)": ["40"],
        "ill": ["no"],
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n\n1,2,3\n", "line 4 has 3 fields for 2 names"),
        ("a,b\n1,2,3\n2,3,4\n", "line 2 has 3 fields for 2 names (R's write.table leaves out"),
        (",a,b\n0,1\n", "line 2 has 2 fields for 3 columns"),
        ('a,b\n1,"2"x\n', "line 2 has a stray quote in column 2"),
        ('a,b\n1,"2\\"x"\n', "line 2 has a stray quote in column 2, behind a backslash: export quotes doubled"),
        ("a,b\n1,2\n\na,b\n3,4\n", "line 4 repeats the row of names"),
        ("a,b\n1,2\n", ""),
    ],
)
def test_the_first_record_that_does_not_fit_is_named_by_line_and_cause(tmp_path, text, told):
    (tmp_path / "t.csv").write_text(text)
    found = first_misfit(tmp_path / "t.csv", Dialect())
    assert found.startswith(told)
    assert bool(found) == bool(told)


def test_a_gap_or_a_text_is_named_by_column_and_line_where_it_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('a,b,ill\n1,2,no\n\n1,"2",no\n' + "1,,no\n" * 2)
    with pytest.raises(RecordError, match="has missing values in b, first in line 5; omit or impute"):
        RecordFile(path, "ill").read(("a", "b"))
    path.write_text("a,b,ill\n" + "1,2,no\n" * 9000 + "1,x,no\n")
    with pytest.raises(RecordError, match="holds no numbers in b, first in line 9002; encode"):
        RecordFile(path, "ill").read(("a", "b"))
    path.write_text('a,ill\n"1",no\n"1\n2",\n')
    with pytest.raises(RecordError, match="has missing values in ill, first in line 3; omit"):
        RecordFile(path, "ill", quoted=True).read(("a",))


@pytest.mark.parametrize("ending", ["txt", "tsv", "TAB"])
def test_a_table_of_texts_may_have_another_ending(tmp_path, ending):
    (tmp_path / f"t.{ending}").write_text("a\till\n1\tno\n")
    assert RecordFile(tmp_path / f"t.{ending}", "ill", separator="tab").read(("a",)).X.tolist() == [[1]]
