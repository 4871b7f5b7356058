"""Read and write the changes of a stream's records, which a record registry keeps in an open ledger."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from privstats.dp.ledger.accounts import Spend
from privstats.dp.ledger.file import BESIDE, Log
from privstats.dp.ledger.records import Held, Marked, RegistryAction
from privstats.dp.ledger.rules import check_node
from privstats.errors import LedgerError

_NO_NODE = 0


@dataclass(frozen=True)
class Change:
    """One change of a stream's records, as the chain holds it.

    Attributes:
        number: number of the ledger's record.
        spend: number of the record that spent the stream.
        node: the round; 0 for a change of no round.
        action: what changed.
        digest: SHA-256 of the change's bytes, in hex.
    """

    number: int
    spend: int
    node: int
    action: RegistryAction
    digest: str

    @classmethod
    def of(cls, number: int, record: Held) -> Change:
        """Return the change of record ``number``."""
        return cls(number, record.spend, record.node, record.action, record.body)


@dataclass(frozen=True)
class Holding:
    """The changes of all streams' records in an open ledger; :meth:`Ledger.holding` opens it.

    Attributes:
        log: the open ledger.
        entry: one stream's spend, as stored; new changes are of this stream.
        at: time of new records; empty where the ledger is open for reading alone.
    """

    log: Log
    entry: Spend
    at: str = ""

    @property
    def connection(self) -> sqlite3.Connection:
        """The ledger's connection, for tables that are computed from the changes."""
        return self.log.connection

    def changes(self) -> Iterator[Change]:
        """Yield the changes of every stream, in order."""
        for number, record in enumerate(self.log.records, start=1):
            if isinstance(record, Held):
                yield Change.of(number, record)

    def of_stream(self) -> Iterator[Change]:
        """Yield the changes of this entry's stream, in order."""
        return (each for each in self.changes() if each.spend == self.entry.id)

    def body(self, change: Change) -> bytes:
        """Return a change's bytes, verified against the chain.

        Raises:
            LedgerError: they were edited.
        """
        body = self.log.beside(change.number)
        if not hmac.compare_digest(hashlib.sha256(body).hexdigest(), change.digest):
            raise LedgerError(
                f"what the ledger holds next to record {change.number} was edited; restore its newest backup"
            )
        return body

    def digest_after(self, number: int) -> str | None:
        """Return the chain's digest after record ``number``, or before the first for 0; None without such a record."""
        heads = self.log.heads
        return heads[number].digest if 0 <= number < len(heads) else None

    def begin(self, node: int) -> None:
        """Mark a round as begun, as :meth:`Ledger.mark_started` does; its records are written in this transaction.

        Raises:
            LedgerError: the round has begun before, or does not exist.
        """
        check_node(self.entry, node)
        self.log.append(Marked(at=self.at, spend=self.entry.id, node=node))

    def write(self, action: RegistryAction, body: bytes, node: int = _NO_NODE) -> Change:
        """Write a change and its bytes, and return it; it counts once the transaction is committed."""
        digest = hashlib.sha256(body).hexdigest()
        record = Held(at=self.at, spend=self.entry.id, node=node, action=action, body=digest)
        number = self.log.append(record)
        self.log.keep_beside(number, body)
        return Change.of(number, record)

    def make_bodies(self) -> None:
        """Create the table of the changes' bytes, ``beside``, where it is missing."""
        self.log.connection.execute(BESIDE)
