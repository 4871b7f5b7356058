"""A declared value that unreadable records have emptied is named to the data holder, by column, texts and counts."""

import warnings
from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import RecordError, UnreadableRecordsWarning
from privstats.records.emptied import Emptied, ListedColumn
from privstats.records.from_file import records_in
from privstats.records.table import codes_of
from privstats.schema.public_values import Published, Values
from tests.moments.test_gap_words import counts, effect, hazard

pandas = pytest.importorskip("pandas")


def said(schema: Any, X: Any, y: Any = None) -> str:
    published = None
    if schema.needs:
        published = Published.of({name: Values.rounded(np.zeros(shape)) for name, shape in schema.needs.items()})
    with pytest.warns(UnreadableRecordsWarning) as caught:
        ps.measure(schema, X, y, published=published, unreadable="leave out")
    return str(caught[0].message)


def trial(**other: list[Any]) -> tuple[Any, Any]:
    columns = {"age": [50.0] * 120, "arm": ["placebo", "drug"] * 60, "got": ["no", "yes", "yes"] * 40, **other}
    y = columns.pop("got")
    return pandas.DataFrame(columns), y


TRIAL = effect(treatment={"arm": ("placebo", "drug")}).rows


def sentence_on(text: str, value: str, column: str) -> str:
    """Return the one sentence of a warning that names a declared value of a column."""
    (found,) = [each for each in text.split(". ") if f"'{value}' in {column}" in each]
    return found


PERSONS = {"arm": ["a", "b"] * 30, "months": [3.0] * 60, "ended": ["alive", "death", "death"] * 20}
CLASSES = ps.ClassSchema(2, 2, "NA", 90.0, class_names=("well", "ill"))
EMPTIED: dict[str, tuple[Any, tuple[Any, ...], str, str, dict[str, int]]] = {
    "another text": (TRIAL, trial(arm=["verum", "drug"] * 60), "placebo", "'arm'", {"verum": 60}),
    "another case": (TRIAL, trial(arm=["placebo", *["drug", "Placebo"] * 59, "drug"]), "placebo", "'arm'",
        {"Placebo": 59}),
    "a word for a gap": (TRIAL, trial(arm=["None", "drug"] * 60), "placebo", "'arm'", {"none": 60}),
    "texts for 0 and 1": (effect(treatment="arm").rows, trial(arm=["yes", 0] * 60), "1", "'arm'", {"yes": 60}),
    "an outcome": (TRIAL, trial(got=["no", "N/A", "maybe"] * 40), "yes", "'got'", {"n/a": 40, "maybe": 40}),
    "an event": (hazard(), (PERSONS,), "seen", "'ended'", {"alive": 20}),
    "a class": (CLASSES, (np.ones((60, 2)), ["Ill", "well", "well"] * 20), "ill", "the label", {"Ill": 20}),
}  # fmt: skip
"""Records in which hardly any holds a declared value: the value, its column, and what they hold instead."""


@pytest.mark.parametrize("case", EMPTIED)
def test_a_declared_value_that_no_record_holds_is_named_with_the_texts_instead(case: str) -> None:
    schema, records, value, column, instead = EMPTIED[case]
    text = said(schema, *records)
    found = sentence_on(text, value, column)
    assert str(sum(instead.values())) in found
    assert all(f"'{each}' ({count})" in found for each, count in instead.items())
    assert text.endswith("do not share these numbers and texts")


def test_a_column_in_which_nothing_is_declared_is_named_though_no_record_remains() -> None:
    text = said(effect().rows, *trial(arm=["x"] * 120))
    assert "no record remains: 120 of the records" in text
    assert "'x' (120)" in text


def test_an_arm_that_another_column_empties_is_named_with_that_column() -> None:
    age = [50.0 if place < 6 or place % 2 else "unknown" for place in range(120)]
    text = said(TRIAL, *trial(age=age))
    found = sentence_on(text, "placebo", "'arm'")
    assert "3 count" in found
    assert "57 in 'age'" in found
    assert "'drug' in 'arm'" not in text


