"""What has been spent on which data: a durable record with a cap per data set.

A spend is on the disk before it is allowed, so a crash can lose a release but never the memory of one. It neither
draws noise nor sees data. In the way of the data: asked right before the noise is drawn.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path

from privstats.dp.calibration import Noise
from privstats.dp.gaussian import compose, gaussian_epsilon, gaussian_mu
from privstats.dp.ledger_file import reading, writing
from privstats.dp.privacy import Adjacency, Privacy, Unit
from privstats.dp.sensitivity import joint_mu
from privstats.errors import LedgerError
from privstats.schema import Schema

__all__ = ["Account", "Entry", "Ledger", "Part"]

_LONGEST_NAME = 200
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Part:
    """One statistic of a spend: its guaranteed noise in real units, and mu of it alone under the account's unit."""

    statistic: str
    sigma: float
    mu: float


@dataclass(frozen=True)
class Entry:
    """One release, or the attempt of one.

    Attributes:
        id: its number in the ledger.
        at: when the spend was written, UTC, ISO 8601.
        plan: digest of the plan.
        what: what is released, in words.
        model: trust model.
        mu: joint mu of the release under the account's unit and adjacency.
        parts: per statistic.
        released: when the release was finished; None if it never was, which does not give the spend back.
    """

    id: int
    at: str
    plan: str
    what: str
    model: str
    mu: float
    parts: tuple[Part, ...]
    released: str | None


