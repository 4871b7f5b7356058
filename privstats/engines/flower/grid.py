"""A transport over Flower's Grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

from flwr.app import Message
from flwr.serverapp import Grid
from flwr.superlink.grid.http_grid import HttpGrid

from privstats.engines.flower import records
from privstats.engines.flower.reply_loader import ReplyLoader
from privstats.engines.network.transport import MessageKind, Reply
from privstats.errors import RemoteProtocolError

_NOT_TAKEN = ""
_NODE_UNAVAILABLE = "error:5"
_BATCH_BYTES = 64 << 20


class GridTransport:
    """A transport over one run of Flower.

    A SuperLink's replies are loaded one by one. Any other grid, as a simulation's, returns all requested replies at
    once, so each request is for at most 64 MiB, or one reply. If such a request fails, each of its replies is requested
    alone, and one that fails alone is its node's ``malformed``. The interface of a grid does not say whether a failed
    request has used up the other replies: if it has, their nodes are asked again, as after any silence.
    """

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self._loader = ReplyLoader(grid) if isinstance(grid, HttpGrid) else None
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
        if self._loader is not None:
            for name, loaded in self._loader.load(sent, most):
                yield name, Reply(loaded) if isinstance(loaded, str) else self._read(loaded, name, most)
            return
        size = max(1, _BATCH_BYTES // (most + 1))
        for first in range(0, len(sent), size):
            names = sent[first : first + size]
            yield from self._pulled(names, most)

    def name(self, node: int) -> str:
        """Return the node's registered name, else its id."""
        return self._names.get(node, str(node))

    def _pulled(self, names: Sequence[str], most: int) -> Iterator[tuple[str, Reply]]:
        """Yield what another grid than a SuperLink's returns, which decodes a node's bytes by any code."""
        try:
            answers = list(self._grid.pull_messages(names))
        except OSError:  # the line, and no reply
            raise
        except Exception:
            if len(names) == 1:
                yield names[0], Reply("malformed")
            else:
                yield from chain.from_iterable(self._pulled([name], most) for name in names)
            return
        for answer in answers:
            name = answer.metadata.reply_to_message_id
            if name in names:
                yield name, self._read(answer, name, most)

    def _read(self, answer: Message, name: str, most: int) -> Reply:
        if answer.has_error():
            return Reply(f"error:{answer.error.code}", b"")
        try:
            return Reply(*records.unpack(answer.content, f"node {self.name(self._asked.get(name, 0))}", most))
        except RemoteProtocolError as refusal:
            return Reply(refusal.code, b"")
