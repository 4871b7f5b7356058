"""``plan init`` asks on a terminal, reads a table's shape, and has no default for a choice of privacy."""

import os
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.look import _columns_of
from privstats.cli.main import app
from privstats.cli.parts import wizard
from privstats.cli.parts.declared_columns import declared, read_columns
from privstats.cli.parts.questions import QUESTIONS
from privstats.plan.device_rules import min_stated_epsilon
from privstats.secagg.keys import KEY_AGREEMENTS

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
    monkeypatch.setattr(wizard, "can_ask", lambda: True)


@pytest.fixture
def init(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def invoke(*words, code=None, **how):
        done = CliRunner().invoke(app, ["plan", "init", *words], **how)
        assert code in (None, done.exit_code), done.output
        return done

    return invoke


def test_a_person_answers_and_the_plan_says_what_was_answered(init, terminal):
    done = init(input=ANSWERS, code=0)
    plan = ps.Plan.read("plan.toml")
    assert plan.privacy == ps.Privacy(
        model="distributed", unit="record", adjacency="replace-one", epsilon=2.0, delta=1e-6
    )
    assert plan.cohort == ps.Cohort(8, 6, 900, 1)
    assert (plan.schema.clip_norm, plan.schema.classes) == (2.5, 3)
    assert all(
        question.why in done.output for question in QUESTIONS if question.name in plan.to_toml() and not question.usual
    )
    assert "at it.\nepsilon = 2.0\n# Which delta?" in Path("plan.toml").read_text()


def test_what_is_given_is_not_asked(init, terminal):
    answers = ANSWERS.replace("record\nreplace-one\n", "add-remove\n")
    done = init("--unit", "client", "--max-records-per-client", "50", input=answers, code=0)
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
    "clients": (1, "cohort.clients must be an integer of at least 2"), "vanish": (8, "vanish must be 0 to 7 of 8"),
    "colluders": (6, "must stay below"), "max-records": (0, "cohort.max_records must be an integer of at least 1"),
    "epsilon": (0.0, "epsilon must be between"), "delta": (1.0, "delta must be between"),
}  # fmt: skip


def test_an_answer_out_of_its_bounds_is_asked_again_at_once(init, terminal):
    twice = {name: f"{WRONG[name][0]}\n{value}" if name in WRONG else f"{value}" for name, value in GIVEN.items()}
    done = init(input="\n".join(twice.values()) + "\n", code=0)
    asked = {question.name.replace("_", "-"): question.asks for question in QUESTIONS}
    for name, (_, told) in WRONG.items():
        assert done.output.count(asked[name]) == 2
        assert told in done.output.split(asked[name])[1]


def test_an_option_out_of_its_bounds_is_refused_before_the_next_question(init, terminal):
    done = init(*options(clients=1, vanish=None), input="0\n")
    assert "cohort.clients must be an integer of at least 2" in str(done.exception)
    assert "may vanish" not in done.output


def test_a_party_is_promised_what_somebody_chose(init, terminal):
    """With unit client adjacency is asked and not taken, and replace-one is refused where it is answered."""
    words = options(unit="client", adjacency=None, max_records_per_client=50)
    done = init(*words, input="replace-one\nadd-remove\n")
    assert (done.exit_code, done.output.count("What must stay secret?")) == (0, 2), done.output
    assert "'replace-one' is not supported with unit='client'" in done.output
    assert init("--yes", "--force", *words, "--adjacency", "add-remove").exit_code == 0
    assert ps.Plan.read("plan.toml").privacy.unit == "client"
    assert "missing: --adjacency" in str(init("--yes", "--force", *words).exception)


def test_a_patient_with_several_rows_is_promised_what_somebody_chose(init, terminal):
    """Both numbers are asked, each in its bounds, and the plan says whom it protects."""
    done = init(*options(unit="person"), input="0.5\nmean\n2.5\n0\n2\n5\n", code=0)
    assert "below 1 a single record would be clipped" in done.output
    assert "person_clip must be given with unit='person', got 'mean'" in done.output
    assert "max_records_per_person must be an integer" in done.output
    assert "person_clip must be between 1 and 2, got 2.5" in done.output
    privacy = ps.Plan.read("plan.toml").privacy
    assert (privacy.max_records_per_person, privacy.person_clip, privacy.adjacency) == (5, 2.5, "replace-one")
    whom = "one person with all rows at one party, weighed as at most 2.5 rows"
    assert whom in ps.Plan.read("plan.toml").budget().promise
    words = options(unit="person", max_records_per_person=5)
    assert "missing: --person-clip" in str(init("--yes", "--force", *words).exception)


