"""CSV and Parquet files, and X with y, are what arrays are to a sweep and to a suggestion."""

import json

import numpy as np
import pytest

import privstats as ps

pandas = pytest.importorskip("pandas")

COLUMNS = ("age", "dose", "mass")
TREES = np.array(["ash", "elm"])
RNG = np.random.default_rng(0)
Y = np.arange(120) % 2
X = RNG.normal(size=(120, 3)) + 2 * np.eye(2, 3)[Y]
PRIVACY = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=4.0, delta=1e-5)


def plan(**schema):
    schema = ps.ClassSchema(2, 3, "NAB", 4.0, **schema)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 200), privacy=PRIVACY)


def frame(y=Y):
    return pandas.DataFrame(X, columns=COLUMNS).assign(tree=y)[["mass", "tree", "dose", "age"]]


@pytest.fixture
def folder(tmp_path):
    frame().to_csv(tmp_path / "trees.csv", index=False)
    np.savez(tmp_path / "trees.npz", X=X, y=Y)
    (tmp_path / "plan.toml").write_text(plan().to_toml())
    (tmp_path / "named.toml").write_text(plan(feature_names=COLUMNS).to_toml())
    (tmp_path / "texts.toml").write_text(plan(feature_names=COLUMNS, class_names=tuple(TREES)).to_toml())
    return tmp_path


def swept(privstats, folder, *words):
    """What a sweep of one head at one epsilon prints."""
    return privstats("sweep", *words, "--head", "LDA", "--epsilon", "4", "--repeats", "2", cwd=folder, code=0).stdout


def test_a_table_is_swept_like_its_arrays(privstats, folder):
    """The columns of the file stand in another order than the plan's names, and the split is drawn by the seed."""
    from_table = swept(privstats, folder, "named.toml", "trees.csv", "--target", "tree", "--split", "0.25")
    from_arrays = swept(privstats, folder, "plan.toml", "trees.npz", "--split", "0.25")
    assert "LDA" in from_table
    assert from_table == from_arrays


def test_texts_are_swept_where_the_plan_names_the_classes(privstats, folder):
    frame(TREES[Y]).to_csv(folder / "texts.csv", index=False)
    assert "LDA" in swept(privstats, folder, "texts.toml", "texts.csv", "--target", "tree", "--split", "0.25")


def test_a_table_is_what_a_suggestion_is_made_of(privstats, folder):
    np.save(folder / "x.npy", frame()[["mass", "dose", "age"]].to_numpy())
    np.save(folder / "y.npy", Y)
    by_table = privstats("plan", "suggest", "--public", "trees.csv", "--target", "tree", "--json", cwd=folder)
    by_arrays = privstats("plan", "suggest", "--public", "x.npy", "--labels", "y.npy", "--json", cwd=folder)
    assert by_table.returncode == 0, by_table.stderr
    assert by_table.stdout == by_arrays.stdout
    assert json.loads(by_table.stdout)["reference"] > 0.8
    frame(Y * 0.5).to_csv(folder / "targets.csv", index=False)
    targets = privstats("plan", "suggest", "--public", "targets.csv", "--target", "tree", "--json", cwd=folder)
    assert json.loads(targets.stdout)["reference"] is None


def test_declared_columns_need_no_clip_norm_that_one_could_suggest(privstats, folder):
    cells = ps.Cells((ps.Numeric("age", (0.0,)), ps.Numeric("dose", (0.0, 1.0))))
    schema = ps.ClassSchema(2, cells.width, "NAB", 1.0, transform=(cells,))
    declared = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 200), privacy=PRIVACY)
    (folder / "cells.toml").write_text(declared.to_toml())
    words = ("plan", "suggest", "--plan", "cells.toml", "--public", "trees.csv", "--target", "tree")
    done = privstats(*words, cwd=folder)
    assert (done.returncode, "rows of declared columns always have norm 1" in done.stderr) == (2, True)
    assert "shares = {" in privstats(*words[:4], cwd=folder).stdout
