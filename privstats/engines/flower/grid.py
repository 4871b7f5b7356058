"""A mailbox over Flower's Grid: which nodes are there, one message to one of them, its answer once it has come.

The only user of Grid and Message. It knows neither parties nor steps nor what a code means: ``conduct`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from flwr.app import Message
from flwr.serverapp import Grid

from privstats.engines.flower import records
from privstats.engines.flower.mail import Kind, Reply
from privstats.errors import RemoteProtocolError

__all__ = ["GridMailbox"]

_NOT_TAKEN = ""
_NODE_UNAVAILABLE = "error:5"


class GridMailbox:
    """What ``conduct`` asks of a way to reach nodes, over one run of Flower's.

    Flower loads every reply that it is asked for, so it is asked for one at a time.

    Args:
        grid: what Flower hands to a server app.
        most: bytes that one reply may hold.
    """

    def __init__(self, grid: Grid, *, most: int = records.MOST_BYTES) -> None:
        self._grid, self._most = grid, most
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

    def pull(self, message: str) -> Reply | None:
        """The answer to one message, or None as long as there is none.

        Flower's own errors come as ``error:`` and Flower's number, what no party of ours sent as ``malformed``.
        """
        if message == _NOT_TAKEN:
            return Reply(_NODE_UNAVAILABLE, b"")
        for answer in self._grid.pull_messages([message]):
            return self._read(answer, self._asked.get(message, 0))
        return None

    def name(self, node: int) -> str:
        """The name under which the node is registered, else its id in decimal."""
        return self._names.get(node, str(node))

    def _read(self, answer: Message, node: int) -> Reply:
        if answer.has_error():
            return Reply(f"error:{answer.error.code}", b"")
        try:
            return Reply(*records.unpack(answer.content, f"node {self.name(node)}", self._most))
        except RemoteProtocolError as refusal:
            return Reply(refusal.code, b"")
