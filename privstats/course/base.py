"""Define a course and its rounds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from privstats import domains
from privstats.dp import Privacy
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.plan import Plan
from privstats.plan.position import Position
from privstats.plug_ins import definer
from privstats.progress import progress_bar
from privstats.release import Release

Releases: TypeAlias = Sequence[Release | None]
"""The releases of the rounds so far, in order; None for a round that ended without a sum. Its budget is spent."""

_ROUNDING = 1 + 2.0**-40


@runtime_checkable
class Course(Protocol):
    """A frozen sequence of plans: ``next`` is a function of the earlier releases alone.

    A *round* is one index in the sequence, whatever its plan, so a server cannot request it twice. Files call it a
    node. All rounds share the first plan's trust model, unit, adjacency, colluders and protocol.
    """

    @property
    def first(self) -> Plan:
        """The plan of round 0."""
        ...

    @property
    def most(self) -> int:
        """Maximum number of rounds."""
        ...

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of all releases together, fixed before the first round; infinite without DP.

        Guarantee:
            Each round has fresh noise and is a function of earlier releases and the records, so the whole is mu-GDP
            with mu = sqrt(sum of the rounds' mu^2) (adaptive composition; Dong, Roth and Su 2022, corollary 2). Unit
            and adjacency are the first plan's.
        """
        ...

    @property
    def priced(self) -> tuple[Plan, ...]:
        """Plans that cost what the rounds and budgeted retries cost, for the first plan's unit and adjacency.

        One per round; fewer only where rounds cannot hold the same record. A retry may move a session to another one's
        place: for an account under another adjacency :func:`privstats.course.spend` prices each session of a place.
        """
        ...

    @property
    def digest(self) -> str:
        """64 hex digits that identify the course, without later plans' values."""
        ...

    def next(self, releases: Releases) -> Plan | None:
        """Return the next round's plan, or None at the end."""
        ...

    def epsilon(self, delta: float) -> float:
        """Return all releases' epsilon at this delta; infinite without DP."""
        ...


@runtime_checkable
class DisjointRounds(Protocol):
    """A course with different records in its rounds, which together cost less than the sum of their mu^2.

    Its one priced plan is every round's; no other course is priced so, and none of another package
    (:func:`is_disjoint`). Only a record registry keeps records disjoint:
    :func:`privstats.course.spend` requires one in the ledger, and without one :func:`privstats.course.authorize` and
    ``Ledger.mark_started`` refuse.
    """

    def multiplicity(self, adjacency: Adjacency) -> float:
        """Return all rounds' cost in units of one round's mu^2, under this adjacency."""
        ...


@dataclass(frozen=True)
class Round:
    """A round's index in a course, and its current plan.

    Attributes:
        place: its index, from 0.
        after: SHA-256 of the earlier plans' digests and released sums.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> round_ = next(ps.course.iter_rounds(ps.course.Single(plan), []))
        >>> round_.place, round_.plan == plan, len(round_.after)
        (0, True, 32)
    """

    place: int
    plan: Plan
    after: bytes

    @property
    def position(self) -> Position | None:
        """The position that its release names; None for a single plan, and for a stream, which has no phases."""
        return self.plan.position


def iter_rounds(course: Course, releases: list[Release | None]) -> Iterator[Round]:
    """Yield the rounds in order; append each outcome to ``releases`` before requesting the next.

    A release in the list is replaced by the same one with the round's position.

    Raises:
        PlanError: the course breaks its declared length, terms or mu; that round has released nothing.
        ReleaseError: an outcome is another session's release.

    Example:
        >>> schema, releases = ps.ClassSchema(2, 2, "NA", clip_norm=1.0), []
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> for round_ in ps.course.iter_rounds(ps.course.Single(plan), releases):
        ...     releases.append(ps.simulate(round_.plan, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])]))
        ...
        >>> [release.survivors for release in releases]
        [(0, 1)]
    """
    if releases:
        raise PlanError("a course starts with an empty list of releases; give one and append to it")
    spent = 0.0
    plan: Plan | None = course.first
    while plan is not None:
        place, spent = len(releases), _spent(course, spent, plan)
        _check(course, place, plan, spent)
        round_ = Round(place, plan.at(position_of(course, _had(releases))), history(releases))
        yield round_
        if len(releases) != place + 1:
            raise PlanError(f"round {place} of the course has no outcome; append its release, or None, and go on")
        outcome = releases[place]
        releases[place] = None if outcome is None else outcome.at(round_.position)
        plan = course.next(tuple(releases))


