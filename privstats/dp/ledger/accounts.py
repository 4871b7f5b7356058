"""Compute a ledger's accounts from its records: the caps and spends of each data set."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from privstats.dp.gaussian import compose, gaussian_epsilon, gaussian_mu
from privstats.dp.ledger.records import (
    ApartBy,
    Assigned,
    Capped,
    Counted,
    Finished,
    Freed,
    Held,
    Marked,
    Part,
    Record,
    Spent,
    Uploaded,
    Withdrawn,
)
from privstats.dp.privacy import Adjacency, Unit
from privstats.errors import LedgerError

TOLERANCE = 1e-9
"""Relative room for rounding between the mu of a cap and a mu that was calibrated to it."""


@dataclass(frozen=True)
class Spend:
    """One spend of a ledger: a release, or an attempt at one.

    Attributes:
        id: number of its record.
        at: time of the record, UTC, ISO 8601.
        plan: digest of the plan.
        run: name of the session; empty in an older privstats' spends.
        model: trust model; ``"none"`` where exact sums are released.
        mu: joint mu under the account's unit and adjacency; infinite for exact sums.
        released: when the upload or release was sent; None alone does not return the spend.
        upload: identifies the sent bytes.
        nodes: number of sessions that the spend pays for.
        begun: started rounds; none starts twice.
        uploads: the digest, in hex, of the one upload that each round sent, as pairs (round, digest).
        masking_failure: bound on masking's failure probability; a withdrawn spend keeps it.
        freed: when proven that the upload is in no sum and never can be; the spend then costs nothing.
        proof: digest of that proof.
        apart: what ensures that rounds hold different records, as for :meth:`privstats.dp.Ledger.spend_course`.
        withdrawn: when given up before anything was sent; the spend then costs ``masking_failure`` alone.
        pure: epsilon of a release with delta = 0, else infinite.
        condition: the assumption of the promise, a clause that follows "while"; empty in an older privstats' spends.

    Example:
        >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> X, y = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([0, 1])
        >>> _ = ps.private_release(schema, privacy, X, y, ledger=ps.session.Charge(ledger, "clinic"))
        >>> [(spend.model, round(spend.mu, 3)) for spend in ledger.account("clinic").entries]
        [('central', 0.268)]
    """

    id: int
    at: str
    plan: str
    run: bytes
    what: str
    model: str
    mu: float
    parts: tuple[Part, ...]
    released: str | None = None
    upload: bytes = b""
    nodes: int = 1
    begun: tuple[int, ...] = ()
    masking_failure: float = 0.0
    freed: str | None = None
    proof: bytes = b""
    apart: ApartBy = ""
    withdrawn: str | None = None
    pure: float = math.inf
    uploads: tuple[tuple[int, str], ...] = ()
    condition: str = ""

    def epsilon_at(self, delta: float) -> float:
        """Return the spend's own epsilon at this delta; 0 where it costs nothing."""
        return min(self.pure, epsilon_of(self.mu, delta)) if self.counts else 0.0

    @property
    def exact(self) -> bool:
        """Whether exact sums are released, with no bound on the privacy loss."""
        return math.isinf(self.mu)

    @property
    def counts(self) -> bool:
        """Whether the spend costs something: neither freed nor withdrawn, or with a round that began all the same."""
        return (self.freed is None and self.withdrawn is None) or bool(self.begun)

    @property
    def sent(self) -> bool:
        """Whether an upload is on record for the session, or for each begun session of a course with any."""
        if not self.begun:
            return self.released is not None
        return {place for place, _ in self.uploads}.issuperset(self.begun)

    @property
    def waiting(self) -> bool:
        """Whether the spend is a single session that has sent nothing yet."""
        single = self.nodes == 1 and not self.begun and bool(self.run)
        return single and self.released is None and self.withdrawn is None


@dataclass(frozen=True)
class Cap:
    """A bound on the spends of a data set, valid from a point in time.

    Attributes:
        epsilon, delta: the bound on everything together.

    Example:
        >>> cap = ps.dp.Cap("2026-01-01T00:00:00+00:00", "record", "add-remove", epsilon=2.0, delta=1e-5)
        >>> round(cap.mu, 3)  # what all releases under it may compose to
        0.502
    """

    at: str
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    id: int = field(default=0, compare=False)

    @property
    def mu(self) -> float:
        """The largest mu that keeps the bound; 0 at delta 0."""
        return gaussian_mu(self.epsilon, self.delta) if self.delta else 0.0

    def admits(self, mu: float, pure: float) -> bool:
        """Return whether releases of this joint mu, and of this epsilon if all are pure, keep the bound.

        Either suffices, also where releases depend on earlier ones. Epsilons up to ``epsilon`` in total bound every
        density ratio and cost no delta (docs/proofs/pure_epsilon.md).
        """
        return pure <= self.epsilon * (1 + TOLERANCE) or mu <= self.mu * (1 + TOLERANCE)


