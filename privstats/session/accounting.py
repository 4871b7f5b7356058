"""Charges a session to a ledger: the spend before noise is drawn, its end before anything is sent.

It joins plan, run name and ledger; the arithmetic is in ``dp``. ``session``, which makes every client and every
release, calls it.

Every call that spends privacy is given a charge, or the word "uncharged". A default would be a choice that no owner
made: two fits on the same records add up, and a call that says nothing leaves no trace of the first. So
``session.client``, ``session.release``, ``private_release``, ``private_releases`` and every ``fit_private`` raise a
``LedgerError`` before they draw noise, and name both remedies; the README's snippet says the word. A warning once per
process was the other choice: it would be a second rule, and notebooks that run for weeks would see it once.
Experiments in one process (``simulate``, ``sweep``, ``aggregate_unmasked``) charge nothing and say so where they are
documented. ``tests/test_charge_is_said.py`` walks all functions for a parameter of this kind and finds no other
default.

A client's machine finishes its spend before it sends its masked vector, not when it is built. Finished when built, a
killed process could never start the same run again without paying twice; finished by the engine, it would depend on
the engine. The ledger records the upload's SHA-256, so of two machines built under one spend only one can send.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypeVar

from privstats import dp, secagg
from privstats.dp import NoPrivacy
from privstats.errors import AggregationError, LedgerError
from privstats.moments import Moments
from privstats.plan import Plan

__all__ = [
    "CHARGED_BEFORE",
    "Charge",
    "Charging",
    "LedgerCallback",
    "RoundCharge",
    "charge_of",
    "charged",
    "on_upload",
    "register_run",
    "spend",
    "spend_of",
]

_FRESH_RUN_BYTES = 16
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Charge:
    """The account that records a release before its noise is drawn.

    Attributes:
        ledger: the durable record.
        dataset: the account in it; every release of the same records uses the same name.
        allow_second_exact_release: for plans without DP: release exact sums of this data set again. With one client
            absent, the difference of the two releases is that client's exact vector.
        multiplicity: the most rows that one record may be in, where the caller resamples; what is released costs that
            many times its mu (:meth:`~privstats.dp.Cost.repeated`).

    Raises:
        LedgerError: ``ledger`` is no ledger, the allowance is no truth value, or the multiplicity no number of rows.

    Example:
        >>> charge = ps.session.Charge(ps.dp.Ledger.create("ledger.sqlite"), "clinic")
        >>> charge.ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> _ = ps.private_release(ps.ClassSchema(2, 2, "NA", clip_norm=1.0), privacy, [[0.1, 0.2]], [0], ledger=charge)
        >>> round(charge.ledger.account("clinic").spent, 3)
        1.0
    """

    ledger: dp.Ledger
    dataset: str
    allow_second_exact_release: bool = False
    multiplicity: int = 1

    def __post_init__(self) -> None:
        dp.Cost.repeated(self.multiplicity)
        if not isinstance(self.ledger, dp.Ledger):
            raise LedgerError(
                f"Charge takes a privstats.dp.Ledger, got {type(self.ledger).__name__}: open the file with Ledger.open"
            )
        if not isinstance(self.allow_second_exact_release, bool):  # "no" is true
            raise LedgerError(
                "allow_second_exact_release must be True or False, got "
                f"{type(self.allow_second_exact_release).__name__}: leave it out"
            )

    def spend(self, plan: Plan, run: bytes) -> dp.Spend:
        """Spend a session, or return its entry if it was spent before; as :func:`spend`."""
        return self.ledger.spend(
            self.dataset,
            plan=plan.digest,
            run=run,
            schema=plan.schema,
            privacy=plan.privacy,
            noise=plan.noise,
            masking_failure=plan.masking.failure,
            allow_second_exact_release=self.allow_second_exact_release,
            multiplicity=self.multiplicity,
        )

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:
        """Record that what was spent is sent."""
        self.ledger.finish(spend_of(plan, self, run), upload)

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Give the spend back if nothing was sent; otherwise do nothing."""
        entry = spend_of(plan, self, run)
        if entry.waiting:
            self.ledger.withdraw(entry)


@dataclass(frozen=True)
class RoundCharge:
    """The mark of one round of a course, made before its noise is drawn; the course was spent before its first round.

    :func:`privstats.course.authorize` makes one, after it has verified that the plan is the round's.

    Attributes:
        ledger: the durable record.
        entry: the course's spend.
        place: the round's place in the course.
        plan: digest of the round's plan.

    Guarantee:
        A round draws noise once, whatever its plan and however often a server asks: its mark is on the disk before, is
        never undone, and depends on none of the plan's values. A crash between mark and journal loses the round.

    Example:
        >>> plan = ps.Plan(schema=ps.ClassSchema(2, 2, "NA", 1.0), cohort=ps.Cohort(2, 2, 10), privacy=ps.NoPrivacy())
        >>> course, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
        >>> entry = ps.course.spend(course, ledger, "clinic", run=os.urandom(16))
        >>> ps.course.authorize(course, plan, [], ledger, entry).place
        0
    """

    ledger: dp.Ledger
    entry: dp.Spend
    place: int
    plan: str

    def spend(self, plan: Plan, run: bytes) -> dp.Spend:  # noqa: ARG002  a round has no name but its place
        """Mark the round, once.

        Raises:
            LedgerError: it has started before, or its price rests on a registry, whose ``RecordRegistry.charge``
                returns the charge; nothing may be drawn or sent then.
        """
        self._check(plan)
        self.ledger.mark_started(self.entry, self.place)
        return self.entry

    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:  # noqa: ARG002
        """Record nothing: the mark is final.

        Raises:
            LedgerError: there is no mark.
        """
        self._check(plan)
        entries = (entry for account in self.ledger.accounts() for entry in account.entries)
        if not any(entry.id == self.entry.id and self.place in entry.begun for entry in entries):
            raise LedgerError(
                f"round {self.place} of this course has no mark in the ledger; give the ledger it was made with"
            )

    def check_moments(self, moments: Moments) -> None:
        """Refuse moments of other records than the charge's; without a registry, none are refused."""

    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Do nothing: a round's mark is never undone."""

    def _check(self, plan: Plan) -> None:
        if plan.digest != self.plan:
            raise LedgerError(f"this charge is for another plan at round {self.place} of the course; authorize it anew")


