"""Interfaces that plans, engines and journals use for every masking protocol.

``Masking`` is a plan's view of a protocol's parameters, ``Peer`` and ``Aggregator`` are an engine's view of its
machines, and ``Outbox`` holds the messages of a step, each made when it is taken: all together they would be the
largest object in the server's memory. Thresholds, graphs and the names of steps are details of one protocol.
:mod:`privstats.secagg.protocols` lists the protocols.

Where clients remove excess noise, the seeds of its layers are a chain: a value yields the layers below it and none
above. So one value opens any number of layers, and reveals no others. The distribution of a layer is in ``dp``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, TypeAlias

from privstats.encoding import RingVector
from privstats.encoding.ring import Group
from privstats.errors import AggregationError, LocalProtocolError, PlanError, RemoteProtocolError
from privstats.secagg.keys import derive
from privstats.secagg.roster import Roster


class Outbox:
    """Pairs of a client and its message, in increasing order of clients.

    It has a length, is false when empty, and may be iterated repeatedly: a message is the same bytes every time. It
    belongs to its step; after the end of the step, taking a message raises ``LocalProtocolError``.

    Args:
        clients: the clients with a message.
        make: returns a client's message.
    """

    def __init__(self, clients: Sequence[int] = (), make: Callable[[int], bytes] = lambda _: b"") -> None:
        self.clients, self._make = tuple(clients), make

    def to(self, client: int) -> bytes:
        """Return the message for one of :attr:`clients`."""
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

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order; opaque outside the protocol."""

    @property
    def upload_step(self) -> str:
        """The step in which clients send their vectors; a client that vanishes before it is not in the sum."""

    @property
    def clients(self) -> int:
        """Parties on the roster."""

    @property
    def min_survivors(self) -> int:
        """The minimum number of clients in a revealed sum."""

    @property
    def fewest_listed(self) -> int:
        """The minimum number of clients that must stay: a session with fewer ends without a sum."""

    @property
    def ring(self) -> Group:
        """The ring of the summed vectors."""

    @property
    def upload_bytes(self) -> int:
        """Size of a client's masked vector on the wire, in bytes."""

    @property
    def digest(self) -> bytes:
        """32 bytes that stand for these parameters, the plan and the cryptographic suite."""

    @property
    def failure(self) -> float:
        """Bound on the probability that masking shows more than the sum; the budget adds it to delta."""

    @property
    def remedy(self) -> str:
        """The remedy for a plan with too large a :attr:`failure`, as the end of a sentence."""

    @property
    def condition(self) -> str:
        """The assumption behind the promise, as the end of a sentence; empty if there is none."""


ENDS = ("done", "failed")
"""The values of a machine's ``step`` after its end; all other steps are the protocol's own."""

OnUpload: TypeAlias = Callable[[bytes], None]
"""Called with the SHA-256 of the masked-vector message before it is sent. If it raises, nothing is sent.

Its method ``withdraw``, if it has one, is called when a machine is wiped before it sent anything."""


def unshelved(_: bytes) -> bytes:
    """Refuse to fetch a message; a machine without its journal has this as :attr:`Shelving.fetch`."""
    raise LocalProtocolError("this machine's messages are in the journal that it was exported from: resume that")


def give_back(on_upload: OnUpload | None, uploaded: bytes) -> None:
    """Call ``withdraw`` of ``on_upload``, if it has one and the wiped machine sent nothing.

    The machine is wiped already: an error of ``withdraw`` reaches the caller and changes no machine.

    Args:
        on_upload: the callback that accounts for the machine's upload.
        uploaded: the machine's :attr:`Peer.upload`, empty if nothing was sent.
    """
    withdraw = getattr(on_upload, "withdraw", None)
    if withdraw is not None and not uploaded:
        withdraw()


def session_id(parameters: Masking, roster: Roster | bytes) -> bytes:
    """Return the digests of roster and parameters, 32 bytes each: a permanent name, because a run's name is used once.

    The result is empty where the roster names no run, so that its parties may meet again. A client stores its own as
    ``session_id``; a client of another protocol without it is counted by its journal only.
    """
    if isinstance(roster, bytes):
        return roster + parameters.digest
    if not isinstance(roster, Roster) or not roster.run:  # a machine refuses a value that is no roster
        return b""
    return roster.digest + parameters.digest


@dataclass(frozen=True)
class StepStatus:
    """The state of a step, and the consequence of closing it now.

    Attributes:
        step: the step that the server collects answers for.
        answered: the clients with an accepted answer, in increasing order.
        waiting_for: the clients that have not answered, in increasing order.
        abort: why closing now would end the session without a sum; None if it would continue. Shares that reconstruct
            no secret are not predicted: only unmasking itself detects them.
    """

    step: str
    answered: tuple[int, ...]
    waiting_for: tuple[int, ...]
    abort: AggregationError | None


