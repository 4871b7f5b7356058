"""The changes of a stream's records, in the ledger's own file and in one transaction with its records.

The log holds each change's SHA-256, so the ledger detects an edit or an older copy. Records are identified by keyed
hashes; no moments are stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from privstats.contrib.streams.registry_index import RegistryIndex, Send, keys_in, sends_in
from privstats.dp import Ledger, Spend
from privstats.dp.ledger.held import Holding

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

    ends: dict[int, str] = field(default_factory=dict)
    uploads: dict[int, bytes] = field(default_factory=dict)
    check: bytes = b""
    rule: int = 0

    @classmethod
    def of(cls, held: Holding) -> Register:
        """Return the nodes of the stream."""
        register = cls()
        for change in held.of_stream():
            if change.action == "opened":
                body = held.body(change)
                register.check = body[:_CHECK_BYTES]
                register.rule = body[_CHECK_BYTES] if len(body) > _CHECK_BYTES else 0
            elif change.action == "left":
                register.uploads[change.node] = held.body(change)
            if change.action in ("taken", "left", "returned", "lost"):
                register.ends[change.node] = change.action
        return register


@dataclass(frozen=True)
class View:
    """One stream's recorded state, in an open ledger."""

    held: Holding
    index: RegistryIndex

    @property
    def entry(self) -> Spend:
        """The stream's spend, as stored."""
        return self.held.entry

    @property
    def register(self) -> Register:
        """The register of the stream's nodes."""
        return Register.of(self.held)

    @property
    def marks(self) -> dict[bytes, bytes]:
        """Keyed hash of entering rows, by person's key."""
        digests: dict[bytes, bytes] = {}
        for change in self.held.of_stream():
            if change.action == "rows":
                keys = keys_in(self.held.body(change))
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
            for change in view.held.of_stream():
                if (change.node, change.action) == (node, "taken"):
                    return [key for keys in sends_in(view.held.body(change)).values() for key in keys]
        return []

    @contextmanager
    def looking(self, *, whole: bool = False) -> Iterator[View]:
        """Yield a consistent view of the recorded state.

        Args:
            whole: verify every row against the chain; otherwise only after another program has written.
        """
        with self.ledger.holding(self.entry) as held:
            yield View(held, RegistryIndex.reading(held, whole=whole))

    @contextmanager
    def changing(self) -> Iterator[Changes]:
        """Yield one exclusive transaction.

        Raises:
            LedgerError: as for :meth:`register`, or the disk failed. Sample no noise and send nothing.
        """
        with self.ledger.holding(self.entry, writes=True) as held:
            changes = Changes(held, RegistryIndex.writing(held))
            yield changes
            changes.index.seal()


@dataclass(frozen=True)
class Changes(View):
    """An open transaction on the recorded state."""

    def open(self, check: bytes, rule: int) -> None:
        """Record the secret's check value, and the rule of persons' ids."""
        body = check + bytes([rule] if rule else [])
        self.index.apply(self.held.write("opened", body), body)

    def move(self, state: Literal["entered", "gone"], keys: Iterable[bytes]) -> None:
        """Record that records are in, or gone."""
        body = b"".join(keys)
        self.index.apply(self.held.write(state, body), body)

    def mark(self, marks: Mapping[bytes, bytes]) -> None:
        """Record entering rows' keyed hashes."""
        body = b"".join(key + mark for key, mark in marks.items())
        self.index.apply(self.held.write("rows", body), body)

    def take(self, node: int, sends: Sequence[Send]) -> None:
        """Start a node; its mark and its records are written together.

        Raises:
            LedgerError: the node has started before, or does not exist.
        """
        body = b"".join(send.encoded for send in sends)
        self.held.begin(node)
        self.index.apply(self.held.write("taken", body, node), body)

    def leave(self, node: int, upload: bytes) -> None:
        """Record that a node's vector is sent, by its digest."""
        self.index.apply(self.held.write("left", upload, node), upload)

    def end(self, node: int, how: Literal["returned", "lost"]) -> None:
        """Record that a node's records are in no sum, by proof (``"returned"``) or without (``"lost"``)."""
        self.index.apply(self.held.write(how, b"", node), b"")
