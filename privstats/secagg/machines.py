"""What an engine needs to know of a protocol machine, whatever its protocol and wherever it keeps its state.

Interfaces and a report, no behaviour. This package's machines fit them, and so do the journaled ones of ``engines``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from privstats.encoding import RingVector
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.outbox import Outbox

__all__ = ["Aggregator", "Outlook", "Peer"]


@dataclass(frozen=True)
class Outlook:
    """What closing the step now would mean.

    Attributes:
        step: the step whose answers the server waits for.
        answered: the clients whose answer has been accepted, in increasing order.
        waiting_for: the clients whose answer has not arrived, in increasing order.
        abort: why closing now would end the session without a sum; None if it would go on. Shares that give back
            nothing are not foreseen: only unmasking itself shows them.
    """

    step: str
    answered: tuple[int, ...]
    waiting_for: tuple[int, ...]
    abort: AggregationError | None


class Peer(Protocol):
    """One client in one session."""

    @property
    def step(self) -> str:
        """The step whose opening message it waits for; ``"done"`` or ``"failed"`` at the end."""
        ...

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What others did wrong without stopping it."""
        ...

    def receive(self, data: bytes) -> list[tuple[str, bytes]]:
        """Take one message from the server and give what to send; the same bytes get the same answer."""
        ...

    def export(self, key: bytes) -> bytes:
        """Its state, sealed under 32 bytes of ``key``."""
        ...


class Aggregator(Protocol):
    """The server of one session: messages are recorded as they come, a step is closed by its own call."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order; opaque to an engine."""
        ...

    @property
    def step(self) -> str:
        """The step whose answers it waits for; ``"done"`` or ``"failed"`` at the end."""
        ...

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients whose answer to this step has not arrived."""
        ...

    @property
    def outbox(self) -> Outbox:
        """The messages that opened this step, to be sent again to those who have not answered."""
        ...

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What was proved against a client."""
        ...

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients that it is over."""
        ...

    def start(self) -> Outbox:
        """The messages that open the session."""
        ...

    def receive(self, sender: int, data: bytes) -> Outbox:
        """Record one answer; what it gives is to be sent, and may always be empty."""
        ...

    def outlook(self) -> Outlook:
        """Who has answered, who has not, and whether closing the step now would end the session."""
        ...

    def end_step(self) -> Outbox:
        """Close the step with those who answered, and give the messages that open the next."""
        ...