@dataclass(frozen=True)
class Account:
    """A data set, its caps and its spends, oldest first; the last cap is in force.

    Example:
        >>> ledger = ps.dp.Ledger.create("ledger.sqlite")
        >>> ledger.set_cap("clinic", unit="record", adjacency="add-remove", epsilon=2.0, delta=1e-5)
        >>> account = ledger.account("clinic")
        >>> account.dataset, account.cap.epsilon, account.mu
        ('clinic', 2.0, 0.0)
    """

    dataset: str
    caps: tuple[Cap, ...] = ()
    entries: tuple[Spend, ...] = ()

    @property
    def cap(self) -> Cap | None:
        """The cap in force."""
        return self.caps[-1] if self.caps else None

    @property
    def epsilon(self) -> float:
        """epsilon of the cap in force; infinite without one."""
        return self.caps[-1].epsilon if self.caps else math.inf

    @property
    def delta(self) -> float:
        """delta of the cap in force; 0 without one."""
        return self.caps[-1].delta if self.caps else 0.0

    @property
    def quoted_delta(self) -> float:
        """The smallest delta of all caps, at which totals are quoted.

        A cap moved to a larger delta must not make the spent epsilon look smaller. A delta of 0 counts only where every
        release is pure.
        """
        return min((cap.delta for cap in self.caps if cap.delta or math.isfinite(self.pure)), default=0.0)

    @property
    def counted(self) -> tuple[Spend, ...]:
        """The spends that cost something."""
        return tuple(entry for entry in self.entries if entry.counts)

    @property
    def mu(self) -> float:
        """mu of all releases together: at most sqrt(sum mu_i^2), also if later releases depend on earlier ones."""
        return compose(entry.mu for entry in self.counted)

    @property
    def spent(self) -> float:
        """epsilon of all releases at :attr:`quoted_delta`; an upper bound where pure and Gaussian mix."""
        return self.spent_at(self.quoted_delta)

    def spent_at(self, delta: float) -> float:
        """Return the epsilon of all releases at another delta; infinite at 0 unless all are pure."""
        return min(self.pure, epsilon_of(self.mu, delta))

    @property
    def pure(self) -> float:
        """Sum of the epsilons; infinite unless all are pure."""
        return math.fsum(entry.pure for entry in self.counted)

    @property
    def masking_failure(self) -> float:
        """Failure probability of all masking, to be added to any quoted delta: the union bound over all graphs begun.

        A withdrawn run counts as well: a server can end runs until one random graph suits it, and it sees each graph.
        A freed upload counts too: its proof rests on the same graph and committee.
        """
        return math.fsum(entry.masking_failure for entry in self.entries)

    @property
    def total_delta(self) -> float:
        """delta of all releases together: :attr:`quoted_delta` plus :attr:`masking_failure`."""
        return self.quoted_delta + self.masking_failure

    @property
    def conditions(self) -> tuple[str, ...]:
        """The assumptions of the entries' promises, each once: clauses that follow "while"."""
        stated = (entry.condition for entry in self.entries if not entry.withdrawn)
        return tuple(dict.fromkeys(condition for condition in stated if condition))

    @property
    def mu_cap(self) -> float:
        """mu of the cap in force; infinite without one."""
        return self.caps[-1].mu if self.caps else math.inf

    @property
    def exceeded(self) -> bool:
        """Whether more was spent than the cap admits."""
        return self.cap is not None and not self.cap.admits(self.mu, self.pure)

    @property
    def unfinished(self) -> tuple[Spend, ...]:
        """Spends that count without a record that anything was sent."""
        return tuple(entry for entry in self.counted if not entry.sent)

    @property
    def waiting(self) -> tuple[Spend, ...]:
        """Single sessions that have sent nothing yet."""
        return tuple(entry for entry in self.entries if entry.waiting)

    def of_run(self, run: bytes) -> Spend | None:
        """Return the newest spend under this run name."""
        return next((entry for entry in reversed(self.entries) if run and entry.run == run), None)

    def statistics(self) -> dict[str, float]:
        """Return the composed mu per statistic over all releases."""
        names = dict.fromkeys(part.statistic for entry in self.counted for part in entry.parts)
        return {
            name: compose(part.mu for entry in self.counted for part in entry.parts if part.statistic == name)
            for name in names
        }


def epsilon_of(mu: float, delta: float) -> float:
    """Return the epsilon of mu at delta; infinite for exact sums and at delta 0."""
    if 0 < mu < math.inf:
        return gaussian_epsilon(mu, delta) if delta else math.inf
    return mu


