"""A transport over Flower's Grid.

Flower loads a reply before its size can be checked, so this module counts each reply's bytes while they are loaded. A
reply that is too large does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeVar

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.supercore.inflatable.inflatable_utils import ObjectPullError

from privstats.engines.flower import records
from privstats.engines.network.transport import MessageKind, Reply
from privstats.errors import RemoteProtocolError

_NOT_TAKEN = ""
_NODE_UNAVAILABLE = "error:5"
_BATCH_BYTES = 64 << 20
_AROUND = 1 << 16
"""Flower's overhead for one array in bytes: names, kinds, and the list of its pieces."""

T = TypeVar("T")


class _Count:
    """The bytes that one reply may still load, shared by the threads that load it."""

    def __init__(self, left: int) -> None:
        self._left, self._lock, self.exceeded = left, Lock(), False

    def take(self, name: str, data: bytes) -> None:
        with self._lock:
            self._left -= len(data)
            self.exceeded = self.exceeded or self._left < 0
        if self.exceeded:
            raise ObjectPullError(name, "the answer is larger than its plan allows")


@dataclass
class _Batch:
    """The byte limit per reply, and whether each reply exceeded it, in Flower's order."""

    most: int
    exceeded: list[bool] = field(default_factory=list)


_BATCH: ContextVar[_Batch | None] = ContextVar("_BATCH", default=None)


@contextmanager
def _loading(most: int) -> Iterator[_Batch]:
    batch = _Batch(most)
    token = _BATCH.set(batch)
    try:
        yield batch
    finally:
        _BATCH.reset(token)


def counted(pull_objects: Callable[..., T], object_ids: list[str], pull_object_fn: Callable[[str], bytes]) -> T:
    """Replace Flower's ``pull_objects``, called once per reply: raise ``ObjectPullError`` for an oversized reply."""
    batch = _BATCH.get()
    if batch is None:
        return pull_objects(object_ids, pull_object_fn)
    count = _Count(batch.most)

    def piece(name: str) -> bytes:
        data = pull_object_fn(name)
        count.take(name, data)
        return data

    try:
        return pull_objects(object_ids, piece)
    finally:
        batch.exceeded.append(count.exceeded)


class GridTransport:
    """A transport over one run of Flower.

    Flower loads all requested replies at once, so each request is for at most 64 MiB, or one reply.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._names: dict[int, str] = {}
        self._asked: dict[str, int] = {}

    def online(self) -> Sequence[int]:
        """Return the connected nodes' ids, in increasing order."""
        nodes = list(self._grid.get_nodes())
        self._names.update({node.node_id: node.name for node in nodes if node.name})
        return sorted(node.node_id for node in nodes)

    def push(self, node: int, kind: MessageKind, data: bytes, *, ttl: float) -> str:
        """Send one message, which Flower drops after ``ttl`` seconds.

        Returns:
            The id. A message that Flower did not accept is answered as from an unavailable node.
        """
        message = Message(records.pack(kind, data), node, records.MESSAGE_TYPE, ttl=ttl)
        name = next(iter(self._grid.push_messages([message])), None) or _NOT_TAKEN
        self._asked[name] = node
        return name

    def pull(self, message: str, most: int) -> Reply | None:
        """Return the answer to one message, or None before it has arrived.

        Flower's own errors become ``error:`` and Flower's number, invalid records ``malformed`` or ``too_large``.
        """
        return next((reply for _, reply in self.pull_many([message], most)), None)

    def pull_many(self, messages: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        """Yield the answers that have arrived, as :meth:`pull`."""
        yield from ((name, Reply(_NODE_UNAVAILABLE)) for name in messages if name == _NOT_TAKEN)
        sent = [name for name in messages if name != _NOT_TAKEN]
        size = max(1, _BATCH_BYTES // (most + _AROUND))
        for first in range(0, len(sent), size):
            yield from self._pulled(sent[first : first + size], most)

    def _pulled(self, names: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        with _loading(most + _AROUND) as batch:
            answers = list(self._grid.pull_messages(names))
        for answer, exceeded in zip(answers, batch.exceeded or [False] * len(answers), strict=False):
            name = answer.metadata.reply_to_message_id
            if name in names:
                yield name, Reply("too_large") if exceeded else self._read(answer, self._asked.get(name, 0), most)

    def name(self, node: int) -> str:
        """Return the node's registered name, else its id."""
        return self._names.get(node, str(node))

    def _read(self, answer: Message, node: int, most: int) -> Reply:
        if answer.has_error():
            return Reply(f"error:{answer.error.code}", b"")
        try:
            return Reply(*records.unpack(answer.content, f"node {self.name(node)}", most))
        except RemoteProtocolError as refusal:
            return Reply(refusal.code, b"")
