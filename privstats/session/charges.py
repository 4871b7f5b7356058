"""The accounts of the ledger that a session is charged to: a run's, or a round's of a course."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privstats import dp
from privstats.errors import LedgerError
from privstats.moments import Moments
from privstats.plan import Plan
from privstats.session.accounting import Account, spend_of

__all__ = ["Charge", "RoundCharge"]


@dataclass(frozen=True)
class Charge(Account):
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
class RoundCharge(Account):
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

    per_round: ClassVar[bool] = True

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
