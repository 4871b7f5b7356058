"""Define the interfaces of every masking protocol.

Seeds of surplus noise layers form a chain: the value at j yields the seeds of the j lowest layers and no others.
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
    """Pairs of a peer and its message, in increasing order of peers.

    Messages are built when read, identical each time. After the step, reading raises ``LocalProtocolError``.
    """

    def __init__(self, clients: Sequence[int] = (), make: Callable[[int], bytes] = lambda _: b"") -> None:
        self.clients, self._make = tuple(clients), make

    def to(self, client: int) -> bytes:
        """Return a peer's message."""
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
    """One aggregation's public parameters, equal for all parties."""

    @property
    def protocol(self) -> str:
        """The name in :data:`privstats.secagg.protocols.PROTOCOLS`."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps, in order; opaque outside the protocol."""

    @property
    def upload_step(self) -> str:
        """The step that uploads vectors; earlier dropouts are not in the sum."""

    @property
    def clients(self) -> int:
        """Parties on the roster."""

    @property
    def min_survivors(self) -> int:
        """Minimum number of clients in a revealed sum."""

    @property
    def min_listed(self) -> int:
        """Minimum number of clients on the list of survivors, else the session ends without a sum."""

    @property
    def ring(self) -> Group:
        """The ring of the summed vectors."""

    @property
    def upload_bytes(self) -> int:
        """Size of a masked vector on the wire, in bytes."""

    @property
    def digest(self) -> bytes:
        """32-byte digest of these parameters, the plan and the cryptographic suite."""

    @property
    def failure(self) -> float:
        """Bound on the probability of revealing more than the sum; the budget adds it to delta."""

    @property
    def failure_basis(self) -> Mapping[str, int]:
        """The numbers beside the plan's own from which :attr:`failure` follows; empty where masking never fails."""

    @property
    def remedy(self) -> str:
        """The remedy for too large a :attr:`failure`, as a sentence's end."""

    @property
    def condition(self) -> str:
        """The promise's assumption: a clause that follows "while"."""

    def check_roster(self, roster: Roster) -> None:
        """Raise ``LocalProtocolError`` for a roster whose size or run name does not fit, before any spend."""


def working_with(colluders: int, clients: int) -> str:
    """Return how many clients may work with the server, as the start of a clause for readers."""
    return f"at most {colluders} of {clients} parties work with" if colluders else "no party works with"


ENDS = ("done", "failed")
"""The values of a machine's ``step`` after its end; all other steps are the protocol's own."""

OnUpload: TypeAlias = Callable[[bytes], None]
"""Called with the SHA-256 that names the upload, before it is sent. If it raises, nothing is sent.

A method ``withdraw`` of the callable, if defined, is called when a machine is wiped before it sent anything."""


def unshelved(_: bytes) -> bytes:
    """Refuse to fetch messages without a journal."""
    raise LocalProtocolError("this machine's messages are in the journal that it was exported from: resume the journal")


def give_back(on_upload: OnUpload | None, uploaded: bytes) -> None:
    """Call any ``withdraw`` of ``on_upload`` if ``uploaded`` is empty: nothing was sent.

    The machine is wiped already, so an error changes no machine.
    """
    withdraw = getattr(on_upload, "withdraw", None)
    if withdraw is not None and not uploaded:
        withdraw()


def check_clients(masking: Masking, roster: Roster) -> None:
    """Raise ``LocalProtocolError`` unless the roster has as many clients as the parameters."""
    if len(roster) != masking.clients:
        raise LocalProtocolError(f"the roster lists {len(roster)} clients, the parameters {masking.clients}")


def session_id(parameters: Masking, roster: Roster | bytes) -> bytes:
    """Return the 32-byte digests of roster and parameters: a permanent session name.

    The name is empty for a roster without a run, because its parties may run several sessions.
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
        step: the step that collects answers.
        answered: peers with an accepted answer, in order.
        waiting_for: peers without one, in order.
        abort: why closing now yields no sum, else None. Only closing the last step detects shares of a wrong secret.
    """

    step: str
    answered: tuple[int, ...]
    waiting_for: tuple[int, ...]
    abort: AggregationError | None