def test_a_patient_whose_average_counts_is_asked_for_no_number_of_rows(init, terminal):
    done = init(*options(unit="person"), input="average\n", code=0)
    assert "count in full?" not in done.output
    privacy = ps.Plan.read("plan.toml").privacy
    assert (privacy.max_records_per_person, privacy.person_clip) == (None, "average")
    words = options(unit="person", person_clip="average", max_records_per_person=5)
    assert "does not go with the other answers" in str(init("--yes", "--force", *words).exception)
    assert init("--yes", "--force", *options(unit="person", person_clip="average")).exit_code == 0


def test_without_a_terminal_and_answers_the_example_is_written(init):
    assert init().exit_code == 0
    assert "# The plan of one aggregation. Every party" in Path("plan.toml").read_text()


def test_the_example_is_there_on_a_terminal_too(init, terminal):
    assert (init("--example").exit_code, ps.Plan.read("plan.toml").schema.classes) == (0, 10)


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


def test_yes_takes_what_is_given(init):
    assert (init("--yes", *options()).exit_code, ps.Plan.read("plan.toml").privacy.epsilon) == (0, 2.0)
    assert init("--yes", "--force", *options(task="ridge", classes=None, target_bound=9)).exit_code == 0
    assert ps.Plan.read("plan.toml").schema.target_bound == 9


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--yes"], "missing: --task, --clients, --vanish"),
        (options(epsilon=None, delta=None), "missing: --epsilon, --delta; .* no choice of privacy has a default"),
        (options(target_bound=3), "--target-bound does not go with the other answers"),
        (options(vanish=8), "vanish must be 0 to 7 of 8"),
        (options(model="panel"), "protocol"),
        (options(unit="patient"), "unit must be 'record' or 'client' or 'person', got 'patient': record: one record"),
        (
            options(task="trees"),
            "task must be 'classes' or 'ridge' or 'effect' or 'hazard' or 'rates' or 'score' or 'survey'",
        ),
        (options(unit="client", max_records_per_client=9), "'replace-one' is not supported with unit='client'"),
    ],
)
def test_what_is_missing_or_wrong_is_one_sentence_and_no_file(init, words, told):
    done = init(*words)
    assert isinstance(done.exception, ps.errors.PrivstatsError), done.output
    with pytest.raises(ps.errors.PrivstatsError, match=told):
        raise done.exception
    assert not Path("plan.toml").exists()


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


def test_of_a_private_table_the_names_are_read_and_nothing_else(init, tmp_path):
    (tmp_path / "ward.csv").write_text(WARD)
    done = init("--from", "ward.csv", "--drop", "patient", code=0)
    assert "column names of ward.csv, the only part that was read: age, bmi, stage, ill" in done.output
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
    assert "the only part that was read: patient, age" in done.output
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
    assert "the cut points of bmi are estimated under the promise: divide it with privstats course init" in done.output
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
        (WARD.partition("\n")[2], ["--from", "ward.csv"], "has a number, a date or a gap where a name belongs"),
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


TRIAL = {
    "task": "effect", "ranges": "age=20:90,sex=0:1", "treatment": "arm", "outcome": "0:30", "probability": "0.5",
}  # fmt: skip
INCOMPLETE = {**TRIAL, "missing": "weights", "trim": 0.5}
OBSERVED = {**TRIAL, "probability": "none", "estimand": "overlap", "trim": 0.1}
HAZARDS = {
    "task": "hazard",
    "ranges": "age=20:90,arm=0:1",
    "bins": "months=0,6,12,18",
    "event": "died",
    "times": "continuous",
    "expected-events": 300,
}
TERMS = {name: GIVEN[name] for name in list(GIVEN)[4:]}


def words_of(answers):
    return [word for name, value in {**answers, **TERMS}.items() for word in (f"--{name}", str(value))]