class Peer(Protocol):
    """One client, or one helper, in one session."""

    @property
    def parameters(self) -> Masking:
        """The parameters that all parties agreed on."""

    @property
    def index(self) -> int:
        """The machine's index on the roster."""

    @property
    def step(self) -> str:
        """The step that the machine waits to open; ``"done"`` or ``"failed"`` at the end."""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Faults of other parties that did not stop it."""

    @property
    def ended(self) -> str:
        """The server's signed reason for ending the session early; empty unless it did."""

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again where it may not have arrived; empty where none may leave."""

    @property
    def charged(self) -> bool:
        """Whether its upload is charged, so that ``on_upload`` must be called before it is sent."""

    @property
    def upload(self) -> bytes:
        """SHA-256 of the masked-vector message; empty until that may be sent."""

    def start(self) -> list[tuple[str, bytes]]:
        """Return the messages it sends unprompted; an empty list where the protocol begins with the server."""

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Process one message from the server and return what to send; the same bytes get the same answer."""

    def export(self, key: bytes) -> bytes:
        """Return the machine's state, sealed under the 32 bytes of ``key``."""

    def discard(self) -> None:
        """End the session and wipe the secrets; then call ``withdraw`` of ``on_upload`` if nothing was sent."""


class Aggregator(Protocol):
    """The server of one session: it records messages as they arrive; a call of its own closes a step."""

    @property
    def parameters(self) -> Masking:
        """The parameters that all parties agreed on."""

    @property
    def roster(self) -> Roster:
        """The public identities of all parties."""

    @property
    def noise_due(self) -> bool:
        """Whether the sum must not be published before noise is added to it."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps, in order; opaque to an engine."""

    @property
    def step(self) -> str:
        """The step that the server collects answers for; ``"done"`` or ``"failed"`` at the end."""

    @property
    def waiting_for(self) -> frozenset[int]:
        """The clients that have not answered in this step."""

    @property
    def outbox(self) -> Outbox:
        """The messages that opened this step, to be sent again to those who have not answered."""

    @property
    def accepted(self) -> int:
        """Number of accepted messages; it grows with each message that must be stored, so not with a repeat."""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Faults of clients."""

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and the clients that it is over."""

    @property
    def openings(self) -> Mapping[int, Opening]:
        """Opened layers of noise in the sum, by client; empty where the protocol or the plan has none."""

    def awaits(self, client: int) -> bool:
        """Return whether the client's answer to this step is still to come."""

    def start(self) -> Outbox:
        """Return the messages that open the session."""

    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Record one answer and return what to send, which may be empty."""

    def step_status(self) -> StepStatus:
        """Return the clients that have answered, those that have not, and whether closing now would end the session."""

    def end_step(self) -> Outbox:
        """Close the step with the clients that answered, and return the messages that open the next."""

    def abandon(self, code: str = ...) -> Outbox:
        """End the session, if it has not ended, with a code of the protocol; return the messages for the clients."""

    def export(self, key: bytes) -> bytes:
        """Return the machine's state, sealed under the 32 bytes of ``key``."""


ROOT_BYTES = 32
_NEXT, _SEED = "noise-layers/next", "noise-layers/seed"


@dataclass(frozen=True, repr=False)
class Opening:
    """The layers of noise that one client opened.

    Attributes:
        left_for: the number of clients that the remaining noise is sized for.
        seeds: seeds of the layers to subtract, lowest first.
    """

    left_for: int
    seeds: tuple[bytes, ...]


def check_levels(levels: Sequence[int], *, clients: int, min_survivors: int, complete: bool) -> None:
    """Refuse levels that no client could follow: they rise from ``min_survivors`` to ``clients``, on a complete graph.

    Raises:
        PlanError: one of these does not hold.
    """
    if not levels:
        return
    rises = all(one < other for one, other in pairwise(levels))
    if not rises or (levels[0], levels[-1]) != (min_survivors, clients) or len(levels) < 2:
        raise PlanError(
            f"levels of noise must rise from min_survivors={min_survivors} to clients={clients}, got {list(levels)}"
        )
    if not complete:
        raise PlanError(
            "excess noise is removed on a complete graph only, where every client sees whether all others take part: "
            f"take graph='complete' with at most 256 clients, or excess_noise='kept' ({clients} clients)"
        )


def opened_layers(levels: Sequence[int], proven: int) -> int:
    """Return the number of superfluous layers in a sum of ``proven`` clients: all below the largest level up to it.

    Example:
        >>> from privstats.secagg.machines import opened_layers
        >>> [opened_layers((12, 15, 20), proven) for proven in (12, 14, 15, 19, 20)]
        [0, 0, 1, 1, 2]
    """
    return max(0, bisect_right(levels, proven) - 1)


def opening(root: bytes | bytearray, layers: int, opened: int) -> bytes:
    """Return the chain value that yields the ``opened`` lowest of ``layers`` layers; ``root`` itself yields all.

    Each value is derived from the value above by HKDF, so a value reveals nothing about those above.
    """
    value = bytes(root)
    for _ in range(layers - opened):
        value = derive(value, _NEXT)
    return value


def layer_seeds(value: bytes, opened: int) -> tuple[bytes, ...]:
    """Return the seeds of the ``opened`` lowest layers, the lowest first, from the value that opens them."""
    seeds = []
    for _ in range(opened):
        seeds.append(derive(value, _SEED))
        value = derive(value, _NEXT)
    return tuple(reversed(seeds))
