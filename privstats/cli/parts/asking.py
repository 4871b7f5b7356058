"""Ask the questions of ``plan init`` on a terminal, and say what a table gave and must not give."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import typer

from privstats.cli.parts.questions import QUESTIONS, Answers, Question, answered, check_answer, plan_text, table_facts
from privstats.errors import PrivstatsError
from privstats.printable import printable

if TYPE_CHECKING:
    from privstats.moments import RecordFile

__all__ = ["can_ask", "plan_from"]


def can_ask() -> bool:
    """Whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def plan_from(
    path: Path,
    given: Mapping[str, Any],
    table: RecordFile | None,
    drop: Sequence[str] = (),
    *,
    ask: bool,
) -> str:
    """The text of the plan that the answers make.

    Args:
        path: where it will lie, for the command that repeats the answers.
        given: answers by option.
        table: a file whose columns and classes answer, too.
        drop: its columns that are left out.
        ask: whether a person answers the rest.

    Raises:
        PrivstatsError: an answer is missing, the table cannot be read, or the answers make no plan.
    """
    read, fields = _read(table, drop, given) if table is not None else ({}, {})
    answers = answered({**read, **given}, _ask if ask else None)
    try:
        return plan_text(answers, fields)
    except PrivstatsError:
        if ask:
            typer.echo(f"\nyour answers, to correct and run: {printable(_again(path, answers, read))}", err=True)
        raise


def _read(table: RecordFile, drop: Sequence[str], given: Mapping[str, Any]) -> tuple[Answers, Answers]:
    answers, fields, rows = table_facts(table, drop, given)
    beside = f"{answers['features']} columns beside {table.target}"
    classes = f", {answers['classes']} classes" if "classes" in answers else ""
    typer.echo(
        f"{table.path}: {rows:,} rows, {beside}{classes}. Their names stand in the "
        "plan, which all parties read: take out what is not public.\n"
        "Columns in different units need a transform in the plan, by ranges that are public, before a clip_norm fits "
        "them (docs/alone.md).\n"
        "Not read from it: clip_norm, the largest target, the number of records, epsilon. Chosen by looking at private "
        "records they are a leak outside the budget, which no epsilon counts.",
        err=True,
    )
    return answers, fields


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