@pytest.mark.parametrize("answers", [TRIAL, OBSERVED, HAZARDS], ids=["trial", "observed", "hazards"])
def test_a_study_of_an_effect_or_of_hazards_is_asked_for_and_becomes_a_course(init, terminal, answers):
    """Asked on a terminal, or answered beforehand: the same file, of which a course is made."""
    done = init(input="\n".join(str(value) for value in {**answers, **TERMS}.values()) + "\n", code=0)
    assert "divide it with privstats course init study.toml --plan plan.toml" in done.output
    assert init("again.toml", "--yes", *words_of(answers)).exit_code == 0
    assert Path("again.toml").read_text() == Path("plan.toml").read_text()
    made = CliRunner().invoke(app, ["course", "init", "study.toml", "--plan", "plan.toml"])
    assert made.exit_code == 0, made.output
    course = ps.course.read("study.toml")
    assert course.promise == ps.course.promise.Promise(2.0, 1e-6)
    assert course.plan.schema.clip_norm == pytest.approx(3**0.5)
    assert "key_agreement = " in Path("plan.toml").read_text()
    assert course.plan.key_agreement == "mlkem768-x25519"


def test_errors_of_hazards_are_robust_unless_an_answer_trusts_the_model(init):
    init("robust.toml", "--yes", *words_of(HAZARDS), code=0)
    init("model.toml", "--yes", *words_of({**HAZARDS, "errors": "model"}), code=0)
    robust, model = (ps.Plan.read(name).schema for name in ("robust.toml", "model.toml"))
    assert (robust.errors, model) == ("robust", replace(robust, errors="model"))
    assert "errors = " not in Path("model.toml").read_text()
    refused = init("other.toml", "--yes", *words_of({**HAZARDS, "errors": "HC1"}))
    assert "errors must be 'robust' or 'model', or omitted, got 'HC1'" in str(refused.exception)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("events", "warned"), [(300, None), (350, "ratio is above 2"), (600, "hazard of 1: the")])
def test_expected_events_that_pass_the_cap_are_warned_of_before_anything_is_spent(init, events, warned):
    """By ``plan init`` and ``check``; once by ``suggest``, too, in words and in JSON. Not where few are expected."""
    done = [init("cap.toml", "--yes", *words_of({**HAZARDS, "expected-events": events}))]
    every = (["check"], ["check", "--json"], ["suggest", "--half-width", ".33"], ["suggest", "--json"])
    for command, *options in every if events == 350 else every[:1]:
        named = ["--plan", "cap.toml"] if command == "suggest" else ["cap.toml"]
        done.append(CliRunner().invoke(app, ["plan", command, *named, *options]))
    for each in done:
        text = " ".join(each.output.split())
        assert each.exit_code == 0, text
        assert (f"WARNING: {events / 900:.0%} of the most records" in text) == (warned is not None)
        assert warned is None or warned in text


