"""Network faults on single messages between a client and the server.

None forges a valid tag: the tests of ``secagg`` cover false messages by either party.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from privstats.errors import PlanError

Direction: TypeAlias = Literal["up", "down"]
FaultKind: TypeAlias = Literal["drop", "duplicate", "truncate", "flip", "extend", "replay", "late"]


@dataclass(frozen=True)
class Fault:
    """One network fault on a single message.

    Attributes:
        direction: ``"up"`` to the server, ``"down"`` to the client.
        kind: drop; duplicate; truncate at ``place``; flip bit ``place``; extend by a byte; replay the client's previous
            message; late, after the step has ended.
        place: taken modulo the message's length.
    """

    step: str
    client: int
    direction: Direction
    kind: FaultKind
    place: int = 0

    def __post_init__(self) -> None:
        for value, allowed in ((self.direction, get_args(Direction)), (self.kind, get_args(FaultKind))):
            if value not in allowed:
                raise PlanError(f"a fault has the unknown value {value!r}: choose one of {', '.join(allowed)}")


class Network:
    """Carries messages and applies faults; stores messages for replays and delays."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = {(fault.step, fault.client, fault.direction): fault for fault in faults}
        self._previous: dict[tuple[int, Direction], bytes] = {}
        self._late: list[tuple[Direction, int, bytes]] = []

    def carry(self, step: str, client: int, direction: Direction, message: bytes) -> list[bytes]:
        """Return the messages that arrive now for ``message``."""
        fault = self._faults.get((step, client, direction))
        previous = self._previous.get((client, direction), b"")
        self._previous[client, direction] = message
        if fault is None:
            return [message]
        if fault.kind == "late":
            self._late.append((direction, client, message))
            return []
        return _arrives(fault, message, previous)

    def overdue(self) -> list[tuple[Direction, int, bytes]]:
        """Return, once, the messages delayed in the ended step."""
        late, self._late = self._late, []
        return late


def _arrives(fault: Fault, message: bytes, previous: bytes) -> list[bytes]:
    place = fault.place % len(message)
    if fault.kind == "flip":
        bit = fault.place % (8 * len(message))
        return [message[: bit // 8] + bytes([message[bit // 8] ^ 1 << bit % 8]) + message[bit // 8 + 1 :]]
    outcomes: dict[str, list[bytes]] = {
        "drop": [],
        "duplicate": [message, message],
        "truncate": [message[:place]],
        "extend": [message + b"\0"],
        "replay": [previous],
    }
    return outcomes[fault.kind]
