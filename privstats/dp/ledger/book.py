"""Record every spend durably, with a cap per data set.

A spend is on disk before it is allowed, so a crash can lose a release but never its record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from os import PathLike
from typing import Self

from privstats.dp.calibration import Noise
from privstats.dp.ledger.accounts import Account, LedgerState, Spend, entry_of
from privstats.dp.ledger.file import Log, writing
from privstats.dp.ledger.held import Holding
from privstats.dp.ledger.place import LedgerPlace, now
from privstats.dp.ledger.price import Cost, Price, no_account, price
from privstats.dp.ledger.records import (
    ApartBy,
    Assigned,
    Capped,
    Counted,
    Finished,
    Freed,
    Marked,
    Spent,
    Uploaded,
    Withdrawn,
)
from privstats.dp.ledger.rules import (
    cap_of,
    check_apart,
    check_change,
    check_condition,
    check_counter,
    check_digest,
    check_first_exact,
    check_freed,
    check_mark,
    check_masking,
    check_name,
    check_name_unused,
    check_node,
    check_one_account,
    check_room,
    check_round_begun,
    check_run,
    check_unmarked,
    check_unsent,
    check_upload,
    check_waiting,
    same_spend,
    same_upload,
    used_up,
)
from privstats.dp.privacy import Adjacency, NoPrivacy, Privacy, Unit
from privstats.errors import LedgerError
from privstats.schema import Schema

FIRST_COUNTER = 0
"""The counter of the first run of the same parties."""


@dataclass(frozen=True)
class Ledger(LedgerPlace):
    """A privacy ledger in one SQLite file, shared by all processes that release from the same data.

    ``Ledger(path)`` only names the file.

    Args:
        path: the file. ``<name>.head`` next to it distinguishes the ledger from an older copy.
        timeout: seconds to wait for another process.
        clock: returns the time for new records.
        expected_head: an earlier :attr:`head` that the owner stored elsewhere: a ledger without it is refused.

    Guarantee:
        Releases that :meth:`spend` allowed one by one before they were sent are together (epsilon, delta)-DP with the
        account's cap, for its unit and adjacency: mu-GDP composes as sqrt(sum mu_i^2), also when later plans depend on
        earlier releases. Pure epsilons (delta = 0) add up; under a cap with delta 0 nothing else is allowed. Together
        with Gaussian releases each counts with the mu of its noise (``Noise.mu``), an upper bound
        (docs/proofs/pure_epsilon.md). The failure probability of their masking (``Account.masking_failure``) is added
        to delta, also that of withdrawn runs; it is at most the delta of the cap in force at the last run on a random
        graph. Assumes that every release of the data is charged to this ledger, under one name of the data set. Records
        are chained by SHA-256: every later use detects an edited, removed, added or moved record, and the head next to
        the file exposes an older copy. Where both were restored together, the head in the user's state folder exposes
        the copy, if the same user wrote the newer records on this machine; ``expected_head`` always does. The ledger
        does not detect a deliberate rewrite of all files.

    Example:
        >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> [(account.dataset, account.mu) for account in ledger.accounts()]
        [('clinic', 0.0)]
    """

    @classmethod
    def create(cls, path: str | PathLike[str], *, timeout: float = 10.0, clock: Callable[[], datetime] = now) -> Self:
        """Create a new ledger without accounts."""
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
        """Open an existing ledger and verify all of it.

        Raises:
            LedgerError: it is missing, damaged, edited, or older than its head.
        """
        ledger = cls(path, timeout, clock, expected_head)
        with ledger._reading():
            return ledger

    def set_cap(self, dataset: str, *, unit: Unit, adjacency: Adjacency, epsilon: float, delta: float) -> None:
        """Open an account, or change its epsilon and delta; every change stays on record.

        Raises:
            LedgerError: unit or adjacency would change after spends, or the spends exceed the new cap.
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
        condition: str = "",
        allow_second_exact_release: bool = False,
        multiplicity: int = 1,
        number: tuple[bytes, int] | None = None,
    ) -> Spend:
        """Allow one release: write and sync its record, and return; only then may anything be sent.

        Repeated for the same data set, plan and run before :meth:`finish`, it returns the same entry and spends
        nothing. After :meth:`finish`, or under another plan, the run's name is used
        up: a retry has other noise and costs its full price.

        The joint mu is computed from the noise under the account's own unit and adjacency.

        Args:
            dataset: an account opened with :meth:`set_cap`; without DP, a data set without an account.
            run: name of this run, 1 to 64 bytes, agreed by all parties and used once.
            allow_second_exact_release: release exact sums of this data set again. With one client absent, the
                difference of the two releases is that client's exact vector.
            multiplicity: maximum rows with one record, under resampling: the price is that many times mu.
            condition: the assumption of the promise, a clause that follows "while"; the entry keeps it.
            number: of a run on a random graph: ``Roster.members`` and its counter, which must be the next, as for
                :meth:`accept_counter`. It counts with the spend, and no other account may hold the run: a server could
                show one session's old advertisements in the other (docs/wire/interactive.md, Names of runs).

        Raises:
            LedgerError: no such account, the cap exceeded, the run's name used up, exact sums released again, costs per
                client unknown, or another schema's noise. Nothing is spent then, and nothing may be sent.
        """
        costs = [Cost(schema, privacy, noise, masking_failure, Cost.repeated(multiplicity), condition)]
        again = allow_second_exact_release
        return self._spend(dataset, plan, run, costs, what, again, nodes=1, apart="", number=number)

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
        number: tuple[bytes, int] | None = None,
    ) -> Spend:
        """Allow a full course: the cost of all its rounds is spent before the first one starts.

        :meth:`mark_started` starts each round, once. Another run is another spend.

        Args:
            course: the course's digest, 64 hex digits, independent of any round's plan.
            run: name of this run of the course.
            nodes: maximum number of rounds that may start.
            costs: one per round and possible retry; fewer only where ``apart`` ensures that rounds hold different
                records.
            dataset, what, allow_second_exact_release, number: as for :meth:`spend`.
            apart: what ensures that rounds hold different records: ``"holding"``, the record registry in a party's
                ledger; ``"parties"``, the parties' registries, in the ledger of a server, which sees sums only.

        Guarantee:
            Rounds may depend on earlier releases: together they are mu-GDP with mu = sqrt(sum mu_i^2), in the account's
            own unit and adjacency. A round that crashed, failed or stopped is spent and lost.

        Raises:
            LedgerError: as for :meth:`spend`; or no costs, or rounds priced as disjoint without ``apart``.
        """
        if nodes < 1 or not costs:
            raise LedgerError("a course has at least one round, and a cost: give both")
        check_apart(costs, apart, nodes)
        again = allow_second_exact_release
        return self._spend(dataset, course, run, list(costs), what, again, nodes, apart, number)

    def mark_started(self, entry: Spend, node: int, *, sums_only: bool = False) -> None:
        """Record that a round of a course starts: on disk before its noise is sampled, and never undone.

        Args:
            sums_only: the caller is a server, which has no records.

        Raises:
            LedgerError: the round has started before, the course lacks it, or its price relies on a record registry.
                Nothing may be sampled or sent then.
        """
        with self._writing() as log:
            stored = self._stored(log, entry)
            check_mark(stored, sums_only=sums_only)
            check_node(stored, node)
            log.append(Marked(at=self.stamp(), spend=stored.id, node=node))

    def _spend(
        self,
        dataset: str,
        plan: str,
        run: bytes,
        costs: list[Cost],
        what: str,
        again: bool,
        nodes: int,
        apart: ApartBy,
        number: tuple[bytes, int] | None,
    ) -> Spend:
        check_name(dataset)
        check_name(what)
        check_digest(plan)
        check_run(run)
        for each in costs:
            check_condition(each.condition)
        with self._writing() as log:
            state = LedgerState.of(log.records)
            account = state.account(dataset)
            if number is not None:
                check_one_account(state.accounts.values(), dataset, run)
            cost, failure = price(account, costs), math.fsum(cost.masking_failure for cost in costs)
            if (earlier := account.of_run(run)) is not None:
                return self._repeated(log, earlier, plan, cost, apart)
            if math.isinf(cost.mu):
                check_first_exact(account, again)
            check_room(account, cost)
            check_masking(account, failure)
            if number is not None:
                self._count(log, *number, run)
            record = Spent(
                at=self.stamp(),
                dataset=dataset,
                plan=plan,
                run=run.hex(),
                what=what,
                model="none" if costs[0].noise is None else costs[0].noise.model,
                mu=None if math.isinf(cost.mu) else cost.mu,
                parts=cost.parts,
                nodes=nodes,
                masking_failure=failure,
                apart=apart,
                pure=None if math.isinf(cost.pure) else cost.pure,
                condition="; and ".join(dict.fromkeys(cost.condition for cost in costs if cost.condition)),
            )
            return entry_of(log.append(record), record)

    def _repeated(self, log: Log, earlier: Spend, plan: str, cost: Price, apart: ApartBy) -> Spend:
        same_spend(earlier, plan, cost, apart)
        if apart and not earlier.apart:  # an older privstats wrote the entry, without a role
            log.append(Assigned(at=self.stamp(), spend=earlier.id, apart=apart))
        return replace(earlier, apart=apart)

    def finish(self, entry: Spend, upload: bytes = b"") -> None:
        """Record that the bytes of a spend are sent: the run's name is then used up.

        Call it before the bytes are sent; with ``upload`` it may be repeated for identical bytes.

        Args:
            upload: identifies the bytes, for example their SHA-256.

        Raises:
            LedgerError: ``entry`` was withdrawn, another upload of it was sent, one was sent without ``upload``, or a
                round of it has begun: :meth:`finish_round` records a round's. Nothing may be sent then.
        """
        check_upload(upload)
        with self._writing() as log:
            stored = self._stored(log, entry)
            check_unsent(stored)
            if stored.released is None:
                check_unmarked(stored)
                log.append(Finished(at=self.stamp(), spend=entry.id, upload=upload.hex()))
            elif not same_upload(stored.upload, upload):
                raise LedgerError(used_up(stored))

    def finish_round(self, entry: Spend, node: int, upload: bytes) -> None:
        """Record the upload of a course's round: the round's mark then pays for no other one.

        Call it before the bytes are sent; it may be repeated for identical bytes.

        Args:
            node: a round that :meth:`mark_started` marked.
            upload: identifies the bytes, for example their SHA-256; not empty.

        Raises:
            LedgerError: the round has no mark, another upload of it or of the full spend was sent, or a record registry
                records it. Nothing may be sent then.
        """
        check_upload(upload)
        with self._writing() as log:
            stored = self._stored(log, entry)
            if check_round_begun(stored, node, upload):
                log.append(Uploaded(at=self.stamp(), spend=stored.id, node=node, upload=upload.hex()))

    def free(self, entry: Spend, *, upload: bytes, proof: bytes) -> None:
        """Record that the sent ``upload`` is in no sum and never can be: its spend then costs nothing.

        The run's name stays used up. The ledger trusts its caller: parties call ``session.free``, which verifies the
        proof.
        """
        with self._writing() as log:
            stored = self._stored(log, entry)
            check_freed(stored, upload)
            if stored.freed is None:
                log.append(Freed(at=self.stamp(), spend=stored.id, proof=proof.hex()))

    def withdraw(self, entry: Spend) -> None:
        """Give back a single session of which nothing was sent; :meth:`finish` then refuses it.

        The failure probability of its masking stays charged (``Account.masking_failure``).

        Withdrawal and :meth:`finish` exclude each other: the first wins. The run's name stays used up. Parties call
        ``session.withdraw``, which wipes the client's machine before.
        """
        with self._writing() as log:
            stored = self._stored(log, entry)
            check_waiting(stored)
            if stored.withdrawn is None:
                log.append(Withdrawn(at=self.stamp(), spend=stored.id))

    def accept_counter(self, members: bytes, counter: int, run: bytes) -> None:
        """Accept a numbered run of the same parties if it is the next, or the last and nothing was sent in it.

        A server that chose run names could choose the neighbours on an incomplete graph; a server that repeated a name
        could replay advertisements of clients that left.

        Args:
            members: digest of the parties' keys, 32 bytes (``Roster.members``).
            counter: the run's number, from :data:`FIRST_COUNTER` on.

        Raises:
            LedgerError: another counter, another name under the last one, or an upload was sent under it.
        """
        check_run(run)
        with self._writing() as log:
            self._count(log, members, counter, run)

    def _count(self, log: Log, members: bytes, counter: int, run: bytes) -> None:
        check_counter(members, counter)
        state = LedgerState.of(log.records)
        last, name = state.counters.get(members, (FIRST_COUNTER - 1, b""))
        if (counter, run) == (last, name):
            check_name_unused(state.accounts.values(), run)
            return
        if counter != last + 1:
            raise LedgerError(
                f"the next run of these parties is number {last + 1} and this one is number {counter}: refuse it, "
                "or ask the others why and, if runs were missed, say so with skip_to_counter"
            )
        log.append(Counted(at=self.stamp(), members=members.hex(), counter=counter, run=run.hex()))

    def require_counted(self, run: bytes) -> None:
        """Refuse a run whose number this ledger has not accepted (:meth:`accept_counter`).

        Raises:
            LedgerError: the name is that of no accepted number.
        """
        with self._reading() as log:
            if run not in LedgerState.of(log.records).counted:
                raise LedgerError(
                    "a course on a random graph needs a run whose number this ledger has accepted: give course.spend "
                    "the numbered roster (Roster.numbered), and not the name of its run"
                )

    def skip_to_counter(self, members: bytes, counter: int) -> None:
        """Record a person's statement that this party missed the runs before ``counter``."""
        check_counter(members, counter)
        with self._writing() as log:
            last, _ = LedgerState.of(log.records).counters.get(members, (FIRST_COUNTER - 1, b""))
            if counter <= last + 1:
                raise LedgerError(f"run number {last + 1} is the next one already: a counter only goes up")
            log.append(Counted(at=self.stamp(), members=members.hex(), counter=counter - 1, run=""))

    @property
    def head(self) -> str:
        """The ledger's length and digest; stored elsewhere, it exposes any older or edited copy (``expected_head``)."""
        with self._reading() as log:
            return str(log.head)

    def account(self, dataset: str) -> Account:
        """Return the caps and all spends of a data set."""
        with self._reading() as log:
            accounts = LedgerState.of(log.records).accounts
        if dataset not in accounts:
            raise LedgerError(no_account(dataset, accounts))
        return accounts[dataset]

    def entry(self, entry: Spend) -> Spend:
        """Return an entry as it is now, with the rounds that began since."""
        with self._reading() as log:
            return self._stored(log, entry)

    @contextmanager
    def holding(self, entry: Spend, *, writes: bool = False) -> Iterator[Holding]:
        """Open the changes of a stream's records, which its record registry keeps in this ledger.

        Args:
            entry: the stream's spend.
            writes: open one exclusive transaction. A normal exit commits it, an exception changes nothing.

        Raises:
            LedgerError: the file is missing, edited or older, or the entry is another ledger's; with ``writes`` also a
                failing disk. Nothing may be sampled or sent then.

        Example:
            >>> plan = ps.Plan(schema=ps.MeanSchema(2, 1.0), cohort=ps.Cohort(2, 2, 9), privacy=ps.NoPrivacy())
            >>> stream, ledger = ps.course.Single(plan), ps.dp.Ledger.create("ledger.sqlite")
            >>> entry = ps.course.spend(stream, ledger, "ward", run=os.urandom(16))
            >>> with ledger.holding(entry, writes=True) as held:
            ...     held.write("entered", b"the keyed hash of an id").action
            'entered'
            >>> with ledger.holding(entry) as held:
            ...     [held.body(change) for change in held.of_stream()]
            [b'the keyed hash of an id']
        """
        with self._writing() if writes else self._reading() as log:
            yield Holding(log, self._stored(log, entry), self.stamp() if writes else "")

    def accounts(self) -> tuple[Account, ...]:
        """Return every account, by name."""
        with self._reading() as log:
            return tuple(LedgerState.of(log.records).accounts.values())
