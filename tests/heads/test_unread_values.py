"""A head says which values it cannot read, and reads one record alike in every form."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import privstats as ps
from privstats.errors import RecordError, UnreadableRecordsWarning
from privstats.records.table import codes_of

COLUMNS = (ps.Numeric("age", (45.0, 55.0, 65.0)), ps.Categories("smoking", ("none", "light")))


def fitted() -> tuple[pd.DataFrame, Any, ps.Release, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    table = pd.DataFrame({"age": (50 + 10 * y + rng.normal(0, 5, 300)).round(1), "smoking": ["none", "light"] * 150})
    cells = ps.Cells(COLUMNS)
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 300), privacy=ps.NoPrivacy())
    release = ps.simulate(plan, [(table[::2], y[::2]), (table[1::2], y[1::2])])
    return table, y, release, ps.heads.LDA().fit_release(release)


def forms(table: pd.DataFrame) -> list[Any]:
    one = table.iloc[[0]]
    return [one, table.iloc[0], one.to_dict("list"), one.to_dict("records"), table.iloc[0].to_dict()]


def test_one_record_is_read_alike_in_every_form() -> None:
    table, _, release, head = fitted()
    card = ps.inference.scorecard(head, release)
    first, *others = forms(table)
    for other in others:
        assert (head.predict_proba(other) == head.predict_proba(first)).all()
        assert (head.decision_function(other) == head.decision_function(first)).all()
        assert card.explain(other).parts == card.explain(first).parts
    assert card.explain(first).score == pytest.approx(card.scores(first)[0, 0])
    assert {cell for _, cell, _ in card.explain(first).parts}.isdisjoint({"missing", "other"})


def test_a_decimal_comma_is_named_with_its_column_and_count() -> None:
    table, _, _, head = fitted()
    commas = table.assign(age=[str(age).replace(".", ",") for age in table["age"]])
    commas.loc[0, "age"] = "NA"
    with pytest.warns(UnreadableRecordsWarning, match=r"299 of 'age' are no numbers, such as .* \(write decimals with"):
        head.predict_proba(commas)
    with warnings.catch_warnings(action="error", category=UnreadableRecordsWarning):
        head.predict_proba(table)


def test_a_code_that_is_a_text_is_not_reported_beside_an_unreadable_column() -> None:
    cells = ps.Cells((COLUMNS[0], ps.Categories("ward", ("042", "42"), as_text=True)))
    with pytest.warns(UnreadableRecordsWarning, match="1 of 'age'") as caught:
        codes = codes_of(cells, {"age": ["61,5", 50], "ward": ["042", "42"]})
    assert codes[:, 1].tolist() == [0, 1]
    assert "ward" not in str(caught[0].message)
    with pytest.warns(UnreadableRecordsWarning, match="1 of 'ward' are not among its listed values, such as '0042'"):
        codes_of(cells, {"age": [40, 50], "ward": ["0042", "42"]})


def by_name() -> tuple[pd.DataFrame, Any]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    frame = pd.DataFrame({"a": rng.normal(0, 0.3, 60) + y / 3, "b": rng.normal(0, 0.3, 60)})
    schema = ps.ClassSchema(2, 2, "NAB", 2.0, feature_names=("a", "b"))
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 60), privacy=ps.NoPrivacy())
    return frame, ps.heads.LDA().fit_release(ps.simulate(plan, [(frame[::2], y[::2]), (frame[1::2], y[1::2])]))


def test_a_head_by_name_reads_a_mapping_in_the_order_of_its_plan() -> None:
    frame, head = by_name()
    for form in (frame.iloc[0], frame.iloc[0].to_dict(), {"b": frame["b"][:1], "a": frame["a"][:1]}):
        assert (head.predict_proba(form) == head.predict_proba(frame.iloc[[0]])).all()
    with pytest.raises(ps.DataError, match="X lacks 'b'"):
        head.predict_proba({"a": [1.0]})


def test_a_head_by_name_refuses_texts_by_column_and_count_in_every_form() -> None:
    """And shows none of them, because an error may be logged."""
    frame, head = by_name()
    odd = frame.astype(object).assign(b=["61,5"] * 60)
    one = odd.iloc[[0]]
    rows = one.to_numpy()
    for form in (*forms(odd), one[["b", "a"]], pd.DataFrame(rows), rows, rows.tolist(), rows.astype(str)):
        with pytest.raises(RecordError, match=r"no numbers in 'b' \(1, a decimal comma in 1: write a point\);") as said:
            head.predict_proba(form)
        assert "61" not in str(said.value)
    odd.loc[0, "b"] = "about 60"
    with pytest.raises(RecordError, match=r"no numbers in 'b' \(60, a decimal comma in 59: write a point\); code them"):
        head.predict(odd)
    with pytest.raises(RecordError, match=r"no numbers in 'a' \(1\), 'b' \(1\); code them"):
        head.predict({"a": "high", "b": "low"})
    written = frame.iloc[[0]].astype(str)
    assert (head.predict_proba(written) == head.predict_proba(frame.iloc[[0]])).all()
    assert (head.predict_proba(written.to_numpy()) == head.predict_proba(frame.iloc[[0]])).all()


def test_a_graph_scores_every_form_of_a_record_alike(tmp_path: Path) -> None:
    """Its input is ``head.preprocessing_.ordered(...)``, which read a one-row frame as gaps only."""
    onnxruntime = pytest.importorskip("onnxruntime")
    table, _, _, head = fitted()
    head.to_onnx(tmp_path / "head.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "head.onnx")
    first = head.preprocessing_.ordered(forms(table)[0])
    assert not np.isnan(first).any()
    for form in forms(table):
        codes = head.preprocessing_.ordered(form)
        assert (codes == first).all()
        np.testing.assert_allclose(
            session.run(["probabilities"], {"rows": codes})[0], head.predict_proba(form), atol=1e-9
        )
    with pytest.warns(UnreadableRecordsWarning, match="1 of 'age' are no numbers, such as '61,5' .write decimals with"):
        codes = head.preprocessing_.ordered({"age": "61,5", "smoking": "none"})
    assert np.isnan(codes).tolist() == [[True, False]]
