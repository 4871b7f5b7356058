"""Ask the questions of ``plan init`` on a terminal, and show the names that are about to be written."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer

from privstats.cli.parts.questions import QUESTIONS, Answers, Question, answered, check_answer, plan_text
from privstats.cli.parts.terminal import say
from privstats.errors import PlanError, PrivstatsError
from privstats.printable import printable

if TYPE_CHECKING:
    from privstats.cli.parts.declaring import Declaration
    from privstats.moments import RecordFile

__all__ = ["can_ask", "columns_file", "plan_from"]


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def plan_from(path: Path, given: Mapping[str, Any], declared: Declaration | None, *, ask: bool) -> str:
    """The text of the plan that the answers make.

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
        return plan_text(answers, fields)
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
