"""The rows of further tasks of ``privstats plan init``: their words, their questions and their plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError
from privstats.plan.forms import Form
from privstats.row_fields import RowError
from privstats.row_options import fault_of_name, is_typed

if TYPE_CHECKING:
    from privstats.plan import Plan

Part = Literal["schema", "head", "cohort", "privacy", "devices", "aggregation", ""]
Condition = tuple[str, tuple[str, ...]]
"""An earlier question, and answers to it."""
TASK = "task"
"""The name of the question for the task."""


def as_it_is(answer: Any) -> Any:
    """Return the answer unchanged."""
    return answer


@dataclass(frozen=True)
class Question:
    """One choice.

    Attributes:
        name: key of the plan, and of the option ``--name``.
        harmless: a valid stand-in for a missing answer.
        kind: type of the answer, such as ``str``.
        heading: the list of options in the help that shows this one.
        part: the plan's part; empty for none, as of a package's task.
        asks: the question itself.
        why: its consequences, in one sentence.
        help: the help of the option, one sentence.
        choices: possible answers, where these are not all of the setting's form; see :attr:`offered`.
        form: the values of the setting that it asks.
        where: the answer that raises this question.
        also: another such answer; one suffices.
        unless: the answer that makes this question void.
        usual: the default, which spares the question.
        read: converts an answer; None omits the field.
    """

    name: str
    harmless: Any
    kind: type
    heading: str
    part: Part
    asks: str
    why: str
    help: str
    choices: tuple[str, ...] = ()
    form: Form | None = None
    where: Condition | None = None
    also: Condition | None = None
    unless: Condition | None = None
    usual: str | None = None
    read: Callable[[Any], Any] = as_it_is

    @property
    def offered(self) -> tuple[str, ...]:
        """Possible answers; any where empty."""
        return self.choices or (self.form.choices if self.form else ())

    @property
    def option(self) -> str:
        """The option that answers this question."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The answers to other questions on which this one depends."""
        return tuple(each for each in (self.where, self.also, self.unless) if each is not None)

    def belongs(self, answers: Mapping[str, Any]) -> bool:
        """Return whether earlier answers leave the question open."""
        if self.unless is not None and answers.get(self.unless[0]) in self.unless[1]:
            return False
        about = [each for each in (self.where, self.also) if each is not None]
        return not about or any(answers.get(name) in values for name, values in about)


class Declared(Protocol):
    """The declaration of a task's columns."""

    @property
    def answers(self) -> Mapping[str, Any]:
        """Answers to questions that the columns determine."""

    @property
    def names(self) -> list[str]:
        """The columns' names."""

    def fields(self, answers: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the plan is built from, beside the answers."""

    def next_step(self, path: Path) -> str:
        """Return what to do with the plan that was written to ``path``, one sentence."""


@dataclass(frozen=True)
class PlanTask:
    """A task of ``plan init``.

    Attributes:
        name: the answer that means it.
        makes: what is learned, for the question, such as "synthetic rows of a table".
        plan: builds the plan from the answers, the declared fields, and the plan's other terms by name.
        declared: reads the declaration of ``--public``, if any, and refuses the named options, which the task does not
            read; None: the task declares no columns.
        questions: its own, asked after the task; their ``part`` is empty, and their ``where`` is this task's name, as
            ``("task", ("rows",))``, or an answer to another one of them.
    """

    name: str
    makes: str
    plan: Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Plan]
    declared: Callable[[Path | None, Sequence[str]], Declared] | None = None
    questions: tuple[Question, ...] = ()


_has_fields = is_row(PlanTask)


def _is_task(row: Any, name: str) -> bool:
    """Return whether an announced object is a task; refuse one that changes what the questions of other tasks mean."""
    good = _has_fields(row, name)
    own = [TASK, *(each.name for each in row.questions)]
    for place, each in enumerate(row.questions):
        if why := _fault(each, name, own[: place + 1]):
            raise RowError(f"its question {each.name!r:.80} is wrong: {why}")
    return good


def _fault(question: Question, task: str, earlier: Sequence[str]) -> str:
    """Return why a question cannot be one of a task's own, a clause; empty for one."""
    if question.part:
        return f"its part is {question.part!r}, and must be '', because the task's plan reads the answer"
    if question.name in earlier:
        return "its name is that of an earlier question: choose another name"
    if not is_typed(question.kind):
        return f"its kind is {question.kind.__name__}, and must be a type that a command reads, such as str or int"
    if strange := [other for other, _ in question.conditions if other not in earlier]:
        return f"it depends on the question {strange[0]!r:.80}, and must depend on {', '.join(earlier)} alone"
    asked = [each for each in (question.where, question.also) if each is not None]
    if not asked or any(other == TASK and answers != (task,) for other, answers in asked):
        return f"its where must be ({TASK!r}, ({task!r},)) or an answer to an earlier question of its own"
    return fault_of_name(question.name)


TASKS: Door[PlanTask] = Door("privstats.tasks", "task of plan init", PrivstatsError, _is_task)
"""The tasks by name, as packages and ``privstats.contrib`` announce them."""