def test_answers_make_the_schema_that_python_makes(init):
    init("trial.toml", "--yes", *words_of(OBSERVED))
    assert ps.Plan.read("trial.toml").schema == ps.EffectSchema.of(
        {"age": (20, 90), "sex": (0, 1)}, treatment="arm", outcome=(0, 30), estimand="overlap", trim=0.1
    )
    init("plain.toml", "--yes", *words_of({**TRIAL, "missing": "no"}))
    assert ps.Plan.read("plain.toml").schema.missing is None
    init("incomplete.toml", "--yes", *words_of(INCOMPLETE))
    incomplete = ps.Plan.read("incomplete.toml").schema
    assert (incomplete.missing, incomplete.trim, incomplete.statistics) == ("weights", 0.5, "NWe")
    init("counted.toml", "--yes", *words_of({**TRIAL, "left-out": "counted"}))
    assert ps.Plan.read("counted.toml").schema.statistics == "NOe"
    done = init("several.toml", "--yes", *words_of({**TRIAL, "outcome": "cured=0:1,died=0:1"}))
    assert "arm and cured and died must hold numbers, true and false as 1 and 0" in " ".join(done.output.split())
    several = ps.Plan.read("several.toml").schema
    assert (several.outcome_names, several.outcome, several.statistics) == (("cured", "died"), (0, 1), "Nef")
    texts = {"ranges": "age=20:90,sex=female/male", "treatment": "arm=placebo/drug", "outcome": "cured=no/yes"}
    done = init("texts.toml", "--yes", *words_of({**TRIAL, **texts, "subgroups": "sex=female/male,age=20:50:90"}))
    assert "hold numbers" not in done.output
    assert ps.Plan.read("texts.toml").schema == ps.EffectSchema.of(
        {"age": (20, 90), "sex": ("female", "male")},
        treatment={"arm": ("placebo", "drug")},
        outcome={"cured": ("no", "yes")},
        probability=0.5,
        subgroups=(ps.Categories("sex", ("female", "male")), ps.Bins("age", (20, 50, 90))),
    )
    init(
        "survival.toml", "--yes", *words_of({**HAZARDS, "ranges": "age=20:90,arm=placebo/drug", "event": "died=no/yes"})
    )
    counted = ps.Plan.read("survival.toml").schema.counted("arm").variables
    assert [each.cells for each in counted[1:]] == [("no", "yes"), ("placebo", "drug")]
    init("hazards.toml", "--yes", *words_of(HAZARDS))
    schema = ps.Plan.read("hazards.toml").schema
    assert (schema.bins, schema.event) == (ps.Bins("months", (0, 6, 12, 18)), "died")
    assert ps.transforms.apply(schema.transform, [[20, 0], [90, 1]]).tolist() == [[-1, -1, 1], [1, 1, 1]]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ranges": "age=20:90,sex=0"}, "the range of 'sex' must be low:high"),
        ({"ranges": "age=90:20"}, "low below high"),
        ({"ranges": "age=20:90,age=1:2"}, "each column once"),
        ({"ranges": "arm=0:1"}, "must not be among the columns"),
        ({"outcome": "30"}, "outcome must be low:high"),
        ({"outcome": "cured=0:1,died"}, "outcome must name each column once with its range"),
        ({"outcome": "cured=0:1,days=0:30"}, "outcomes must share one public range"),
        ({"probability": "half"}, "probability must hold plain numbers, got 'half'"),
        ({"probability": "0.99"}, "probability must be a number from 0.05 to 0.95"),
        ({"probability": "none"}, "missing: --estimand, --trim"),
        ({"probability": "none", "missing": "weights"}, "--missing does not go with the other answers"),
        ({"missing": "weights"}, "missing: --trim"),
        ({"missing": "weights", "trim": 0.9}, "trim must be a number from 0.2 to 0.8"),
        ({"missing": "mean"}, "missing must be 'no' or 'weights', got 'mean'"),
        ({"estimand": "ate"}, "--estimand does not go with the other answers"),
        ({"clip-norm": 1.0}, "--clip-norm does not go with the other answers"),
        ({"event": "died"}, "--event does not go with the other answers"),
    ],
)
def test_an_answer_that_makes_no_trial_is_one_sentence(init, changed, said):
    done = init("--yes", *words_of({**TRIAL, **changed}))
    assert done.exit_code != 0
    assert said in str(done.exception)
    assert not Path("plan.toml").exists()


SCORE = {"task": "score", "head": "ill.head"}


@pytest.mark.parametrize("asked", [False, True], ids=["options", "questions"])
def test_a_plan_of_a_score_is_asked_for_and_lies_beside_its_head(init, terminal, asked):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    head = ps.heads.LDA().fit(X, y)
    head.save("ill.head")
    if asked:
        wrong = "\n".join(["score", "nowhere.head", "ill.head", *map(str, TERMS.values())])
        done = init("score.toml", input=wrong + "\n")
        assert "cannot read nowhere.head" in done.output
    else:
        done = init("score.toml", "--yes", *words_of(SCORE), code=0)
    assert "no promise covers it" in done.output
    assert "--kept-out" in done.output
    plan = ps.Plan.read("score.toml")
    assert plan.schema == ps.Scoring(head).schema
    assert ps.inference.head_score(ps.simulate(plan, [(X[k::8], y[k::8]) for k in range(8)])).records
    Path("score.toml").unlink()
    assert "score.values exists" in str(init("score.toml", "--yes", *words_of(SCORE)).exception)
    assert not Path("score.toml").exists()


def test_a_head_goes_with_a_score_alone(init):
    refused = init(*options(head="ill.head"), "--yes").exception
    assert "--head does not go with the other answers" in str(refused)
    words = words_of({name: value for name, value in SCORE.items() if name != "head"})
    assert "missing: --head" in str(init("--yes", *words).exception)


