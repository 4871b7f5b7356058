"""Load the replies that wait at a SuperLink, each by itself, without waiting for one that has not arrived.

Flower's own ``HttpGrid.pull_messages`` waits up to two hours for each announced reply, and decodes all replies of a
request together: one reply that never arrives, or cannot be decoded, costs all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from flwr.app import Message
from flwr.proto.message_pb2 import ConfirmMessageReceivedRequest, PullObjectRequest
from flwr.proto.runtime_pb2 import PullAppMessagesRequest
from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents
from flwr.superlink.grid.http_grid import HttpGrid

from privstats.engines.network.transport import ARRIVING

Loaded: TypeAlias = Message | Literal["too_large", "malformed", "arriving", "error:13"]
"""A complete reply; or the reason why there is none."""

_UNAVAILABLE: Loaded = "error:13"
"""Flower's number for a reply that its node will not complete, ``MESSAGE_UNAVAILABLE``."""

_AROUND = 1 << 16
"""Flower's overhead for one array in bytes: names, kinds, and the list of its pieces."""
_MOST_PARTS = 64
"""Objects of a reply beyond one per MiB; Flower splits arrays into pieces of 5 MB."""


@dataclass
class _Announced:
    """A reply whose node has announced its objects.

    Attributes:
        parts: the objects' ids; those before the first that is missing are last, because they were there before.
    """

    message: str
    parts: list[str]


class ReplyLoader:
    """The replies to one run's messages, each loaded when all of it has arrived.

    Only the ids of an incomplete reply are held, not its content.
    """

    def __init__(self, grid: HttpGrid) -> None:
        self._grid, self._announced = grid, dict[str, _Announced]()

    def load(self, names: Sequence[str], most: int) -> Iterator[tuple[str, Loaded]]:
        """Yield each reply once, by the message that it answers, and ``arriving`` whenever more of one has arrived.

        Args:
            most: maximum bytes of one reply's data. No more than that, and Flower's overhead, is held at a time.
        """
        new = self._new(names, most)
        yield from new.items()
        for name in names:
            if name in self._announced:
                loaded = self._loaded(self._announced[name], most + _AROUND)
                if loaded is not None:
                    if loaded != ARRIVING:
                        self._forget(name)
                    yield name, loaded

    def _new(self, names: Sequence[str], most: int) -> dict[str, Loaded]:
        """Note the replies that were announced since; return those that are refused unloaded."""
        asked = [name for name in names if name not in self._announced]
        refused: dict[str, Loaded] = {}
        if not asked:
            return refused
        answer = self._grid._runtime_client.PullMessages(PullAppMessagesRequest(message_ids=asked))
        for message, tree in zip(answer.messages_list, answer.message_object_trees, strict=False):
            # The SuperLink has checked this name; the one inside of the reply is the node's own.
            name = message.metadata.reply_to_message_id
            parts = list(dict.fromkeys(part.object_id for part in iterate_object_tree(tree)))
            if name not in asked:
                continue
            self._announced[name] = _Announced(message.metadata.message_id, parts)
            if len(parts) > _MOST_PARTS + (most >> 20):
                self._forget(name)
                refused[name] = "too_large"
        return refused

    def _loaded(self, reply: _Announced, left: int) -> Loaded | None:
        """Return the reply, or why it has none; None where nothing more of it has arrived."""
        contents: dict[str, bytes] = {}
        for part in reply.parts:
            request = PullObjectRequest(node=self._grid.node, run_id=self._grid.run.run_id, object_id=part)
            answer = self._grid._runtime_client.PullObject(request)
            if not answer.object_found:
                return _UNAVAILABLE
            if not answer.object_available:
                ahead = len(contents)
                reply.parts = reply.parts[ahead:] + reply.parts[:ahead]
                return ARRIVING if ahead else None
            contents[part] = answer.object_content
            left -= len(answer.object_content)
            if left < 0:
                return "too_large"
        return _inflated(reply.message, contents)

    def _forget(self, name: str) -> None:
        """Let the SuperLink delete what it holds of a reply."""
        self._grid._runtime_client.ConfirmMessageReceived(
            ConfirmMessageReceivedRequest(
                node=self._grid.node,
                run_id=self._grid.run.run_id,
                message_object_id=self._announced.pop(name).message,
            )
        )


def _inflated(message: str, contents: dict[str, bytes]) -> Loaded:
    """Decode a node's bytes by Flower, whose decoders raise any exception for them."""
    try:
        inflated = inflate_object_from_contents(message, contents)
    except Exception:
        return "malformed"
    return inflated if isinstance(inflated, Message) else "malformed"
