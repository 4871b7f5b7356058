"""The records of a stream as indexed rows, built from the chain as each change is written.

Triggers break a seal whenever another program writes to these rows. Under a broken seal, and at every ``open``, the
chain is folded again and compared. Until then, bytes written behind SQLite's back go unnoticed.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from privstats import domains
from privstats.dp.ledger.held import Change, Holding
from privstats.errors import LedgerError

KEY_BYTES = 16
"""Bytes of a record's keyed hash; two of a million records share one with probability below 2**-89."""

SECRET_BYTES = 32
"""Length of the party's secret behind those hashes."""

LONGEST_ID = 200
"""Characters in the id of a record, at most."""

_INNER, _OUTER = (bytes(value ^ pad for value in range(256)) for pad in (0x36, 0x5C))
"""Byte tables with which HMAC (RFC 2104) turns its key into those of the inner and the outer hash."""

SETTLED = ("returned", "lost")
"""Ends of a node without its records in the sum."""

State: TypeAlias = Literal["new", "in", "gone"]
Way: TypeAlias = tuple[int, int]
"""A level, and 1 where records are subtracted there, 0 where they are added."""
_SEND_BYTES = KEY_BYTES + 2


@dataclass(frozen=True)
class Send:
    """One record in one node, added or subtracted."""

    key: bytes
    level: int
    leaves: bool

    @property
    def encoded(self) -> bytes:
        """The send as 18 bytes."""
        return self.key + bytes([self.level, self.leaves])


def record_keys(secret: bytes, ids: Iterable[str]) -> list[bytes]:
    """Return each id's HMAC-SHA-256, truncated to 16 bytes."""
    block = secret.ljust(hashlib.sha256().block_size, b"\0")
    inner = block.translate(_INNER) + domains.REGISTRY_RECORD
    outer = block.translate(_OUTER)
    sha256 = hashlib.sha256
    return [sha256(outer + sha256(inner + _encoded(each)).digest()).digest()[:KEY_BYTES] for each in ids]


def _encoded(record: str) -> bytes:
    if not isinstance(record, str) or not 0 < len(record) <= LONGEST_ID:
        raise LedgerError(f"the id of a record is a text of 1 to {LONGEST_ID} characters; use a lasting one")
    return record.encode("utf-8", "surrogatepass")


def keys_in(body: bytes) -> list[bytes]:
    """Split concatenated record keys."""
    return [body[start : start + KEY_BYTES] for start in range(0, len(body), KEY_BYTES)]


def sends_in(body: bytes) -> dict[Way, list[bytes]]:
    """Return the keys of encoded sends, by level and way."""
    changes = defaultdict[Way, list[bytes]](list)
    for start in range(0, len(body), _SEND_BYTES):
        end = start + KEY_BYTES
        changes[body[end], body[end + 1]].append(body[start:end])
    return changes


@dataclass
class Fold:
    """The records of one stream.

    Attributes:
        states: state by record; a missing record is new.
        used: number of sends not returned, by level and way.
        there: the same without lost sends.
    """

    states: dict[bytes, State] = field(default_factory=dict)
    used: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))
    there: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))

    def apply(self, change: Change, body: bytes, taken: Callable[[], bytes]) -> None:
        """Apply one more change; ``taken`` returns its node's records."""
        if change.action in ("entered", "gone"):
            self.states.update(dict.fromkeys(keys_in(body), "in" if change.action == "entered" else "gone"))
        elif change.action == "taken":
            for way, keys in sends_in(body).items():
                self.used[way].update(keys)
                self.there[way].update(keys)
        elif change.action in SETTLED:
            for way, keys in sends_in(taken()).items():
                self.there[way].subtract(keys)
                if change.action == "returned":
                    self.used[way].subtract(keys)


