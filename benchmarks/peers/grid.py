"""Flower's grid without processes: every message is answered in this one, by Flower's own client apps.

Strategies, messages, records and mods are Flower's; only the carrying is left out, since the simulation engine starts
for longer than most of these runs take. :func:`simulated` runs the same apps on the engine, for the comparison.

Flower's strategies are driven by a grid in this process, not by its simulation engine. The engine starts processes
for longer than most runs of the comparison take; the grid hands the same messages to the same client apps, and a
nightly test finds the same weights on both. Peers are tuned on every fifth record, at no charge: the privacy cost of
a peer's search is not part of the comparison.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, no_object_id_recompute
from flwr.supercore.logger import FLOWER_LOGGER
from flwr.supercore.task_identity import TaskIdentity

__all__ = ["PARTY", "InProcess", "quiet", "simulated", "size"]

PARTY = "partition-id"
"""Under which name Flower tells a node which of the parties it is."""
_SERVER = 1


@dataclass
class InProcess(Grid):
    """All nodes in this process.

    Args:
        app: what every node runs.
        parties: how many nodes there are.

    Attributes:
        sent: bytes of all messages to nodes and all replies, as Flower puts them on the wire.
    """

    app: ClientApp
    parties: int
    sent: int = 0
    _contexts: dict[int, Context] = field(default_factory=dict)
    _replies: dict[str, Message] = field(default_factory=dict)
    _names: Any = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        TaskIdentity.run_id = TaskIdentity.task_id = TaskIdentity.node_id = _SERVER  # messages name who sends them
        for node in self.get_node_ids():
            config: dict[str, bool | float | int | str] = {PARTY: node - 1, "num-partitions": self.parties}
            self._contexts[node] = Context(0, node, config, RecordDict(), {})

    def set_run(self, run: Any) -> None:
        """Nothing depends on the run."""

    @property
    def run(self) -> Any:
        """There is none."""
        raise NotImplementedError("no run is registered anywhere")

    def create_message(self, content: RecordDict, message_type: str, dst_node_id: int, *rest: Any, **more: Any) -> Any:
        """The older way to make a message."""
        group = more.get("group_id") or (rest[0] if rest else "")
        return Message(content, dst_node_id, message_type, group_id=group)

    def get_node_ids(self) -> list[int]:
        """1 to the number of parties; Flower keeps 0 for nobody."""
        return list(range(1, self.parties + 1))

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        """Have every message answered at once."""
        names, held = [], list(messages)
        sizes = {id(each): size(each) for each in {id(message.content): message.content for message in held}.values()}
        for message in held:
            name, node = str(next(self._names)), message.metadata.dst_node_id
            self.sent += sizes[id(message.content)]  # one content to all of them is weighed once
            message.content = _own(message.content)
            reply = self.app(message, self._contexts[node])
            self.sent += size(reply.content)
            self._replies[name] = reply
            names.append(name)
        return names

    def pull_messages(self, message_ids: Iterable[str]) -> list[Message]:
        """The answers, once."""
        return [self._replies.pop(name) for name in message_ids]

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> list[Message]:  # noqa: ARG002
        """Both in one; nobody is late."""
        return self.pull_messages(self.push_messages(messages))


def _own(content: RecordDict) -> RecordDict:
    """A node's own copy of what it may change: a strategy gives one content to all its messages."""
    own = {name: ConfigRecord(dict(each)) if isinstance(each, ConfigRecord) else each for name, each in content.items()}
    return RecordDict(own)


def size(content: RecordDict) -> int:
    """Bytes of a message's content as Flower sends it; headers of its transport come on top."""
    with no_object_id_recompute():
        return sum(len(piece.deflate()) for piece in get_all_nested_objects(content).values())


@contextmanager
def quiet() -> Any:
    """Without Flower's log of every round."""
    level = FLOWER_LOGGER.level
    FLOWER_LOGGER.setLevel("ERROR")
    try:
        yield
    finally:
        FLOWER_LOGGER.setLevel(level)


def simulated(serve: Callable[[Grid], None], app: ClientApp, parties: int) -> None:
    """Run on Flower's simulation engine, on ray, one core for each of at most two clients at a time.

    Args:
        serve: what the server does with the grid that it is given.
        app: what every node runs; it has to survive cloudpickle.
        parties: how many nodes there are.
    """
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    from flwr.simulation import run_simulation

    server = ServerApp()

    @server.main()
    def main(grid: Grid, context: Context) -> None:  # noqa: ARG001
        serve(grid)

    resources: Any = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": 2, "include_dashboard": False}}
    run_simulation(server, app, num_supernodes=parties, backend_config=resources)