@dataclass(frozen=True)
class Account:
    """A data set's cap and all that was spent on it.

    Attributes:
        dataset: the name the data owner gave it.
        unit, adjacency, epsilon, delta: the cap.
        entries: every spend, oldest first.
    """

    dataset: str
    unit: Unit
    adjacency: Adjacency
    epsilon: float
    delta: float
    entries: tuple[Entry, ...]

    @property
    def mu(self) -> float:
        """mu of everything released so far together: sqrt(sum mu_i^2)."""
        return compose(entry.mu for entry in self.entries)

    @property
    def spent(self) -> float:
        """epsilon of everything released so far, at the cap's delta."""
        return gaussian_epsilon(self.mu, self.delta) if self.entries else 0.0

    @property
    def mu_cap(self) -> float:
        """mu of the cap."""
        return gaussian_mu(self.epsilon, self.delta)

    @property
    def exceeded(self) -> bool:
        """More was spent than the cap admits; the ledger never lets that happen by itself."""
        return self.mu > self.mu_cap * (1 + _TOLERANCE)

    def statistics(self) -> dict[str, float]:
        """Composed mu per statistic over all releases."""
        names = dict.fromkeys(part.statistic for entry in self.entries for part in entry.parts)
        return {
            name: compose(part.mu for entry in self.entries for part in entry.parts if part.statistic == name)
            for name in names
        }


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Ledger:
    """A privacy ledger in one SQLite file, shared by every process that releases from the same data.

    Args:
        path: the file; it is made by the first :meth:`set_cap`.
        timeout: seconds to wait for another process before giving up.
        clock: gives the time written into entries.

    Guarantee:
        Releases that were each allowed by :meth:`spend` before their noise was drawn are together
        (epsilon, delta)-DP with the account's cap, for its unit and adjacency: mu-GDP composes as sqrt(sum mu_i^2),
        also when later plans depend on earlier releases. Assumes that every release of the data asks this ledger.
    """

    path: str | PathLike[str]
    timeout: float = 10.0
    clock: Callable[[], datetime] = _now

    def set_cap(self, dataset: str, *, unit: Unit, adjacency: Adjacency, epsilon: float, delta: float) -> None:
        """Open an account, or change its epsilon and delta; every change stays on record.

        Raises:
            LedgerError: the unit or adjacency of an account that has spent would change, more was already spent, or
                the file failed.
            PlanError: a value out of range.
        """
        _check_name(dataset)
        wanted = _account(dataset, unit, adjacency, epsilon, delta)
        with writing(Path(self.path), self.timeout, create=True) as connection:
            account = _load(connection, dataset)
            if account and account.entries:
                _check_change(account, wanted)
            values = (self._stamp(), dataset, unit, adjacency, float(epsilon), float(delta))
            connection.execute(
                "INSERT INTO caps (at, dataset, unit, adjacency, epsilon, delta) VALUES (?, ?, ?, ?, ?, ?)", values
            )

    def spend(
        self, dataset: str, *, plan: str, schema: Schema, privacy: Privacy, noise: Noise, what: str = "release"
    ) -> Entry:
        """Allow one release: write it, sync it, and return; only then may its noise be drawn.

        The joint mu is worked out under the account's own unit and adjacency from the noise itself, so plans with
        another adjacency are charged what they cost here.

        Args:
            dataset: an account opened with :meth:`set_cap`.
            plan: the plan's digest.
            schema, privacy, noise: what the plan measures and promises, and its noise.
            what: a few words for the record.

        Raises:
            LedgerError: no such account, the cap would be passed, the costs are not known per client, or the file
                failed. Nothing is spent then, and nothing may be released.
        """
        _check_name(what)
        with writing(Path(self.path), self.timeout, create=False) as connection:
            account = _require(_load(connection, dataset), dataset, self.path)
            mu, parts = _cost(account, schema, privacy, noise)
            _check_room(account, mu)
            entry = Entry(0, self._stamp(), plan, what, noise.model, mu, parts, None)
            return _insert(connection, dataset, entry)

    def finish(self, entry: Entry) -> None:
        """Note that a spend's release was completed: for the reader only, it changes no total.

        Raises:
            LedgerError: not an entry that :meth:`spend` of this ledger returned, or the file failed.
        """
        if not isinstance(entry, Entry):
            raise LedgerError(f"finish takes an entry, got {type(entry).__name__}; give the entry that spend returned")
        with writing(Path(self.path), self.timeout, create=False) as connection:
            done = connection.execute(
                "UPDATE spends SET released = ? WHERE id = ? AND at = ? AND plan = ?",
                (self._stamp(), entry.id, entry.at, entry.plan),
            )
            if done.rowcount != 1:
                raise LedgerError(
                    f"ledger {self.path} holds no such entry; give the entry that spend returned to the same ledger"
                )

    def account(self, dataset: str) -> Account:
        """The cap of a data set and everything spent on it."""
        with reading(Path(self.path), self.timeout) as connection:
            return _require(_load(connection, dataset), dataset, self.path)

    def accounts(self) -> tuple[Account, ...]:
        """Every account, by name."""
        with reading(Path(self.path), self.timeout) as connection:
            names = [row[0] for row in connection.execute("SELECT DISTINCT dataset FROM caps ORDER BY dataset")]
            return tuple(_require(_load(connection, name), name, self.path) for name in names)

    def _stamp(self) -> str:
        return self.clock().isoformat(timespec="milliseconds")


def _account(dataset: str, unit: Unit, adjacency: Adjacency, epsilon: float, delta: float) -> Account:
    most = 1 if unit == "client" else None
    Privacy(
        model="central", unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta, max_records_per_client=most
    )  # the same bounds as a plan's promise
    return Account(dataset, unit, adjacency, float(epsilon), float(delta), ())


def _check_change(account: Account, wanted: Account) -> None:
    if (account.unit, account.adjacency) != (wanted.unit, wanted.adjacency):
        raise LedgerError(
            f"account {account.dataset!r} has spends per {account.unit} under {account.adjacency}: "
            "its unit and adjacency can no longer change, only its epsilon and delta"
        )
    if account.mu > wanted.mu_cap * (1 + _TOLERANCE):
        raise LedgerError(
            f"account {account.dataset!r} has already spent epsilon "
            f"{gaussian_epsilon(account.mu, wanted.delta):.4g} at delta {wanted.delta:g}: the cap cannot go below"
        )


