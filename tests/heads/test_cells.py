"""Heads behind declared columns: raw tables in, and out to files, torch and ONNX."""

import json
import subprocess
import sys
import warnings

import numpy as np
import pytest

import privstats as ps
from privstats.intake.declared.columns import column_from_plan
from tests.made import refused

COLUMNS = (
    ps.Numeric("age", (30, 40, 50, 60, 70), gaps=(-9,)),
    ps.Categories("sex", ("f", "m")),
    ps.Categories("ward", ("a", "b", "c")),
    ps.Truth("smoker"),
    ps.Dates("seen", ("2020-01-01", "2021-01-01")),
)
CELLS = ps.Cells(COLUMNS, ramp=True)
TERMS = {"epsilon": 8.0, "delta": 1e-6, "adjacency": "add-remove", "classes": [0, 1], "max_records": 1024}


def table(records=400, seed=0):
    chance = np.random.default_rng(seed)
    age = np.where(chance.random(records) < 0.1, np.nan, chance.normal(50, 15, records))
    smoker = chance.choice(["true", "False", None], records)
    found = {
        "id": np.arange(records),
        "seen": chance.choice(["2019-05-01", "2020-06-01T10:00", "2022-01-01", "", "soon"], records),
        "smoker": smoker,
        "age": age,
        "sex": chance.choice(["f", "m", None], records),
        "ward": chance.choice(["a", "b", "c", "new"], records),
    }
    return found, ((np.nan_to_num(age, nan=50) > 55) ^ (smoker == "true")).astype(int)


def fitted(head, **more):
    X, y = table()
    with warnings.catch_warnings(action="ignore"):
        return head.fit_private(X, y, transform=(CELLS,), clip_norm=1.0, ledger="uncharged", **TERMS, **more)


@pytest.fixture(scope="module")
def lda():
    return fitted(ps.heads.LDA())


@pytest.mark.parametrize(
    "head", [ps.heads.LDA(), ps.heads.RefinedSoftmax(rounds=1)], ids=lambda head: type(head).__name__
)
def test_a_head_learns_from_a_table_and_predicts_one(head):
    model = fitted(head)
    X, y = table(seed=1)
    assert model.score(X, y) > 0.7
    assert ([step.kind for step in model.preprocessing_.transform], model.n_features_in_) == (["cells"], 5)
    assert model.feature_names_in_.tolist() == ["age", "sex", "ward", "smoker", "seen"]


def test_a_mean_taken_out_puts_one_norm_behind_it():
    model = fitted(ps.heads.LDA(), centred=True, expected_records=400)
    assert [step.kind for step in model.preprocessing_.transform] in (["cells"], ["cells", "centre", "unit-norm"])
    assert model.score(*table(seed=1)) > 0.7


def test_columns_come_in_any_order_and_container(lda):
    pandas = pytest.importorskip("pandas")
    X, _ = table(seed=1)
    expected = lda.predict_proba(X)
    frame = pandas.DataFrame(X)
    for each in (
        frame,
        frame.iloc[:, ::-1],
        frame.convert_dtypes(),
        frame.astype({"sex": "category", "ward": "category"}),
    ):
        assert (lda.predict_proba(each) == expected).all()
    assert (lda.predict_proba(np.array([X[column.name] for column in COLUMNS], object).T) == expected).all()
    np.testing.assert_allclose(lda.predict_proba(frame.iloc[5:6]), expected[5:6])  # BLAS adds one row in another order
    refused(ps.DataError, "lacks the column 'sex'", lda.predict, frame.drop(columns="sex"))


@pytest.mark.ci
def test_a_file_of_a_head_holds_the_columns_and_reads_unseen_texts_elsewhere(lda, tmp_path):
    lda.save(tmp_path / "ward.head")
    rows = {
        "age": [41, -9],
        "sex": ["?", "f"],
        "ward": ["never seen", "b"],
        "smoker": ["TRUE", 0],
        "seen": ["2020-01-01", 7],
    }
    here = lda.predict_proba(rows)
    text = (
        f"import sys, privstats as ps;head = ps.heads.load(sys.argv[1]); print(head.predict_proba({rows!r}).tolist())"
    )
    there = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path / "ward.head")], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(there) == here.tolist()


def test_a_module_takes_codes(lda):
    torch = pytest.importorskip("torch")
    codes = lda.preprocessing_.ordered(table(seed=2)[0])
    scores = ps.heads.to_module(lda)(torch.from_numpy(codes)).numpy()
    np.testing.assert_allclose(scores, lda.decision_function(table(seed=2)[0]) if scores.ndim == 1 else scores)
    assert (scores.argmax(axis=1) == lda.predict(table(seed=2)[0])).all()
    refused(ps.errors.HeadError, "compared as float64", ps.heads.to_module, lda, precision="float32")
    refused(ps.errors.HeadError, "behind the transform 'cells'", ps.heads.to_linear, lda)


def test_a_graph_takes_codes_and_says_what_they_are(lda, tmp_path):
    onnxruntime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    X, _ = table(seed=2)
    X["age"][:5] = [30, np.nextafter(30, 0), 1e300, -0.0, 70]
    lda.to_onnx(tmp_path / "ward.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "ward.onnx")
    label, chances = session.run(["label", "probabilities"], {"rows": lda.preprocessing_.ordered(X)})
    assert (label == lda.predict(X)).all()
    np.testing.assert_allclose(chances, lda.predict_proba(X), atol=1e-9)
    held = {each.key: each.value for each in onnx.load(tmp_path / "ward.onnx").metadata_props}
    assert tuple(column_from_plan(each) for each in json.loads(held["privstats.columns"])) == tuple(
        column_from_plan(each) for each in CELLS.plain_table()["columns"]
    )


def test_a_card_names_the_columns(lda):
    assert "A table, of which it reads 5 columns: age, sex, ward, smoker, seen." in lda.card()
