"""Walk a course's phases: which session is next, and what each place costs.

A *phase* is one or more sessions of one kind, such as the rounds of a regression. A *place* is a session's index in the
course, from 0. Which phase is open at a place follows from the earlier places without a sum, and from no released
value. Order, labels and prices are therefore public before the first release.
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
    """The sessions so far, each with its phase.

    Attributes:
        releases: in order; None for a session without a sum.
        phases: name of each session's phase.

    Example:
        >>> from privstats.course.phases import Past
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> release = ps.simulate(plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> past = Past((release, None), ("counts", "round"))
        >>> len(past.of("counts")), past.of("round")
        (1, [])
    """

    releases: Releases
    phases: tuple[str, ...]

    @property
    def released(self) -> list[Release]:
        """The releases with a sum, in order."""
        return [release for release in self.releases if release is not None]

    def of(self, name: str) -> list[Release]:
        """Return the releases of a phase's sessions with a sum, in order."""
        named = zip(self.phases, self.releases, strict=True)
        return [release for phase, release in named if phase == name and release is not None]

    def first(self, name: str) -> Release | None:
        """Return a phase's first release; None if no session of the phase had a sum."""
        return next(iter(self.of(name)), None)

    def publish(self, values: Mapping[str, Values]) -> Published:
        """Return the values that the next session's plan publishes, bound to these releases."""
        return Published.of(values, history(self.releases) if self.releases else b"")


@dataclass(frozen=True)
class Phase:
    """One phase of a course.

    Attributes:
        name: a noun for tables and errors, such as ``"counts"``; each phase of a course has its own.
        plan: the plan before any release, which prices the phase: no session of the phase may cost more.
        sums: number of sums after which the phase is done; None: ``tries`` sessions, whichever have a sum.
        tries: maximum number of sessions; None: as many as the course has places for.
        needed: whether the course ends as soon as the phase cannot have its sums any more.
        with_sums_of: names of earlier phases, whose sums count towards ``sums``; such a phase states its ``tries``.
        form: computes a session's plan, up to what it publishes; None: every session has ``plan``.
        published: computes what a session's plan publishes; None: what ``plan`` publishes, if anything.
        longest: the plan of its longest message, where a size follows from releases; None: none is longer than that of
            ``plan``.

    Example:
        >>> from privstats.course.phases import Phase
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> Phase("round", plan, sums=4).sessions, Phase("round", plan, sums=4, tries=6).sessions
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
                f"phase {self.name!r} must have tries, because its number of sessions does not follow from its sums "
                "alone: state tries"
            )

    @property
    def sessions(self) -> int:
        """Number of places that the phase adds to a course."""
        sessions = self.sums if self.tries is None else self.tries
        assert sessions is not None  # noqa: S101  a phase without tries has sums
        return sessions

    def after(self, past: Past) -> Plan:
        """Return the next session's plan."""
        plan = self.formed(past)
        return plan if self.published is None else replace(plan, published=self.published(past))

    def has(self, plan: Plan, past: Past) -> bool:
        """Return whether a plan is this phase's after these sessions, whatever values it publishes."""
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
        at: index of the open phase; the number of phases at the end.
        tries: sessions of the open phase so far.
        sums: sums of each phase so far.
    """

    place: int
    at: int
    tries: int
    sums: tuple[int, ...]


@dataclass(frozen=True)
class Phases:
    """A course's phases in order, with one pool of retries.

    Attributes:
        retries: number of places beyond the sessions that the phases need.

    Raises:
        PlanError: two phases have one name, ``with_sums_of`` names no earlier phase, or no place is priced by one of
            the phases, so that no document would name it.

    Guarantee:
        ``priced[k]`` costs at least as much as each session that may come at place k, so all sessions together cost at
        most ``priced``, whichever have a sum.

    Example:
        >>> from privstats.course.phases import Phase, Phases
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> phases = Phases((Phase("mean", plan, tries=1), Phase("round", plan, sums=2)), retries=1)
        >>> phases.places, phases.labels
        (4, ('mean', 'round', 'round', 'round'))
        >>> phases.open([True, False, True]).name, phases.open([True, True, True])
        ('round', None)
    """

    phases: tuple[Phase, ...]
    retries: int = 0

    def __post_init__(self) -> None:
        names = [phase.name for phase in self.phases]
        for at, phase in enumerate(self.phases):
            unknown = [name for name in phase.with_sums_of if name not in names[:at]]
            if unknown or phase.name in names[:at]:
                what = f"counts the sums of {unknown[0]!r}, no phase before it" if unknown else "is there twice"
                raise PlanError(f"phase {phase.name!r} {what}; give each phase its own name, and name earlier ones")

    @property
    def first(self) -> Plan:
        """The first session's plan."""
        return self.phases[0].plan

    @property
    def places(self) -> int:
        """Maximum number of sessions."""
        return self.retries + sum(phase.sessions for phase in self.phases)

    def open(self, had: Sequence[bool]) -> Phase | None:
        """Return the next session's phase; None at the end.

        Args:
            had: for each session so far, whether it had a sum.
        """
        return self._walked(had)[1]

    def names(self, had: Sequence[bool]) -> tuple[str, ...]:
        """Return each session's phase by name; sessions behind the end have none.

        Args:
            had: for each session so far, whether it had a sum.
        """
        return self._walked(had)[0]

    def spent(self, had: Sequence[bool]) -> float:
        """Return mu of the sessions so far and of the next one together, at their phases' prices.

        Args:
            had: for each session so far, whether it had a sum.
        """
        names, phase = self._walked(had)
        price = {each.name: mu_of(each.plan) for each in self.phases}
        return math.hypot(*(price[name] for name in names), 0.0 if phase is None else mu_of(phase.plan))

    def next(self, releases: Releases) -> Plan | None:
        """Return the next session's plan; None at the end.

        Raises:
            PlanError: a release is of another course.
        """
        names, phase = self._walked([release is not None for release in releases])
        if phase is None:
            return None
        if not releases:
            return self.first
        for place, release in enumerate(releases):
            own = next(each for each in self.phases if each.name == names[place])
            if release is not None and not own.has(release.plan, Past(tuple(releases[:place]), names[:place])):
                raise PlanError(
                    f"release {place} is not of this course's session {own.name!r}; give the releases of its own "
                    "sessions, in order"
                )
        return phase.after(Past(tuple(releases), names))

    @cached_property
    def by_place(self) -> tuple[tuple[Phase, ...], ...]:
        """The phases that may come at each place, over all patterns of sessions without a sum."""
        states, places = [self._begun], []
        while states:
            places.append(tuple(self.phases[at] for at in sorted({state.at for state in states})))
            moved = (self._moved(state, had) for state in states for had in (False, True))
            states = list({self._future(each): each for each in moved if each.at < len(self.phases)}.values())
        return tuple(places)

    @cached_property
    def priced(self) -> tuple[Plan, ...]:
        """One plan per place: the dearest that may come there, of equal ones the latest phase's."""
        priced = tuple(map(_dearest, self.by_place))
        for phase in self.phases:
            if not any(plan is phase.plan for plan in priced):
                raise PlanError(
                    f"session {phase.name!r} costs mu {mu_of(phase.plan):.6g}, and a retry may move a dearer session "
                    "to each of its places: take fewer retries, or let within divide the promise"
                )
        return priced

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The name of the sessions that may come at each place."""
        return tuple(" or ".join(phase.name for phase in phases) for phases in self.by_place)

    @property
    def _begun(self) -> _State:
        return self._settled(_State(0, 0, 0, (0,) * len(self.phases)))

    def _walked(self, had: Sequence[bool]) -> tuple[tuple[str, ...], Phase | None]:
        """Return each session's phase by name, and the open one."""
        state, names = self._begun, list[str]()
        for each in had:
            if state.at == len(self.phases):
                break
            names.append(self.phases[state.at].name)
            state = self._moved(state, each)
        return tuple(names), self.phases[state.at] if state.at < len(self.phases) else None

    def _moved(self, state: _State, had: bool) -> _State:
        sums = tuple(many + (had and at == state.at) for at, many in enumerate(state.sums))
        return self._settled(_State(state.place + 1, state.at, state.tries + 1, sums))

    def _settled(self, state: _State) -> _State:
        """Return the state behind the phases that are done, or at the end."""
        if state.place == self.places or self._is_out_of_reach(state):
            return state._replace(at=len(self.phases))
        at, tries = state.at, state.tries
        while at < len(self.phases) and (tries == self.phases[at].tries or self._missing(at, state.sums) == 0):
            at, tries = at + 1, 0
        return state._replace(at=at, tries=tries)

    def _future(self, state: _State) -> tuple[object, ...]:
        """Return what decides which phases follow at later places: states alike in it need not be walked twice."""
        later = {name for phase in self.phases[state.at + 1 :] for name in phase.with_sums_of}
        counted = [many for phase, many in zip(self.phases, state.sums, strict=True) if phase.name in later]
        return (state.at, state.tries, self._missing(state.at, state.sums), *counted)

    def _missing(self, at: int, sums: Sequence[int]) -> int | None:
        """Return the number of sums that a phase still waits for; None if it waits for tries alone."""
        phase = self.phases[at]
        if phase.sums is None:
            return None
        counted = (phase.name, *phase.with_sums_of)
        have = sum(many for each, many in zip(self.phases, sums, strict=True) if each.name in counted)
        return max(phase.sums - have, 0)

    def _is_out_of_reach(self, state: _State) -> bool:
        """Return whether a needed phase cannot have its sums, even if every later session has one."""
        free, tries, sums = self.places - state.place, state.tries, list(state.sums)
        for at, phase in enumerate(self.phases[state.at :], state.at):
            possible = free if phase.tries is None else min(free, phase.tries - tries)
            missing = self._missing(at, sums)
            if phase.needed and missing is not None and missing > possible:
                return True
            used = possible if missing is None else min(missing, possible)
            sums[at], free, tries = sums[at] + used, free - used, 0
        return False


def _dearest(phases: Sequence[Phase]) -> Plan:
    dearest = phases[-1].plan
    for phase in reversed(phases):
        if exceeds(phase.plan, dearest):
            dearest = phase.plan
    return dearest
