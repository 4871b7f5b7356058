"""Walk a course's steps: which session is next, and what each place costs.

A *step* is one or more sessions of one kind, such as the rounds of a regression. A *place* is a session's index in the
course, from 0. Which step is open at a place follows from the earlier places without a sum, and from no released value.
Order, labels and prices are therefore public before the first release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from privstats.course.base import Releases, exceeds, history, mu_of
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.release import Release
from privstats.schema.public_values import Published, Values


@dataclass(frozen=True)
class Past:
    """The sessions so far, each with its step.

    Attributes:
        releases: in order; None for a session without a sum.
        steps: name of each session's step.

    Example:
        >>> from privstats.course.steps import Past
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> past = Past((release, None), ("counts", "round"))
        >>> len(past.of("counts")), past.of("round")
        (1, [])
    """

    releases: Releases
    steps: tuple[str, ...]

    @property
    def released(self) -> list[Release]:
        """The releases with a sum, in order."""
        return [release for release in self.releases if release is not None]

    def of(self, name: str) -> list[Release]:
        """Return the releases of a step's sessions with a sum, in order."""
        named = zip(self.steps, self.releases, strict=True)
        return [release for step, release in named if step == name and release is not None]

    def first(self, name: str) -> Release | None:
        """Return a step's first release; None if no session of the step had a sum."""
        return next(iter(self.of(name)), None)

    def publish(self, values: Mapping[str, Values]) -> Published:
        """Return the values that the next session's plan publishes, bound to these releases."""
        return Published.of(values, history(self.releases) if self.releases else b"")


@dataclass(frozen=True)
class Step:
    """One step of a course.

    Attributes:
        name: a noun for tables and errors, such as ``"counts"``; each step of a course has its own.
        plan: the plan before any release, which prices the step: no session of the step may cost more.
        sums: number of sums after which the step is done; None: ``tries`` sessions, whichever have a sum.
        tries: maximum number of sessions; None: as many as the course has places for.
        needed: whether the course ends as soon as the step cannot have its sums any more.
        with_sums_of: names of earlier steps, whose sums count towards ``sums``; such a step states its ``tries``.
        form: computes a session's plan, up to what it publishes; None: every session has ``plan``.
        published: computes what a session's plan publishes; None: what ``plan`` publishes, if anything.
        longest: the plan of its longest message, where a size follows from releases; None: none is longer than that of
            ``plan``.

    Example:
        >>> from privstats.course.steps import Step
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> Step("round", plan, sums=4).sessions, Step("round", plan, sums=4, tries=6).sessions
        (4, 6)
    """

    name: str
    plan: Plan
    sums: int | None = 1
    tries: int | None = None
    needed: bool = False
    with_sums_of: tuple[str, ...] = ()
    form: Callable[[Past], Plan] | None = None
    published: Callable[[Past], Published] | None = None
    longest: Plan | None = None

    def __post_init__(self) -> None:
        if self.tries is None and (self.sums is None or self.with_sums_of):
            raise PlanError(
                f"step {self.name!r} must have tries, because its number of sessions does not follow from its sums "
                "alone: state tries"
            )

    @property
    def sessions(self) -> int:
        """Number of places that the step adds to a course."""
        sessions = self.sums if self.tries is None else self.tries
        assert sessions is not None  # noqa: S101  a step without tries has sums
        return sessions

    def after(self, past: Past) -> Plan:
        """Return the next session's plan."""
        plan = self.formed(past)
        return plan if self.published is None else replace(plan, published=self.published(past))

    def has(self, plan: Plan, past: Past) -> bool:
        """Return whether a plan is this step's after these sessions, whatever values it publishes."""
        own = self.formed(past)
        if self.published is None or own.schema != plan.schema:
            return plan == own
        return plan == replace(own, published=plan.published)

    def formed(self, past: Past) -> Plan:
        """Return the next session's plan, up to what it publishes."""
        return self.plan if self.form is None else self.form(past)


class _State(NamedTuple):
    """The position in a course.

    Attributes:
        place: number of sessions so far.
        at: index of the open step; the number of steps at the end.
        tries: sessions of the open step so far.
        sums: sums of each step so far.
    """

    place: int
    at: int
    tries: int
    sums: tuple[int, ...]


