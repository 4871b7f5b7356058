"""The rows of further tasks of ``privstats plan init``: their words, their questions and their plans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from privstats.doors import Door, is_row
from privstats.errors import PrivstatsError

if TYPE_CHECKING:
    from privstats.cli.parts.questions import Question
    from privstats.plan import Plan


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
        questions: its own, asked after the task; their ``part`` is empty.
    """

    name: str
    makes: str
    plan: Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Plan]
    declared: Callable[[Path | None, Sequence[str]], Declared] | None = None
    questions: tuple[Question, ...] = ()


TASKS: Door[PlanTask] = Door("privstats.tasks", "task of plan init", PrivstatsError, is_row(PlanTask))
"""The tasks by name, as packages and ``privstats.contrib`` announce them."""
