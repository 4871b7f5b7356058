"""Read and write the ledger's SQLite file: full sync, and verification of the full chain.

Accounts are computed from the chain at every use. Ledgers of format 1 are refused.
"""

from __future__ import annotations

import hmac
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from privstats import domains
from privstats.dp.ledger.anchor import (
    check_head,
    check_outside,
    held_outside,
    keep_head,
    keep_outside,
    reached,
    refuse_lost,
    stored_head,
    stored_outside,
)
from privstats.dp.ledger.records import (
    Assigned,
    Capped,
    Head,
    Opened,
    Record,
    Spent,
    Uploaded,
    Withdrawn,
    decode,
    domain_of,
    link,
    no_records,
    sealed,
)
from privstats.errors import LedgerError, PrivstatsError
from privstats.printable.command_line import command_line
from privstats.system import open_private

FORMAT_VERSION = 2
_NEWER_RECORDS = 3
"""The format of a ledger from its first withdrawal or role on; nothing else differs, so older formats are read."""
_PURE_RECORDS = 4
"""Format from the first cap of delta 0 or spend of pure epsilon on, for all later records too."""
_ROUND_UPLOADS = 5
"""Format from the first upload of a course's round or spend with a condition on, for all later records too."""
_TABLE = "CREATE TABLE log (number INTEGER PRIMARY KEY, body TEXT NOT NULL, digest TEXT NOT NULL) STRICT"
_HAS_BESIDE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'beside'"
BESIDE = "CREATE TABLE IF NOT EXISTS beside (number INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT"
"""Creates the table of the bytes whose digests the chain holds."""


def format_of(record: Record) -> int:
    """Return the minimum ledger format that may hold a record."""
    if isinstance(record, Uploaded) or (isinstance(record, Spent) and record.condition):
        return _ROUND_UPLOADS
    if (isinstance(record, Capped) and record.delta == 0) or (isinstance(record, Spent) and record.pure is not None):
        return _PURE_RECORDS
    return _NEWER_RECORDS if isinstance(record, Assigned | Withdrawn) else FORMAT_VERSION


@dataclass
class Log:
    """The verified records of an open ledger.

    Attributes:
        heads: the head after each record, starting with that of no records.
        missing: minimum number of records that an accepted older copy lacks.
        domain: first bytes of each link of its hash chain.
    """

    connection: sqlite3.Connection
    heads: list[Head] = field(default_factory=lambda: [no_records()])
    records: list[Record] = field(default_factory=list)
    missing: int = 0
    domain: bytes = domains.LEDGER

    @property
    def head(self) -> Head:
        """The head after the last record."""
        return self.heads[-1]

    @property
    def name(self) -> str:
        """The ledger's unique name, in its first record."""
        first = self.records[0]
        return first.ledger if isinstance(first, Opened) else ""

    def append(self, record: Record) -> int:
        """Write a record and return its number; it counts once the transaction is committed."""
        body = sealed(record)
        head = link(self.head, body, self.domain)
        row = (head.length, body.decode(), head.digest)
        self.connection.execute("INSERT INTO log (number, body, digest) VALUES (?, ?, ?)", row)
        if format_of(record) > _pragma(self.connection, "user_version"):
            self.connection.execute(f"PRAGMA user_version = {format_of(record)}")
        self.take(record, head)
        return head.length

    def keep_beside(self, number: int, body: bytes) -> None:
        """Attach bytes to record ``number``, which holds their digest."""
        self.connection.execute(BESIDE)
        self.connection.execute("INSERT INTO beside (number, body) VALUES (?, ?)", (number, body))

    def beside(self, number: int) -> bytes:
        """Return the bytes attached to record ``number``, or none."""
        if not self.connection.execute(_HAS_BESIDE).fetchone():
            return b""
        row = self.connection.execute("SELECT body FROM beside WHERE number = ?", (number,)).fetchone()
        return row[0] if row and isinstance(row[0], bytes) else b""

    def load(self) -> None:
        """Read every record; refuse a ledger edited by hand."""
        rows = self.connection.execute("SELECT number, body, digest FROM log ORDER BY number")
        for number, body, digest in rows:
            if not isinstance(body, str) or not isinstance(digest, str):  # a file cut short reads as NULL
                raise LedgerError(f"record {self.head.length + 1} is cut short")
            if not self.records:
                self.domain = domain_of(body.encode(), digest)
                self.heads = [no_records(self.domain)]
            head = link(self.head, body.encode(), self.domain)
            if number != head.length or not hmac.compare_digest(digest.encode(), head.digest.encode()):
                raise LedgerError(f"record {head.length} was edited, removed or moved")
            self.take(decode(body.encode()), head)
        if not self.records or not isinstance(self.records[0], Opened):
            raise LedgerError("its first record is missing")

    def take(self, record: Record, head: Head) -> None:
        """Append a verified record in memory."""
        self.heads.append(head)
        self.records.append(record)


