"""The sums of one plan twice, so that a reader compares both."""

from dataclasses import dataclass, field, replace
from functools import cached_property

from privstats.extend.courses import Phase, Phased, Phases, Promise, part_of, promised, require_plan
from privstats.plan import Plan


@dataclass(frozen=True)
class Twice(Phased):
    """A first look with part of the promise, and a second one with the rest."""

    label = "twice"
    plan: Plan
    early: float = field(default=0.2, metadata={"usual": 0.2})
    promise: Promise | None = field(default=None, compare=False)

    def _require(self) -> None:
        require_plan("plan", self.plan)
        promised(self.plan)

    @classmethod
    def within(cls, whole: Plan, early: float = 0.2) -> "Twice":
        """Return the course that keeps a plan's promise in total."""
        return cls(replace(whole, privacy=part_of(whole, 1 - early, None)), early, Promise.of(whole))

    @cached_property
    def first(self) -> Plan:
        """The first look's plan."""
        return replace(self.plan, privacy=part_of(self.plan, self.early / (1 - self.early), None))

    @cached_property
    def phases(self) -> Phases:
        """The looks."""
        return Phases((Phase("early", self.first, tries=1), Phase("late", self.plan, tries=1)))
