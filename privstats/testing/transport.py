"""A transport without a network, for tests of code that carries a session: a function answers, and time is a number."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import TypeAlias

from privstats.engines.network.transport import MessageKind, Reply
from privstats.errors import LocalProtocolError

__all__ = ["MockTransport"]

Answering: TypeAlias = Callable[[int, MessageKind, bytes], Reply]


class MockTransport:
    """Carries messages to a function and its answers back, at once, on a clock that moves only in ``sleep``.

    It fits ``engines.network.transport.Transport``; give its ``clock`` and ``sleep`` beside it.

    Args:
        answer: a node's reply to a message of a kind.
        nodes: their numbers.

    Attributes:
        now: seconds since the start.
        comes: by node, the time at which it comes online, if not at once.
        goes: by node, the time at which it goes offline, if ever.
        pushed: all messages sent, in order: node, kind and data.
        waiting: replies that were not fetched yet, by the message's name.

    Example:
        >>> from privstats.engines.network.transport import Reply
        >>> net = ps.testing.MockTransport(lambda node, kind, data: Reply("ok", data), nodes=[1, 2])
        >>> net.pull(net.push(1, "hello", b"who are you?", ttl=60), most=100)
        Reply(code='ok', data=b'who are you?')
        >>> net.goes[2] = 30.0
        >>> net.sleep(45)
        >>> net.online()
        [1]
    """

    def __init__(self, answer: Answering, nodes: Iterable[int]) -> None:
        self.nodes = list(nodes)
        self.now = 0.0
        self.comes: dict[int, float] = {}
        self.goes: dict[int, float] = {}
        self.pushed: list[tuple[int, MessageKind, bytes]] = []
        self.waiting: dict[str, list[Reply]] = {}
        self._answer = answer

    def online(self) -> list[int]:
        """The nodes that are connected now."""
        return [node for node in self.nodes if self.comes.get(node, 0.0) <= self.now < self.goes.get(node, inf)]

    def name(self, node: int) -> str:
        """The node's name for people."""
        return f"node-{node}"

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send a message, which is answered at once; returns an empty name where the node is offline.

        Raises:
            LocalProtocolError: it would expire before it arrives.
        """
        if not ttl >= 1:
            raise LocalProtocolError(f"a message must live for at least 1 second, got ttl={ttl}")
        if node not in self.online():
            return ""
        self.pushed.append((node, kind, data))
        name = f"message {len(self.pushed)}"
        self.waiting[name] = list(self.replies(node, kind, data))
        return name

    def replies(self, node: int, kind: MessageKind, data: bytes) -> Iterable[Reply]:
        """The replies to a message; a subclass may lose, repeat or damage them."""
        return [self._answer(node, kind, data)]

    def pull(self, message: str, most: int) -> Reply | None:
        """The next reply to a message; one of more bytes is replaced by the code ``too_large``."""
        if not self.waiting.get(message):
            return None
        reply = self.waiting[message].pop(0)
        return reply if len(reply.data) <= most else Reply("too_large")

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def clock(self) -> float:
        """Seconds since the start."""
        return self.now
