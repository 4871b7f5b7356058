"""What the two machines remember between messages, as plain data that can be sealed and resumed.

No behaviour. The client's secrets are all in ``root``; the server holds nothing that would unmask a client.
"""

from __future__ import annotations

from msgspec import Struct, field

from privstats.secagg.messages import Advertise, Unmask, Unshown
from privstats.secagg.steps import StepName

__all__ = ["ClientState", "ServerState"]

_NONE_YET = Advertise(bytes(32), 0, bytes(32), bytes(32), bytes(32), bytes(64))


class ClientState(Unshown, Struct):
    """A client's memory; ``held`` maps an owner to its two shares, ``vector`` is filled in for sealing only."""

    root: bytearray
    vector: bytes = b""
    step: StepName = "advertise"
    session: bytes = b""
    server_key: bytes = b""
    context: bytes = b""
    advert: Advertise = _NONE_YET
    adverts: dict[int, Advertise] = field(default_factory=dict)
    transcript: bytes = b""
    sharers: tuple[int, ...] = ()
    held: dict[int, bytes] = field(default_factory=dict)
    survivors: bytes = b""
    reply_to: bytes = b""


class ServerState(Unshown, Struct):
    """The server's memory; the running sum is apart, ``sent`` holds the hash of the
    last message to each client, ``failed`` whose boxes a client could not use, ``total`` is for sealing only."""

    secret: bytearray
    session: bytes
    total: bytes = b""
    step: StepName = "advertise"
    expected: set[int] = field(default_factory=set)
    sent: dict[int, bytes] = field(default_factory=dict)
    adverts: dict[int, Advertise] = field(default_factory=dict)
    transcript: bytes = b""
    inboxes: dict[int, bytearray] = field(default_factory=dict)
    commitments: dict[int, bytes] = field(default_factory=dict)
    sharers: set[int] = field(default_factory=set)
    survivors: set[int] = field(default_factory=set)
    failed: dict[int, tuple[int, ...]] = field(default_factory=dict)
    listed: bytes = b""
    signatures: dict[int, bytes] = field(default_factory=dict)
    answers: dict[int, Unmask] = field(default_factory=dict)
    faults: set[tuple[int, str, str]] = field(default_factory=set)
