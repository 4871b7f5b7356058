"""Ledgers that earlier versions wrote open, go on, and are refused after an edit.

The files are those commits' own: ``tests/stored/COMMIT/ledger`` and its head.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from privstats import ClassSchema
from privstats.dp import Ledger, Privacy, calibrate
from privstats.dp.ledger.anchor import head_path
from privstats.dp.ledger.records import Head, link, no_records
from privstats.errors import LedgerError

STORED = Path(__file__).parents[1] / "stored"
HEADS = {
    "b5dfc058": "2-2fd7d4b00ac2fdd84fd50e03fc281172a240d3db54296387351ec345d0249fba",
    "0adfd58d": "4-9dbf928dfc130e3ef94a07775c523ec760d8e52211265d3f72d29d172775fca0",
}
DOMAINS = {"b5dfc058": b"privstats/ledger/2", "0adfd58d": b"privstats/dp/ledger/2"}
"""First bytes of each link of a commit's chain."""
SCHEMA = ClassSchema(3, 4, "NAB", 1.0)
PRIVACY = Privacy(model="central", unit="record", adjacency="add-remove", epsilon=0.5, delta=1e-6)
every_ledger = pytest.mark.parametrize("commit", HEADS)


def stored(commit: str, folder: Path) -> Ledger:
    folder.mkdir(exist_ok=True)
    for name in ("ledger", "ledger.head"):
        shutil.copyfile(STORED / commit / name, folder / name)
    return Ledger(folder / "ledger")


def rows(ledger: Ledger) -> list[tuple[int, str, str]]:
    with closing(sqlite3.connect(ledger.path)) as connection:
        return connection.execute("SELECT number, body, digest FROM log ORDER BY number").fetchall()


def by_hand(ledger: Ledger, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection, connection:
        connection.execute(statement, values)


@every_ledger
def test_a_stored_ledger_opens_and_goes_on(commit: str, tmp_path: Path, privstats: Any) -> None:
    ledger = stored(commit, tmp_path)
    assert ledger.head == HEADS[commit]
    before = ledger.account("hips")
    assert [cap.epsilon for cap in before.caps] == [12.0]
    privstats("ledger", "show", "ledger", cwd=tmp_path, code=0)
    noise = calibrate(SCHEMA, PRIVACY, honest_shares=1)
    entry = ledger.spend("hips", plan="d1ce", run=b"next", schema=SCHEMA, privacy=PRIVACY, noise=noise)
    ledger.finish(entry, b"upload")
    again = Ledger.open(ledger.path, expected_head=HEADS[commit]).account("hips")
    assert again.caps == before.caps
    assert again.entries[: len(before.entries)] == before.entries
    assert [each.run for each in again.entries[len(before.entries) :]] == [b"next"]


@every_ledger
def test_an_edit_of_any_character_of_a_stored_ledger_is_refused(commit: str, tmp_path: Path) -> None:
    ledger = stored(commit, tmp_path)
    for number, body, digest in rows(ledger):
        for column, text in (("body", body), ("digest", digest)):
            for place, was in enumerate(text):
                edited = text[:place] + ("0" if was != "0" else "1") + text[place + 1 :]
                by_hand(ledger, f"UPDATE log SET {column} = ? WHERE number = ?", edited, number)
                with pytest.raises(LedgerError, match=f"record {number} was edited, removed or moved"):
                    ledger.accounts()
            by_hand(ledger, f"UPDATE log SET {column} = ? WHERE number = ?", text, number)
    ledger.accounts()


@every_ledger
def test_a_chain_is_of_one_domain_and_ends_in_its_own_head(commit: str, tmp_path: Path) -> None:
    """The chain of the same records in the other domain has another head, also from a later record on."""
    kept = rows(stored(commit, tmp_path))
    (other,) = (domain for name, domain in DOMAINS.items() if name != commit)
    for first in range(len(kept)):
        ledger = stored(commit, tmp_path)
        head = Head(first, kept[first - 1][2]) if first else no_records(other)
        for number, body, _ in kept[first:]:
            head = link(head, body.encode(), other)
            by_hand(ledger, "UPDATE log SET digest = ? WHERE number = ?", head.digest, number)
        with pytest.raises(LedgerError, match="older copy or another" if not first else "edited, removed or moved"):
            ledger.accounts()


def test_an_unfinished_ledger_of_either_domain_opens(tmp_path: Path) -> None:
    """A crash in its first transaction leaves the head of no records next to it."""
    for commit in HEADS:
        ledger = stored(commit, tmp_path / commit)
        head_path(Path(ledger.path)).write_text(f"{no_records(DOMAINS[commit])}\n")
        assert ledger.head == HEADS[commit]


def test_a_new_ledger_is_written_in_the_domain_of_the_releases(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger")
    ((_, body, digest),) = rows(ledger)
    domain = DOMAINS["b5dfc058"]
    assert link(no_records(domain), body.encode(), domain).digest == digest
