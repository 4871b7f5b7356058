"""Texts under a plan's digest: what a person is asked, in their language, and what is refused."""

import json

import pytest

import privstats as ps
from privstats.errors import PlanError
from tests.javascript.study import DEVICES, Study

GERMAN = {
    "title": "Rauchen in Ulm",
    "questions": {
        "How old are you?": {"question": "Wie alt sind Sie?", "help": "In Jahren."},
        "Do you smoke?": {"question": "Rauchen Sie?", "answers": {"yes": "ja", "no": "nein"}},
    },
}


def plan_with(texts):
    return ps.Plan.from_toml(Study(texts=texts).toml)


def test_texts_are_in_the_file_and_under_the_digest_and_a_plan_without_keeps_its_own():
    plain, asked = plan_with(None), plan_with({"de": GERMAN, "en": {"title": "Smoking"}})
    assert ps.Plan.from_toml(asked.to_toml()).devices.texts == {"de": GERMAN, "en": {"title": "Smoking"}}
    assert asked.digest != plain.digest
    assert asked.digest != plan_with({"de": GERMAN, "en": {"title": "Smoking?"}}).digest
    assert '"texts"' not in json.dumps(plain.tables)
    assert "the page's texts change" in " ".join(ps.review.difference(plain, asked).notes)


def changed(*path, value):
    """The German texts with one thing set to a value; left out where it is None."""
    texts = json.loads(json.dumps({"de": GERMAN}))
    place = texts
    for key in path[:-1]:
        place = place.setdefault(key, {})
    place.pop(path[-1], None)
    if value is not None:
        place[path[-1]] = value
    return texts


AGE, SMOKES = ("de", "questions", "How old are you?"), ("de", "questions", "Do you smoke?")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ({}, "1 to 64 languages"),
        ({"de": "Rauchen"}, r"devices.texts.de must be a table, got 'Rauchen'"),
        ([], "devices.texts must be a table"),
        (changed("Deutsch", value={}), "devices.texts.Deutsch must be a language"),
        (changed("de", "titel", value="x"), "devices.texts.de has unknown keys 'titel'; did you mean title"),
        (changed("de", "title", value=""), "devices.texts.de.title must be 1 to 120 printable"),
        (changed("de", "title", value="x" * 121), "1 to 120"),
        (changed("de", "title", value="a\nb"), "one line"),
        (changed("de", "title", value="\u202eesrever"), "printable"),
        (changed("de", "title", value=3), "devices.texts.de.title must be a text, got 3"),
        (changed(*AGE, "question", value=" Wie alt?"), "without blanks around"),
        (changed(*AGE, "help", value="x" * 1001), "How old are you\\?.help must be 1 to 1000"),
        (changed(*AGE, "answers", value={"0": "null"}), "a number is asked, so leave answers out"),
        (changed("de", "questions", "age", value={}), "is of no variable of the plan: it has How old are you\\?"),
        (changed(*SMOKES, "answers", "no", value=None), "one text for each value of the variable: yes, no"),
        (changed(*SMOKES, "answers", "maybe", value="x"), "one text for each value"),
        (changed(*SMOKES, "answers", "no", value="JA"), "one text for two values"),
        (changed(*SMOKES, "answers", "no", value="\t"), "answers.no must be 1 to 120 printable"),
        (changed(*SMOKES, "hint", value="x"), "unknown keys 'hint'; the keys are question, help, answers"),
    ],
)
def test_a_text_that_nobody_could_read_gets_a_sentence(texts, words):
    with pytest.raises(PlanError, match=words):
        Study(texts=texts)
    assert DEVICES.texts is None
