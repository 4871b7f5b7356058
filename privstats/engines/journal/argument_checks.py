"""Checks of argument types for the journals: one sentence each, before anything is written to disk.

They check types only; the machines check that a machine, a place and a plan fit together.
"""

from __future__ import annotations

from typing import cast

from privstats.errors import LocalProtocolError
from privstats.secagg import Panel, UploadParameters
from privstats.secagg.keys import require_identity
from privstats.secagg.machines import Aggregator, Masking, Peer
from privstats.secagg.protocols import protocol_of

__all__ = [
    "require_aggregator",
    "require_callable",
    "require_member",
    "require_panel",
    "require_peer",
    "require_threads",
]


def require_peer(machine: object) -> Peer:
    """The client machine itself; raises ``LocalProtocolError`` for another value."""
    if not hasattr(machine, "answer"):
        raise LocalProtocolError(f"this journal keeps a client, got {type(machine).__name__}: give session.client(...)")
    return cast(Peer, machine)


def require_aggregator(machine: object) -> Aggregator:
    """The server machine itself; raises ``LocalProtocolError`` for another value."""
    if not hasattr(machine, "end_step"):
        raise LocalProtocolError(f"this journal keeps a server, got {type(machine).__name__}: give session.server(...)")
    return cast(Aggregator, machine)


def require_callable(what: str, given: object) -> None:
    """Raise ``LocalProtocolError`` unless ``given`` is callable."""
    if not callable(given):
        raise LocalProtocolError(f"{what} must be a function, got {type(given).__name__}: give a lambda, for example")


def require_panel(panel: object) -> None:
    """Raise ``LocalProtocolError`` unless ``panel`` is a panel."""
    if not isinstance(panel, Panel):
        raise LocalProtocolError(
            f"a panel is a secagg.Panel, got {type(panel).__name__}: make it of all members' offers"
        )


def require_threads(threads: object) -> None:
    """Raise ``LocalProtocolError`` unless ``threads`` is a positive int."""
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise LocalProtocolError(f"threads must be a whole number of at least 1, got {threads!r:.20}")


def require_member(parameters: object, identity: object) -> UploadParameters:
    """The parameters; raises ``LocalProtocolError`` if their protocol has no panel, or without an identity."""
    protocol_of(cast(Masking, parameters))  # refuses a plan, for example
    require_identity(identity)
    if not isinstance(parameters, UploadParameters):
        raise LocalProtocolError('there is a panel only under a plan with protocol="split": give its plan.masking')
    return parameters
