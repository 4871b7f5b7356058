"""What ``plan init`` asks: the choices behind a plan, one question each, and the plan file that they make.

A declaration of columns (``declaring``) answers what it says, and the names that are about to be written are shown. No
choice of privacy has a default, and neither clip norm, target bound nor number of records is taken from data.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import tomli_w
import typer

import privstats as ps
from privstats.cli.parts import effect_questions, score_questions
from privstats.cli.parts.question import Question
from privstats.cli.parts.terminal import say
from privstats.dp.privacy import AVERAGE
from privstats.errors import PlanError, PrivstatsError
from privstats.printable import printable

if TYPE_CHECKING:
    from privstats.cli.parts.declaring import Declaration
    from privstats.moments import RecordFile

__all__ = [
    "QUESTIONS",
    "Answers",
    "answered",
    "can_ask",
    "check_answer",
    "columns_file",
    "plan_from",
    "plan_text",
]

Answers: TypeAlias = dict[str, Any]

_MODELS = ("classes", "ridge")
_INNOCENT: Answers = {
    "task": "classes",
    "classes": 2,
    "features": 2,
    "clip_norm": 1.0,
    "target_bound": 1.0,
    "vanish": 0,
    "colluders": 0,
    "max_records": 1,
    "unit": "record",
    "adjacency": "add-remove",
    "epsilon": 1.0,
    "delta": 1e-6,
    "ranges": "age=20:90",
    "treatment": "treated",
    "outcome": "0:1",
    "subgroups": "none",
    "probability": "0.5",
    "estimand": "overlap",
    "missing": "no",
    "trim": 0.3,
    "bins": "months=0,6,12",
    "event": "died",
    "expected_events": 1_000,
}
"""What nothing is wrong with, in place of the answers that are not there yet."""


QUESTIONS: tuple[Question, ...] = (
    Question(
        "task",
        "What shall be learned?",
        "classes: a model of labels; ridge: of a number; effect: of a treatment; hazard: ratios of times to an event; "
        "score: how good a model is that is there.",
        str,
        (*_MODELS, effect_questions.EFFECT, effect_questions.HAZARD, score_questions.SCORE),
    ),
    Question(
        "classes",
        "How many classes?",
        "Labels are 0, 1, ... or names; they are public.",
        int,
        where=("task", ("classes",)),
    ),
    Question(
        "target_bound",
        "What is the largest target?",
        "Larger ones are cut to it; take it from public knowledge.",
        float,
        where=("task", ("ridge",)),
    ),
    Question(
        "features",
        "How many numbers has a record?",
        "The columns without the one that is predicted.",
        int,
        where=("task", _MODELS),
    ),
    Question(
        "clip_norm",
        "How long may a record's vector be at most?",
        "Longer ones are shortened. Take it from public data: from private records it is a leak outside the budget.",
        float,
        where=("task", _MODELS),
    ),
    *effect_questions.QUESTIONS,
    *score_questions.QUESTIONS,
    Question("clients", "How many parties?", "Hospitals, companies, devices: whoever sends one sum.", int),
    Question("vanish", "How many of them may vanish?", "If more do, there is no release.", int),
    Question(
        "colluders",
        "How many parties may work with the server?",
        "The others stay protected against that many; 0 trusts that none does.",
        int,
    ),
    Question(
        "max_records",
        "How many records at most, over all parties?",
        "It sizes the numbers that are sent; take a public upper bound.",
        int,
    ),
    Question(
        "model",
        "Who adds the noise?",
        "central: a trusted server; distributed: the parties together; local: each party all of it, noisiest.",
        str,
        ("central", "distributed", "local"),
    ),
    Question(
        "unit",
        "Who is protected?",
        "record: one record, and with ten of them less; person: all rows of a patient at one party; client: all that "
        "one party holds.",
        str,
        ("record", "person", "client"),
    ),
    Question(
        "person_clip",
        "How does a patient with several rows count?",
        "average: as one record, for tables and intervals; or at most as so many rows, for a model, where 1 was best "
        "on all data that were tried. Each party has a column that says whose a row is.",
        str,
        where=("unit", ("person",)),
    ),
    Question(
        "max_records_per_person",
        "How many rows may a patient have, to count in full?",
        "At least as many as a patient may weigh; one with more rows counts as so many.",
        int,
        where=("unit", ("person",)),
        unless=("person_clip", (AVERAGE,)),
    ),
    Question(
        "max_records_per_client",
        "How many records may one party hold?",
        "Noise grows with it, and a party with more is refused.",
        int,
        where=("unit", ("client",)),
    ),
    Question(
        "adjacency",
        "What must stay a secret?",
        "add-remove: whether a record (or what unit says) is in the data at all; replace-one: only what is in "
        "a record or a patient, not with unit client.",
        str,
        ("add-remove", "replace-one"),
    ),
    Question(
        "epsilon",
        "Which epsilon?",
        "Smaller is safer and noisier: `privstats audit budget` says what the best attacker finds at it.",
        float,
    ),
    Question(
        "delta",
        "Which delta?",
        "The chance that more is learned than epsilon says: well below 1 / records, such as 1e-6; or 0, with central.",
        float,
    ),
)
"""In the order in which they are asked."""


def answered(given: Mapping[str, Any], ask: Callable[[Question, Answers], Any] | None) -> Answers:
    """An answer to every question that is open: what is given, and what ``ask`` says.

    Args:
        given: answers by name; None where there is none.
        ask: asks a person, who gave these answers before; None where nobody can be asked.

    Raises:
        PlanError: an answer is missing and nobody can be asked; or one is given that the others leave no room for.
        PrivstatsError: a person is asked, and an answer that is given is out of its bounds.
    """
    found: Answers = {}
    missing = []
    for question in QUESTIONS:
        value = given.get(question.name)
        if not question.belongs(found):
            if value is not None:
                raise PlanError(f"{question.option} does not go with the other answers; leave it out")
            continue
        value = question.usual if value is None else value
        if value is None and ask is None:
            missing.append(question.option)
        if value is not None:
            _check_given(question, value, found, asking=ask is not None)
        found[question.name] = ask(question, found) if value is None and ask is not None else value
    if missing:
        raise PlanError(
            f"nothing says {', '.join(missing)}: give these, or run the command on a terminal without --yes; no choice "
            "of privacy has a default"
        )
    return found


def _check_given(question: Question, value: Any, found: Answers, *, asking: bool) -> None:
    """Refuse an option on which other questions depend before these are looked at, and where a person is asked, any."""
    governs = any(question.name in each.hangs_on for each in QUESTIONS)
    if governs and question.choices and value not in question.choices:
        choices = " or ".join(map(repr, question.choices))
        raise PlanError(f"{question.name} must be {choices}, got {value!r}: {question.why}")
    if asking:
        check_answer(question, value, found)


def check_answer(question: Question, value: Any, found: Answers) -> None:
    """Refuse an answer that is out of its own bounds, or that the answers before it leave no room for.

    Raises:
        PrivstatsError: the sentence of the part of the plan that refuses it.
    """
    check = _CHECKS.get(question.name)
    if check is not None:
        check({**_INNOCENT, **found, question.name: value})


def plan_text(plan: ps.Plan, answers: Answers, fields: Mapping[str, Any]) -> str:
    """The plan file, a comment at every key that was asked for."""
    follows = "transform" in fields or answers["task"] not in _MODELS  # from the columns, which say it better
    told = ("features", "clip_norm") if follows else ()
    asked = {question.name: question for question in QUESTIONS if question.name not in told}
    lines = ["# The plan of one aggregation, as `privstats plan init` was answered; every party reads it beforehand."]
    for section, table in plan.tables.items():
        if not isinstance(table, dict):
            lines.append(tomli_w.dumps({section: table}).strip())
            continue
        lines += ["", f"[{section}]"]
        for key, value in sorted(table.items(), key=lambda item: _is_tables(item[1])):
            question = asked.get(key)
            lines += [f"# {question.asks} {question.why}"] if question else [""] if _is_tables(value) else []
            lines.append(tomli_w.dumps({section: {key: value}} if _is_tables(value) else {key: value}).strip())
    return "\n".join(lines) + "\n"


def _plan(answers: Answers, fields: Mapping[str, Any]) -> ps.Plan:
    """The plan; of a course that publishes values, at those that follow from its schema alone.

    Raises:
        PrivstatsError: the answers make no plan.
    """
    task = answers["task"]
    terms: dict[str, Any] = {"cohort": _cohort(answers), "privacy": _privacy(answers)}
    if task == score_questions.SCORE:
        return score_questions.scoring_of(answers).plan(**terms)
    terms["schema"] = _schema(answers, fields)
    if task in _MODELS:
        return ps.Plan(**terms)
    return ps.Effect.whole(**terms) if task == effect_questions.EFFECT else ps.Hazard.whole(**terms)


def _is_tables(value: Any) -> bool:
    """Whether it is written as tables of their own, which come after all other keys."""
    return isinstance(value, dict) or (
        isinstance(value, list) and bool(value) and all(isinstance(each, dict) for each in value)
    )


def _schema(answers: Answers, fields: Mapping[str, Any]) -> ps.schema.Schema:
    if answers["task"] not in _MODELS:
        return effect_questions.schema_of(answers)
    size = {"features": answers["features"], "clip_norm": answers["clip_norm"], **fields}
    if answers["task"] == "ridge":
        return ps.RidgeSchema(target_bound=answers["target_bound"], **size)
    return ps.ClassSchema(answers["classes"], statistics="NAB", **size)


def _cohort(answers: Answers) -> ps.Cohort:
    left = answers["clients"] - answers["vanish"]
    if left < 1 or answers["vanish"] < 0:
        raise PlanError(
            f"vanish must be 0 to {answers['clients'] - 1} of {answers['clients']}, got {answers['vanish']}"
        )
    return ps.Cohort(answers["clients"], left, answers["max_records"], answers["colluders"])


def _privacy(answers: Answers) -> ps.Privacy:
    of_unit = ("max_records_per_client", "max_records_per_person", "person_clip")
    names = ("model", "unit", "adjacency", "epsilon", "delta", *of_unit)
    choices: Any = {name: answers.get(name) for name in names}
    return ps.Privacy(**{**choices, "person_clip": score_questions.person_clip_of(answers.get("person_clip"))})


def _check_person_clip(answers: Answers) -> None:
    """Of itself: how many rows may count in full is asked next."""
    room = {} if answers["person_clip"] == AVERAGE else {"max_records_per_person": 1 << 53}
    _privacy({**answers, "model": "central", **room})


_CHECKS: Mapping[str, Callable[[Answers], object]] = {
    **dict.fromkeys(("classes", "target_bound", "features", "clip_norm"), lambda answers: _schema(answers, {})),
    **dict.fromkeys((each.name for each in effect_questions.QUESTIONS), lambda answers: _schema(answers, {})),
    "head": score_questions.scoring_of,
    **dict.fromkeys(("clients", "vanish", "colluders", "max_records"), _cohort),
    **dict.fromkeys(
        ("max_records_per_client", "max_records_per_person", "adjacency", "epsilon", "delta"),
        lambda answers: _privacy({**answers, "model": "central"}),
    ),
    "person_clip": _check_person_clip,
}
"""By question, the part of the plan that knows its bounds."""


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def plan_from(path: Path, given: Mapping[str, Any], declared: Declaration | None, *, ask: bool) -> tuple[ps.Plan, str]:
    """The plan that the answers make, and its text.

    Args:
        path: where it will lie, for the command that repeats the answers.
        given: answers by option.
        declared: columns, which answer some of them.
        ask: whether a person answers the rest.

    Raises:
        PrivstatsError: an answer is missing, or given twice, or the answers make no plan.
    """
    read, fields = ({}, {}) if declared is None else (declared.answers, declared.fields)
    if twice := [question.option for question in QUESTIONS if question.name in read and question.name in given]:
        raise PlanError(f"the declared columns answer {', '.join(twice)}: leave these options out")
    answers = answered({**read, **given}, _ask if ask else None)
    try:
        plan = _plan(answers, fields)
        return plan, plan_text(plan, answers, fields)
    except PrivstatsError:
        if ask:
            typer.echo(f"\nyour answers, to correct and run: {printable(_again(path, answers, read))}", err=True)
        raise


def columns_file(path: Path, file: RecordFile, drop: Sequence[str], *, ask: bool) -> str:
    """The text of a declaration that nobody has filled in; the names are shown before they are written.

    Raises:
        DataError: the file has no row of names.
        Abort: a person does not want them written.
    """
    from privstats.cli.parts.declaring import names_of
    from privstats.plan.columns import undeclared

    names = names_of(file, drop)
    say(f"columns of {file.path}, of which nothing else was read: {', '.join(names)}")
    if ask:
        typer.confirm(f"\nEvery party will read these names. Write them to {path}?", abort=True)
    return undeclared(names)


def _ask(question: Question, found: Answers) -> Any:
    """The answer of a person, who is asked again as long as it is out of its bounds."""
    kind = click.Choice(question.choices) if question.choices else click.types.convert_type(question.kind)

    def checked(text: str) -> Any:
        value = kind(text)
        try:
            check_answer(question, value, found)
        except PrivstatsError as error:
            raise click.UsageError(str(error)) from None
        return value

    typer.echo(f"\n{question.why}")
    return typer.prompt(question.asks, type=kind, value_proc=checked)


def _again(path: Path, answers: Answers, read: Answers) -> str:
    named = [question for question in QUESTIONS if question.name in answers and question.name not in read]
    words = [word for question in named for word in (question.option, str(answers[question.name]))]
    return shlex.join(["privstats", "plan", "init", str(path), "--yes", *words])