def survey(**changes):
    """The words that make the plan of docs/devices.md, where the keys of its parties lie."""
    given = {
        "task": "survey", "questions": "age=18:40:60:80,smokes=yes/no", "tables": "age*smokes",
        "panel": "leader.pub,helper.pub", "organisations": "University of Ulm,Bonn Clinic",
        "registrar": "Study Office Trier", "registrar-key": "trier.pub", "page": "Library of Kiel", "most-runs": "1",
        "clients": "2000", "vanish": "1500", "colluders": "50", "epsilon": "1", "delta": "1e-6",
    }  # fmt: skip
    named = {**given, **{name.replace("_", "-"): value for name, value in changes.items()}}
    return [word for name, value in named.items() if value is not None for word in (f"--{name}", value)]


@pytest.fixture
def keys(tmp_path):
    """The keys of leader, helper and registrar, two of them as PEM and one in hex."""
    found = {name: ps.secagg.Identity.generate(os.urandom) for name in ("leader", "helper", "trier")}
    for name, identity in found.items():
        text = identity.public.hex() + "\n" if name == "helper" else identity.public_pem
        (tmp_path / f"{name}.pub").write_text(text)
    return {name: identity.public.hex() for name, identity in found.items()}


def test_a_survey_is_the_plan_on_the_page_of_devices(init, keys):
    page = (Path(__file__).parents[2] / "docs" / "devices.md").read_text("utf-8")
    (commands,), (shown,) = (re.findall(f"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("bash", "toml"))
    (typed,) = re.findall(r"plan init plan.toml --yes (.*?)\nprivstats", commands.replace("\\\n", " "), re.DOTALL)
    assert shlex.split(typed) == survey()
    assert init("--yes", *survey()).exit_code == 0
    for name, key in keys.items():
        shown = re.sub(rf'"[0-9a-f]{{64}}"(,?)  # {name}\.pub', rf'"{key}"\1', shown)
    plan = ps.Plan.read("plan.toml")
    assert plan == ps.Plan.from_toml(shown)
    assert plan.panel == (keys["leader"], keys["helper"])
    least = min_stated_epsilon(plan.schema, plan.privacy, plan.noise, 1)
    assert 0 <= plan.devices.stated_epsilon - least < 0.01


def test_a_survey_may_ask_numbers_whose_means_are_released(init, keys):
    init("--yes", *survey(questions="smokes=yes/no,hours*smokes=0..80,temperature=-10.5..40", tables=None), code=0)
    schema = ps.Plan.read("plan.toml").schema
    hours = ps.Number("hours", 0, 80, by=("smokes",), missing=True)
    assert schema.numbers == (hours, ps.Number("temperature", -10.5, 40, missing=True))
    assert schema.tables == (("smokes",), ("smokes", "hours"), ("temperature",))


@pytest.mark.parametrize("questions", ["smokes=yes/no,hours=0..80", "hours=0..80", "hours=0..80,km=0..9"])
def test_a_survey_may_ask_a_number_of_everybody(init, keys, questions):
    """Numbers that fit one line stood under a second ``[schema]``, which no TOML file may have."""
    init("--yes", *survey(questions=questions, tables=None), code=0)
    assert ps.Number("hours", 0, 80, missing=True) in ps.Plan.read("plan.toml").schema.numbers


def test_a_person_is_asked_for_a_survey_and_for_nothing_that_it_settles(init, terminal, keys):
    task, questions, _, *people = survey()[1::2]
    parties = people[6:9]  # asked before the panel; whether tables are crossed is not asked
    done = init(input="\n".join([task, questions, *parties, *people[:6], *people[9:], ""]), code=0)
    plan = ps.Plan.read("plan.toml")
    assert plan.schema.tables == (("age",), ("smokes",))
    assert (plan.privacy.model, plan.privacy.unit, plan.privacy.adjacency) == ("panel", "client", "add-remove")
    for question in ("Who adds the noise?", "Who is protected?", "What must stay secret?", "How many records"):
        assert question not in done.output
    init("again.toml", "--yes", *survey(panel=f"{keys['leader']},{keys['helper']}", tables=None), code=0)
    assert ps.Plan.read("again.toml") == plan


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"panel": "leader.pub"}, "needs a panel: the leader's identity and at least one helper's"),
        ({"panel": "leader.pub,nobody.pub"}, "cannot read nobody.pub"),
        ({"registrar_key": "leader.pub"}, "registrar_key is a panel member's key"),
        ({"registrar": "bonn clinic"}, "devices.registrar is 'Bonn Clinic', a member of the panel"),
        ({"organisations": "Ulm,Bonn,Graz"}, "organisations names 3 and the panel has 2 members"),
        ({"questions": "age"}, "questions must name each column once"),
        ({"questions": "age=18:40"}, "edges of age must be at least three finite numbers"),
        ({"tables": "age*weight"}, "weight"),
        ({"questions": "hours=80..0", "tables": None}, "low and high of hours"),
        ({"questions": "hours*age=0..80", "tables": None}, "by of hours names 'age', which is no variable"),
        ({"model": "central"}, "--model does not go with the other answers"),
        ({"max_records": "9"}, "--max-records does not go with the other answers"),
        ({"epsilon": None}, "missing: --epsilon"),
    ],
)
def test_a_survey_that_cannot_be_gets_a_sentence(init, keys, changes, told):
    done = init("--yes", *survey(**changes))
    assert isinstance(done.exception, ps.PrivstatsError)
    assert told in str(done.exception)
    assert not Path("plan.toml").exists()


