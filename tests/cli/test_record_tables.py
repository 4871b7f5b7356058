"""CSV and Parquet files, and X with y, are what arrays are to a sweep and to a suggestion."""

from __future__ import annotations

import json

import numpy as np
import pytest

import privstats as ps
from privstats.cli.parts.record_tables import Records, read_table
from privstats.errors import DataError

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
    done = privstats("sweep", *words, "--head", "LDA", "--epsilon", "4", "--repeats", "2", cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_table_is_swept_like_its_arrays(privstats, folder):
    """The columns of the file stand in another order than the plan's names, and the split is drawn by the seed."""
    from_table = swept(privstats, folder, "named.toml", "trees.csv", "--target", "tree", "--split", "0.25")
    from_arrays = swept(privstats, folder, "plan.toml", "trees.npz", "--split", "0.25")
    assert "LDA" in from_table
    assert from_table == from_arrays


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("y", [Y, TREES[Y], Y * 0.5], ids=["numbers", "texts", "targets"])
def test_what_is_written_is_read(kind, y, tmp_path):
    path = tmp_path / f"trees.{kind}"
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        frame(y).to_parquet(path)
    else:
        frame(y).to_csv(path, index=False)
    found = read_table(path, "tree", COLUMNS)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, y)
    assert found.y.dtype.kind == np.asarray(y.tolist()).dtype.kind
    as_it_stands = read_table(path, "tree")
    np.testing.assert_array_equal(as_it_stands.X, X[:, ::-1])


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


@pytest.mark.parametrize(
    ("text", "target", "names", "words"),
    [
        ("a,b,y\n1,2,0\n", None, None, r"say with --target which column is predicted; it has a, b, y"),
        ("a,b,y\n1,2,0\n", "z", None, r"has no column 'z'"),
        ("a,b,y\n1,,0\n", "y", None, r"missing values in b; leave out or impute"),
        ("a,b,y\n1,x,0\n", "y", None, r"holds no numbers in b; encode"),
        ("a,b,y\n1,2,0\n", "y", ("a", "c"), r"X lacks"),
        ("", "y", None, r"cannot read .* as a table"),
        ('a,b\n1,2,3,4\n"', "y", None, r"cannot read .* as a table"),
    ],
)
def test_a_table_that_does_not_fit_is_one_sentence(text, target, names, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        read_table(tmp_path / "t.csv", target, names)


def test_what_is_no_parquet_file_is_one_sentence(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.parquet").write_text("a,b")
    with pytest.raises(DataError, match="cannot read"):
        read_table(tmp_path / "t.parquet", "a")


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 1.5, 0.001, 0.999, float("nan")])
def test_a_split_that_leaves_nothing_is_one_sentence(share):
    with pytest.raises(DataError, match="leaves one part of 120 records empty"):
        Records(X, Y).split(share, 0)


def test_a_split_is_every_record_once():
    learned, scored = Records(X, Y).split(0.25, 7)
    assert (len(learned.X), len(scored.X)) == (90, 30)
    together = np.r_[learned.X, scored.X]
    assert sorted(map(tuple, together)) == sorted(map(tuple, X))
    assert {(*row, label) for row, label in zip(together, np.r_[learned.y, scored.y], strict=True)} == {
        (*row, label) for row, label in zip(X, Y, strict=True)
    }
    again, _ = Records(X, Y).split(0.25, 7)
    np.testing.assert_array_equal(again.X, learned.X)
    with pytest.raises(DataError, match="X has 120 rows but y has 119"):
        Records(X, Y[1:]).split(0.25, 7)
