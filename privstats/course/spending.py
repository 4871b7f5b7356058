"""Charge a course, then its rounds, to a ledger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from privstats.course.base import (
    Course,
    DisjointRounds,
    Releases,
    checked_mu,
    is_disjoint,
    plans_by_place,
    verify_next,
)
from privstats.course.promise import every_plan
from privstats.dp import Cost, Ledger, Spend
from privstats.dp.ledger.price import price
from privstats.dp.ledger.records import ApartBy
from privstats.dp.ledger.rules import check_masking, check_room
from privstats.dp.privacy import Adjacency
from privstats.errors import LedgerError
from privstats.optional_dependencies import require
from privstats.plan import Plan
from privstats.secagg.roster import Roster
from privstats.session.accounting import Number
from privstats.session.charges import RoundCharge


def spend(
    course: Course, ledger: Ledger, dataset: str, run: bytes | Roster, *, sums_only: bool = False, multiplicity: int = 1
) -> Spend:
    """Charge everything that the course can cost, before its first round; ``ledger.mark_started`` marks each round.

    Another call for the same run returns the same entry, with its begun rounds. A stream's entry records that its price
    needs a registry: only ``RecordRegistry.charge`` begins its rounds.

    Args:
        run: the run's name, or its roster. The ledger must accept a numbered roster's number; rounds on a random graph
            need one.
        sums_only: the ledger is a server's, without records; each party's registry keeps a stream's records disjoint.
        multiplicity: maximum number of rows that one record is in; not for streams.

    Raises:
        LedgerError: no such account, an exceeded cap, a reused run name, or not the next number of these parties.
        PlanError: the course states less than its rounds cost, and nothing keeps their records disjoint.
        MissingExtraError: a round's package is not installed; nothing is spent then.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16))
        >>> entry.nodes, entry.begun
        (1, ())
    """
    costs, apart = _costs(course, ledger, dataset, sums_only=sums_only, multiplicity=multiplicity)
    if not sums_only:
        for plan in every_plan(course):  # before anything is spent on rounds that could not be measured here
            require(*plan.schema.packages, by="measuring this course")
    name, number = _named(course, ledger, dataset, run, sums_only=sums_only)
    return ledger.spend_course(
        dataset, course=course.digest, run=name, nodes=course.most, costs=costs, apart=apart, number=number
    )


def _named(
    course: Course, ledger: Ledger, dataset: str, run: bytes | Roster, *, sums_only: bool
) -> tuple[bytes, Number]:
    """Return the run's name, and on a random graph its number, which the ledger accepts with the spend."""
    if course.first.masking.failure_basis and not sums_only:
        if not isinstance(run, Roster) or run.counter is None:
            raise LedgerError(
                "a course on a random graph needs a run whose number the ledger accepts: pass run=Roster.numbered(...)"
            )
        return run.run, (run.members, run.counter)
    if not isinstance(run, Roster):
        return run, None
    earlier = next((each.of_run(run.run) for each in ledger.accounts() if each.dataset == dataset), None)
    if run.counter is not None and (earlier is None or earlier.plan != course.digest):
        ledger.accept_counter(run.members, run.counter, run.run)
    return run.run, None


def require_room(course: Course, ledger: Ledger, dataset: str, run: bytes) -> None:
    """Refuse a course that :func:`spend` would refuse for its cost, and spend nothing.

    Raises:
        LedgerError: the cap would be exceeded. A data set without an account, and a run that was charged before, are
            not refused here.
    """
    account = next((each for each in ledger.accounts() if each.dataset == dataset), None)
    if account is None or account.cap is None or account.of_run(run) is not None:
        return
    costs, _ = _costs(course, ledger, dataset)
    check_room(account, price(account, costs))
    check_masking(account, math.fsum(cost.masking_failure for cost in costs))


def _costs(
    course: Course, ledger: Ledger, dataset: str, *, sums_only: bool = False, multiplicity: int = 1
) -> tuple[list[Cost], ApartBy]:
    many: Mapping[Adjacency, float] = Cost.repeated(multiplicity)
    sessions = 1
    apart: ApartBy = ""
    checked_mu(course)
    if isinstance(course, DisjointRounds) and is_disjoint(course):
        if many:
            raise LedgerError("a stream takes every record once: leave multiplicity out")
        many = {"add-remove": course.multiplicity("add-remove"), "replace-one": course.multiplicity("replace-one")}
        sessions, apart = course.most, "parties" if sums_only else "holding"

    def cost(plan: Plan) -> Cost:
        return Cost(plan.schema, plan.privacy, plan.noise, plan.masking.failure * sessions, many, plan.condition)

    return [_dearest(list(map(cost, plans)), ledger, dataset) for plans in plans_by_place(course)], apart


def _dearest(costs: Sequence[Cost], ledger: Ledger, dataset: str) -> Cost:
    """Return the dearest of the sessions that may come at one place, in the account's own unit and adjacency.

    The result has the largest failure probability of their masking.

    A plan's own adjacency prices its place. Under another one a session of other sums may cost more there.
    """
    if len(costs) == 1:
        return costs[0]
    account = ledger.account(dataset)
    dearest = max(costs, key=lambda each: price(account, [each]).mu)
    return replace(dearest, masking_failure=max(each.masking_failure for each in costs))


def authorize(course: Course, plan: Plan, releases: Releases, ledger: Ledger, entry: Spend) -> RoundCharge:
    """Verify that a plan is the course's next (:func:`privstats.course.verify_next`), and return its round's charge.

    Only ``session`` marks the round.

    Raises:
        PlanError: ``plan`` is not the next.
        LedgerError: the entry is another course's, or the course is a stream.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16))
        >>> ps.course.authorize(course, plan, [], ledger, entry).place
        0
    """
    if isinstance(course, DisjointRounds):
        raise LedgerError(
            "the rounds of this course are priced for different records, and only a registry sees whether they are: "
            "take the charge of every round from RecordRegistry.open(stream, ledger, entry, secret).charge"
        )
    if entry.plan != course.digest:
        raise LedgerError("this entry is another course's; give the one that course.spend returned for this course")
    round_ = verify_next(course, plan, releases)
    return RoundCharge(ledger, entry, round_.place, plan.digest)