def run(course: Course, release: Callable[[Round], Release | None]) -> list[Release | None]:
    """Run every round; ``release`` returns its release, or None without a sum.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> shards = [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])]
        >>> releases = ps.course.run(ps.course.Single(plan), lambda round_: ps.simulate(round_.plan, shards))
        >>> releases[0].moments.A.tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    releases: list[Release | None] = []
    with progress_bar("rounds", course.most) as advance:
        for round_ in iter_rounds(course, releases):
            releases.append(release(round_))
            advance(1)
    return releases


def verify_next(course: Course, plan: Plan, releases: Releases) -> Round:
    """Verify that a received plan is the course's next, and return its round.

    A party calls it before it measures. Recomputed published values may differ by rounding; all else must be equal. The
    check holds an honest server to the recipe, and separates parties that were shown different releases. A dishonest
    server can invent releases. Bounds hold for every published value, and no plan costs more than its place is priced
    at, so a party that keeps no history still spends at most :attr:`Course.mu`, which :func:`checked_mu` compares with
    all places.

    Raises:
        PlanError: the course has ended, another plan follows, or one that costs more than its place or has other terms;
            or the course states less than its rounds cost.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> ps.course.verify_next(ps.course.Single(plan), plan, []).place
        0
        >>> other = ps.Plan(schema=plan.schema, cohort=ps.Cohort(3, 2, 10), privacy=ps.NoPrivacy())
        >>> ps.course.verify_next(ps.course.Single(plan), other, [])
        Traceback (most recent call last):
            ...
        privstats.errors.PlanError: the plan that came for round 0 is not the one that follows from the course and
        these releases; refuse it, and compare the course and the releases with the other parties
    """
    checked_mu(course)
    place = len(releases)
    own = course.next(releases) if place else course.first
    if own is None:
        raise PlanError("the course has ended, and a plan has come for another round; refuse it")
    if own.published is None or plan.published is None:
        same = plan == own
    else:
        same = replace(plan, published=own.published) == own and plan.published.after == own.published.after
        mine, theirs = own.published.read(), plan.published.read()
        same = same and set(mine) == set(theirs) and all(mine[name].near(theirs[name]) for name in mine)
    position = position_of(course, _had(releases))
    same = same and plan.position in (None, position)
    if not same:
        raise PlanError(
            f"the plan that came for round {place} is not the one that follows from the course and these releases; "
            "refuse it, and compare the course and the releases with the other parties"
        )
    _check_place(course, place, plan)
    return Round(place, plan.at(position), history(releases))


def position_of(course: Course, had: Sequence[bool]) -> Position | None:
    """Return what the next session's release names; None for a plan alone and a stream, whose rounds are no phases.

    Args:
        had: for each session so far, whether it had a sum.

    Example:
        >>> from privstats.course.base import position_of
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy)
        >>> position_of(ps.Rounds.within(plan, rounds=4), [True, False]).phase, position_of(ps.course.Single(plan), [])
        ('round', None)
    """
    position: Callable[[Sequence[bool]], Position | None] | None = getattr(course, "position", None)
    return None if position is None else position(had)


def as_next(course: Course, releases: Releases, release: Release) -> Release:
    """Return a release as that of the course's next session.

    Raises:
        ReleaseError: it is of another session.

    Example:
        >>> from privstats.course.base import as_next
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> course = ps.Rounds.within(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy), rounds=4)
        >>> release = ps.simulate(course.first, [([[0.5, 0.0]], [0]), ([[0.0, 0.25]], [1])])
        >>> as_next(course, [], release).position.phase
        'first release'
    """
    return release.at(position_of(course, _had(releases)))


def _had(releases: Releases) -> list[bool]:
    return [release is not None for release in releases]


def plans_by_place(course: Course) -> Sequence[Sequence[Plan]]:
    """Return the plans that may come at each place of a course; without phases the priced one alone."""
    plans: Sequence[Sequence[Plan]] = getattr(course, "alternatives", [(plan,) for plan in course.priced])
    return plans


def is_disjoint(course: Course) -> bool:
    """Return whether a course's rounds hold different records: a :class:`DisjointRounds` of privstats itself."""
    return isinstance(course, DisjointRounds) and not definer(type(course))


