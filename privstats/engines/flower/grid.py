"""A transport over Flower's Grid: the online nodes, a message to one of them, and its answer once it has arrived.

Flower loads a reply before its size can be checked, so this module counts the bytes while they are loaded. It is the
only user of Grid and Message. It does not interpret parties, steps or codes: ``driver`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import TypeVar

from flwr.app import Message
from flwr.serverapp import Grid

from privstats.engines.flower import records
from privstats.engines.network.transport import Kind, Reply
from privstats.errors import RemoteProtocolError

__all__ = ["GridTransport", "counted"]

_NOT_TAKEN = ""
_NODE_UNAVAILABLE = "error:5"
_AROUND = 1 << 16
"""Flower's overhead for one array in bytes: names, kinds, and the list of its pieces."""

T = TypeVar("T")


class _Count:
    """The bytes that one reply may still load, shared by the threads that load it."""

    def __init__(self, left: int) -> None:
        self._left, self._lock, self.session_ended = left, Lock(), False

    def take(self, data: bytes) -> None:
        with self._lock:
            self._left -= len(data)
            self.session_ended = self.session_ended or self._left < 0
        if self.session_ended:
            raise RemoteProtocolError("a node", "transport", "too_large", "an answer is larger than its plan allows")


_COUNT: ContextVar[_Count | None] = ContextVar("_COUNT", default=None)


@contextmanager
def _loading(most: int) -> Iterator[_Count]:
    """Limit the bytes that Flower loads in this block."""
    count = _Count(most)
    token = _COUNT.set(count)
    try:
        yield count
    except RemoteProtocolError:
        if not count.session_ended:
            raise
    finally:
        _COUNT.reset(token)


def counted(pull_objects: Callable[..., T], object_ids: list[str], pull_object_fn: Callable[[str], bytes]) -> T:
    """Replacement for Flower's ``pull_objects`` that stops once a reply exceeds its limit of bytes.

    Raises:
        RemoteProtocolError: the reply is too large.
    """
    count = _COUNT.get()

    def piece(name: str) -> bytes:
        data = pull_object_fn(name)
        if count is not None:
            count.take(data)
        return data

    return pull_objects(object_ids, piece)


class GridTransport:
    """The transport that ``driver`` uses, over one run of Flower.

    Flower loads all requested replies at once, so this class requests one at a time.

    Args:
        grid: Flower's argument to a server app.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._names: dict[int, str] = {}
        self._asked: dict[str, int] = {}

    def online(self) -> Sequence[int]:
        """The ids of the nodes that are connected now, in increasing order."""
        nodes = list(self._grid.get_nodes())
        self._names.update({node.node_id: node.name for node in nodes if node.name})
        return sorted(node.node_id for node in nodes)

    def push(self, node: int, kind: Kind, data: bytes, *, ttl: float) -> str:
        """Send one message.

        Args:
            node: the receiver's id.
            kind: the kind of request.
            data: a machine's message, unchanged.
            ttl: seconds after which Flower drops it.

        Returns:
            Its id. A message that Flower did not accept has an id too, and its answer is that the node is unavailable.
        """
        message = Message(records.pack(kind, data), node, records.MESSAGE_TYPE, ttl=ttl)
        taken = next(iter(self._grid.push_messages([message])), None) or _NOT_TAKEN
        self._asked[taken] = node
        return taken

    def pull(self, message: str, most: int) -> Reply | None:
        """The answer to one message, or None before it has arrived.

        Flower's own errors become ``error:`` and Flower's number, invalid records ``malformed`` or ``too_large``.
        """
        if message == _NOT_TAKEN:
            return Reply(_NODE_UNAVAILABLE, b"")
        answers: list[Message] = []
        with _loading(most + _AROUND) as count:
            answers = list(self._grid.pull_messages([message]))
        if count.session_ended:
            return Reply("too_large", b"")
        return next((self._read(answer, self._asked.get(message, 0), most) for answer in answers), None)

    def name(self, node: int) -> str:
        """The name under which the node is registered, else its id in decimal."""
        return self._names.get(node, str(node))

    def _read(self, answer: Message, node: int, most: int) -> Reply:
        if answer.has_error():
            return Reply(f"error:{answer.error.code}", b"")
        try:
            return Reply(*records.unpack(answer.content, f"node {self.name(node)}", most))
        except RemoteProtocolError as refusal:
            return Reply(refusal.code, b"")