Database: TypeAlias = Literal["main", "temp"]
_TABLES = {
    "registry_states": "spend INTEGER NOT NULL, key BLOB NOT NULL, state TEXT NOT NULL, PRIMARY KEY (spend, key)",
    "registry_sends": (
        "spend INTEGER NOT NULL, level INTEGER NOT NULL, leaves INTEGER NOT NULL, key BLOB NOT NULL, "
        "used INTEGER NOT NULL, there INTEGER NOT NULL, PRIMARY KEY (spend, level, leaves, key)"
    ),
}
_SEAL = "CREATE TABLE registry_seal (number INTEGER NOT NULL, digest TEXT NOT NULL, schema INTEGER NOT NULL) STRICT"
_TRIGGER = (
    "CREATE TRIGGER {table}_{event} AFTER {event} ON {table} WHEN (SELECT schema FROM registry_seal) <> 0 "
    "BEGIN UPDATE registry_seal SET schema = 0; END"
)
_MOVE = (
    "INSERT INTO registry_states (spend, key, state) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET state = excluded.state"
)
_SEND = (
    "INSERT INTO registry_sends (spend, level, leaves, key, used, there) VALUES (?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET used = used + excluded.used, there = there + excluded.there"
)
_USED = "SELECT key, used FROM main.registry_sends WHERE spend = ? AND level = ? AND leaves = ?"
_THERE = "SELECT key, there FROM main.registry_sends WHERE spend = ? AND level = ? AND leaves = ?"
_STATE = "SELECT key FROM registry_states WHERE spend = :spend AND state = "
_SENT = "SELECT key FROM registry_sends WHERE spend = :spend AND level = :level AND leaves = "
_DONE = "(there > 0 OR used > :repeats)"
_ARRIVING = f"{_STATE} 'in' EXCEPT {_SENT} 0 AND {_DONE} ORDER BY key"
_PARTING = f"{_STATE} 'gone' INTERSECT {_SENT} 0 AND there > 0 EXCEPT {_SENT} 1 AND {_DONE} ORDER BY key"
"""Ordered by the keys of both tables, so that SQLite merges them and looks up no row."""


