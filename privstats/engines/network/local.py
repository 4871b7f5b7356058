"""Folders on this machine as nodes: a transport without a network, for a rehearsal.

The same folders, code and files as over Flower, without network, TLS and Flower's latency. Each message is answered by
``party``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from privstats.engines.network import party
from privstats.engines.network.transport import MessageKind, Reply

__all__ = ["LocalTransport"]


class LocalTransport:
    """A transport whose nodes are folders; each answers at once, in this process.

    Args:
        homes: the folders of parties and helpers, by node number.
    """

    def __init__(self, homes: Mapping[int, Path]) -> None:
        self._homes = dict(homes)
        self._replies: dict[str, Reply] = {}
        self._count = 0

    def online(self) -> list[int]:
        """All of them."""
        return list(self._homes)

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:  # noqa: ARG002 - nothing waits here
        """Let the folder answer."""
        answer = party.answer(self._homes[node], kind, data, simulated=True)
        self._count += 1
        name = str(self._count)
        self._replies[name] = Reply(answer.code, answer.data)
        return name

    def pull(self, message: str, most: int) -> Reply | None:
        """The answer, once; one that is too large is refused."""
        reply = self._replies.pop(message, None)
        return Reply("too_large") if reply is not None and len(reply.data) > most else reply

    def name(self, node: int) -> str:
        """The folder's name."""
        return self._homes[node].name
