"""An app as Flower's quickstart has it, FedAvg over a softmax, and Flower's simulation of it in this process.

``simulated`` is Flower's own simulation runtime (its grid, its state, its workers); only Ray, which starts processes
for its clients, is left out. ``AtOnce`` is a grid without a runtime, whose nodes answer as they are asked.
"""

import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import ArrayRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.server.superlink.fleet.vce.backend import Backend
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from tests.engines.network.fake import records_of

START = [np.zeros((2, 3), np.float64)]


def client_app(**mods) -> ClientApp:
    """One step of a softmax on the records of the node's partition."""
    app = ClientApp(**mods)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        X, y = records_of(int(context.node_config["partition-id"]))
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        scores = np.exp(X @ weights.T)
        slope = (np.eye(2)[y] - scores / scores.sum(1, keepdims=True)).T @ X
        context.state["rounds"] = MetricRecord({"seen": 1 + seen(context)})
        content = {"arrays": ArrayRecord([weights + slope / len(X)]), "metrics": MetricRecord({"num-examples": len(X)})}
        return Message(RecordDict(content), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        X, y = records_of(int(context.node_config["partition-id"]))
        (weights,) = message.content["arrays"].to_numpy_ndarrays()
        metrics = {"accuracy": float(((X @ weights.T).argmax(1) == y).mean()), "num-examples": len(X)}
        return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=message)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return Message(RecordDict({"theirs": MetricRecord({"seen": seen(context)})}), reply_to=message)

    return app


def seen(context: Context) -> int:
    """How many rounds their handler has counted in Flower's state."""
    return int(context.state["rounds"]["seen"]) if "rounds" in context.state else 0


def fed_avg(grid: Grid, start: list[np.ndarray] = START, rounds: int = 1, nodes: int = 1) -> list[np.ndarray]:
    """Their rounds, of at least so many nodes: FedAvg counts those it samples before it waits for nodes to connect."""
    strategy = FedAvg(min_available_nodes=nodes, min_train_nodes=nodes, min_evaluate_nodes=nodes)
    result = strategy.start(grid=grid, initial_arrays=ArrayRecord(start), num_rounds=rounds, timeout=60)
    return result.arrays.to_numpy_ndarrays()


class InThisProcess(Backend):
    """Flower's own form of a backend, without processes."""

    def __init__(self, backend_config) -> None:
        super().__init__(backend_config)
        self._app: ClientApp | None = None

    def build(self, app_fn) -> None:
        self._app = app_fn()

    @property
    def num_workers(self) -> int:
        return 2

    def is_worker_idle(self) -> bool:
        return True

    def terminate(self) -> None:
        pass

    def process_message(self, message, context):
        return self._app(message, context), context


def simulated(patch: pytest.MonkeyPatch, main: Callable[[Grid, Context], None], app: ClientApp, nodes: int) -> None:
    """Run a server's main and a client app in Flower's simulation."""
    server = ServerApp()
    server.main()(main)
    in_simulation(patch, server, app, nodes)


def in_simulation(patch: pytest.MonkeyPatch, server: ServerApp, app: ClientApp, nodes: int) -> None:
    """Run both apps in Flower's simulation."""
    name = "flwr.server.superlink.fleet.vce.backend.raybackend"
    patch.setitem(sys.modules, name, SimpleNamespace(RayBackend=InThisProcess))
    patch.setenv("FLWR_TELEMETRY_ENABLED", "0")
    run_simulation(server, app, nodes, backend_name="threads")


class AtOnce(Grid):
    """Nodes 100, 101, ... of one app, each with its partition; an error of the app comes back as Flower sends it."""

    def __init__(self, app: ClientApp, nodes: int) -> None:
        self.app = app
        self.contexts = {
            100 + place: Context(1, 100 + place, {"partition-id": place}, RecordDict(), {}) for place in range(nodes)
        }
        self.pushed: list[Message] = []
        self._replies: dict[str, Message] = {}

    run = None

    def set_run(self, run) -> None:
        pass

    def create_message(self, *given, **named):
        raise NotImplementedError

    def get_node_ids(self):
        return list(self.contexts)

    def get_nodes(self):
        return [SimpleNamespace(node_id=node, name="") for node in self.contexts]

    def push_messages(self, messages):
        names = []
        for message in messages:
            name = f"message {len(self.pushed)}"
            self.pushed.append(message)
            message.metadata.__dict__["_message_id"] = name
            self._replies[name] = self._asked(message)
            names.append(name)
        return names

    def pull_messages(self, message_ids):
        return [self._replies.pop(name) for name in list(message_ids) if name in self._replies]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def _asked(self, message: Message) -> Message:
        try:
            return self.app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:  # as Flower's node does, text and all
            return Message(Error(1, str(error)), reply_to=message)
