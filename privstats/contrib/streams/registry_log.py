"""The changes of a stream's records, in the ledger's own file and in one transaction with its records.

The log holds each change's SHA-256, so the ledger detects an edit or an older copy. Records are identified by keyed
hashes; no moments are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from privstats.contrib.streams.registry_index import RegistryIndex, Send, checked_body, keys_in, sends_in
from privstats.dp import Ledger, Spend
from privstats.dp.ledger.accounts import LedgerState, stored_entry
from privstats.dp.ledger.file import Log, reading, writing
from privstats.dp.ledger.records import Held, Marked, RegistryAction
from privstats.dp.ledger.rules import check_node

_NO_NODE = 0
_CHECK_BYTES = hashlib.sha256().digest_size


@dataclass
class Register:
    """The recorded state of the nodes of one stream.

    Attributes:
        ends: last action by node: ``"taken"``, ``"left"``, ``"returned"`` or ``"lost"``.
        uploads: digest of each node's upload.
        check: check value of the party's secret.
        rule: rule by which ids of persons are read; 0 for records, whose ids are read as they are.
    """

    ends: dict[int, RegistryAction] = field(default_factory=dict)
    uploads: dict[int, bytes] = field(default_factory=dict)
    check: bytes = b""
    rule: int = 0

    @classmethod
    def of(cls, log: Log, spend: int) -> Register:
        """Return nodes of the stream of record ``spend``."""
        register = cls()
        for number, record in enumerate(log.records, start=1):
            if isinstance(record, Held) and record.spend == spend:
                if record.action == "opened":
                    body = checked_body(log, number, record)
                    register.check = body[:_CHECK_BYTES]
                    register.rule = body[_CHECK_BYTES] if len(body) > _CHECK_BYTES else 0
                elif record.action == "left":
                    register.uploads[record.node] = checked_body(log, number, record)
                if record.action in ("taken", "left", "returned", "lost"):
                    register.ends[record.node] = record.action
        return register


@dataclass(frozen=True)
class View:
    """One stream's recorded state, in an open ledger."""

    log: Log
    entry: Spend
    index: RegistryIndex

    @property
    def register(self) -> Register:
        """The register of the stream's nodes."""
        return Register.of(self.log, self.entry.id)

    @property
    def marks(self) -> dict[bytes, bytes]:
        """Keyed hash of entering rows, by person's key."""
        digests: dict[bytes, bytes] = {}
        for number, record in enumerate(self.log.records, start=1):
            if isinstance(record, Held) and (record.spend, record.action) == (self.entry.id, "rows"):
                keys = keys_in(checked_body(self.log, number, record))
                digests.update(zip(keys[::2], keys[1::2], strict=True))
        return digests


@dataclass(frozen=True)
class RegistryLog:
    """One stream's records in a ledger's file."""

    ledger: Ledger
    entry: Spend

    def register(self) -> Register:
        """Return the nodes on record.

        Raises:
            LedgerError: the file is missing, edited or older, or the entry is another ledger's.
        """
        with self.looking() as view:
            return view.register

    def carried(self, node: int) -> list[bytes]:
        """Return the keys of the records in a node's vector."""
        with self.looking() as view:
            for number, record in enumerate(view.log.records, start=1):
                if isinstance(record, Held) and (record.spend, record.node, record.action) == (
                    self.entry.id,
                    node,
                    "taken",
                ):
                    return [key for keys in sends_in(checked_body(view.log, number, record)).values() for key in keys]
        return []

    @contextmanager
    def looking(self, *, whole: bool = False) -> Iterator[View]:
        """Yield a consistent view of the recorded state.

        Args:
            whole: verify every row against the chain; otherwise only after another program has written.
        """
        with reading(Path(self.ledger.path), self.ledger.timeout, expected=self.ledger.expected) as log:
            yield View(log, self._stored(log), RegistryIndex.reading(log, whole=whole))

    @contextmanager
    def changing(self) -> Iterator[Changes]:
        """Yield one exclusive transaction.

        Raises:
            LedgerError: as for :meth:`register`, or the disk failed. Sample no noise and send nothing.
        """
        with writing(Path(self.ledger.path), self.ledger.timeout, expected=self.ledger.expected) as log:
            changes = Changes(log, self._stored(log), RegistryIndex.writing(log), self.ledger.stamp())
            yield changes
            changes.index.seal()

    def _stored(self, log: Log) -> Spend:
        return stored_entry(LedgerState.of(log.records), self.entry, self.ledger.path)


@dataclass(frozen=True)
class Changes(View):
    """An open transaction on the recorded state; ``at`` is the time of its records."""

    at: str

    def open(self, check: bytes, rule: int) -> None:
        """Record the secret's check value, and the rule of persons' ids."""
        self._write("opened", check + bytes([rule] if rule else []))

    def move(self, state: Literal["entered", "gone"], keys: Iterable[bytes]) -> None:
        """Record that records are in, or gone."""
        self._write(state, b"".join(keys))

    def mark(self, marks: Mapping[bytes, bytes]) -> None:
        """Record entering rows' keyed hashes."""
        self._write("rows", b"".join(key + mark for key, mark in marks.items()))

    def take(self, node: int, sends: Sequence[Send]) -> None:
        """Start a node; its mark and its records are written together.

        Raises:
            LedgerError: the node has started before, or does not exist.
        """
        check_node(self.entry, node)
        self.log.append(Marked(at=self.at, spend=self.entry.id, node=node))
        self._write("taken", b"".join(send.encoded for send in sends), node)

    def leave(self, node: int, upload: bytes) -> None:
        """Record that a node's vector is sent, by its digest."""
        self._write("left", upload, node)

    def end(self, node: int, how: Literal["returned", "lost"]) -> None:
        """Record that a node's records are in no sum, by proof (``"returned"``) or without (``"lost"``)."""
        self._write(how, b"", node)

    def _write(self, action: RegistryAction, body: bytes, node: int = _NO_NODE) -> None:
        digest = hashlib.sha256(body).hexdigest()
        record = Held(at=self.at, spend=self.entry.id, node=node, action=action, body=digest)
        self.log.keep_beside(self.log.append(record), body)
        self.index.apply(record, body)
