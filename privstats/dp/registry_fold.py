"""What all changes on record of a stream's records lead to: pure values, no file.

``registry_index`` keeps the same as rows, and compares the two whenever it does not know who wrote those.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from privstats.dp.ledger_records import Held

__all__ = ["KEY_BYTES", "SETTLED", "Fold", "Send", "State", "keys_in", "sends_in"]

KEY_BYTES = 16
"""Bytes of the keyed hash that stands for a record: 2**-90 that two of a million meet."""

SETTLED = ("returned", "lost")
"""How a node ends without its records in the sum."""

State: TypeAlias = Literal["new", "in", "gone"]
Way: TypeAlias = tuple[int, int]
"""A level, and 1 where records are taken off there, 0 where they are added."""
_SEND_BYTES = KEY_BYTES + 2


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
        used: how often a record was sent at a level, a way, and not returned.
        there: the same without what was lost.
    """

    states: dict[bytes, State] = field(default_factory=dict)
    used: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))
    there: dict[Way, Counter[bytes]] = field(default_factory=lambda: defaultdict(Counter))

    def apply(self, record: Held, body: bytes, taken: Callable[[], bytes]) -> None:
        """One more change; ``taken`` gives what its node took.

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