def test_columns_of_several_texts_and_several_causes_are_answered_in_words(init):
    words = (
        "--yes --task hazard --ranges smoking=never/former/current,age=20:90,arm=placebo/drug --times continuous "
        "--bins months=0,6,12 --event ended=seen/relapse/death --expected-events 500 --clients 2 --vanish 0 "
        "--colluders 0 --max-records 900 --model central --unit record --adjacency add-remove --epsilon 2 --delta 1e-6"
    )
    init(*words.split(), code=0)
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.features, round(schema.clip_norm**2), schema.causes) == (5, 4, ("relapse", "death"))
    levels, centre, scale, _ = schema.transform
    assert levels.spread == (0,)
    assert levels.named(schema.feature_names) == ("smoking: former", "age", "arm", "smoking: current")
    assert (centre.centre, scale.per) == ((0.0, 55.0, 0.5, 0.0), (1.0, 35.0, 0.5, 1.0))
    refused = init(*words.replace("arm=placebo/drug", "arm=a/").split(), "--force")
    assert "the texts of 'arm' must be two or more with a slash between" in str(refused.exception)


def test_strata_are_answered_in_words_and_looked_at(init):
    words = (
        "--yes --task hazard --ranges age=20:90,arm=placebo/drug --times continuous --bins months=0,6,12 --event died "
        "--strata site=north/south --expected-events 500 --clients 2 --vanish 0 --colluders 0 --max-records 900 "
        "--model central --unit record --adjacency add-remove --epsilon 2 --delta 1e-6"
    )
    init(*words.split(), code=0)
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.strata.name, schema.strata.values, schema.sizes) == ("site", ("north", "south"), {"feature": 6})
    assert "arm, site, the time months" in schema.record
    columns = _columns_of(ps.Plan.read("plan.toml"), Path("plan.toml"))
    assert [each.name for each in columns] == ["months", "died", "site", "age", "arm"]
    refused = init(*words.replace("north/south", "north").split(), "--force")
    assert "the texts of 'site' must be two or more with a slash between" in str(refused.exception)


def test_an_entry_is_a_column_that_every_party_looks_for(init):
    words = (
        "--yes --task hazard --ranges age=20:90,arm=placebo/drug --times continuous --bins months=0,6,12 --event died "
        "--entry enrolled --expected-events 500 --clients 2 --vanish 0 --colluders 0 --max-records 900 --model central "
        "--unit record --adjacency add-remove --epsilon 2 --delta 1e-6"
    )
    init(*words.split(), code=0)
    plan = ps.Plan.read("plan.toml")
    assert (plan.schema.entry, plan.schema.reading.columns[-1]) == ("enrolled", "enrolled")
    assert "enrolled" in [each.name for each in _columns_of(plan, Path("plan.toml"))]
    refused = init(*words.replace("--entry enrolled", "--entry age").split(), "--force", code=1)
    assert "entry names 'age', a column too" in str(refused.exception)