def test_a_text_of_few_records_is_never_named() -> None:
    text = said(TRIAL, *trial(arm=[*(f"Anna {place}" for place in range(51)), *["Bert"] * 9, *["drug"] * 60]))
    assert "60 hold" in sentence_on(text, "placebo", "'arm'")
    assert "Anna" not in text
    assert "Bert" not in text


def test_a_refusal_names_no_text() -> None:
    with pytest.raises(RecordError) as refused:
        ps.measure(TRIAL, *trial(arm=["verum", "drug"] * 60))
    assert "verum" not in str(refused.value)


def test_few_records_are_no_diagnosis() -> None:
    X, y = trial()
    X["arm"] = X["arm"].where(X.index > 4, "verum")
    text = said(TRIAL, X, y)
    assert "declared," not in text
    assert "count;" not in text


def test_answers_are_diagnosed_where_no_cell_holds_the_others() -> None:
    answers = counts(ps.Categories("x", ("one", "two")))
    assert "most often 'drei' (30)" in said(answers, {"x": ["one", "drei"] * 30})
    other = counts(ps.Categories("x", ("one", "two"), other=True))
    assert "not declared" not in said(other, {"x": ["one", None] * 30})


def test_a_site_that_nearly_loses_all_records_is_told_so() -> None:
    ages = np.where(np.arange(120) < 6, 50.0, np.nan).tolist()
    assert "Nearly no record remains, 6 of 120." in said(TRIAL, *trial(age=ages))


def test_batches_are_diagnosed_together() -> None:
    batches = (trial(arm=["verum", "drug"] * 60) for _ in range(3))
    assert "and 180 hold values that are not declared, most often 'verum' (180)" in said(TRIAL, batches)


def test_private_texts_are_in_no_repr() -> None:
    readings = ps.Categories("x", ("a", "b")).readings(["secret"] * 20)
    column = ListedColumn.of(("a", "b"), ps.Categories("x", ("a", "b")).listed, readings)
    found = Emptied.of(np.zeros(20, np.bool_), {}, {"'x'": column})
    assert "secret" in found.remark()
    assert "secret" not in repr(found)


SMOKING = ps.Categories("smoking", ("never", "light", "heavy"))
CELLS = ps.Cells((SMOKING, ps.Truth("fit"), ps.Numeric("age", (50.0,))))
CELL_SCHEMA = ps.ClassSchema(2, CELLS.width, "NAB", clip_norm=1.0, transform=(CELLS,))


def celled(**other: list[Any]) -> tuple[dict[str, list[Any]], list[int]]:
    columns: dict[str, list[Any]] = {
        "smoking": ["never", "light", "heavy"] * 20,
        "fit": ["yes", "no"] * 30,
        "age": [40, 60] * 30,
    }
    return columns | other, [0, 1] * 30


def test_a_decimal_comma_is_named_where_no_text_is_common() -> None:
    """Each text was one record's, so the warning gave a count and no cause."""
    text = said(CELL_SCHEMA, *celled(age=[*(f"{place},5" for place in range(40, 70)), *[40] * 30]))
    assert "30 of 'age' are no numbers (write decimals with a point, or read their file with --decimal ,)." in text
    assert ",5'" not in text
    text = said(CELL_SCHEMA, *celled(age=[*(f"{place} mg" for place in range(40, 70)), *[40] * 30]))
    assert "30 of 'age' are no numbers. Correct" in text


def test_values_that_no_cell_of_their_own_holds_are_named_with_column_count_and_text() -> None:
    text = said(
        CELL_SCHEMA, *celled(fit=["ja", "nein", "yes", "no", "no", None] * 10, age=[*["61,5"] * 12, *[40] * 48])
    )
    for fact in ("20 of 'fit'", "'ja' (10), 'nein' (10)", "12 of 'age'", "'61,5' (12)", "--decimal ,"):
        assert fact in text
    assert text.endswith("do not share these numbers and texts")
    for smoking, sentence in {
        "Licht": "count as 'other': 20 of 'smoking' are not declared, most often 'Licht' (20)",
        "Light": "20 of 'smoking' are not declared, most often 'Light' (20), 20 hold 'light' in another case",
        "None": "No record holds 'light' in 'smoking', and 20 hold",
    }.items():
        assert sentence in said(CELL_SCHEMA, *celled(smoking=["never", smoking, "heavy"] * 20))


