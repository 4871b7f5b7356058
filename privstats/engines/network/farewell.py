"""The last message of a session: it is over, and whoever is in no sum is sent what proves that.

Sent once everything is on the server's disk; a node that is away does not hold the session up. Under ``host``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from privstats.engines.network import statements
from privstats.engines.network.driver import POLL_SECONDS, SessionContext
from privstats.engines.network.folder import NodeFolder
from privstats.engines.network.retry import RequestQueue
from privstats.engines.network.session_history import EndedSession, KeptWords
from privstats.engines.network.transport import OK

__all__ = ["say_ended"]

_SECONDS = 20.0
_NO_RELEASE = bytes(32)


def say_ended(folder: NodeFolder, context: SessionContext, ended_session: EndedSession) -> None:
    """Send every node that is online the word that the session is over, so that it drops its last answer.

    A client that is in no sum is sent what others signed of that, so that its ledger has back what it cost. A node that
    misses this message keeps its last answer for 30 days, or until the session is run again.
    """
    release, nodes = bytes.fromhex(ended_session.release) or _NO_RELEASE, list(context.transport.online())
    offers = tuple(map(bytes.fromhex, ended_session.panel))
    if offers and folder.kind.gives_back:
        roles = {node: (context.registry.place_of(node) or 0) - context.registry.clients + 1 for node in nodes}
        helpers = {node: place for node, place in roles.items() if place > 0}
        nodes = [node for node in nodes if node not in helpers]
        _ask_helpers(folder, context, helpers, offers)
    proof = KeptWords(folder.home).proof if folder.kind.gives_back else b""
    counted = {node for node in nodes if context.registry.place_of(node) in ended_session.survivors}
    _send(folder, context, {node: b"" if node in counted else proof for node in nodes}, release)


def _ask_helpers(
    folder: NodeFolder, context: SessionContext, helpers: Mapping[int, int], offers: tuple[bytes, ...]
) -> None:
    """Keep what helpers sign of a run without a sum: those that gave no answer, that they never will.

    Args:
        folder: the server's.
        context: how they are reached.
        helpers: their places on the panel, by node.
        offers: the panel's.
    """
    said = _send(folder, context, dict.fromkeys(helpers, b"".join(offers)), _NO_RELEASE)
    KeptWords(folder.home).add({helpers[node]: word for node, word in said.items() if word}, offers)


def _send(folder: NodeFolder, context: SessionContext, beside: Mapping[int, bytes], release: bytes) -> dict[int, bytes]:
    """Send nodes the word, and each what stands beside it; what they answer within a while."""
    until = context.clock() + _SECONDS
    queue, told = RequestQueue(context.transport, context.clock, until, context.most), dict[int, bytes]()
    for node, more in beside.items():
        queue.ask(node, "over", partial(statements.session_ended, folder.identity, folder.header, release, more))
    while len(told) < len(beside) and context.clock() < until:
        told.update({node: reply.data if reply.code == OK else b"" for node, _, reply in queue.replies()})
        context.sleep(POLL_SECONDS)
    return told
