"""What an engine or a journal needs to know of a protocol machine, whatever its protocol and wherever its state is.

Interfaces and a report, no behaviour. This package's machines fit them, and so do the journaled ones of ``engines``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from privstats.encoding import RingVector
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.masking import Masking
from privstats.secagg.outbox import Outbox
from privstats.secagg.roster import Roster

__all__ = ["ENDS", "Aggregator", "OnLeft", "Outlook", "Peer", "give_back"]

ENDS = ("done", "failed")
"""What a machine's ``step`` is once it has ended; all other steps are the protocol's own."""

OnLeft: TypeAlias = Callable[[bytes], None]
"""Told the SHA-256 of the message with the masked vector before it leaves; what it raises keeps the vector here.

Where it has a method ``withdraw``, that is told that a machine was wiped before anything of it left."""


def give_back(on_left: OnLeft | None, uploaded: bytes) -> None:
    """Tell who keeps account that a machine was wiped, if nothing of it has left; what it raises changes nothing here.

    Args:
        on_left: who keeps account.
        uploaded: what has left, see :attr:`Peer.upload`.
    """
    withdraw = getattr(on_left, "withdraw", None)
    if withdraw is not None and not uploaded:
        withdraw()


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
    """One client, or one helper, in one session."""

    @property
    def parameters(self) -> Masking:
        """What all parties agreed on."""
        ...

    @property
    def index(self) -> int:
        """Its place on the roster."""
        ...

    @property
    def step(self) -> str:
        """The step whose opening message it waits for; ``"done"`` or ``"failed"`` at the end."""
        ...

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What others did wrong without stopping it."""
        ...

    @property
    def ended(self) -> str:
        """Why the server ended the session, in its own word; empty unless it did."""
        ...

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again where it may not have arrived; empty where none may leave."""
        ...

    @property
    def charged(self) -> bool:
        """Whether somebody keeps account of its upload and must be told before it leaves."""
        ...

    @property
    def upload(self) -> bytes:
        """SHA-256 of the message with the masked vector; empty until that may leave."""
        ...

    def start(self) -> list[tuple[str, bytes]]:
        """What it sends before it has heard anything; where the protocol begins with the server, nothing."""
        ...

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Take one message from the server and give what to send; the same bytes get the same answer."""
        ...

    def export(self, key: bytes) -> bytes:
        """Its state, sealed under 32 bytes of ``key``."""
        ...

    def discard(self) -> None:
        """Give the session up and wipe what is secret; then whoever keeps account hears that nothing has left."""
        ...


class Aggregator(Protocol):
    """The server of one session: messages are recorded as they come, a step is closed by its own call."""

    @property
    def parameters(self) -> Masking:
        """What all parties agreed on."""
        ...

    @property
    def roster(self) -> Roster:
        """Everybody's public identities."""
        ...

    @property
    def noise_due(self) -> bool:
        """Whether the sum must not be published before noise is added to it."""
        ...

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
    def accepted(self) -> int:
        """How many messages this object has taken: it grows with each that must not be lost, so not with a repeat."""
        ...

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """What was proved against a client."""
        ...

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients that it is over."""
        ...

    def awaits(self, client: int) -> bool:
        """Whether the client's answer to this step is still to come."""
        ...

    def start(self) -> Outbox:
        """The messages that open the session."""
        ...

    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Record one answer; what it gives is to be sent, and may always be empty."""
        ...

    def outlook(self) -> Outlook:
        """Who has answered, who has not, and whether closing the step now would end the session."""
        ...

    def end_step(self) -> Outbox:
        """Close the step with those who answered, and give the messages that open the next."""
        ...

    def abandon(self, code: str = ...) -> Outbox:
        """End the session, if it has not ended, for a reason of the protocol's, and give what tells every client."""
        ...

    def export(self, key: bytes) -> bytes:
        """Its state, sealed under 32 bytes of ``key``."""
        ...