@dataclass(frozen=True)
class RegistryIndex:
    """The state of every stream in an open ledger."""

    held: Holding

    @classmethod
    def reading(cls, held: Holding, *, whole: bool = False) -> RegistryIndex:
        """Return the index, folded into memory where its seal is broken or missing.

        Args:
            held: the open ledger's changes.
            whole: compare all rows with the chain, even under a valid seal.
        """
        index = cls(held)
        sealed = index._sealed
        if whole or not sealed:
            folds, missing = index._checked()
            if not sealed:
                index._make("temp")
                index._fill(folds)
                index._catch_up(missing)
        return index

    @classmethod
    def writing(cls, held: Holding) -> RegistryIndex:
        """Return the updated index; call :meth:`seal` after the last change."""
        index = cls(held)
        if not index._sealed:
            _, missing = index._checked()
            if not index._tables():
                index._make("main")
            index._watch()
            index._catch_up(missing)
        return index

    def seal(self) -> None:
        """Mark the tables as complete."""
        self._run("DELETE FROM registry_seal")
        self._run("INSERT INTO registry_seal VALUES (?, ?, ?)", self._complete)

    def apply(self, change: Change, body: bytes) -> None:
        """Apply a change."""
        if change.action in ("entered", "gone"):
            state = "in" if change.action == "entered" else "gone"
            self._many(_MOVE, ((change.spend, key, state) for key in sorted(keys_in(body))))
        elif change.action == "taken":
            self._count(change.spend, body, 1, 1)
        elif change.action in SETTLED:
            self._count(change.spend, self._records_of(change), -1 if change.action == "returned" else 0, -1)

    def state(self, spend: int, key: bytes) -> State:
        """Return a record's state in the stream of record ``spend``."""
        row = self._run("SELECT state FROM registry_states WHERE spend = ? AND key = ?", (spend, key)).fetchone()
        return row[0] if row else "new"

    def states(self, spend: int) -> Counter[State]:
        """Return the numbers of records in the stream and gone."""
        counted = "SELECT state, count(*) FROM registry_states WHERE spend = ? GROUP BY state"
        return Counter(dict(self._run(counted, (spend,))))

    def due(self, spend: int, level: int, repeats: int) -> tuple[set[bytes], set[bytes]]:
        """Return the records that a node at ``level`` must add, and subtract.

        Add a record that is in, not in that level's sum, and sent at most ``repeats`` times; subtract one that is gone,
        still in the sum, and sent for that at most as often.
        """
        named = {"spend": spend, "level": level, "repeats": repeats}
        arriving, parting = ({key for (key,) in self._run(rule, named)} for rule in (_ARRIVING, _PARTING))
        return arriving, parting

    @property
    def _schema(self) -> int:
        return int(self._run("PRAGMA main.schema_version").fetchone()[0])

    @property
    def _complete(self) -> tuple[int, str | None, int]:
        """The seal of tables that contain all changes."""
        last = max((change.number for change in self.held.changes()), default=0)
        return last, self.held.digest_after(last), self._schema

    @property
    def _sealed(self) -> bool:
        """Whether only this module has written, and the tables contain all changes."""
        return self._sealed_at() == self._complete

    def _sealed_at(self) -> tuple[int, str, int]:
        rows = self._run("SELECT * FROM main.registry_seal").fetchall() if "registry_seal" in self._tables() else []
        return rows[0] if len(rows) == 1 else (0, "", 0)

    def _tables(self) -> set[str]:
        named = "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name LIKE 'registry#_%' ESCAPE '#'"
        return {name for (name,) in self._run(named)}

    def _make(self, database: Database) -> None:
        if database == "temp":
            self._run("PRAGMA temp_store = MEMORY")
        else:
            self._run(_SEAL)
        for table, columns in _TABLES.items():
            self._run(f"CREATE TABLE {database}.{table} ({columns}) STRICT, WITHOUT ROWID")

    def _watch(self) -> None:
        self.held.make_bodies()
        for table in ("beside", *_TABLES):
            for event in ("INSERT", "UPDATE", "DELETE"):
                self._run(f"DROP TRIGGER IF EXISTS main.{table}_{event}")
                self._run(_TRIGGER.format(table=table, event=event))

    def _checked(self) -> tuple[Mapping[int, Fold], list[Change]]:
        """Fold the chain, compare with the tables, and return the fold and the missing changes."""
        tables, (reached, digest, _) = self._tables(), self._sealed_at()
        folds, missing = defaultdict[int, Fold](Fold), list[Change]()
        for change in self.held.changes():
            if change.number > reached:
                missing.append(change)
            else:
                body = self.held.body(change)
                folds[change.spend].apply(change, body, lambda change=change: self._records_of(change))  # type: ignore[misc]
        if tables and not (
            tables == {*_TABLES, "registry_seal"}
            and (not reached or self.held.digest_after(reached) == digest)
            and self._holds(folds)
        ):
            raise LedgerError("the rows of the ledger's record registry were edited; restore its newest backup")
        return folds, missing

    def _holds(self, folds: Mapping[int, Fold]) -> bool:
        sizes = [sum(len(fold.states) for fold in folds.values())]
        sizes.append(sum(len(counts) for fold in folds.values() for counts in fold.used.values()))
        counted = "SELECT (SELECT count(*) FROM main.registry_states), (SELECT count(*) FROM main.registry_sends)"
        return sizes == list(self._run(counted).fetchone()) and all(
            self._holds_stream(spend, fold) for spend, fold in folds.items()
        )

    def _holds_stream(self, spend: int, fold: Fold) -> bool:
        if dict(self._run("SELECT key, state FROM main.registry_states WHERE spend = ?", (spend,))) != fold.states:
            return False
        for query, counts in ((_USED, fold.used), (_THERE, fold.there)):
            if any(dict(self._run(query, (spend, *way))) != counts[way] for way in counts):
                return False
        return True

    def _fill(self, folds: Mapping[int, Fold]) -> None:
        for spend, fold in folds.items():
            self._many(_MOVE, ((spend, key, fold.states[key]) for key in sorted(fold.states)))
            for way, used in fold.used.items():
                rows = ((spend, *way, key, used[key], fold.there[way][key]) for key in sorted(used))
                self._many(_SEND, rows)

    def _catch_up(self, changes: Iterable[Change]) -> None:
        for change in changes:
            self.apply(change, self.held.body(change))

    def _records_of(self, change: Change) -> bytes:
        for each in self.held.changes():
            if (each.spend, each.node, each.action) == (change.spend, change.node, "taken"):
                return self.held.body(each)
        raise LedgerError(f"node {change.node} was never begun, and a record states how it ended; restore the ledger")

    def _count(self, spend: int, body: bytes, used: int, there: int) -> None:
        for way, keys in sends_in(body).items():
            self._many(_SEND, ((spend, *way, key, used, there) for key in sorted(keys)))

    def _run(self, statement: str, values: Mapping[str, object] | tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self.held.connection.execute(statement, values)

    def _many(self, statement: str, rows: Iterator[tuple[object, ...]]) -> None:
        self.held.connection.executemany(statement, rows)
