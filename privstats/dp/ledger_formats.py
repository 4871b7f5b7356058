"""Ledgers that an older privstats wrote, read as the records of today.

Format 1 had three tables, no run names and no chain. Reading only; ``ledger_file`` replaces the tables.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import defaultdict
from heapq import merge
from typing import Any

from privstats.dp.ledger_records import Capped, Finished, Opened, Part, Record, Spent, decode, encode

__all__ = ["OLD_TABLES", "old_records"]

OLD_TABLES = ("parts", "spends", "caps")
_CAPS = "SELECT at, dataset, unit, adjacency, epsilon, delta FROM caps ORDER BY id"
_SPENDS = "SELECT id, at, dataset, plan, what, model, mu, released FROM spends ORDER BY id"
_PARTS = "SELECT spend, statistic, sigma, mu FROM parts ORDER BY rowid"


def old_records(connection: sqlite3.Connection) -> list[Record]:
    """What a ledger of format 1 says, in the order of its clock; a spend comes before the note that it left.

    Raises:
        LedgerError: a value that format 1 never wrote.
    """
    caps = [(_cap(row), None) for row in connection.execute(_CAPS)]
    parts = defaultdict[int, list[Part]](list)
    for spend, statistic, sigma, mu in connection.execute(_PARTS):
        parts[spend].append(Part(statistic, sigma, mu))
    spends = [(_spend(row, parts[row[0]]), row[-1]) for row in connection.execute(_SPENDS)]
    seal = hashlib.sha256(b"".join(encode(record) for record, _ in (*caps, *spends))).hexdigest()
    records: list[Record] = [Opened(at="", ledger=seal[:32])]
    for record, released in merge(caps, spends, key=lambda row: row[0].at):  # keeps the order within each table
        records.append(record)
        if released is not None:
            records.append(Finished(at=released, spend=len(records), upload=""))
    return [decode(encode(record)) for record in records]


def _cap(row: tuple[Any, ...]) -> Record:
    at, dataset, unit, adjacency, epsilon, delta = row
    return Capped(at=at, dataset=dataset, unit=unit, adjacency=adjacency, epsilon=epsilon, delta=delta)


def _spend(row: tuple[Any, ...], parts: list[Part]) -> Record:
    _, at, dataset, plan, what, model, mu, _ = row
    return Spent(at=at, dataset=dataset, plan=plan, run="", what=what, model=model, mu=mu, parts=tuple(parts))
