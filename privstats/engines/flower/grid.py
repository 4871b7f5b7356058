"""A transport over Flower's Grid: which nodes are there, one message to one of them, its answer once it has come.

Flower loads a reply before anybody can look at its size, so what it loads is counted while it comes. The only user of
Grid and Message. It knows neither parties nor steps nor what a code means: ``driver`` does.
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
"""Bytes that Flower puts around one array: names, kinds, and the list of its pieces."""

T = TypeVar("T")


class _Count:
    """Bytes that one reply may still load, over the threads that load it."""

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
    """Let what Flower loads in this block come to so many bytes at most."""
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
    """In place of Flower's ``pull_objects``: it stops where the pieces of a reply are more than may be loaded.

    Raises:
        RemoteProtocolError: they are.
    """
    count = _COUNT.get()

    def piece(name: str) -> bytes:
        data = pull_object_fn(name)
        if count is not None:
            count.take(data)
        return data

    return pull_objects(object_ids, piece)


class GridTransport:
    """What ``driver`` asks of a way to reach nodes, over one run of Flower's.

    Flower loads every reply that it is asked for, so it is asked for one at a time.

    Args:
        grid: what Flower hands to a server app.
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
            kind: what is asked.
            data: what a machine said, unchanged.
            ttl: seconds after which Flower forgets it.

        Returns:
            Its id. One that Flower did not take has an id too, and the answer that its node is not there.
        """
        message = Message(records.pack(kind, data), node, records.MESSAGE_TYPE, ttl=ttl)
        taken = next(iter(self._grid.push_messages([message])), None) or _NOT_TAKEN
        self._asked[taken] = node
        return taken

    def pull(self, message: str, most: int) -> Reply | None:
        """The answer to one message, or None as long as there is none.

        Flower's own errors come as ``error:`` and Flower's number, what no party of ours sent as ``malformed`` or
        ``too_large``.
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
