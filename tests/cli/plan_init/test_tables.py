"""``plan init`` reads a table's names and declared columns, and no private value."""

import sys
from pathlib import Path

import pytest

import privstats as ps
from privstats.cli.parts.declared_columns import declared, read_columns
from tests.cli.plan_init.answers import GIVEN, options

WARD = "patient,age,bmi,stage,ill\nanna-77,51,20.5,II,no\nbert-88,42,31,I,yes\ncarl-99,63,25,II,no\n"
OPEN = options(task=None, classes=None, features=None, clip_norm=None)
COLUMNS = """
[[columns]]
name = "Age"
kind = "numeric"
edges = [40, 60]

[[columns]]
name = "stage"
kind = "categories"
values = ["I", "II", "III"]

[[columns]]
name = "ill"
kind = "categories"
values = ["no", "yes"]
"""
NUMERIC = COLUMNS.replace('kind = "numeric"\nedges = [40, 60]', 'kind = "truth"').replace(
    'kind = "categories"\nvalues = ["no", "yes"]', 'kind = "numeric"'
)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--task", "effect"], "--from is for classes and ridge: omit it, and name columns in --ranges"),
        (["--task", "hazard", "--ranges", "age=20:90"], "--from is for classes and ridge"),
        (["--task", "ridge", "--epsilon", "1"], "--from alone writes columns.toml and would drop the other answers"),
    ],
)
def test_answers_beside_a_file_of_names_alone_are_not_dropped(init, words, told):
    Path("ward.csv").write_text("age,ill\n51,yes\n")
    assert told in str(init("--yes", "--from", "ward.csv", *words).exception)
    assert not Path("columns.toml").exists()


def test_a_declaration_that_is_there_is_asked_for_by_its_option(init):
    Path("ward.csv").write_text("age,ill\n51,yes\n")
    assert init("--yes", "--from", "ward.csv").exit_code == 0
    assert "pass --public columns.toml" in str(init("--yes", "--from", "ward.csv").exception)
    assert init("--yes", "--from", "ward.csv", "--force").exit_code == 0


def test_of_a_private_table_the_names_are_read_and_nothing_else(init, tmp_path):
    (tmp_path / "ward.csv").write_text(WARD)
    done = init("--from", "ward.csv", "--drop", "patient", code=0)
    assert "column names of ward.csv, the only part that is used: age, bmi, stage, ill" in done.output
    text = Path("columns.toml").read_text()
    assert [f'name = "{name}"\nkind = "?"' in text for name in ("age", "bmi", "stage", "ill")] == [True] * 4
    assert not Path("plan.toml").exists()
    values = [value for line in WARD.splitlines()[1:] for value in line.split(",") if len(value) > 2]
    assert not [value for value in values if value in done.output + text]
    told = "columns.toml lacks the kind of age, bmi, stage, ill: write one for each"
    assert told in str(init("--yes", "--public", "columns.toml", "--target", "ill", *OPEN).exception)
    assert "columns.toml exists" in str(init("--from", "ward.csv").exception)


def test_a_person_sees_the_names_before_they_are_written(init, terminal, tmp_path):
    (tmp_path / "ward.csv").write_text(WARD)
    done = init("--from", "ward.csv", input="n\n")
    assert "the only part that is used: patient, age" in done.output
    assert (done.exit_code, Path("columns.toml").exists()) == (1, False)
    assert init("--from", "ward.csv", input="y\n").exit_code == 0
    assert Path("columns.toml").exists()


def test_declared_columns_make_a_plan_without_a_clip_norm_to_choose(init, tmp_path):
    (tmp_path / "ward.csv").write_text(WARD)
    (tmp_path / "c.toml").write_text(COLUMNS)
    init("--yes", "--from", "ward.csv", "--public", "c.toml", "--target", "ILL", *OPEN, code=0)
    cells = ps.Cells((ps.Numeric("Age", (40, 60)), ps.Categories("stage", ("I", "II", "III"))))
    schema = ps.Plan.read("plan.toml").schema
    assert schema == ps.ClassSchema(2, cells.width, "NAB", 1.0, class_names=("no", "yes"), transform=(cells,))
    refused = init("--yes", "--force", "--public", "c.toml", "--target", "ill", *OPEN, "--clip-norm", "2")
    assert "the declared columns answer --clip-norm: omit these options" in str(refused.exception)
    refused = init("--yes", "--force", "--public", "c.toml", "--target", "ill", *options(**dict.fromkeys(GIVEN)))
    assert "missing: --clients, " in str(refused.exception), "no choice of privacy follows from columns"
    (tmp_path / "c.toml").write_text(NUMERIC)
    words = ("--yes", "--force", "--public", "c.toml", "--target", "ill", *OPEN, "--target-bound", "9")
    assert init(*words).exit_code == 0
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.task, schema.target_bound, schema.transform[1:]) == (
        "ridge", 9, (ps.transforms.ConstantFeature(1.0),)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pair", "classes", "labels"),
    [
        ("", None, ["no", "Yes", "Y", "F", 1, None, "maybe"]),
        ('values = ["FALSCH", "WAHR"]', ("FALSCH", "WAHR"), ["FALSCH", "WAHR", "WAHR", "FALSCH", "WAHR", None, "yes"]),
    ],
)
def test_a_target_declared_as_truth_reads_its_pair(init, tmp_path, pair, classes, labels):
    """A plan was written, and the texts of its target were refused when the roster existed."""
    target = 'kind = "categories"\nvalues = ["no", "yes"]'
    (tmp_path / "c.toml").write_text(COLUMNS.replace(target, f'kind = "truth"\n{pair}'))
    init("--yes", "--public", "c.toml", "--target", "ill", *OPEN, code=0)
    schema = ps.Plan.read("plan.toml").schema
    assert schema.class_names == classes
    table = {"age": [50] * 7, "stage": ["I"] * 7}
    with pytest.warns(ps.errors.UnreadableRecordsWarning, match="2 of the records"):
        assert ps.measure(schema, table, labels, unreadable="leave out").N.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("words", "missing", "stated"),
    [
        ((), "left out", "a record with a gap in a declared column is in no sum"),
        (("--gaps", "excluded"), "left out", "estimates are of complete records"),
        (("--gaps", "cell"), None, "reports no contrast where a column has more gaps than noise could show"),
    ],
)
def test_a_regression_excludes_records_with_gaps_unless_it_is_for_predictions(init, tmp_path, words, missing, stated):
    (tmp_path / "c.toml").write_text(NUMERIC)
    regression = ("--yes", "--public", "c.toml", "--target", "ill", *OPEN, "--target-bound", "9")
    done = init(*regression, *words, code=0)
    plan = ps.Plan.read("plan.toml")
    assert plan.schema.transform[0].missing == missing
    assert stated in " ".join(done.output.split())
    assert stated in " ".join(ps.review.facts(plan))


