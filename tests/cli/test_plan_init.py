"""``plan init`` asks on a terminal, reads a table's shape, and has no default for a choice of privacy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.main import app
from privstats.cli.parts import asking
from privstats.cli.parts.questions import QUESTIONS
from privstats.moments import RecordFile

GIVEN = {
    "task": "classes", "classes": 3, "features": 4, "clip-norm": 2.5, "clients": 8, "vanish": 2, "colluders": 1,
    "max-records": 900, "model": "distributed", "unit": "record", "adjacency": "replace-one", "epsilon": 2.0,
    "delta": 1e-6,
}  # fmt: skip
ANSWERS = "\n".join(str(value) for value in GIVEN.values()) + "\n"


def options(**changes):
    named = {**GIVEN, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [word for name, value in named.items() if value is not None for word in (f"--{name}", str(value))]


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(asking, "can_ask", lambda: True)


@pytest.fixture
def init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words, **how: CliRunner().invoke(app, ["plan", "init", *words], **how)


def test_a_person_answers_and_the_plan_says_what_was_answered(init, terminal):
    done = init(input=ANSWERS)
    assert done.exit_code == 0, done.output
    plan = ps.Plan.read("plan.toml")
    assert plan.privacy == ps.Privacy(
        model="distributed", unit="record", adjacency="replace-one", epsilon=2.0, delta=1e-6
    )
    assert plan.cohort == ps.Cohort(8, 6, 900, 1)
    assert (plan.schema.clip_norm, plan.schema.classes) == (2.5, 3)
    assert all(question.why in done.output for question in QUESTIONS if question.name in plan.to_toml())
    assert "at it.\nepsilon = 2.0\n# Which delta?" in Path("plan.toml").read_text()


def test_what_is_given_is_not_asked(init, terminal):
    answers = ANSWERS.replace("record\nreplace-one\n", "add-remove\n")
    done = init("--unit", "client", "--max-records-per-client", "50", input=answers)
    assert done.exit_code == 0, done.output
    assert "Who is protected?" not in done.output
    assert ps.Plan.read("plan.toml").privacy.max_records_per_client == 50


def test_a_choice_of_privacy_has_no_default(init, terminal):
    """Enter alone is no answer: the question comes again, and the end of input writes nothing."""
    done = init(*options(epsilon=None), input="\n\n")
    assert (done.exit_code, done.output.count("Which epsilon?")) == (1, 3)
    assert "[" not in done.output.split("Which epsilon?")[1][:4]
    assert not (Path("plan.toml")).exists()


def test_answers_that_make_no_plan_are_not_lost(init, terminal, privstats, tmp_path):
    done = init(input=ANSWERS.replace("\n900\n", "\n9000000000000000000\n"))
    assert isinstance(done.exception, ps.PlanError)
    assert "privstats plan init plan.toml --yes --task classes" in done.stderr
    assert "--max-records 9000000000000000000" in done.stderr


WRONG = {
    "classes": (1, "classes must be"), "features": (0, "features must be"), "clip-norm": (-1.0, "clip_norm must be"),
    "clients": (1, "cohort.clients must be at least 2"), "vanish": (8, "vanish must be 0 to 7 of 8"),
    "colluders": (6, "must stay below"), "max-records": (0, "cohort.max_records must be at least 1"),
    "epsilon": (0.0, "epsilon must lie between"), "delta": (1.0, "delta must lie between"),
}  # fmt: skip


def test_an_answer_out_of_its_bounds_is_asked_again_at_once(init, terminal):
    twice = {name: f"{WRONG[name][0]}\n{value}" if name in WRONG else f"{value}" for name, value in GIVEN.items()}
    done = init(input="\n".join(twice.values()) + "\n")
    assert done.exit_code == 0, done.output
    asked = {question.name.replace("_", "-"): question.asks for question in QUESTIONS}
    for name, (_, told) in WRONG.items():
        assert done.output.count(asked[name]) == 2
        assert told in done.output.split(asked[name])[1]


def test_an_option_out_of_its_bounds_is_refused_before_the_next_question(init, terminal):
    done = init(*options(clients=1, vanish=None), input="0\n")
    assert "cohort.clients must be at least 2" in str(done.exception)
    assert "may vanish" not in done.output


def test_a_party_is_promised_what_somebody_chose(init, terminal):
    """With unit client adjacency is asked and not taken, and replace-one is refused where it is answered."""
    words = options(unit="client", adjacency=None, max_records_per_client=50)
    done = init(*words, input="replace-one\nadd-remove\n")
    assert (done.exit_code, done.output.count("What must stay a secret?")) == (0, 2), done.output
    assert "'replace-one' is not offered with unit='client'" in done.output
    assert init("--yes", "--force", *words, "--adjacency", "add-remove").exit_code == 0
    assert ps.Plan.read("plan.toml").privacy.unit == "client"
    assert "nothing says --adjacency" in str(init("--yes", "--force", *words).exception)


def test_without_a_terminal_and_answers_the_example_is_written(init):
    assert init().exit_code == 0
    assert "# The plan of one aggregation. Every party" in Path("plan.toml").read_text()


def test_the_example_is_there_on_a_terminal_too(init, terminal):
    assert init("--example").exit_code == 0
    assert ps.Plan.read("plan.toml").schema.classes == 10


def test_yes_takes_what_is_given(init):
    assert init("--yes", *options()).exit_code == 0
    assert ps.Plan.read("plan.toml").privacy.epsilon == 2.0
    assert init("--yes", "--force", *options(task="ridge", classes=None, target_bound=9)).exit_code == 0
    assert ps.Plan.read("plan.toml").schema.target_bound == 9


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--yes"], "nothing says --task, --features, --clip-norm"),
        (options(epsilon=None, delta=None), "nothing says --epsilon, --delta: .* no choice of privacy has a default"),
        (options(target_bound=3), "--target-bound does not go with the other answers"),
        (options(task="trees", classes=None), "task must be 'classes' or 'ridge'"),
        (options(vanish=8), "vanish must be 0 to 7 of 8"),
        (options(model="panel"), "protocol"),
        (options(unit="patient"), "unit must be 'record' or 'client', got 'patient': record: one record"),
        (options(task="trees"), "task must be 'classes' or 'ridge', got 'trees'"),
        (options(unit="client", max_records_per_client=9), "'replace-one' is not offered with unit='client'"),
        (["--target", "y"], "give the table with --from"),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence_and_no_file(init, words, told):
    done = init(*words)
    assert isinstance(done.exception, ps.errors.PrivstatsError), done.output
    with pytest.raises(ps.errors.PrivstatsError, match=told):
        raise done.exception
    assert not Path("plan.toml").exists()


def test_a_table_gives_columns_and_classes_and_never_a_clip(init, tmp_path):
    (tmp_path / "ward.csv").write_text("age,bmi,ill\n51,20.5,no\n42,31,yes\n63,25,no\n")
    words = options(classes=None, features=None, task=None)
    done = init("--yes", "--from", "ward.csv", "--target", "ill", *words)
    assert done.exit_code == 0, done.output
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.feature_names, schema.class_names) == (("age", "bmi"), ("no", "yes"))
    assert "a leak outside the budget" in done.stderr
    refused = init("--yes", "--force", "--from", "ward.csv", "--target", "ill", *options(classes=None, clip_norm=None))
    assert "--clip-norm" in str(refused.exception)


def test_a_table_of_numbers_is_a_regression(init, tmp_path):
    (tmp_path / "ward.csv").write_text("age,bmi,days\n51,20.5,2.5\n42,31,3\n63,25,1\n")
    words = options(classes=None, features=None, task=None, target_bound=30)
    assert init("--yes", "--from", "ward.csv", "--target", "days", *words).exit_code == 0
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.task, schema.features, schema.target_bound) == ("ridge", 2, 30)


WARD = "patient,age,ill\nanna,51,no\nbert,42,yes\n"


def test_a_csv_needs_no_pandas_and_ids_are_left_out(init, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / "ward.csv").write_text(WARD.replace("age", "age,crp").replace("51", "51,3").replace("42", "42,2.5"))
    words = ("--yes", "--from", "ward.csv", "--target", "ill", *options(classes=None, features=None, task=None))
    assert "holds no numbers in patient; encode these columns, or leave them out" in str(init(*words).exception)
    done = init(*words, "--drop", "patient")
    assert done.exit_code == 0, done.output
    assert ps.Plan.read("plan.toml").schema.feature_names == ("age", "crp")


@pytest.mark.parametrize(
    ("text", "words", "told"),
    [
        (WARD, ["--target", "ill", "--drop", "name"], "has no column name to leave out with --drop"),
        (WARD, ["--target", "ill", "--drop", "ill"], "--drop leaves out 'ill', which --target predicts"),
        (WARD, ["--target", "sick"], "has no column 'sick': say with --target"),
        (WARD.replace("51", ""), ["--target", "ill"], "has missing values in age"),
        (WARD + "carl,3\n", ["--target", "ill"], "cannot read ward.csv as a table"),
        ("", ["--target", "ill"], "ward.csv is empty"),
        ("age,ill\n", ["--target", "ill"], "ward.csv holds no record"),
    ],
)
def test_a_csv_that_gives_no_plan_is_one_sentence(init, tmp_path, text, words, told):
    (tmp_path / "ward.csv").write_text(text)
    assert told in str(init("--yes", "--from", "ward.csv", *words).exception)
    assert "--drop names a column of a table" in str(init("--yes", "--drop", "id").exception)


def test_labels_have_the_kind_that_fits_all_of_them(tmp_path):
    read = {}
    for name, labels in {"whole": "0 2", "number": "0 2.5", "truth": "True false", "text": "0 b"}.items():
        first, second = labels.split()
        (tmp_path / "t.csv").write_text(f"x,y\n1,{first}\n2,{second}\n")
        read[name] = RecordFile(tmp_path / "t.csv", "y").whole().y.dtype.kind
    assert read == {"whole": "i", "number": "f", "truth": "b", "text": "U"}