@dataclass(frozen=True)
class LedgerState:
    """Accounts by data set, and the accepted numbers of runs.

    Attributes:
        counters: the last accepted number and its run's name, by digest of a roster's members.
        counted: names of all runs whose numbers were accepted.
    """

    accounts: Mapping[str, Account]
    counters: Mapping[bytes, tuple[int, bytes]]
    counted: frozenset[bytes]

    @classmethod
    def of(cls, records: Iterable[Record]) -> LedgerState:
        """Read every record of a ledger, in order."""
        caps, spends = defaultdict[str, list[Cap]](list), dict[int, tuple[str, Spend]]()
        counters: dict[bytes, tuple[int, bytes]] = {}
        counted: set[bytes] = set()
        for number, record in enumerate(records, start=1):
            match record:
                case Capped():
                    cap = Cap(record.at, record.unit, record.adjacency, record.epsilon, record.delta, number)
                    caps[record.dataset].append(cap)
                case Spent():
                    spends[number] = record.dataset, entry_of(number, record)
                case Marked():
                    spends[record.spend] = _marked(spends.get(record.spend), record)
                case Uploaded():
                    spends[record.spend] = _uploaded(spends.get(record.spend), record)
                case Finished():
                    spends[record.spend] = _finished(spends.get(record.spend), record)
                case Freed():
                    spends[record.spend] = _freed(spends.get(record.spend), record)
                case Held():
                    spends[record.spend] = _held(spends.get(record.spend))
                case Assigned():
                    spends[record.spend] = _assigned(spends.get(record.spend), record)
                case Withdrawn():
                    spends[record.spend] = _withdrawn(spends.get(record.spend), record)
                case Counted():
                    counters[bytes.fromhex(record.members)] = record.counter, bytes.fromhex(record.run)
                    counted.add(bytes.fromhex(record.run))
        entries = defaultdict[str, list[Spend]](list)
        for dataset, entry in spends.values():
            entries[dataset].append(entry)
        names = sorted(caps.keys() | entries.keys())
        accounts = {name: Account(name, tuple(caps[name]), tuple(entries[name])) for name in names}
        return cls(accounts, counters, frozenset(counted - {b""}))

    def account(self, dataset: str) -> Account:
        """Return a data set's account."""
        return self.accounts.get(dataset, Account(dataset))


def _marked(spend: tuple[str, Spend] | None, record: Marked) -> tuple[str, Spend]:
    if spend is None or record.node in spend[1].begun or spend[1].withdrawn is not None:
        raise LedgerError("a record begins a round that no record allowed, or that has begun before")
    dataset, entry = spend
    return dataset, replace(entry, begun=(*entry.begun, record.node))


def _uploaded(spend: tuple[str, Spend] | None, record: Uploaded) -> tuple[str, Spend]:
    if spend is None or record.node not in spend[1].begun or record.node in dict(spend[1].uploads):
        raise LedgerError("a record states an upload of a round that has not begun, or that has sent another one")
    dataset, entry = spend
    return dataset, replace(entry, uploads=(*entry.uploads, (record.node, record.upload)))


def _finished(spend: tuple[str, Spend] | None, record: Finished) -> tuple[str, Spend]:
    if spend is None or spend[1].withdrawn is not None:
        raise LedgerError("a record finishes a release that no record allowed, or that was withdrawn")
    dataset, entry = spend
    return dataset, replace(entry, released=record.at, upload=bytes.fromhex(record.upload))


def _freed(spend: tuple[str, Spend] | None, record: Freed) -> tuple[str, Spend]:
    if spend is None or spend[1].released is None or spend[1].freed is not None or spend[1].nodes != 1:
        raise LedgerError("a record frees a release that no record allowed, that never left, or that is free already")
    dataset, entry = spend
    return dataset, replace(entry, freed=record.at, proof=bytes.fromhex(record.proof))


def _held(spend: tuple[str, Spend] | None) -> tuple[str, Spend]:
    if spend is None:
        raise LedgerError("a record is about the registry of a spend that no record allowed")
    dataset, entry = spend
    return spend if entry.apart == "holding" else (dataset, replace(entry, apart="holding"))


def _assigned(spend: tuple[str, Spend] | None, record: Assigned) -> tuple[str, Spend]:
    if spend is None or spend[1].apart not in ("", record.apart):
        raise LedgerError("a record assigns a role to a spend that no record allowed, or that has another role")
    dataset, entry = spend
    return dataset, replace(entry, apart=record.apart)


def _withdrawn(spend: tuple[str, Spend] | None, record: Withdrawn) -> tuple[str, Spend]:
    if spend is None or not spend[1].waiting:
        raise LedgerError("a record withdraws a session that no record allowed, or that may have sent something")
    dataset, entry = spend
    return dataset, replace(entry, withdrawn=record.at)


def stored_entry(state: LedgerState, entry: Spend, path: object) -> Spend:
    """Return a ledger's own copy of an entry."""
    if not isinstance(entry, Spend):
        raise LedgerError(f"not an entry but {type(entry).__name__}: give the entry that spend returned")
    name = entry.id, entry.at, entry.plan, entry.run
    known = [mine for account in state.accounts.values() for mine in account.entries]
    stored = next((mine for mine in known if (mine.id, mine.at, mine.plan, mine.run) == name), None)
    if stored is None:
        raise LedgerError(f"ledger {path} holds no such entry; give the entry that spend returned to the same ledger")
    return stored


def entry_of(number: int, record: Spent) -> Spend:
    """Return the entry of record ``number``."""
    mu = math.inf if record.mu is None else record.mu
    run = bytes.fromhex(record.run)
    return Spend(
        number,
        record.at,
        record.plan,
        run,
        record.what,
        record.model,
        mu,
        record.parts,
        nodes=record.nodes,
        masking_failure=record.masking_failure,
        apart=record.apart,
        pure=math.inf if record.pure is None else record.pure,
        condition=record.condition,
    )