PARTIES_AND_PROMISE = (
    "--clients 2 --vanish 0 --colluders 0 --max-records 9000 --model central --unit record --adjacency add-remove "
    "--epsilon 8 --delta 1e-6"
)


def test_subdistribution_ratios_are_an_answer(init):
    words = (
        "--yes --task hazard --ranges age=20:90,arm=placebo/drug --times continuous --bins months=0,6,12 "
        f"--event ended=seen/relapse/death --ratios subdistribution --expected-events 500 {PARTIES_AND_PROMISE}"
    )
    init(*words.split(), code=0)
    assert ps.Plan.read("plan.toml").schema.ratios == "subdistribution"
    plain = init("plain.toml", *words.replace("subdistribution", "cause-specific").split(), code=0)
    assert "divide it with privstats course init" in " ".join(plain.output.split())
    assert ps.Plan.read("plain.toml").schema.ratios is None
    assert "ratios = " not in Path("plain.toml").read_text()
    refused = init(*words.replace("ended=seen/relapse/death", "died=no/yes").split(), "--force", code=1)
    assert "an event of three or more texts" in str(refused.exception)
    refused = init(*words.replace("subdistribution", "gray").split(), "--force", code=1)
    assert "ratios must be 'subdistribution', or omitted" in str(refused.exception)


def test_rates_are_a_task_with_an_exposure_and_become_a_course(init):
    words = (
        "--yes --task rates --ranges treated=0:1,age=20:90 --exposure years=4 --target-bound 8 --rate 0.4 "
        f"--interactions treated*age {PARTIES_AND_PROMISE}"
    )
    done = init(*words.split(), code=0)
    assert "divide it with privstats course init study.toml --plan plan.toml" in " ".join(done.output.split())
    schema = ps.Plan.read("plan.toml").schema
    assert (schema.family, schema.exposure, schema.exposure_bound, schema.rate) == ("poisson", "years", 4.0, 0.4)
    assert (schema.features, schema.clip_norm, schema.target_bound) == (4, 2.0, 8.0)
    made = CliRunner().invoke(app, ["course", "init", "study.toml", "--plan", "plan.toml"])
    assert made.exit_code == 0, made.output
    course = ps.course.read("study.toml")
    assert (course.schema, course.rounds) == (schema, 5)
    init("weighed.toml", *f"{words} --negative-binomial 1.5".split(), code=0)
    assert ps.Plan.read("weighed.toml").schema == replace(schema, negative_binomial=1.5)
    plain = words.replace("years=4", "none").replace(" --rate 0.4", "")
    init("plain.toml", *plain.split(), code=0)
    assert ps.Plan.read("plain.toml").schema.exposure is None
    worded = words.replace("treated=0:1", "treated=no/yes,smoking=never/former/current")
    init("worded.toml", *worded.split(), code=0)
    schema = ps.Plan.read("worded.toml").schema
    levels, centred, *_ = schema.transform
    assert [each.values for each in levels.columns] == [("no", "yes"), ("never", "former", "current")]
    assert (schema.features, schema.clip_norm, centred.centre) == (6, 5**0.5, (0.5, 0.0, 55.0, 0.0))
    for old, new, told in (
        ("years=4", "years", "exposure must name a column with its largest value, as years=5, or be none"),
        ("years=4", "years=-1", "exposure_bound must be"),
        ("years=4", "age=4", "exposure names 'age', a column too"),
        ("treated=0:1", "treated=no", "the range of 'treated' must be low:high"),
        ("--rate 0.4", "--rate much", "rate must hold plain numbers, got 'much'"),
        ("--rate 0.4", "--negative-binomial much", "negative_binomial must hold plain numbers, got 'much'"),
        ("--rate 0.4", "--negative-binomial 0", "negative_binomial must be a number"),
        ("--exposure years=4", "", "missing: --exposure"),
    ):
        refused = init("other.toml", *words.replace(old, new).split(), code=1)
        assert told in str(refused.exception)