@dataclass(frozen=True)
class Steps:
    """A course's steps in order, with one pool of retries.

    Attributes:
        retries: number of places beyond the sessions that the steps need.

    Raises:
        PlanError: two steps have one name, ``with_sums_of`` names no earlier step, or no place is priced by one of the
            steps, so that no document would name it.

    Guarantee:
        ``priced[k]`` costs at least as much as each session that may come at place k, so all sessions together cost at
        most ``priced``, whichever have a sum.

    Example:
        >>> from privstats.course.steps import Step, Steps
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> steps = Steps((Step("mean", plan, tries=1), Step("round", plan, sums=2)), retries=1)
        >>> steps.places, steps.labels
        (4, ('mean', 'round', 'round', 'round'))
        >>> steps.open([True, False, True]).name, steps.open([True, True, True])
        ('round', None)
    """

    steps: tuple[Step, ...]
    retries: int = 0

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        for at, step in enumerate(self.steps):
            unknown = [name for name in step.with_sums_of if name not in names[:at]]
            if unknown or step.name in names[:at]:
                what = f"counts the sums of {unknown[0]!r}, no step before it" if unknown else "is there twice"
                raise PlanError(f"step {step.name!r} {what}; give each step its own name, and name earlier ones")

    @property
    def first(self) -> Plan:
        """The first session's plan."""
        return self.steps[0].plan

    @property
    def places(self) -> int:
        """Maximum number of sessions."""
        return self.retries + sum(step.sessions for step in self.steps)

    def open(self, had: Sequence[bool]) -> Step | None:
        """Return the next session's step; None at the end.

        Args:
            had: for each session so far, whether it had a sum.
        """
        return self._walked(had)[1]

    def names(self, had: Sequence[bool]) -> tuple[str, ...]:
        """Return each session's step by name; sessions behind the end have none.

        Args:
            had: for each session so far, whether it had a sum.
        """
        return self._walked(had)[0]

    def spent(self, had: Sequence[bool]) -> float:
        """Return mu of the sessions so far and of the next one together, at their steps' prices.

        Args:
            had: for each session so far, whether it had a sum.
        """
        names, step = self._walked(had)
        price = {each.name: mu_of(each.plan) for each in self.steps}
        return math.hypot(*(price[name] for name in names), 0.0 if step is None else mu_of(step.plan))

    def next(self, releases: Releases) -> Plan | None:
        """Return the next session's plan; None at the end.

        Raises:
            PlanError: a release is of another course.
        """
        names, step = self._walked([release is not None for release in releases])
        if step is None:
            return None
        if not releases:
            return self.first
        for place, release in enumerate(releases):
            own = next(each for each in self.steps if each.name == names[place])
            if release is not None and not own.has(release.plan, Past(tuple(releases[:place]), names[:place])):
                raise PlanError(
                    f"release {place} is not of this course's session {own.name!r}; give the releases of its own "
                    "sessions, in order"
                )
        return step.after(Past(tuple(releases), names))

    @cached_property
    def by_place(self) -> tuple[tuple[Step, ...], ...]:
        """The steps that may come at each place, over all patterns of sessions without a sum."""
        states, places = [self._begun], []
        while states:
            places.append(tuple(self.steps[at] for at in sorted({state.at for state in states})))
            moved = (self._moved(state, had) for state in states for had in (False, True))
            states = list({self._future(each): each for each in moved if each.at < len(self.steps)}.values())
        return tuple(places)

    @cached_property
    def priced(self) -> tuple[Plan, ...]:
        """One plan per place: the dearest that may come there, of equal ones the latest step's."""
        priced = tuple(map(_dearest, self.by_place))
        for step in self.steps:
            if not any(plan is step.plan for plan in priced):
                raise PlanError(
                    f"session {step.name!r} costs mu {mu_of(step.plan):.6g}, and a retry may move a dearer session to "
                    "each of its places: take fewer retries, or let within divide the promise"
                )
        return priced

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of the sessions that may come at each place."""
        return tuple(" or ".join(step.name for step in steps) for steps in self.by_place)

    @property
    def _begun(self) -> _State:
        return self._settled(_State(0, 0, 0, (0,) * len(self.steps)))

    def _walked(self, had: Sequence[bool]) -> tuple[tuple[str, ...], Step | None]:
        """Return each session's step by name, and the open one."""
        state, names = self._begun, list[str]()
        for each in had:
            if state.at == len(self.steps):
                break
            names.append(self.steps[state.at].name)
            state = self._moved(state, each)
        return tuple(names), self.steps[state.at] if state.at < len(self.steps) else None

    def _moved(self, state: _State, had: bool) -> _State:
        sums = tuple(many + (had and at == state.at) for at, many in enumerate(state.sums))
        return self._settled(_State(state.place + 1, state.at, state.tries + 1, sums))

    def _settled(self, state: _State) -> _State:
        """Return the state behind the steps that are done, or at the end."""
        if state.place == self.places or self._is_out_of_reach(state):
            return state._replace(at=len(self.steps))
        at, tries = state.at, state.tries
        while at < len(self.steps) and (tries == self.steps[at].tries or self._missing(at, state.sums) == 0):
            at, tries = at + 1, 0
        return state._replace(at=at, tries=tries)

    def _future(self, state: _State) -> tuple[object, ...]:
        """Return what decides which steps follow at later places: states alike in it need not be walked twice."""
        later = {name for step in self.steps[state.at + 1 :] for name in step.with_sums_of}
        counted = [many for step, many in zip(self.steps, state.sums, strict=True) if step.name in later]
        return (state.at, state.tries, self._missing(state.at, state.sums), *counted)

    def _missing(self, at: int, sums: Sequence[int]) -> int | None:
        """Return the number of sums that a step still waits for; None if it waits for tries alone."""
        step = self.steps[at]
        if step.sums is None:
            return None
        counted = (step.name, *step.with_sums_of)
        have = sum(many for each, many in zip(self.steps, sums, strict=True) if each.name in counted)
        return max(step.sums - have, 0)

    def _is_out_of_reach(self, state: _State) -> bool:
        """Return whether a needed step cannot have its sums, even if every later session has one."""
        free, tries, sums = self.places - state.place, state.tries, list(state.sums)
        for at, step in enumerate(self.steps[state.at :], state.at):
            possible = free if step.tries is None else min(free, step.tries - tries)
            missing = self._missing(at, sums)
            if step.needed and missing is not None and missing > possible:
                return True
            used = possible if missing is None else min(missing, possible)
            sums[at], free, tries = sums[at] + used, free - used, 0
        return False


def _dearest(steps: Sequence[Step]) -> Plan:
    dearest = steps[-1].plan
    for step in reversed(steps):
        if exceeds(step.plan, dearest):
            dearest = step.plan
    return dearest
