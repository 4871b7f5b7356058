"""``plan init`` for effects, hazards, rates and scores: each becomes the schema that Python makes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import privstats as ps
from privstats.cli.look import _columns_of
from privstats.cli.main import app
from tests.cli.plan_init.answers import PARTIES_AND_PROMISE, TERMS, options, words_of

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


@pytest.mark.parametrize("answers", [TRIAL, OBSERVED, HAZARDS], ids=["trial", "observed", "hazards"])
def test_a_study_of_an_effect_or_of_hazards_is_asked_for_and_becomes_a_course(init, terminal, answers):
    """Asked on a terminal, or answered beforehand: the same file, of which a course is made."""
    done = init(input="\n".join(str(value) for value in {**answers, **TERMS}.values()) + "\n", code=0)
    assert "divide it with: privstats course init study.toml --plan plan.toml" in done.output
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


@pytest.mark.parametrize(("events", "warned"), [(300, None), (350, "ratio is above 2"), (600, "hazard of 1: the")])
def test_expected_events_that_pass_the_cap_are_warned_of_before_anything_is_spent(init, events, warned):
    """By ``plan init`` and ``check``; once by ``suggest``, too, in words and in JSON. Not where few are expected."""
    done = [init("cap.toml", "--yes", *words_of({**HAZARDS, "expected-events": events}))]
    every = (["check"], ["check", "--json"], ["suggest", "--half-width", ".33"], ["suggest", "--json"])
    for command, *more in every if events == 350 else every[:1]:
        named = ["--plan", "cap.toml"] if command == "suggest" else ["cap.toml"]
        done.append(CliRunner().invoke(app, ["plan", command, *named, *more]))
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


def test_columns_of_several_texts_and_several_causes_are_answered_in_words(init):
    words = (
        "--yes --task hazard --ranges smoking=never/former/current,age=20:90,arm=placebo/drug --times continuous "
        f"--bins months=0,6,12 --event ended=seen/relapse/death --expected-events 500 {PARTIES_AND_PROMISE}"
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
        f"--strata site=north/south --expected-events 500 {PARTIES_AND_PROMISE}"
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
        f"--entry enrolled --expected-events 500 {PARTIES_AND_PROMISE}"
    )
    init(*words.split(), code=0)
    plan = ps.Plan.read("plan.toml")
    assert (plan.schema.entry, plan.schema.reading.columns[-1]) == ("enrolled", "enrolled")
    assert "enrolled" in [each.name for each in _columns_of(plan, Path("plan.toml"))]
    refused = init(*words.replace("--entry enrolled", "--entry age").split(), "--force", code=1)
    assert "entry names 'age', a column too" in str(refused.exception)


def test_subdistribution_ratios_are_an_answer(init):
    words = (
        "--yes --task hazard --ranges age=20:90,arm=placebo/drug --times continuous --bins months=0,6,12 "
        f"--event ended=seen/relapse/death --ratios subdistribution --expected-events 500 {PARTIES_AND_PROMISE}"
    )
    init(*words.split(), code=0)
    assert ps.Plan.read("plan.toml").schema.ratios == "subdistribution"
    plain = init("plain.toml", *words.replace("subdistribution", "cause-specific").split(), code=0)
    assert "divide it with: privstats course init" in " ".join(plain.output.split())
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
    assert "divide it with: privstats course init study.toml --plan plan.toml" in " ".join(done.output.split())
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
        "--bins months=0,6,12 --event died --interactions arm*smoking,arm*age --expected-events 500 "
        f"{PARTIES_AND_PROMISE}"
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
