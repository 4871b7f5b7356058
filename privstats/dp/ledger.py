"""What has been spent on which data: a durable record with a cap per data set.

A spend is on the disk before it is allowed, so a crash can lose a release but never the memory of one. It neither
draws noise nor sees data. In the way of the data: asked before anything leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from typing import Self

from privstats.dp.accounts import Account, LedgerState, Spend, entry_of
from privstats.dp.calibration import Noise
from privstats.dp.ledger_file import writing
from privstats.dp.ledger_place import LedgerPlace, now
from privstats.dp.ledger_records import ApartBy, Assigned, Capped, Counted, Finished, Freed, Marked, Spent, Withdrawn
from privstats.dp.ledger_rules import (
    Cost,
    cap_of,
    check_apart,
    check_change,
    check_counter,
    check_digest,
    check_first_exact,
    check_freed,
    check_mark,
    check_name,
    check_node,
    check_nothing_left,
    check_room,
    check_run,
    check_unsent,
    check_waiting,
    no_account,
    price,
    same_spend,
    used_up,
)
from privstats.dp.privacy import Adjacency, NoPrivacy, Privacy, Unit
from privstats.errors import LedgerError
from privstats.schema import Schema

__all__ = ["FIRST_COUNTER", "Ledger"]

FIRST_COUNTER = 0
"""The counter of the first run that a ledger hears of from some parties."""


@dataclass(frozen=True)
class Ledger(LedgerPlace):
    """A privacy ledger in one SQLite file, shared by every process that releases from the same data.

    ``Ledger(path)`` only names the file; every use of it refuses where there is none. :meth:`create` makes a new one,
    :meth:`open` checks an old one whole before anything else happens.

    Args:
        path: the file. Beside it stands ``<name>.head``, which tells an older copy from the ledger itself.
        timeout: seconds to wait for another process before giving up.
        clock: gives the time written into records.
        expected_head: what :attr:`head` gave earlier, kept elsewhere: a ledger that does not contain it is refused.

    Guarantee:
        Releases that were each allowed by :meth:`spend` before they left are together (epsilon, delta)-DP with the
        account's cap, for its unit and adjacency: mu-GDP composes as sqrt(sum mu_i^2), also when later plans depend on
        earlier releases. What their masking may fail by (``Account.masking_failure``) comes on top of delta. Assumes
        that every release of the data asks this ledger, under one name of the data set.
        Records are chained by SHA-256: an edited, removed, added or moved record is noticed by every later use, an
        older copy of the file by the head beside it. Not noticed: both files put back together, unless
        ``expected_head`` is given; and somebody who writes both files anew on purpose.

    Example:
        >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> [(account.dataset, account.mu) for account in ledger.accounts()]
        [('clinic', 0.0)]
    """

    @classmethod
    def create(cls, path: str | PathLike[str], *, timeout: float = 10.0, clock: Callable[[], datetime] = now) -> Self:
        """Make a new ledger, without accounts; open some with :meth:`set_cap`.

        Raises:
            LedgerError: there is a file already, a ledger was there and is gone, or the file cannot be made.
        """
        ledger = cls(path, timeout, clock)
        with writing(ledger.file, timeout, create=ledger.stamp()):
            return ledger

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        timeout: float = 10.0,
        clock: Callable[[], datetime] = now,
        expected_head: str | None = None,
    ) -> Self:
        """A ledger that is there, after checking all of it.

        Raises:
            LedgerError: it is missing, damaged, edited, or older than what is known of it.
        """
        ledger = cls(path, timeout, clock, expected_head)
        with ledger._reading():
            return ledger

    def set_cap(self, dataset: str, *, unit: Unit, adjacency: Adjacency, epsilon: float, delta: float) -> None:
        """Open an account, or change its epsilon and delta; every change stays on record.

        Raises:
            LedgerError: the unit or adjacency of an account that has spent would change, more was already spent, or
                the file is missing or failed.
            PlanError: a value out of range.
        """
        check_name(dataset)
        wanted = cap_of(self.stamp(), unit, adjacency, epsilon, delta)
        with self._writing() as log:
            check_change(LedgerState.of(log.records).account(dataset), wanted)
            record = Capped(
                at=wanted.at,
                dataset=dataset,
                unit=wanted.unit,
                adjacency=wanted.adjacency,
                epsilon=wanted.epsilon,
                delta=wanted.delta,
            )
            log.append(record)

    def spend(
        self,
        dataset: str,
        *,
        plan: str,
        run: bytes,
        schema: Schema,
        privacy: Privacy | NoPrivacy,
        noise: Noise | None,
        what: str = "release",
        masking_failure: float = 0.0,
        allow_second_exact_release: bool = False,
    ) -> Spend:
        """Allow one release: write it, sync it, and return; only then may anything leave.

        Asked again for the same data set, plan and run before :meth:`finish`, it gives the same entry and spends
        nothing: a process that was killed may begin anew. After :meth:`finish`, or under another plan, the run's name
        is used up, because two uploads under one name differ by their noise: a retry takes a new name and costs anew.

        The joint mu is worked out under the account's own unit and adjacency from the noise itself, so plans with
        another adjacency are charged what they cost here. A plan without DP spends infinitely much: it needs a data
        set without a cap.

        Args:
            dataset: an account opened with :meth:`set_cap`; without DP, a data set that has none.
            plan: the plan's digest.
            run: the name of this run, 1 to 64 bytes, agreed by all parties and used once.
            schema, privacy, noise: what the plan measures and promises, and its noise (None without DP).
            what: a few words for the record.
            masking_failure: the plan's bound on the probability that masking shows more than the sum.
            allow_second_exact_release: release exact sums of this data set although exact sums of it were released
                before: with one client absent, the difference of the two is that client's exact vector.

        Raises:
            LedgerError: no such account, the cap would be passed, the run's name is used up, exact sums would be
                released again, the costs are not known per client, or the file failed. Nothing is spent then, and
                nothing may leave.
        """
        costs = [Cost(schema, privacy, noise, masking_failure)]
        return self._spend(dataset, plan, run, costs, what, allow_second_exact_release, nodes=1, apart="")

    def spend_course(
        self,
        dataset: str,
        *,
        course: str,
        run: bytes,
        nodes: int,
        costs: Sequence[Cost],
        what: str = "course",
        allow_second_exact_release: bool = False,
        apart: ApartBy = "",
    ) -> Spend:
        """Allow a whole course at once: everything that its rounds can cost is spent before the first one begins.

        Each round is begun with :meth:`mark_started`, once. Another run of the same course is another spend.

        Args:
            dataset: as for :meth:`spend`.
            course: 64 hex digits that stand for the course; no round's plan is in them, because another plan at the
                same place is the same round.
            run: the name of this run of the course.
            nodes: how many may begin.
            costs: what they measure, promise and add as noise, all together: one per round, and per retry that the
                course may take; fewer only where rounds cannot hold the same record and ``apart`` says who sees to it.
            what, allow_second_exact_release: as for :meth:`spend`.
            apart: where rounds cannot hold the same record, who sees to that: ``"holding"`` in the ledger of a party,
                ``"parties"`` in that of a server, which sees sums only.

        Guarantee:
            Rounds may depend on what earlier ones released: together they are mu-GDP with mu = sqrt(sum mu_i^2), in the
            account's own unit and adjacency. A round that crashed, failed or stopped is spent and lost.

        Raises:
            LedgerError: as for :meth:`spend`, there are no costs, or nobody keeps apart what is priced as disjoint.
        """
        if nodes < 1 or not costs:
            raise LedgerError("a course has at least one round, and a cost: give both")
        check_apart(costs, apart, nodes)
        return self._spend(dataset, course, run, list(costs), what, allow_second_exact_release, nodes, apart)

    def mark_started(self, entry: Spend, node: int, *, sums_only: bool = False) -> None:
        """Mark that a round of a course begins: on the disk before any noise is drawn for it, and never taken back.

        Whoever could begin a round again, with the same or another plan, would draw its noise twice.
        ``sums_only`` is for a server, which releases sums of parties and has no records.

        Raises:
            LedgerError: the round has begun before, the course has no such round, its price rests on a registry
                (``RecordRegistry``), or not an entry of this ledger. Nothing may be drawn or leave then.
        """
        with self._writing() as log:
            kept = self._kept(log, entry)
            check_mark(kept, sums_only=sums_only)
            check_node(kept, node)
            log.append(Marked(at=self.stamp(), spend=kept.id, node=node))

    def _spend(
        self, dataset: str, plan: str, run: bytes, costs: list[Cost], what: str, again: bool, nodes: int, apart: ApartBy
    ) -> Spend:
        check_name(dataset)
        check_name(what)
        check_digest(plan)
        check_run(run)
        with self._writing() as log:
            account = LedgerState.of(log.records).account(dataset)
            mu, parts = price(account, costs)
            earlier = account.of_run(run)
            if earlier is not None:
                same_spend(earlier, plan, mu, parts, apart)
                if apart and not earlier.apart:  # an older privstats wrote it, which named nobody
                    log.append(Assigned(at=self.stamp(), spend=earlier.id, apart=apart))
                return replace(earlier, apart=apart)
            if math.isinf(mu):
                check_first_exact(account, again)
            check_room(account, mu)
            record = Spent(
                at=self.stamp(),
                dataset=dataset,
                plan=plan,
                run=run.hex(),
                what=what,
                model="none" if costs[0].noise is None else costs[0].noise.model,
                mu=None if math.isinf(mu) else mu,
                parts=parts,
                nodes=nodes,
                masking_failure=math.fsum(cost.masking_failure for cost in costs),
                apart=apart,
            )
            return entry_of(log.append(record), record)

    def finish(self, entry: Spend, upload: bytes = b"") -> None:
        """Note that what :meth:`spend` allowed has left: its run's name is used up from here on. No total changes.

        Call it before the bytes leave. Saying it again is welcome, for the same bytes.

        Args:
            entry: what ``spend`` gave.
            upload: names the bytes that leave, for example their SHA-256: another upload of the same run is refused.

        Raises:
            LedgerError: not an entry that :meth:`spend` of this ledger returned, it was withdrawn, another upload of it
                has left, or the file failed. Nothing may leave then.
        """
        if not isinstance(upload, bytes):
            raise LedgerError(f"upload must be bytes that name what leaves, got {type(upload).__name__}: give a digest")
        with self._writing() as log:
            kept = self._kept(log, entry)
            check_unsent(kept)
            if kept.released is None:
                log.append(Finished(at=self.stamp(), spend=entry.id, upload=upload.hex()))
            elif kept.upload != upload:
                raise LedgerError(used_up(kept))

    def free(self, entry: Spend, *, upload: bytes, proof: bytes) -> None:
        """Note that the ``upload`` that left under a spend is in no sum and never can be: it costs nothing any more.

        The run's name stays used up. The ledger takes the caller's word: ``session.free`` reads the proof, of which a
        digest is recorded, and is what a party calls.

        Raises:
            LedgerError: not an entry of this ledger, a course's, nothing or another upload has left, the file failed.
        """
        with self._writing() as log:
            kept = self._kept(log, entry)
            check_freed(kept, upload)
            if kept.freed is None:
                log.append(Freed(at=self.stamp(), spend=kept.id, proof=proof.hex()))

    def withdraw(self, entry: Spend) -> None:
        """Give back a single session of which nothing has left, and refuse whatever would leave under it from here on.

        What decides is one transaction: either :meth:`finish` comes first, and this is refused, or this, and then
        ``finish`` is. The run's name stays used up. Wipe the client first: ``session.withdraw`` is what a party calls.

        Raises:
            LedgerError: not an entry of this ledger, a course's, its upload or release has left, the file failed.
        """
        with self._writing() as log:
            kept = self._kept(log, entry)
            check_waiting(kept)
            if kept.withdrawn is None:
                log.append(Withdrawn(at=self.stamp(), spend=kept.id))

    def accept_counter(self, members: bytes, counter: int, run: bytes) -> None:
        """Accept a numbered run of some parties if it is the next one heard of, or the last and nothing has left in it.

        Whoever could choose among many run names could choose who is whose neighbour on an incomplete graph; whoever
        could repeat one, for another data set, could show advertisements of clients that are long gone.

        Args:
            members: digest of the parties' keys, 32 bytes (``Roster.members``).
            counter: the run's number; the first is :data:`FIRST_COUNTER`.
            run: its name (``Roster.run``).

        Raises:
            LedgerError: another counter, another name under the last one, an upload has left under it, or the file
                failed.
        """
        check_run(run)
        check_counter(members, counter)
        with self._writing() as log:
            state = LedgerState.of(log.records)
            last, name = state.counters.get(members, (FIRST_COUNTER - 1, b""))
            if (counter, run) == (last, name):
                check_nothing_left(state.accounts.values(), run)
                return
            if counter != last + 1:
                raise LedgerError(
                    f"the next run of these parties is number {last + 1} and this one is number {counter}: refuse it, "
                    "or ask the others why and, if runs were missed, say so with skip_to_counter"
                )
            log.append(Counted(at=self.stamp(), members=members.hex(), counter=counter, run=run.hex()))

    def skip_to_counter(self, members: bytes, counter: int) -> None:
        """A person's word that the runs of these parties before ``counter`` were missed; stays on record.

        Raises:
            LedgerError: it is not ahead of the next counter, or the file failed.
        """
        check_counter(members, counter)
        with self._writing() as log:
            last, _ = LedgerState.of(log.records).counters.get(members, (FIRST_COUNTER - 1, b""))
            if counter <= last + 1:
                raise LedgerError(f"run number {last + 1} is the next one already: a counter only goes up")
            log.append(Counted(at=self.stamp(), members=members.hex(), counter=counter - 1, run=""))

    @property
    def head(self) -> str:
        """How far this ledger has come; kept elsewhere, it tells any older or edited copy (``expected_head``)."""
        with self._reading() as log:
            return str(log.head)

    def account(self, dataset: str) -> Account:
        """The caps of a data set and everything spent on it."""
        with self._reading() as log:
            found = LedgerState.of(log.records).accounts.get(dataset)
        if found is None:
            raise LedgerError(no_account(dataset))
        return found

    def accounts(self) -> tuple[Account, ...]:
        """Every account, by name."""
        with self._reading() as log:
            return tuple(LedgerState.of(log.records).accounts.values())