def checked_mu(course: Course) -> float:
    """Return a course's mu; refuse a course that states less than its plans cost.

    Guarantee:
        Unless :func:`is_disjoint`, the result is at least the square root of the sum, over all places, of the largest
        mu^2 of the plans that may come there, which is what a ledger charges (adaptive composition, as
        :attr:`Course.mu`). Each place has a price, no price is above those plans, and all plans have the first one's
        terms.

    Raises:
        PlanError: the course does not keep this.

    Example:
        >>> from privstats.course.base import checked_mu
        >>> schema = ps.ClassSchema(2, 2, "NAB", clip_norm=1.0, transform=(ps.transforms.UnitNorm(),))
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=3.0, delta=1e-5)
        >>> course = ps.Rounds.within(ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 1_000), privacy=privacy), rounds=4)
        >>> checked_mu(course) == course.mu
        True
    """
    if is_disjoint(course):
        return course.mu
    name, places, priced = type(course).__name__, plans_by_place(course), course.priced
    if min(len(places), len(priced)) < course.most:
        raise PlanError(
            f"the course has up to {course.most} rounds and prices {min(len(places), len(priced))}; give priced one "
            "plan per round"
        )
    dearest = [max(map(mu_of, plans), default=0.0) for plans in places]
    for place, (plans, price, most) in enumerate(zip(places, priced, dearest, strict=False)):
        for plan in plans:
            _check_terms(course, place, plan)
        if mu_of(price) > most * _ROUNDING:
            raise PlanError(
                f"{name} prices round {place} at mu {mu_of(price):.6g}, and its alternatives, which a ledger charges, "
                f"cost mu {most:.6g}; let priced hold the dearest alternative of each round"
            )
    cost = math.hypot(*dearest)
    if not course.mu * _ROUNDING >= cost:
        raise PlanError(
            f"{name} states mu {course.mu:.6g} for all its rounds, and they cost mu {cost:.6g}; let mu be the square "
            "root of the sum of their mu^2, as a course over privstats.course.planned.Phased has it"
        )
    return course.mu


def _check_place(course: Course, place: int, plan: Plan) -> None:
    _check_terms(course, place, plan)
    if not is_disjoint(course) and exceeds(plan, course.priced[place]):
        raise PlanError(
            f"round {place} would cost mu {mu_of(plan):.6g}, and its place in the course is priced at "
            f"{mu_of(course.priced[place]):.6g}; start another course"
        )


def _check_terms(course: Course, place: int, plan: Plan) -> None:
    if _terms(plan) != _terms(course.first):
        raise PlanError(
            f"round {place} of the course changes the trust model, unit, adjacency, protocol or colluders; keep "
            "those of the first plan"
        )


def _check(course: Course, place: int, plan: Plan, spent: float) -> None:
    if place >= course.most:
        raise PlanError(f"the course declared at most {course.most} rounds and has another; raise most")
    _check_place(course, place, plan)
    if spent > course.mu * _ROUNDING:
        raise PlanError(
            f"round {place} of the course would raise what is spent to mu {spent:.6g} and the course promised "
            f"{course.mu:.6g}; give its plan more noise"
        )


def _spent(course: Course, before: float, plan: Plan) -> float:
    """Return mu after this round: squares add up; among disjoint rounds the largest counts."""
    privacy = plan.privacy
    if isinstance(course, DisjointRounds) and is_disjoint(course) and isinstance(privacy, Privacy):
        return max(before, mu_of(plan) * math.sqrt(course.multiplicity(privacy.adjacency)))
    return math.hypot(before, mu_of(plan))


def _terms(plan: Plan) -> tuple[object, ...]:
    privacy = plan.privacy
    promise = (privacy.model, privacy.unit, privacy.adjacency) if isinstance(privacy, Privacy) else ()
    return (*promise, plan.cohort.colluders, plan.protocol)


def exceeds(plan: Plan, priced: Plan) -> bool:
    """Return whether a plan costs more than the plan that prices its place."""
    return mu_of(plan) > mu_of(priced) * _ROUNDING


def mu_of(plan: Plan) -> float:
    """Return mu of a plan's release, for its unit and adjacency; infinite without DP."""
    return math.inf if plan.noise is None else plan.noise.mu


def history(releases: Releases) -> bytes:
    """Return the SHA-256 of the releases, in order, unambiguously encoded.

    Example:
        >>> len(ps.course.history([])), ps.course.history([]) == ps.course.history([None])
        (32, False)
    """
    past = [each and (each.plan.digest, each.survivors, each.suppressed, each.vector.tobytes()) for each in releases]
    return hashlib.sha256(domains.COURSE + msgspec.msgpack.encode(past)).digest()
