"""What a plan, an engine or a journal asks of any masking protocol, whatever it is and wherever its state is.

``Masking`` is what a plan asks of a protocol's parameters, ``Peer`` and ``Aggregator`` what an engine asks of its
machines, and ``Outbox`` the messages of a step, each made when it is taken: held all together, they would be the
largest thing in the server's memory. Whoever reads thresholds, a graph or the names of steps is inside one protocol's
room. The protocols are in ``protocols``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from privstats.encoding import Ring, RingVector
from privstats.errors import AggregationError, RemoteProtocolError
from privstats.secagg.roster import Roster

__all__ = ["ENDS", "Aggregator", "Masking", "OnUpload", "Outbox", "Peer", "StepStatus", "give_back"]


class Outbox:
    """Pairs of a client and its message, in increasing order of clients.

    It has a length, is false when empty, and may be gone through as often as needed: a message is the same bytes every
    time. It belongs to its step; once that has ended, taking a message raises ``LocalProtocolError``.

    Args:
        clients: whom there is a message for.
        make: gives a client's message.
    """

    def __init__(self, clients: Sequence[int] = (), make: Callable[[int], bytes] = lambda _: b"") -> None:
        self.clients, self._make = tuple(clients), make

    def to(self, client: int) -> bytes:
        """The message for one of :attr:`clients`."""
        return self._make(client)

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, place: int) -> tuple[int, bytes]:
        client = self.clients[place]
        return client, self._make(client)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return ((client, self._make(client)) for client in self.clients)

    def __repr__(self) -> str:
        return f"Outbox({len(self)} messages)"


class Masking(Protocol):
    """The public parameters of one aggregation: a frozen value, equal for all parties that may talk to each other."""

    @property
    def protocol(self) -> str:
        """The name in :data:`privstats.secagg.protocols.PROTOCOLS`."""
        ...

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order; opaque to everybody else."""
        ...

    @property
    def upload_step(self) -> str:
        """The step whose answer carries a client's vector: who answers it is in the sum, who vanishes before is not."""
        ...

    @property
    def clients(self) -> int:
        """Parties on the roster."""
        ...

    @property
    def min_survivors(self) -> int:
        """The fewest clients whose sum may be revealed."""
        ...

    @property
    def ring(self) -> Ring:
        """What is summed."""
        ...

    @property
    def upload_bytes(self) -> int:
        """Size of a client's masked vector on the wire, in bytes."""
        ...

    @property
    def digest(self) -> bytes:
        """32 bytes that stand for these parameters, the plan and the cryptographic suite."""
        ...

    @property
    def failure(self) -> float:
        """Bound on the probability that masking shows more than the sum; the budget adds it to delta."""
        ...

    @property
    def remedy(self) -> str:
        """What to change in a plan whose :attr:`failure` is too large, as the end of a sentence."""
        ...

    @property
    def condition(self) -> str:
        """What the promise holds against only, as the end of a sentence; empty where nothing is assumed."""
        ...

    def facts(self) -> list[str]:
        """One sentence per fact, for the person who reviews a plan."""
        ...

    def numbers(self) -> dict[str, Any]:
        """The same for scripts: names and numbers, nested at will; infinities are allowed."""
        ...


ENDS = ("done", "failed")
"""What a machine's ``step`` is once it has ended; all other steps are the protocol's own."""

OnUpload: TypeAlias = Callable[[bytes], None]
"""Told the SHA-256 of the message with the masked vector before it leaves; what it raises keeps the vector here.

Where it has a method ``withdraw``, that is told that a machine was wiped before anything of it left."""


def give_back(on_upload: OnUpload | None, uploaded: bytes) -> None:
    """Tell who keeps account that a machine was wiped, if nothing of it has left; what it raises changes nothing here.

    Args:
        on_upload: who keeps account.
        uploaded: what has left, see :attr:`Peer.upload`.
    """
    withdraw = getattr(on_upload, "withdraw", None)
    if withdraw is not None and not uploaded:
        withdraw()


@dataclass(frozen=True)
class StepStatus:
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

    def step_status(self) -> StepStatus:
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
