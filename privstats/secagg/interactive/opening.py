"""Verification of a server's first message before a client exists.

An engine verifies the opening first, so that no budget is spent and no noise drawn for bytes that any sender could
make. The client verifies it again when it receives the message.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from privstats.errors import RemoteProtocolError
from privstats.secagg import wire
from privstats.secagg.interactive import messages
from privstats.secagg.interactive.checks import check_open
from privstats.secagg.interactive.graph import Graph
from privstats.secagg.interactive.parameters import Parameters
from privstats.secagg.keys import agree
from privstats.secagg.roster import Roster
from privstats.secagg.wire import Refusal

__all__ = ["check_opening"]

_ANY = X25519PrivateKey.from_private_bytes(bytes(range(32)))
"""An arbitrary private key: a point of low order gives a zero secret with every private key."""


def check_opening(parameters: Parameters, opening: bytes, *, roster: Roster) -> None:
    """Refuse an opening that the roster's server did not sign for this plan and this roster.

    Raises:
        RemoteProtocolError: that, or the bytes are no opening, or its key is a point of low order.
        LocalProtocolError: roster and parameters do not fit together.
    """
    graph, view = Graph(parameters, roster), wire.view_of(opening)
    try:
        messages.check_header(view, messages.Open, parameters)
        message = messages.decode(view, messages.Open)
        check_open(message, graph)
        _check_key(message.server_key)
    except Refusal as refusal:
        raise RemoteProtocolError("server", "advertise", refusal.code, refusal.detail, proven=False) from None


def _check_key(public: bytes) -> None:
    try:
        agree(_ANY, public)
    except ValueError:
        raise Refusal("bad_key", "a public key is a point of low order") from None
