"""The interface of an attack: a name, a goal, its requirements, and one function from a view to a guess.

An attack is one file in ``attacks/``: a subclass registers itself under its name, as a transform does under its kind.
Another package announces its own under the entry-point group ``privstats.attacks``. No attack receives a world or
scores itself, and it draws only from the given generator.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias

from numpy.typing import NDArray

from privstats.course import Course
from privstats.course.kinds import course_kind
from privstats.doors import Door
from privstats.errors import DataError, PlanError
from privstats.kinds import RecordSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.row_fields import RowError, fault_of_class, shown
from privstats.schema import Schema
from privstats.tables import load_all, register
from threat_models.adversary import Adversary, View
from threat_models.report import Row

Goal: TypeAlias = Literal["membership", "reconstruction", "inference", "unmasking", "poisoning", "audit"]

Scored: TypeAlias = Literal["records", "pairs", "images"]

_ATTACKS: dict[str, type[Listed]] = {}
_OURS = 16
"""Attacks of benchmarks/attacks/numbers.md have the numbers 1 to 16; those of other packages have higher ones."""


class Listed(ABC):  # the two kinds below have the abstract methods
    """An attack's entry in the list of attacks.

    Attributes:
        name: how the command line calls it.
        number: its place in the table of attacks: 1 to 16 are those of privstats, another package's are higher.
        goal: "membership" (is this record in?), "reconstruction" (which records are in?), "inference" (a property of
            a record), "unmasking" (one client's sums), "poisoning" (a spoilt model), or "audit" (is a claim true?).
        title: one plain sentence for people.
        needs: the adversary it is written for.
        reads: statistics of which it needs at least one.
        kinds: of schema that it is written for; empty for any.
        effort: share of a run's trials that it plays: below 1 where a trial is expensive, above 1 where it is
            uninformative.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    goal: ClassVar[Goal]
    title: ClassVar[str]
    needs: ClassVar[Adversary] = Adversary()
    reads: ClassVar[str] = ""
    kinds: ClassVar[tuple[type[Schema], ...]] = ()
    effort: ClassVar[float] = 1.0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            register(_ATTACKS, cls.name, cls, "attack", DataError)

    def adversary(self, plan: Plan) -> Adversary:
        """The adversary of this attack under a plan; most need no more than their declaration."""
        del plan
        return self.needs

    def refusal_of(self, course: Course) -> str | None:
        """Why the attack does not read what is drawn from a course, in one sentence; None where it does."""
        del course
        return "reads the sums of one session"

    def letters(self, plan: Plan) -> str:
        """Return the statistics of a plan that the attack reads, derived ones included."""
        there = plan.schema.statistics + plan.schema.derived
        return "".join(letter for letter in there if not self.reads or letter in self.reads)

    def refusal(self, plan: Plan) -> str | None:
        """Why the attack does not apply to a plan, in one sentence; None where it does."""
        if self.kinds and type(plan.schema) not in self.kinds:
            written = " or ".join(kind.__name__ for kind in self.kinds)
            return f"is written for a {written}, and the plan measures a {type(plan.schema).__name__}"
        if not self.letters(plan):
            return f"needs one of the statistics {', '.join(self.reads)}, and the plan sends {plan.schema.statistics}"
        return None


class Attack(Listed):
    """One way to use what an adversary sees: a function from a view to a guess, which a game scores.

    Attributes:
        records: records per class that it needs; None for any number.
        scored: reconstructions only: by whole "records", by the unordered "pairs" of values in every coordinate, or by
            how alike "images" are.
    """

    records: ClassVar[int | None] = None
    scored: ClassVar[Scored] = "records"

    def refusal(self, plan: Plan) -> str | None:
        """Refuse as for any attack, and also sums that are not of records, which a game deals to clients."""
        if not isinstance(plan.schema, RecordSchema):
            return f"plays over records as they stand, and the plan measures a {type(plan.schema).__name__}"
        return super().refusal(plan)

    @abstractmethod
    def run(self, view: View, rng: Generator) -> NDArray[Any]:
        """The attack's guess.

        Membership: one score per candidate, ``(m,)``, higher for "a member". Reconstruction: at most ``view.records``
        vectors, ``(k, d)``. Inference: one label per candidate, ``(m,)``.
        """


class Examination(Listed):
    """An attack that is no game over records: it sets up the real machines or an audit itself, and reports rows."""

    @abstractmethod
    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Measure, and judge against the plan's claims at ``confidence`` for all rows together."""


class CourseExamination(Examination):
    """An attack on what is drawn from the releases of a course, in worlds of its own.

    Under a plan it plays against the course that keeps the plan's promise.

    Attributes:
        courses: kinds of course, by name, whose drawn rows it reads.
    """

    courses: ClassVar[tuple[str, ...]]

    def refusal(self, plan: Plan) -> str | None:
        """Refuse as for any attack, and also plans from which no such course follows."""
        why = super().refusal(plan)
        if why is not None:
            return why
        try:
            self.course_of(plan)
        except PlanError as error:
            return f"reads rows of a course that keeps the plan's promise, and there is none: {error}"
        return None

    def refusal_of(self, course: Course) -> str | None:
        """Refuse a course of another kind."""
        if course_kind(course).name in self.courses:
            return None
        return f"reads rows drawn from a {' or '.join(self.courses)} course, and this is {course_kind(course).what}"

    @abstractmethod
    def course_of(self, plan: Plan) -> Any:
        """Return the course that keeps a plan's promise.

        Raises:
            PlanError: there is none.
        """

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Measure on the course that keeps the plan's promise."""
        return self.examine_course(self.course_of(plan), rng, trials=trials, confidence=confidence)

    @abstractmethod
    def examine_course(self, course: Any, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """Measure, and judge against the promise of the whole course at ``confidence`` for all rows together."""


AnyAttack: TypeAlias = Attack | Examination


@cache
def _built(kind: type[Listed]) -> Listed:
    return kind()


def attacks() -> tuple[AnyAttack, ...]:
    """Every attack there is, by number and name: all files of ``attacks/``, and what other packages announce.

    One that is announced and broken is left out, with a warning.

    Raises:
        DataError: two attacks have one name.
        TypeError: a class of ``attacks/`` is no attack that can be run.
    """
    load_all("threat_models.attacks")  # ours first: they keep their names
    result: list[Any] = list(map(_built, (*_ours(), *ANNOUNCED.rows().values())))  # of the two kinds below ``Listed``
    return tuple(sorted(result, key=lambda attack: (attack.number, attack.name)))


def _ours() -> list[type[Listed]]:
    ours = [kind for kind in _ATTACKS.values() if kind.__module__.startswith(f"{__package__}.")]
    for kind in ours:
        if why := _fault(kind):
            raise TypeError(f"the attack {kind.name!r} of {kind.__module__} cannot be run: {why}")
    return ours


def _is_complete(found: Any, name: str) -> bool:
    """Whether an object is an attack of this name that can be run: it has all of its attributes and methods."""
    if why := _fault(found):
        raise RowError(why)
    if found.name != name:
        raise RowError(f"its name is {shown(found.name)}, and must be {name!r}, the name of the entry point")
    if found.number <= _OURS:
        raise RowError(f"its number is {found.number}, and must be above {_OURS}: privstats has the others")
    return _ATTACKS.get(name) is found


def _fault(found: Any) -> str:
    """Return why an object is no attack that can be run, a clause; empty for one."""
    if not (inspect.isclass(found) and issubclass(found, Attack | Examination)):
        return f"it is {shown(found)}, and must be a class over Attack or Examination"
    if lacking := sorted(found.__abstractmethods__):
        return f"it lacks the method {lacking[0]}"
    return fault_of_class(found, Attack if issubclass(found, Attack) else Listed)


ANNOUNCED: Door[type[Listed]] = Door("privstats.attacks", "attack", DataError, _is_complete)
"""The attacks that packages announce; an attack registers itself, so those of ``attacks/`` need no row."""


def attacks_named(names: Sequence[str]) -> tuple[AnyAttack, ...]:
    """The attacks of these names; all for none.

    Raises:
        DataError: there is no attack of that name.
    """
    known = {attack.name: attack for attack in attacks()}
    unknown = [name for name in names if name not in known]
    if unknown:
        _ = ANNOUNCED.get(unknown[0])  # refuses by the name of its package one that is broken
        raise DataError(f"there is no attack {unknown[0]!r}; the attacks are {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else tuple(known.values())
