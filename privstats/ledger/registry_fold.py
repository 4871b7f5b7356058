"""The keyed hashes of a stream's records, and the state that all recorded changes of them lead to: values, no file.

``registry_index`` keeps the same state as rows, and compares the two when another program may have written the rows.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from privstats.errors import LedgerError
from privstats.ledger.records import Held

__all__ = [
    "KEY_BYTES",
    "LONGEST_ID",
    "SECRET_BYTES",
    "SETTLED",
    "Fold",
    "Send",
    "State",
    "keys_in",
    "record_keys",
    "sends_in",
]

KEY_BYTES = 16
"""Bytes of a record's keyed hash; two of a million records share one with probability below 2**-89."""

SECRET_BYTES = 32
"""Length of the party's secret behind those hashes."""

LONGEST_ID = 200
"""Characters in the id of a record, at most."""

_INNER, _OUTER = (bytes(value ^ pad for value in range(256)) for pad in (0x36, 0x5C))
"""Byte tables with which HMAC (RFC 2104) turns its key into those of the inner and the outer hash."""

SETTLED = ("returned", "lost")
"""How a node ends without its records in the sum."""

State: TypeAlias = Literal["new", "in", "gone"]
Way: TypeAlias = tuple[int, int]
"""A level, and 1 where records are subtracted there, 0 where they are added."""
_SEND_BYTES = KEY_BYTES + 2


@dataclass(frozen=True)
class Send:
    """One record in one node.

    Attributes:
        key: the record's keyed hash.
        level: the node's level.
        leaves: it was subtracted, not added.
    """

    key: bytes
    level: int
    leaves: bool

    @property
    def encoded(self) -> bytes:
        """18 bytes."""
        return self.key + bytes([self.level, self.leaves])


def record_keys(secret: bytes, ids: Iterable[str]) -> list[bytes]:
    """HMAC-SHA-256 of each id, cut to 16 bytes; both keyed blocks are made once, in half the time of ``hmac.digest``.

    Raises:
        LedgerError: an id is not a text of 1 to 200 characters.
    """
    block = secret.ljust(hashlib.sha256().block_size, b"\0")
    inner = block.translate(_INNER) + b"privstats/holding/record\0"
    outer = block.translate(_OUTER)
    sha256 = hashlib.sha256
    return [sha256(outer + sha256(inner + _encoded(each)).digest()).digest()[:KEY_BYTES] for each in ids]


def _encoded(record: str) -> bytes:
    if not isinstance(record, str) or not 0 < len(record) <= LONGEST_ID:
        raise LedgerError(f"the id of a record is a text of 1 to {LONGEST_ID} characters; give one that stays")
    return record.encode("utf-8", "surrogatepass")


def keys_in(body: bytes) -> list[bytes]:
    """Keys of records, one after the other."""
    return [body[start : start + KEY_BYTES] for start in range(0, len(body), KEY_BYTES)]


def sends_in(body: bytes) -> dict[Way, list[bytes]]:
    """Encoded sends, one after the other: their keys, by level and way."""
    found = defaultdict[Way, list[bytes]](list)
    for start in range(0, len(body), _SEND_BYTES):
        end = start + KEY_BYTES
        found[body[end], body[end + 1]].append(body[start:end])
    return found


@dataclass
class Fold:
    """The records of one stream.

    Attributes:
        states: by record; one that is missing is new.
        used: how often a record was sent, by level and way, and not returned.
        there: the same without the sends that were lost.
    """

    states: dict[bytes, State] = field(default_factory=dict)
    used: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))
    there: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))

    def apply(self, record: Held, body: bytes, taken: Callable[[], bytes]) -> None:
        """Apply one more change; ``taken`` returns the records that its node took.

        Raises:
            LedgerError: as ``taken`` does.
        """
        if record.action in ("entered", "gone"):
            self.states.update(dict.fromkeys(keys_in(body), "in" if record.action == "entered" else "gone"))
        elif record.action == "taken":
            for way, keys in sends_in(body).items():
                self.used[way].update(keys)
                self.there[way].update(keys)
        elif record.action in SETTLED:
            for way, keys in sends_in(taken()).items():
                self.there[way].subtract(keys)
                if record.action == "returned":
                    self.used[way].subtract(keys)
