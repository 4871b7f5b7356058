"""What a party has sent of each record of a stream, in the ledger's own file and in one transaction with it.

Records go by keyed hashes of their names; a row per change lies in a table beside the log, and its SHA-256 in the log,
so that an edit or an older copy is noticed as any other is. It knows no moments; ``course.record_registry`` decides.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from privstats.dp.accounts import LedgerState, Spend, kept_entry
from privstats.dp.ledger import Ledger
from privstats.dp.ledger_file import Log, reading, writing
from privstats.dp.ledger_records import Head, Held, Marked, RegistryAction
from privstats.dp.ledger_rules import check_node
from privstats.errors import LedgerError

__all__ = ["KEY_BYTES", "Register", "RegistryLog", "Send", "State"]

KEY_BYTES = 16
"""Bytes of the keyed hash that stands for a record: 2**-90 that two of a million meet."""

State: TypeAlias = Literal["new", "in", "gone"]
_SEND_BYTES = KEY_BYTES + 2
_NO_NODE = 0


@dataclass(frozen=True)
class Send:
    """One record in one node.

    Attributes:
        key: the record's keyed hash.
        level: the node's level.
        leaves: it was taken off, not added.
    """

    key: bytes
    level: int
    leaves: bool

    @property
    def encoded(self) -> bytes:
        """18 bytes."""
        return self.key + bytes([self.level, self.leaves])

    @classmethod
    def decoded(cls, body: bytes) -> list[Send]:
        """Those in ``body``, one after the other."""
        rows = (body[start : start + _SEND_BYTES] for start in range(0, len(body), _SEND_BYTES))
        return [cls(row[:KEY_BYTES], row[KEY_BYTES], bool(row[KEY_BYTES + 1])) for row in rows]


@dataclass
class Register:
    """What the log says, folded: read it, or fold another change in.

    Attributes:
        states: by record; one that is missing is new.
        sends: by node, what its vector holds.
        ends: by node, the last that is known of it: ``"taken"``, ``"left"``, ``"returned"`` or ``"lost"``.
        uploads: by node, the name of what left.
        used: how often a record was sent at a level, a way, and not returned.
        there: the same without what was lost.
        check: what the party's secret must lead to; empty before the first change.
    """

    states: dict[bytes, State] = field(default_factory=dict)
    sends: dict[int, list[Send]] = field(default_factory=dict)
    ends: dict[int, RegistryAction] = field(default_factory=dict)
    uploads: dict[int, bytes] = field(default_factory=dict)
    used: Counter[Send] = field(default_factory=Counter)
    there: Counter[Send] = field(default_factory=Counter)
    check: bytes = b""

    def fold(self, record: Held, body: bytes) -> None:
        """One more change."""
        node, action = record.node, record.action
        if action == "opened":
            self.check = body
        elif action in ("entered", "gone"):
            keys = (body[start : start + KEY_BYTES] for start in range(0, len(body), KEY_BYTES))
            self.states.update(dict.fromkeys(keys, "in" if action == "entered" else "gone"))
        elif action == "taken":
            self.sends[node] = Send.decoded(body)
            self.used.update(self.sends[node])
            self.there.update(self.sends[node])
        elif action == "left":
            self.uploads[node] = body
        else:
            self.there.subtract(self.sends[node])
            if action == "returned":
                self.used.subtract(self.sends[node])
        if action in ("taken", "left", "returned", "lost"):
            self.ends[node] = action


@dataclass(frozen=True)
class RegistryLog:
    """The part of a ledger's file that is about one stream's records.

    Args:
        ledger: the party's own.
        entry: what the stream was spent under.
    """

    ledger: Ledger
    entry: Spend

    def register(self) -> Register:
        """All that is on record.

        Raises:
            LedgerError: the file is missing, edited or an older copy, or the entry is another ledger's.
        """
        with reading(Path(self.ledger.path), self.ledger.timeout, expected=self._expected) as log:
            return self._folded(log)

    @contextmanager
    def changing(self) -> Iterator[Changes]:
        """Hold the ledger alone: read what is on record, and write; all of it counts, or none.

        Raises:
            LedgerError: as for :meth:`register`, or the disk failed. Nothing may be drawn or leave then.
        """
        with writing(Path(self.ledger.path), self.ledger.timeout, expected=self._expected) as log:
            yield Changes(log, self._kept(log), self._folded(log), self.ledger.stamp())

    @property
    def _expected(self) -> Head | None:
        return self.ledger.expected

    def _kept(self, log: Log) -> Spend:
        return kept_entry(LedgerState.of(log.records), self.entry, self.ledger.path)

    def _folded(self, log: Log) -> Register:
        kept, register = self._kept(log), Register()
        for number, record in enumerate(log.records, start=1):
            if isinstance(record, Held) and record.spend == kept.id:
                body = log.beside(number)
                if not hmac.compare_digest(hashlib.sha256(body).hexdigest(), record.body):
                    raise LedgerError(
                        f"what ledger {self.ledger.path} holds beside record {number} was edited; restore it"
                    )
                register.fold(record, body)
        return register


@dataclass(frozen=True)
class Changes:
    """An open transaction: what is on record, and what is written to it.

    Attributes:
        log: of the file.
        entry: the stream's, as the ledger has it now.
        register: what is on record, with what this transaction wrote.
        at: the time of its records.
    """

    log: Log
    entry: Spend
    register: Register
    at: str

    def open(self, check: bytes) -> None:
        """Note what the party's secret leads to."""
        self._write("opened", check)

    def move(self, state: Literal["entered", "gone"], keys: Iterable[bytes]) -> None:
        """Records that are in from here on, or gone."""
        self._write(state, b"".join(keys))

    def take(self, node: int, sends: Sequence[Send]) -> None:
        """Begin a node with these records in it: the mark and they are one step.

        Raises:
            LedgerError: the node has begun before, or the stream has no such node.
        """
        check_node(self.entry, node)
        self.log.append(Marked(at=self.at, spend=self.entry.id, node=node))
        self._write("taken", b"".join(send.encoded for send in sends), node)

    def leave(self, node: int, upload: bytes) -> None:
        """What a node took has left, or leaves now; ``upload`` names the bytes."""
        self._write("left", upload, node)

    def end(self, node: int, how: Literal["returned", "lost"]) -> None:
        """What a node took is in no sum: by proof (``"returned"``), or as far as the party knows."""
        self._write(how, b"", node)

    def _write(self, action: RegistryAction, body: bytes, node: int = _NO_NODE) -> None:
        digest = hashlib.sha256(body).hexdigest()
        record = Held(at=self.at, spend=self.entry.id, node=node, action=action, body=digest)
        self.log.keep_beside(self.log.append(record), body)
        self.register.fold(record, body)
