"""A declared value that unreadable records have emptied is named to the data holder, by column, texts and counts."""

from typing import Any

import numpy as np
import pytest

import privstats as ps
from privstats.errors import RecordError, UnreadableRecordsWarning
from privstats.moments.emptied import Emptied, ListedColumn
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


def test_an_arm_in_another_spelling_is_named_with_its_texts() -> None:
    text = said(TRIAL, *trial(arm=["verum", "drug"] * 60))
    assert (
        "No record holds 'placebo' in 'arm', and 60 hold values that are not declared, most often 'verum' (60). "
        in text
    )
    assert text.endswith("do not share these numbers and texts")
    text = said(TRIAL, *trial(arm=["placebo", "drug", *["Placebo", "drug"] * 59]))
    assert (
        "Only 1 record holds 'placebo' in 'arm', and 59 hold values that are not declared, most often 'Placebo' (59)."
        in text
    )
    text = said(effect().rows, *trial(arm=["x"] * 120))
    assert "no record remains: 120 of the records" in text
    assert "most often 'x' (120)" in text


def test_an_arm_written_as_a_word_for_a_gap_is_named() -> None:
    text = said(TRIAL, *trial(arm=["None", "drug"] * 60))
    assert (
        "No record holds 'placebo' in 'arm', and 60 hold values that are not declared, most often 'none' (60)." in text
    )


def test_an_arm_of_0_and_1_that_holds_texts_is_named() -> None:
    schema = effect(treatment="arm").rows
    text = said(schema, *trial(arm=["yes", 0] * 60))
    assert "No record holds '1' in 'arm', and 60 hold values that are not declared, most often 'yes' (60)" in text


def test_an_arm_that_another_column_empties_is_named_with_that_column() -> None:
    age = [50.0 if place < 6 or place % 2 else "unknown" for place in range(120)]
    text = said(TRIAL, *trial(age=age))
    assert "Of 60 records with 'placebo' in 'arm', 3 count; unreadable are 57 in 'age'." in text
    assert "'drug'" not in text.partition("Of 60 records")[2]
    text = said(TRIAL, *trial(got=["no", "N/A", "maybe"] * 40))
    assert (
        "No record holds 'yes' in 'got', and 80 hold values that are not declared, most often 'n/a' (40), 'maybe' (40)"
        in text
    )


def test_a_text_of_few_records_is_never_named() -> None:
    text = said(TRIAL, *trial(arm=[*(f"Anna {place}" for place in range(51)), *["Bert"] * 9, *["drug"] * 60]))
    assert "no record holds 'placebo' in 'arm', and 60 hold values that are not declared" in text.replace("No ", "no ")
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


def test_events_causes_classes_and_answers_are_diagnosed() -> None:
    persons = {"arm": ["a", "b"] * 30, "months": [3.0] * 60, "ended": ["alive", "death", "death"] * 20}
    assert (
        "No record holds 'seen' in 'ended', and 20 hold values that are not declared, most often 'alive' (20)"
        in said(hazard(), persons)
    )
    classes = ps.ClassSchema(2, 2, "NA", 90.0, class_names=("well", "ill"))
    text = said(classes, np.ones((60, 2)), ["Ill", "well", "well"] * 20)
    assert "No record holds 'ill' in the label, and 20 hold values that are not declared, most often 'Ill' (20)" in text
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