def test_interactions_are_pairs_of_columns_and_lengthen_no_row(init):
    words = (
        "--yes --task hazard --ranges age=20:90,smoking=never/former/current,arm=placebo/drug --times continuous "
        "--bins months=0,6,12 --event died --interactions arm*smoking,arm*age --expected-events 500 --clients 2 "
        "--vanish 0 --colluders 0 --max-records 900 --model central --unit record --adjacency add-remove --epsilon 2 "
        "--delta 1e-6"
    )
    init(*words.split(), code=0)
    schema = ps.Plan.read("plan.toml").schema
    *_, products, constant = schema.transform
    assert products.pairs == ((2, 1), (2, 3), (2, 0))
    assert (schema.features, round(schema.clip_norm**2), constant.value) == (8, 6, 1.0)
    refused = init(*words.replace("arm*age", "arm*dose").split(), "--force", code=1)
    assert "interactions name 'dose', and the columns are age, smoking, arm; name two" in str(refused.exception)
    refused = init(*words.replace("arm*age", "arm").split(), "--force", code=1)
    assert "interactions must be pairs of columns, as arm*sex,arm*age" in str(refused.exception)


def test_the_example_takes_no_answer_that_it_would_ignore(init):
    refused = init("--example", "--key-agreement", "x25519", "--epsilon", "3", "--from", "ward.csv", code=1)
    assert "omit --key-agreement, --epsilon, --from, or omit --example" in " ".join(str(refused.exception).split())
    assert not Path("plan.toml").exists()
    assert init("--example", "--yes").exit_code == 0


def test_a_new_plan_agrees_on_keys_by_ml_kem_too(init):
    """A file without the key still means X25519, so plans of before keep their digests."""
    init("example.toml", "--example", code=0)
    init("plan.toml", "--yes", *options(), code=0)
    hybrid = [ps.Plan.read(path) for path in ("example.toml", "plan.toml")]
    (question,) = (each for each in QUESTIONS if each.name == "key_agreement")
    assert set(question.offered) == set(KEY_AGREEMENTS)
    assert {plan.key_agreement for plan in hybrid} == {"mlkem768-x25519"}
    init("classical.toml", "--yes", *options(key_agreement="x25519"), code=0)
    classical = ps.Plan.read("classical.toml")
    assert classical == replace(hybrid[1], key_agreement="x25519")
    assert "key_agreement" not in Path("classical.toml").read_text()
    text = Path("plan.toml").read_text()
    Path("before.toml").write_text("".join(line for line in text.splitlines(True) if "key_agreement" not in line))
    assert ps.Plan.read("before.toml").digest == classical.digest
    refused = init("other.toml", "--yes", *options(key_agreement="mlkem1024"))
    assert "key_agreement must be one of x25519, mlkem768-x25519" in str(refused.exception)


def test_a_random_graph_without_room_for_dropouts_is_refused_with_both_ways_out(init):
    many = options(clients=300, vanish=0, max_records=9000)
    refused = init("--yes", *many).exception
    assert "lower min_survivors, use a complete graph of at most 256 clients, or key_agreement='x25519'" in str(refused)
    init("--yes", *many, "--key-agreement", "x25519", code=0)


def test_a_plan_whose_promise_is_for_several_sessions_is_not_signed_alone(privstats, tmp_path) -> None:
    words = (
        *("plan", "init", "plan.toml", "--yes", "--task", "effect", "--ranges", "age=18:95", "--treatment", "arm"),
        *("--outcome", "ill=0:1", "--probability", "0.5", "--measure", "difference", "--left-out", "counted"),
        *("--clients", "2", "--vanish", "0", "--colluders", "0", "--max-records", "4000", "--model", "distributed"),
        *("--unit", "record", "--adjacency", "add-remove", "--epsilon", "3", "--delta", "1e-6"),
    )
    made = privstats(*words, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    checked = " ".join(privstats("plan", "check", "plan.toml", cwd=tmp_path, code=0).stdout.split())
    assert "this plan never runs alone: sign the digest of its course" in checked
    assert "in all of these statistics in full, so the rows' mu^2 add up to more than mu^2 of all together" in checked
    refused = privstats("flower", "new", "plan.toml", "study", "--roster", "roster.toml", cwd=tmp_path, code=2).stderr
    assert "plan.toml never runs alone, because its promise is for several sessions" in " ".join(refused.split())
    assert not (tmp_path / "study").exists()