def _check_room(account: Account, mu: float) -> None:
    total = compose((account.mu, mu))
    if total <= account.mu_cap * (1 + _TOLERANCE):
        return
    left = math.sqrt(max(0.0, account.mu_cap**2 - account.mu**2))
    room = f"at most epsilon {gaussian_epsilon(left, account.delta):.4g}" if left > 0 else "nothing"
    raise LedgerError(
        f"account {account.dataset!r} would reach epsilon {gaussian_epsilon(total, account.delta):.4g} with a cap of "
        f"{account.epsilon:.4g} at delta {account.delta:g}: {room} is left for one more release; nothing was spent"
    )


def _cost(account: Account, schema: Schema, privacy: Privacy, noise: Noise) -> tuple[float, tuple[Part, ...]]:
    """mu of the noise under the account's unit and adjacency, jointly and per statistic."""
    sigma = noise.sigma
    if (account.unit, account.adjacency) == (privacy.unit, privacy.adjacency):
        return noise.mu, tuple(Part(row.statistic, row.sigma, row.mu) for row in noise.rows)
    if account.unit == "client":
        raise LedgerError(
            f"account {account.dataset!r} is kept per client and the plan promises per record: "
            "use unit='client' in the plan, so that the cost of a client is known"
        )
    if privacy.client_clip is not None:
        raise LedgerError(
            f"account {account.dataset!r} is kept per record and the plan clips whole clients: one record can move "
            "all of its client's vector then, so keep an account per client for such plans"
        )
    parts = tuple(Part(s, sigma[s], joint_mu(schema, {s: sigma[s]}, account.adjacency)) for s in sigma)
    return joint_mu(schema, sigma, account.adjacency), parts


def _load(connection: sqlite3.Connection, dataset: str) -> Account | None:
    cap = connection.execute(
        "SELECT unit, adjacency, epsilon, delta FROM caps WHERE dataset = ? ORDER BY id DESC LIMIT 1", (dataset,)
    ).fetchone()
    if cap is None:
        return None
    parts = _parts(connection, dataset)
    spends = connection.execute(
        "SELECT id, at, plan, what, model, mu, released FROM spends WHERE dataset = ? ORDER BY id", (dataset,)
    )
    entries = tuple(
        Entry(number, at, plan, what, model, mu, tuple(parts[number]), released)
        for number, at, plan, what, model, mu, released in spends
    )
    unit, adjacency, epsilon, delta = cap
    return Account(dataset, unit, adjacency, epsilon, delta, entries)


def _parts(connection: sqlite3.Connection, dataset: str) -> dict[int, list[Part]]:
    found = defaultdict(list)
    for number, statistic, sigma, mu in connection.execute(
        "SELECT spend, statistic, sigma, parts.mu FROM parts JOIN spends ON spends.id = parts.spend "
        "WHERE dataset = ? ORDER BY parts.rowid",
        (dataset,),
    ):
        found[number].append(Part(statistic, sigma, mu))
    return found


def _insert(connection: sqlite3.Connection, dataset: str, entry: Entry) -> Entry:
    cursor = connection.execute(
        "INSERT INTO spends (at, dataset, plan, what, model, mu) VALUES (?, ?, ?, ?, ?, ?)",
        (entry.at, dataset, entry.plan, entry.what, entry.model, entry.mu),
    )
    number = int(cursor.lastrowid or 0)
    connection.executemany(
        "INSERT INTO parts (spend, statistic, sigma, mu) VALUES (?, ?, ?, ?)",
        [(number, part.statistic, part.sigma, part.mu) for part in entry.parts],
    )
    return Entry(number, entry.at, entry.plan, entry.what, entry.model, entry.mu, entry.parts, None)


def _require(account: Account | None, dataset: str, path: object) -> Account:
    if account is None:
        raise LedgerError(f"ledger {path} has no account {dataset!r}: open it with set_cap before the first release")
    return account


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise LedgerError(f"a name in the ledger has 1 to {_LONGEST_NAME} printable characters: choose such a one")
