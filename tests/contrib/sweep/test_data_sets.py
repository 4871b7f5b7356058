"""A folder of data sets is scored by one command: each set with its own sizes, and one table for all."""

import csv
import dataclasses

import numpy as np
import pytest

import privstats as ps
from privstats.contrib.sweep.data_sets import archives_in, fitted
from privstats.moments import Records
from tests import made
from tests.made import refused

PLAN = made.plan(
    ps.ClassSchema(3, 4, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),)),
    ps.Cohort(4, 3, 100),
    made.promise("distributed"),
)


def blobs(classes, features, records=240):
    rng = np.random.default_rng(classes)
    y = np.arange(records) % classes
    X = rng.normal(size=(records, features)) + 4 * rng.normal(size=(classes, features))[y]
    return {"X_train": X, "y_train": y, "X_test": X[::2], "y_test": y[::2]}


def test_one_command_scores_each_set_of_a_folder_and_writes_one_table(privstats, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN.to_toml())
    (tmp_path / "sets").mkdir()
    np.savez(tmp_path / "sets" / "birds.npz", **blobs(5, 6))
    np.savez(tmp_path / "sets" / "trees.npz", **blobs(3, 4))
    words = ("sweep", "plan.toml", "sets", "--head", "lda", "--epsilon", "8", "--repeats", "2", "--out", "paper")
    done = privstats(*words, cwd=tmp_path, code=0)
    assert "birds: 240 records to train on" in done.stdout
    with (tmp_path / "paper" / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["data"] for row in rows if row["epsilon"]] == ["birds", "trees"]
    text = (tmp_path / "paper" / "sweep.tex").read_text()
    for row in rows:
        assert f"{100 * float(row['mean']):.1f}" in text
        assert (tmp_path / "paper" / row["data"] / "sweep.json").exists()
    assert text.index("birds & LDA") < text.index("trees & LDA")
    assert "birds 120 and 240, trees 120 and 240" in text
    again = privstats(*words, cwd=tmp_path, code=2).stderr.replace("\n", " ")
    assert "holds a finished sweep" in again


def test_a_plan_takes_a_sets_sizes_and_keeps_its_promise():
    data = blobs(7, 9)
    records = Records(data["X_train"], data["y_train"])
    own = fitted(PLAN, "birds", records, records)
    assert (own.schema.classes, own.schema.features, own.cohort.max_records) == (7, 9, 240)
    assert own.privacy == PLAN.privacy
    assert own.schema.transform == PLAN.schema.transform


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (ps.ClassSchema(2, 2, "NA", 1.0, class_names=("ash", "elm")), "names its columns or classes, and birds"),
        (ps.CountSchema((ps.Bins("age", (0, 50, 100)),), (("age",),)), "needs a plan of classes or of a regression"),
    ],
)
def test_a_plan_that_fits_one_set_alone_is_refused(schema, message):
    records = Records(np.eye(4)[:, :2], np.arange(4) % 2)
    with pytest.raises(ps.PlanError, match=message):
        fitted(dataclasses.replace(PLAN, schema=schema), "birds", records, records)


@pytest.mark.parametrize("name", ["rows.csv", "readme.md", "more/oaks.npz", ".hidden.npz/a.csv"])
def test_no_entry_next_to_npz_files_is_left_out_without_a_word(name, tmp_path):
    np.savez(tmp_path / "birds.npz", **blobs(5, 6))
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / "birds.npz").rename(tmp_path / "birds")
    assert archives_in(tmp_path) == [tmp_path / "birds"]
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes((tmp_path / "birds").read_bytes() if name.endswith("npz") else b"a,b\n1,2\n")
    refused(ps.DataError, f"holds {name} next to npz files, of which each is a data set", archives_in, tmp_path)


def test_two_sets_of_one_name_are_refused(tmp_path):
    for name in ("birds.npz", "birds.dat"):
        np.savez(tmp_path / "one.npz", **blobs(5, 6))
        (tmp_path / "one.npz").rename(tmp_path / name)
    refused(ps.DataError, "holds two data sets of the name 'birds': rename one", archives_in, tmp_path)


def test_a_file_and_a_folder_of_tables_are_no_folder_of_sets(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    assert archives_in(tmp_path) == archives_in(tmp_path / "rows.csv") == []


def test_rows_of_one_dimension_are_refused_with_the_sets_name():
    records = Records(np.arange(4.0), np.arange(4) % 2)
    refused(ps.DataError, "X of birds must have shape", fitted, PLAN, "birds", records, records)