Charging: TypeAlias = Charge | RoundCharge | Literal["uncharged"] | None
"""The account to charge; None is for plans without DP."""

CHARGED_BEFORE: Final = "uncharged"
"""The charge of a release that a ledger holds already: its round was marked, or the caller charges it."""


def charge_of(plan: Plan, charge: Charging) -> Charge | RoundCharge | None:
    """The account to charge; None for ``"uncharged"``, and for a plan without DP that names no account.

    Raises:
        LedgerError: no account for a plan with DP, or a value of another kind.
    """
    if isinstance(charge, Charge | RoundCharge):
        return charge
    if charge is None and not isinstance(plan.privacy, NoPrivacy):
        raise LedgerError(
            "this plan spends privacy and nothing says where that is recorded: give "
            "charge=Charge(ledger, dataset), or the word charge='uncharged' where no record is needed"
        )
    if charge is not None and not (isinstance(charge, str) and charge == "uncharged"):
        got = f"the text {charge!r}" if isinstance(charge, str) else f"a {type(charge).__name__}"
        raise LedgerError(
            f"charge must be Charge(ledger, dataset) or the word 'uncharged', got {got}: "
            "open a ledger with privstats.dp.Ledger.open(path) and name the data set in it"
        )
    return None


def register_run(plan: Plan, charge: Charge | RoundCharge, roster: secagg.Roster) -> dp.Spend:
    """Spend a party's part of a run, after the run's number was accepted.

    Raises:
        LedgerError: the run's number is not the next one for its members, or as for :func:`spend`.
    """
    if roster.counter is not None:
        charge.ledger.accept_counter(roster.members, roster.counter, roster.run)
    return spend(plan, charge, roster.run)


def spend(plan: Plan, charge: Charge | RoundCharge, run: bytes) -> dp.Spend:
    """Spend a session in the ledger, or return its entry if it was spent before.

    Raises:
        LedgerError: the run has no name, its name is used up, or the cap would be exceeded; nothing is spent then.
    """
    return charge.spend(plan, run)


def charged(plan: Plan, charge: Charge | RoundCharge | None, run: bytes, make: Callable[[], _Made]) -> _Made:
    """Spend first, then call ``make``, which draws the noise; a crash between loses a release, never its record.

    An abort is finished like a release, because it depends on the noise drawn: repeated under one spend, it would be an
    oracle with fresh noise for every query. Concurrent calls share the spend and draw their own noise; the first to end
    is the release, and the others are refused.

    Raises:
        LedgerError: as for :func:`spend`; or another call has ended under the same spend, or it was withdrawn. The
            release or abort is discarded then, and the error does not contain it.
        AggregationError: as ``make``, once the ledger has recorded it.
    """
    if charge is None:
        return make()
    entry = spend(plan, charge, run or os.urandom(_FRESH_RUN_BYTES))
    if isinstance(charge, RoundCharge):
        return make()
    made: _Made | AggregationError
    try:
        made = make()
    except AggregationError as abort:
        made = abort
    charge.ledger.finish(entry, os.urandom(_FRESH_RUN_BYTES))  # outside the handler, or its error would carry the abort
    if isinstance(made, AggregationError):
        raise made
    return made


@dataclass(frozen=True)
class LedgerCallback:
    """Callback by which a client's machine reports to the ledger that it sends its upload, or that it never will.

    Attributes:
        plan: the plan all parties agreed on.
        charge: the account that the session is charged to.
        run: its name.
    """

    plan: Plan
    charge: Charge | RoundCharge
    run: bytes

    def __call__(self, upload: bytes) -> None:
        """Record that the upload is sent.

        Raises:
            LedgerError: the run is not in the ledger, was withdrawn, or another upload of it was sent.
        """
        self.charge.finish(self.plan, self.run, upload)

    def withdraw(self) -> None:
        """Give the spend back if nothing was sent; a machine calls it after it is wiped.

        Raises:
            LedgerError: the run is not in the ledger, or the file failed.
        """
        self.charge.withdraw(self.plan, self.run)


def on_upload(plan: Plan, charge: Charge | RoundCharge, run: bytes) -> LedgerCallback:
    """The callback of a client that was resumed from its journal; see :class:`LedgerCallback`."""
    return LedgerCallback(plan, charge, run)


def spend_of(plan: Plan, charge: Charge, run: bytes) -> dp.Spend:
    """The entry that the ledger has for a run of this plan.

    Raises:
        LedgerError: it has none.
    """
    entry = charge.ledger.account(charge.dataset).of_run(run)
    if entry is None or entry.plan != plan.digest:
        raise LedgerError("the ledger knows no such run under this plan: give the charge that the client was made with")
    return entry