class Peer(Protocol):
    """One client, or one helper, in one session."""

    @property
    def parameters(self) -> Masking:
        """The agreed parameters."""

    @property
    def index(self) -> int:
        """A client's roster index; a helper's is n - 1 plus its place in the panel."""

    @property
    def step(self) -> str:
        """The awaited step; ``"done"`` or ``"failed"`` at the end."""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Other parties' faults that did not stop this peer."""

    @property
    def ended(self) -> str:
        """The server's signed reason for an early end; else empty."""

    @property
    def answer(self) -> bytes:
        """The last answer, to be sent again; empty where none may be sent."""

    @property
    def charged(self) -> bool:
        """Whether ``on_upload`` must be called before the upload is sent."""

    @property
    def upload(self) -> bytes:
        """A SHA-256 that names the upload; empty until it may be sent."""

    def start(self) -> list[tuple[str, bytes]]:
        """Return this peer's unprompted messages, if any."""

    def receive(self, data: bytes | bytearray | memoryview) -> list[tuple[str, bytes]]:
        """Answer one server message; a repeat of the last one gets identical bytes unless this peer failed."""

    def export(self, key: bytes) -> bytes:
        """Return the state, sealed under 32 bytes of ``key``."""

    def discard(self) -> None:
        """End the session, wipe secrets, and call any ``withdraw`` if nothing was sent."""


class Aggregator(Protocol):
    """The server of one session: it records messages; :meth:`end_step` closes a step."""

    @property
    def parameters(self) -> Masking:
        """The agreed parameters."""

    @property
    def roster(self) -> Roster:
        """The public identities of all parties."""

    @property
    def noise_due(self) -> bool:
        """Whether noise must be added to the sum before publication."""

    @property
    def steps(self) -> tuple[str, ...]:
        """Names of the steps, in order."""

    @property
    def step(self) -> str:
        """The step that collects answers; ``"done"`` or ``"failed"`` at the end."""

    @property
    def waiting_for(self) -> frozenset[int]:
        """Peers without an answer in this step."""

    @property
    def outbox(self) -> Outbox:
        """The step's opening messages, to be sent again."""

    @property
    def accepted(self) -> int:
        """Number of accepted messages that must be stored, without repeats."""

    @property
    def faults(self) -> tuple[RemoteProtocolError, ...]:
        """Faults of peers."""

    @property
    def result(self) -> tuple[RingVector, tuple[int, ...]]:
        """The sum and its survivors."""

    @property
    def openings(self) -> Mapping[int, Opening]:
        """Opened layers of noise, by client; may be empty."""

    def awaits(self, client: int) -> bool:
        """Return whether this peer's answer is due."""

    def start(self) -> Outbox:
        """Return the messages that open the session."""

    def receive(self, sender: int, data: bytes | bytearray | memoryview) -> Outbox:
        """Record one answer and return any messages to send."""

    def step_status(self) -> StepStatus:
        """Return the step's status."""

    def end_step(self) -> Outbox:
        """Close the step and return the messages that open the next."""

    def abandon(self, code: str = ...) -> Outbox:
        """End the session with a code; return the peers' messages."""

    def export(self, key: bytes) -> bytes:
        """Return the state, sealed under 32 bytes of ``key``."""


ROOT_BYTES = 32
_NEXT, _SEED = "noise-layers/next", "noise-layers/seed"


@dataclass(frozen=True, repr=False)
class Opening:
    """The layers of noise that one client opened.

    Attributes:
        left_for: client count that the remaining noise is sized for.
        seeds: seeds of the layers to subtract, lowest first.
    """

    left_for: int
    seeds: tuple[bytes, ...]


def check_levels(levels: Sequence[int], *, clients: int, min_survivors: int, complete: bool) -> None:
    """Require levels from ``min_survivors`` up to ``clients``, on a complete graph."""
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
            f"use graph='complete' with at most 256 clients (this plan has {clients}), or excess_noise='kept'"
        )


def opened_layers(levels: Sequence[int], proven: int) -> int:
    """Return the number of surplus layers in a sum of ``proven`` clients: those below the last level <= ``proven``.

    Example:
        >>> from privstats.secagg.machines import opened_layers
        >>> [opened_layers((12, 15, 20), proven) for proven in (12, 14, 15, 19, 20)]
        [0, 0, 1, 1, 2]
    """
    return max(0, bisect_right(levels, proven) - 1)


def opening(root: bytes | bytearray, layers: int, opened: int) -> bytes:
    """Return the chain value that yields the ``opened`` lowest layers; ``root`` yields all.

    HKDF derives each value from the one above, so no value reveals one above it.
    """
    value = bytes(root)
    for _ in range(layers - opened):
        value = derive(value, _NEXT)
    return value


def layer_seeds(value: bytes, opened: int) -> tuple[bytes, ...]:
    """Return the ``opened`` lowest layers' seeds, lowest first, from their chain value."""
    seeds = []
    for _ in range(opened):
        seeds.append(derive(value, _SEED))
        value = derive(value, _NEXT)
    return tuple(reversed(seeds))
