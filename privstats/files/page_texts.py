"""Check a plan's ``[devices.texts]``, by language: the texts of the page on which people answer.

The texts are in the plan's digest, so the page's server cannot change a question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from privstats.errors import PlanError
from privstats.files.typed_tables import tables_as

_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_MOST_LANGUAGES = 64
_MOST_CHARACTERS = {"title": 120, "question": 300, "help": 1000, "answers": 120}


class _Question(msgspec.Struct, forbid_unknown_fields=True):
    question: str | UnsetType = UNSET
    help: str | UnsetType = UNSET
    answers: dict[str, str] | UnsetType = UNSET


class _Language(msgspec.Struct, forbid_unknown_fields=True):
    title: str | UnsetType = UNSET
    questions: dict[str, _Question] | UnsetType = UNSET


def checked_texts(texts: object) -> dict[str, Any]:
    """Return a copy of the texts by language: ``title``, and by variable ``question``, ``help`` and ``answers``.

    Titles and answers have at most 120 characters, questions 300, help 1,000.
    """
    read = tables_as(texts, dict[str, _Language], "devices.texts")
    if not 1 <= len(read) <= _MOST_LANGUAGES:
        raise PlanError(f"devices.texts must have 1 to {_MOST_LANGUAGES} languages: write [devices.texts.en]")
    for language in read:
        if not _LANGUAGE.fullmatch(language):
            raise PlanError(f"devices.texts.{language!s:.20} must be a language as HTML names it, such as en or pt-BR")
    plain: dict[str, Any] = msgspec.to_builtins(read)
    for kind, place, text in _lines(plain):
        most = _MOST_CHARACTERS[kind]
        if not 1 <= len(text) <= most or not text.isprintable() or text != text.strip():
            raise PlanError(
                f"{place} must be 1 to {most} printable characters on one line, without blanks around them; write it "
                "anew"
            )
    return plain


def _lines(plain: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for language, texts in plain.items():
        where = f"devices.texts.{language}"
        if "title" in texts:
            yield "title", f"{where}.title", texts["title"]
        for name, question in texts.get("questions", {}).items():
            for kind in question.keys() - {"answers"}:
                yield kind, f"{where}.questions.{name}.{kind}", question[kind]
            for value, text in question.get("answers", {}).items():
                yield "answers", f"{where}.questions.{name}.answers.{value}", text


def check_questions(texts: Mapping[str, Any], schema: object) -> None:
    """Refuse texts of variables outside the plan, and answers that are missing or read alike."""
    columns = (*getattr(schema, "variables", ()), *(getattr(schema, "numbers", None) or ()))
    answers = {column.name: getattr(column, "values", ()) for column in columns}  # none for a number
    for language, page in texts.items():
        for name, question in page.get("questions", {}).items():
            where = f"devices.texts.{language}.questions.{name}"
            if name not in answers:
                raise PlanError(f"{where} is of no variable of the plan: it has {', '.join(answers) or 'none to ask'}")
            if "answers" not in question:
                continue
            values, labels = [str(value) for value in answers[name]], question["answers"]
            if set(values) != set(labels):
                raise PlanError(
                    f"{where}.answers must have one text for each value of the variable: "
                    f"{', '.join(values) or 'it has none, a number is asked, so leave answers out'}"
                )
            if len({label.casefold() for label in labels.values()}) < len(labels):
                raise PlanError(f"{where}.answers has one text for two values: a person could not distinguish them")