def test_one_value_in_another_case_is_named_by_the_declared_text_alone() -> None:
    text = said(CELL_SCHEMA, *celled(smoking=["LIGHT", *["never", "light", "heavy"] * 19, "heavy", "never"]))
    assert "1 of 'smoking' are not declared, 1 hold 'light' in another case" in text
    assert "LIGHT" not in text
    cells = ps.Cells((ps.Categories("sex", ("f", "m")),))
    schema = ps.ClassSchema(2, cells.width, "NAB", clip_norm=1.0, transform=(cells,))
    text = said(schema, {"sex": ["F", *["f", "m"] * 20]}, [0, *[0, 1] * 20])
    assert "1 of 'sex' are not among its listed values, 1 hold 'f' in another case" in text


def test_rare_values_that_a_cell_for_others_is_made_for_need_no_warning(recwarn: Any) -> None:
    X, y = celled(smoking=[*(f"pipe {k}" for k in range(30)), *["never", "light", "heavy"] * 10])
    ps.measure(CELL_SCHEMA, X, y, unreadable="leave out")
    ps.measure(CELL_SCHEMA, X, y)
    assert not [each for each in recwarn if each.category is UnreadableRecordsWarning]


def test_a_text_of_few_records_is_never_named_of_cells() -> None:
    text = said(CELL_SCHEMA, *celled(fit=[*["Anna"] * 9, *(f"Bert {k}" for k in range(21)), *["yes", "no"] * 15]))
    assert "30 of 'fit' are neither true nor false. " in text
    assert "Anna" not in text
    assert "Bert" not in text
    assert text.endswith("do not share these numbers")


@pytest.mark.parametrize("kind", ["mapping", "frame", "batches", "file"])
def test_cells_are_diagnosed_alike_in_every_container(kind: str, tmp_path: Any) -> None:
    X, y = celled(smoking=["never", "Licht", "heavy"] * 20, fit=["ja", "no"] * 30)
    want = said(CELL_SCHEMA, X, y)
    assert "most often 'Licht' (20)" in want
    frame = pandas.DataFrame(X)
    match kind:
        case "mapping" | "frame":
            found = said(CELL_SCHEMA, X if kind == "mapping" else frame, y)
        case "batches":
            found = said(CELL_SCHEMA, ((frame[k : k + 5], y[k : k + 5]) for k in range(0, 60, 5)))
        case _:
            frame.assign(ill=y).to_csv(tmp_path / "ward.csv", index=False)
            file = ps.moments.RecordFile(tmp_path / "ward.csv", "ill")
            found = said(CELL_SCHEMA, *records_in(file, CELL_SCHEMA.reading, "leave out"))
            whole = records_in(file, CELL_SCHEMA.reading, "leave out", at_once=True)
            assert said(CELL_SCHEMA, *whole) == want
    assert found == want


def test_prediction_names_values_that_count_as_other() -> None:
    X, _ = celled(smoking=["never", "Light", "heavy"] * 20)
    with pytest.warns(UnreadableRecordsWarning, match="count as 'other': 20 of 'smoking' are not declared.*'Light'"):
        codes_of(CELLS, X)


def test_prediction_names_the_column_of_one_undeclared_value_without_its_text() -> None:
    """One record at a time is scored, and a value that the plan does not list counts in the cell "other"."""
    X, _ = celled(smoking=["pipe"])
    with pytest.warns(UnreadableRecordsWarning, match="1 of 'smoking' are not") as caught:
        codes_of(CELLS, {name: values[:1] for name, values in X.items()})
    assert "pipe" not in str(caught[0].message)
    with warnings.catch_warnings(action="error", category=UnreadableRecordsWarning):
        codes_of(CELLS, celled(smoking=["never", "light", "heavy"] * 20)[0])


def test_private_texts_of_cells_are_in_no_repr() -> None:
    codes = CELLS.read(celled(smoking=["secret"] * 60)[0])
    assert codes.lost["smoking"].texts["secret"] == 60
    assert "secret" not in repr(codes.lost)
