"""``plan init`` asks on a terminal, and has no default for a choice of privacy."""

import re
import shlex
from pathlib import Path

import pytest

import privstats as ps
from privstats.cli.parts.questions import questions
from tests.cli.plan_init.answers import GIVEN, options

ANSWERS = "\n".join(str(value) for value in GIVEN.values()) + "\n"


def test_a_person_answers_and_the_plan_says_what_was_answered(init, terminal):
    done = init(input=ANSWERS, code=0)
    plan = ps.Plan.read("plan.toml")
    assert plan.privacy == ps.Privacy(
        model="distributed", unit="record", adjacency="replace-one", epsilon=2.0, delta=1e-6
    )
    assert plan.cohort == ps.Cohort(8, 6, 900, 1)
    assert (plan.schema.clip_norm, plan.schema.classes) == (2.5, 3)
    assert all(
        question.why in done.output
        for question in questions()
        if question.name in plan.to_toml() and not question.usual
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
    done = init(input=ANSWERS.partition("distributed")[0].replace("\n900\n", "\n9000000000000000000\n"), code=1)
    (again,) = re.findall("your answers, to correct and run: privstats (.*)", done.stderr)
    assert again.startswith("plan init plan.toml --task classes")
    assert again.endswith("--colluders 1"), "the question that was refused is asked again"


WRONG = {
    "classes": (1, "classes must be"), "features": (0, "features must be"), "clip-norm": (-1.0, "clip_norm must be"),
    "clients": (1, "cohort.clients must be an integer of at least 2"), "vanish": (8, "vanish must be 0 to 7 of 8"),
    "colluders": (6, "must stay below"), "max-records": (0, "cohort.max_records must be an integer of at least 1"),
    "epsilon": (0.0, "epsilon must be between"), "delta": (1.0, "delta must be between"),
}  # fmt: skip


def test_an_answer_out_of_its_bounds_is_asked_again_at_once(init, terminal):
    twice = {name: f"{WRONG[name][0]}\n{value}" if name in WRONG else f"{value}" for name, value in GIVEN.items()}
    done = init(input="\n".join(twice.values()) + "\n", code=0)
    asked = {question.name.replace("_", "-"): question.asks for question in questions()}
    for name, (_, told) in WRONG.items():
        assert done.output.count(asked[name]) == 2
        assert told in done.output.split(asked[name])[1]


def test_an_answer_with_which_no_plan_follows_is_asked_again_at_once(init, terminal):
    """Such answers were refused at the end, when all questions were answered, and in the words of the plan."""
    many = {**GIVEN, "clients": 300, "max-records": 9000, "vanish": "0\n5"}
    done = init(input="\n".join(map(str, many.values())) + "\n", code=0)
    asked = {question.name: question.asks for question in questions()}
    assert done.output.count(asked["vanish"]) == 2
    assert done.output.count(asked["colluders"]) == 1
    assert "clients minus this answer" in done.output
    assert ps.Plan.read("plan.toml").cohort.min_survivors == 295


def test_answers_are_printed_with_the_columns_and_the_file_to_which_they_belong(init, terminal, tmp_path):
    """The command that repeats them lacked the table and its form, and ended in another refusal."""
    Path("ward.csv").write_text("age;ill\n40,5;no\n50,5;yes\n")
    columns = (
        '[[columns]]\nname = "age"\nkind = "numeric"\nedges = [40.0]\n\n[[columns]]\nname = "ill"\nkind = "truth"\n'
    )
    Path("columns.toml").write_text(columns)
    words = ["--from", "ward.csv", "--separator", ";", "--decimal", ",", "--public", "columns.toml", "--target", "ill"]
    done = init(*words, *options(classes=None, features=None, clip_norm=None, task=None, epsilon=None), input="\n")
    (again,) = map(shlex.split, re.findall("your answers, to correct and run: privstats (.*)", done.stderr))
    assert again[:3] == ["plan", "init", "plan.toml"]
    assert [again[again.index(word) + 1] for word in words[::2]] == words[1::2]
    assert "--yes" not in again, "epsilon is still open"


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


def test_the_example_takes_no_answer_that_it_would_ignore(init):
    refused = init("--example", "--clients", "5", "--epsilon", "3", "--from", "ward.csv", code=1)
    assert "omit --clients, --epsilon, --from, or omit --example" in " ".join(str(refused.exception).split())
    assert not Path("plan.toml").exists()
    assert init("--example", "--yes").exit_code == 0


def test_a_new_plan_names_the_key_agreement_and_its_digest_means_no_other(init):
    """A plan without the line has another digest, which earlier versions run under X25519 alone."""
    init("example.toml", "--example", code=0)
    init("plan.toml", "--yes", *options(), code=0)
    assert {ps.Plan.read(path).key_agreement for path in ("example.toml", "plan.toml")} == {"mlkem768-x25519"}
    text = Path("plan.toml").read_text()
    without = "".join(line for line in text.splitlines(True) if "key_agreement" not in line)
    assert ps.Plan.from_toml(without).digest != ps.Plan.from_toml(text).digest
    with pytest.raises(ps.PlanError, match='write key_agreement = "mlkem768-x25519" in every party\'s file'):
        ps.Plan.from_toml(text.replace("mlkem768-x25519", "x25519"))
    assert init("other.toml", "--yes", *options(key_agreement="x25519")).exit_code == 2


def test_a_random_graph_without_room_for_dropouts_is_refused_with_what_to_write(init):
    many = options(clients=300, vanish=0, max_records=9000)
    refused = init("--yes", *many).exception
    assert "min_survivors=300 of 300 clients leaves a random graph no room" in str(refused)
    assert str(refused).endswith("; write min_survivors = 298")
