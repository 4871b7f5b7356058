"""One choice of ``plan init``: what it asks, why, and to which earlier answers it belongs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Question"]


@dataclass(frozen=True)
class Question:
    """One choice.

    Attributes:
        name: the key of the plan, and of the option ``--name``.
        asks: the question.
        why: what hangs on it, in one sentence.
        kind: of the answer.
        choices: the answers there are; any where empty.
        where: an earlier question and the answers to it that this one is about.
        also: another, of which one is enough.
        unless: an earlier question and the answers to it that leave no room for this one.
        usual: the answer where nobody gives one, which is then not asked for; None where there is none.
    """

    name: str
    asks: str
    why: str
    kind: type[str] | type[int] | type[float]
    choices: tuple[str, ...] = ()
    where: tuple[str, tuple[str, ...]] | None = None
    also: tuple[str, tuple[str, ...]] | None = None
    unless: tuple[str, tuple[str, ...]] | None = None
    usual: str | None = None

    @property
    def option(self) -> str:
        """How it is answered on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def hangs_on(self) -> set[str]:
        """The earlier questions that decide whether it is asked."""
        return {each[0] for each in (self.where, self.also, self.unless) if each is not None}

    def belongs(self, answers: Mapping[str, Any]) -> bool:
        """Whether the answers before it leave it open."""
        if self.unless is not None and answers.get(self.unless[0]) in self.unless[1]:
            return False
        about = [each for each in (self.where, self.also) if each is not None]
        return not about or any(answers.get(name) in values for name, values in about)
