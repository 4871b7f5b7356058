"""The last message of a session: it has ended, and clients that are in no sum receive the proof of that.

Sent once everything is on the server's disk; an offline node does not delay the session. ``round_host`` sends it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privstats.engines.network import statements
from privstats.engines.network.driver import SessionContext
from privstats.engines.network.folder import RoundFolder
from privstats.engines.network.retry import RequestQueue
from privstats.engines.network.session_history import EndedSession, KeptStatements
from privstats.engines.network.transport import OK

__all__ = ["send_end_notices"]

_SECONDS = 20.0
_NO_RELEASE = bytes(32)


def send_end_notices(folder: RoundFolder, context: SessionContext, ended_session: EndedSession) -> None:
    """Notify every online node that the session has ended, so that it deletes its last answer.

    A client that is in no sum receives the statements that prove it, so that its ledger can refund the spend. A node
    that misses this message keeps its last answer for 30 days, or until the session is run again.
    """
    release, nodes = bytes.fromhex(ended_session.release) or _NO_RELEASE, list(context.transport.online())
    offers = tuple(map(bytes.fromhex, ended_session.panel))
    if offers and folder.kind.gives_back:
        roles = {node: (context.registry.place_of(node) or 0) - context.registry.clients + 1 for node in nodes}
        helpers = {node: place for node, place in roles.items() if place > 0}
        nodes = [node for node in nodes if node not in helpers]
        _ask_helpers(folder, context, helpers, offers)
    proof = KeptStatements(folder.home).proof if folder.kind.gives_back else b""
    counted = {node for node in nodes if context.registry.place_of(node) in ended_session.survivors}
    _send(folder, context, {node: b"" if node in counted else proof for node in nodes}, release)


def _ask_helpers(
    folder: RoundFolder, context: SessionContext, helpers: Mapping[int, int], offers: tuple[bytes, ...]
) -> None:
    """Keep the statements of helpers that gave no answer in a run without a sum: each signs that it never will.

    Args:
        folder: the server's.
        context: the transport and the nodes.
        helpers: their places on the panel, by node.
        offers: the panel's.
    """
    said = _send(folder, context, dict.fromkeys(helpers, b"".join(offers)), _NO_RELEASE)
    KeptStatements(folder.home).add({helpers[node]: statement for node, statement in said.items() if statement}, offers)


def _send(
    folder: RoundFolder, context: SessionContext, beside: Mapping[int, bytes], release: bytes
) -> dict[int, bytes]:
    """Send nodes the notice, each with its own attachment; returns their answers within a short time."""
    until = context.clock() + _SECONDS
    queue, told = RequestQueue(context.transport, context.clock, until, context.most), dict[int, bytes]()
    for node, more in beside.items():
        queue.ask(node, "over", partial(statements.session_ended, folder.identity, folder.header, release, more))
    while len(told) < len(beside) and context.clock() < until:
        told.update({node: reply.data if reply.code == OK else b"" for node, _, reply in queue.replies()})
        context.sleep(queue.pause)
    return told