@contextmanager
def writing(
    path: Path, timeout: float, *, create: str = "", expected: Head | None = None, restored: bool = False
) -> Iterator[Log]:
    """Open one exclusive transaction: a normal exit commits and syncs everything, an exception changes nothing.

    The write lock is held from the start, so totals cannot change between reading and adding. The lock of the head
    outside is held too, so a copy of the file cannot spend between the head's check and its update.
    ``synchronous=EXTRA`` syncs the file and its folder before the commit returns. Both heads are written before and
    after the transaction; after a crash in between the next writer updates them.

    Args:
        create: create a ledger with this time in its first record; empty: the ledger must exist.
        restored: the owner confirms that nothing was sent under the records that an older copy lacks; its head then
            replaces the longer one outside.
    """
    if create:
        refuse_lost(path)
        _make_private(path)
    else:
        _require_file(path)
    try:
        with ExitStack() as stack, closing(_connect(path, "rwc" if create else "rw", timeout)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            log, committed = _created(connection, path, create) if create else _opened(connection, path, expected)
            if not create:  # no other copy of a new ledger can spend
                stack.enter_context(held_outside(path, log.name, timeout))
            outside = stored_outside(log.name)
            if not restored:
                check_outside(path, log.heads, outside, log.name)
            elif outside is not None and not reached(log.heads, outside):
                log.missing = max(1, outside.length - log.head.length)
            keep_head(path, committed)
            keep_outside(log.name, committed, replace=restored)
            yield log
            connection.execute("COMMIT")  # closing without it rolls back
            with suppress(PrivstatsError):  # the spend is committed; the next writer updates the heads
                keep_head(path, log.head)
                keep_outside(log.name, log.head)
    except (sqlite3.Error, UnicodeDecodeError) as error:  # sqlite quotes a damaged schema in its error
        raise LedgerError(f"ledger {path} {_reason(error)}; nothing was spent") from error


@contextmanager
def reading(path: Path, timeout: float, *, expected: Head | None = None) -> Iterator[Log]:
    """Yield a consistent view of an existing ledger.

    It is opened for writing where possible: the first reader after a crash rolls back an unfinished transaction.
    """
    _require_file(path)
    try:
        mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
        # before the snapshot: if a writer commits in between, the snapshot is ahead of the head
        stored = stored_head(path)
        with closing(_connect(path, mode, timeout)) as connection:
            connection.execute("BEGIN")
            log = _loaded(connection, path)
            check_head(path, log.heads, stored, expected)
            check_outside(path, log.heads, stored_outside(log.name), log.name)  # no writer commits while this one reads
            yield log
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise LedgerError(f"ledger {path} {_reason(error)}") from error


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise LedgerError(
            f"there is no ledger at {path}: name the file that releases are recorded in, or make a new one with "
            f"`{command_line('ledger', 'open', path)}` (Ledger.create) if nothing was ever released from this data"
        )
    if not path.stat().st_size:
        refuse_lost(path)
        raise LedgerError(
            f"{path} is empty, as a full disk leaves a ledger that was being made: free some space, and make it with "
            f"`{command_line('ledger', 'open', path)}` (Ledger.create)"
        )


def _make_private(path: Path) -> None:
    """SQLite's journal takes the file's mode."""
    with suppress(OSError, ValueError):  # sqlite meets the same error and reports it
        os.close(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))


def _connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)


def _created(connection: sqlite3.Connection, path: Path, at: str) -> tuple[Log, Head]:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables or _pragma(connection, "application_id"):
        raise LedgerError(f"there is already a file at {path}: open it with Ledger.open, or choose another name")
    connection.execute(f"PRAGMA application_id = {domains.LEDGER_FILE}")
    return _begun(connection, [Opened(at=at, ledger=secrets.token_hex(16))]), no_records()


def _opened(connection: sqlite3.Connection, path: Path, expected: Head | None) -> tuple[Log, Head]:
    log = _loaded(connection, path)
    check_head(path, log.heads, stored_head(path), expected)
    return log, log.head


def _begun(connection: sqlite3.Connection, records: list[Record]) -> Log:
    connection.execute(_TABLE)
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
    log = Log(connection)
    for record in records:
        log.append(record)
    return log


def _loaded(connection: sqlite3.Connection, path: Path) -> Log:
    log = Log(connection)
    _require_version(connection, path)
    try:
        log.load()
    except LedgerError as damage:
        raise LedgerError(f"ledger {path} does not hold together: {damage}; restore its newest backup") from None
    return log


def _require_version(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != domains.LEDGER_FILE:
        raise LedgerError(f"{path} is not a privstats ledger: name another file")
    version = _pragma(connection, "user_version")
    if version == 1:
        raise LedgerError(
            f"ledger {path} has format 1, from before the first release of privstats, and is no longer read: let "
            "privstats 0.2.0 write to it once, which takes everything over; nothing was spent"
        )
    if version not in (FORMAT_VERSION, _NEWER_RECORDS, _PURE_RECORDS, _ROUND_UPLOADS):
        raise LedgerError(
            f"ledger {path} has format {version} and this privstats knows {FORMAT_VERSION} to {_ROUND_UPLOADS}: "
            "upgrade privstats; nothing was spent"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _reason(error: Exception) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return "is locked by another process: try again when that release has finished"
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return "cannot grow: the disk is full or failing, free some space"
    if code == sqlite3.SQLITE_NOTADB:
        return (
            "is not readable, and may be no ledger at all: name the file that `privstats ledger open` wrote; if it is "
            "that, restore it from a backup, and do not start a new one for the same data"
        )
    if code == sqlite3.SQLITE_CORRUPT or isinstance(error, UnicodeDecodeError):
        return "is not readable: restore it from a backup, and do not start a new one for the same data"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return "cannot be opened for writing: check its folder and permissions"
    return f"is damaged ({error}): restore it from a backup"
