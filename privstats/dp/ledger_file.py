"""The SQLite file under the ledger: opened safely, synced fully, every failure one sentence.

It knows tables and locks, not budgets; ``ledger`` decides what may be spent. Written before any noise is drawn.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from privstats.errors import LedgerError

__all__ = ["FORMAT_VERSION", "reading", "writing"]

FORMAT_VERSION = 1
_APPLICATION_ID = 0x70734C64  # "psLd"

_TABLES = (
    """CREATE TABLE caps (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, dataset TEXT NOT NULL, unit TEXT NOT NULL, adjacency TEXT NOT NULL,
        epsilon REAL NOT NULL, delta REAL NOT NULL) STRICT""",
    """CREATE TABLE spends (
        id INTEGER PRIMARY KEY, at TEXT NOT NULL, dataset TEXT NOT NULL, plan TEXT NOT NULL, what TEXT NOT NULL,
        model TEXT NOT NULL, mu REAL NOT NULL, released TEXT) STRICT""",
    """CREATE TABLE parts (
        spend INTEGER NOT NULL REFERENCES spends(id), statistic TEXT NOT NULL, sigma REAL NOT NULL, mu REAL NOT NULL,
        PRIMARY KEY (spend, statistic)) STRICT""",
    "CREATE INDEX spends_of ON spends(dataset)",
)


@contextmanager
def writing(path: Path, timeout: float, *, create: bool) -> Iterator[sqlite3.Connection]:
    """Hold the ledger alone; on a normal exit everything is on the disk, on any other nothing has changed.

    The write lock is taken at the start, so that reading the total and adding to it cannot interleave with another
    process. ``synchronous=EXTRA`` syncs the file and its folder before the commit returns.

    Raises:
        LedgerError: the file is locked, unreadable, foreign, from a newer version, or the disk is full.
    """
    if not create:
        _require_file(path)
    try:
        with closing(_connect(path, "rwc" if create else "rw", timeout)) as connection:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("BEGIN IMMEDIATE")
            if create and _is_empty(connection):
                _create(connection)
            _check_format(connection, path)
            yield connection
            connection.execute("COMMIT")  # closing without it rolls back
    except sqlite3.Error as error:
        raise LedgerError(f"ledger {path} {_reason(error)}; nothing was spent") from None


@contextmanager
def reading(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """A consistent view of an existing ledger.

    Opened for writing where that is possible, because the first reader after a crash must roll back what the crash
    left half done; on read-only media nothing can be half done.

    Raises:
        LedgerError: there is none, or as for :func:`writing`.
    """
    _require_file(path)
    try:
        mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
        with closing(_connect(path, mode, timeout)) as connection:
            connection.execute("BEGIN")
            _check_format(connection, path)
            yield connection
    except sqlite3.Error as error:
        raise LedgerError(f"ledger {path} {_reason(error)}") from None


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise LedgerError(f"there is no ledger at {path}: name the file that releases are recorded in")


def _connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(address, uri=True, timeout=timeout, isolation_level=None)


def _is_empty(connection: sqlite3.Connection) -> bool:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return tables == 0 and _pragma(connection, "application_id") == 0


def _create(connection: sqlite3.Connection) -> None:
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise LedgerError(f"{path} is not a privstats ledger: name another file")
    version = _pragma(connection, "user_version")
    if version > FORMAT_VERSION:
        raise LedgerError(
            f"ledger {path} has format {version} and this privstats knows {FORMAT_VERSION}: upgrade privstats; "
            "nothing was spent"
        )


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _reason(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_BUSY:
        return "is locked by another process: try again when that release has finished"
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return "cannot grow: the disk is full or failing, free some space"
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "is not readable: restore it from a backup, and do not start a new one for the same data"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return "cannot be opened for writing: check its folder and permissions"
    return f"is damaged ({error}): restore it from a backup"
