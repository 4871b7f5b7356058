"""Charge a session to a ledger: record the spend before noise is sampled, and its use before anything is sent.

Every call that spends privacy requires a charge, or the value "uncharged"; experiments in one process
(``simulate``, ``local_parties``, ...) are not charged. The ledger records the upload's SHA-256, so that only one
of two machines under one spend can send, in every type of account: ``tests/ledger/test_every_account.py`` asks each.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, TypeAlias, TypeVar

from privstats.dp import NoPrivacy
from privstats.errors import AggregationError, LedgerError
from privstats.moments import Moments
from privstats.plan import Plan

if TYPE_CHECKING:
    from privstats import secagg
    from privstats.dp import Ledger, Spend

_FRESH_RUN_BYTES = 16
_Result = TypeVar("_Result")
Number: TypeAlias = tuple[bytes, int] | None
"""The digest of a numbered roster's members, and its counter."""


class Chargeable(ABC):
    """Interface of an account that a session is charged to."""

    ledger: Ledger
    # True where ``spend`` marks one round of a course for good (charges.RoundCharge). That spend is final, so
    # ``charged`` does not finish it.
    per_round: ClassVar[bool] = False

    @abstractmethod
    def spend(self, plan: Plan, run: bytes, number: Number = None) -> Spend:
        """Charge a session, or return its earlier spend.

        Args:
            number: of a numbered run on a random graph, which the ledger accepts with the spend.

        Raises:
            LedgerError: the run has no name, its name is used up, or the cap would be exceeded; nothing is spent.
        """

    @abstractmethod
    def finish(self, plan: Plan, run: bytes, upload: bytes) -> None:
        """Record the upload that a spend pays for, before it is sent."""

    @abstractmethod
    def withdraw(self, plan: Plan, run: bytes) -> None:
        """Refund the spend if nothing was sent."""

    def check_round(self, run: bytes) -> None:  # noqa: ARG002
        """Refuse the run name of a course's round, which a session alone does not have."""
        raise LedgerError(
            f"the roster is that of one round of a course, and {type(self).__name__} charges no course: give "
            "course.authorize's charge, or the course's own roster"
        )

    def check_moments(self, moments: Moments) -> None:  # noqa: B027
        """Refuse moments of other records than the charge's; by default accept all."""


Charging: TypeAlias = Chargeable | Literal["uncharged"] | None
"""The account to charge; None is for plans without DP."""

CHARGED_BEFORE: Final = "uncharged"
"""The ``charge`` for a release that is in a ledger already: its round was marked, or the caller has charged it."""


def charge_of(plan: Plan, charge: Charging) -> Chargeable | None:
    """Return the account to charge; None for ``"uncharged"``, and without DP for ``charge=None``.

    Raises:
        LedgerError: a plan with DP and neither an account nor ``"uncharged"``, or another value.
    """
    if isinstance(charge, Chargeable):
        return charge
    if charge is None and not isinstance(plan.privacy, NoPrivacy):
        raise LedgerError(
            "this plan spends privacy, and no ledger is given to record that: pass charge=Charge(ledger, dataset), or "
            "charge='uncharged' where no ledger needs to record it"
        )
    if charge is not None and not (isinstance(charge, str) and charge == "uncharged"):
        got = f"the text {charge!r}" if isinstance(charge, str) else f"a {type(charge).__name__}"
        raise LedgerError(
            f"charge must be Charge(ledger, dataset) or the word 'uncharged', got {got}: "
            "open a ledger with privstats.dp.Ledger.open(path) and name the data set in it"
        )
    return None


def register_run(plan: Plan, charge: Chargeable, roster: secagg.Roster) -> Spend:
    """Charge the run to the account, whose ledger must accept the number of a numbered run (``accept_counter``).

    In a course on a random graph the ledger has accepted the course's number, and each round has the run name that
    follows from it: so no server chooses among graphs.

    Raises:
        LedgerError: another number is next, or the roster is not that of the charge's round.
    """
    number = None if roster.counter is None else (roster.members, roster.counter)
    if not plan.masking.failure_basis:
        if number is not None:
            charge.ledger.accept_counter(*number, roster.run)
        return charge.spend(plan, roster.run)
    if charge.per_round or number is None:
        charge.check_round(roster.run)
        number = None
    return charge.spend(plan, roster.run, number)


def charged(plan: Plan, charge: Chargeable | None, run: bytes, make: Callable[[], _Result]) -> _Result:
    """Spend first, then call ``make``, which samples the noise; a crash in between loses a release, never its record.

    An abort ends the spend like a release, because it depends on the noise. Repeatable aborts under one spend would be
    an oracle with fresh noise per query. Only the first of concurrent calls under one spend is released; with
    ``per_round`` the account refuses the others.

    Raises:
        LedgerError: as for ``spend``; or the spend has ended meanwhile. The error does not contain the discarded
            outcome.
        AggregationError: ``make`` aborted; the ledger has recorded the abort.
    """
    if charge is None:
        return make()
    entry = charge.spend(plan, run or os.urandom(_FRESH_RUN_BYTES))
    if charge.per_round:
        return make()
    outcome: _Result | AggregationError
    try:
        outcome = make()
    except AggregationError as abort:
        outcome = abort
    # Called outside the handler: there, an error of ``finish`` would have the abort as its context.
    charge.ledger.finish(entry, os.urandom(_FRESH_RUN_BYTES))
    if isinstance(outcome, AggregationError):
        raise outcome
    return outcome


@dataclass(frozen=True)
class LedgerCallback:
    """Callback with which a client's machine records that it sends its upload, or never will."""

    plan: Plan
    charge: Chargeable
    run: bytes

    def __call__(self, upload: bytes) -> None:
        """Record that the upload is sent.

        Raises:
            LedgerError: the run is unknown or withdrawn, or another upload of it was sent.
        """
        self.charge.finish(self.plan, self.run, upload)

    def withdraw(self) -> None:
        """Refund the spend if nothing was sent; a machine calls this after it is wiped."""
        self.charge.withdraw(self.plan, self.run)