def test_gaps_are_asked_about_in_a_regression_on_declared_columns_alone(init, tmp_path):
    (tmp_path / "c.toml").write_text(COLUMNS)
    words = ("--yes", "--public", "c.toml", "--target", "ill", *OPEN)
    init(*words, code=0)
    assert ps.Plan.read("plan.toml").schema.transform[0].missing is None, "a model of classes predicts"
    assert "--gaps does not go with the other answers" in str(init(*words, "--force", "--gaps", "cell").exception)
    plain = options(task="ridge", classes=None, target_bound=9)
    assert "--gaps does not go with" in str(init("--yes", "--force", *plain, "--gaps", "cell").exception)
    (tmp_path / "c.toml").write_text(NUMERIC)
    refused = init(*words, "--force", "--target-bound", "9", "--gaps", "zero")
    assert "gaps must be excluded or cell, got 'zero'" in str(refused.exception)


def test_a_public_file_is_read_as_a_whole(init, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / "ward.csv").write_text(WARD)
    done = init("--yes", "--from", "ward.csv", "--public-file", "--target", "ill", "--drop", "patient", *OPEN, code=0)
    assert "the cut points of bmi are estimated under the promise: divide it with: privstats course init" in done.output
    plan = ps.Plan.read("plan.toml")
    assert [each.name for each in plan.schema.transform[0].columns] == ["age", "bmi", "stage"]
    assert (plan.schema.class_names, plan.cohort.max_records) == (("no", "yes"), 900)


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (WARD, ["--from", "ward.csv", "--drop", "name"], "has no column name that --drop names"),
        (WARD, ["--from", "ward.csv", "--public-file"], "name the column of ward.csv to predict with --target"),
        (WARD, ["--from", "ward.csv", "--public-file", "--target", "ill", "--drop", "ill"], "name the column"),
        (WARD, ["--public-file", "--target", "ill", "--public", "c.toml"], "--public-file declares the table"),
        (WARD, ["--public", "c.toml", "--target", "sick"],
            "the target 'sick' is not among the columns of c.toml: add it, or name one of Age, stage, ill"),
        (WARD, ["--public", "c.toml", "--target", "ill", "--drop", "ill"], "--drop must name columns of c.toml"),
        (WARD.replace("stage", "grade"), ["--from", "ward.csv", "--public", "c.toml", "--target", "ill"],
            "lacks 'stage'"),
        ("", ["--from", "ward.csv"], "ward.csv is empty"),
        (WARD.partition("\n")[2], ["--from", "ward.csv"], "has a number or a date where a name belongs, in column 2"),
        (WARD, ["--drop", "patient"], "--drop names a column: pass the table"),
        (WARD, ["--target", "ill"], "--target names a column: pass the table"),
    ],
)  # fmt: skip
def test_a_table_that_gives_no_plan_is_one_sentence(init, tmp_path, text, words, told):
    (tmp_path / "ward.csv").write_text(text)
    (tmp_path / "c.toml").write_text(COLUMNS)
    said = str(init("--yes", *words, *OPEN).exception)
    assert told in said
    apart = said.replace(str(tmp_path), "")  # which ends in digits of its own
    assert not [value for value in ("bert", "51", "anna", "20.5") if value in apart]
    assert not Path("plan.toml").exists()
    assert not Path("columns.toml").exists()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns = 3", "must hold tables [[columns]] and nothing else"),
        ("[[columns]]\nname = 'age'", "the column 'age'"),
        ("[[columns]]\nname = 'age'\nkind = 'number'", "the column 'age' has the kind 'number'; say what it holds"),
        ("[[columns]]\nname = 'age'\nkind = 'truth'\nedges = [1]", "unknown keys ['edges']"),
        ("[[columns]]\nname = 'age'\nkind = '?'\n[plan]\na = 1", "nothing else"),
        ("[columns", "is not valid TOML"),
    ],
)
def test_a_file_that_declares_nothing_is_one_sentence(init, tmp_path, text, told):
    (tmp_path / "c.toml").write_text(text)
    done = init("--yes", "--public", "c.toml", "--target", "age", *OPEN)
    assert isinstance(done.exception, ps.errors.PrivstatsError), done.output
    assert told in str(done.exception)


def test_a_declaration_is_read_as_it_was_written(tmp_path):
    columns = (
        ps.Numeric("age", (40, 60), gaps=(-9, "u"), unit="years"),
        ps.Dates("seen", ("2020-01-31",)),
        ps.Truth("smokes"),
        ps.Categories("stage", ("I", "II"), ordered=True),
    )
    (tmp_path / "c.toml").write_text(declared(columns))
    assert read_columns(tmp_path / "c.toml") == columns
