"""FedAvg and FedProx: Flower's own strategies over a linear softmax layer.

What the clients do between two messages is ours to write, as in every Flower app: SGD on the cross entropy, with
FedProx's pull where the strategy sends one. Papers: McMahan et al. 2017 (arXiv:1602.05629), Li et al. 2020
(arXiv:1812.06127).
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, FedProx, Strategy

from benchmarks.peers import softmax
from benchmarks.peers.grid import PARTY, InProcess, quiet
from benchmarks.peers.interface import Outcome, Shards

__all__ = ["Federated", "app", "federated_grid", "one_round_grid", "serve", "train"]

RATES = (16.0, 64.0, 256.0)
LOCAL = (5, 20, 50)
ROUNDS = 50


@dataclass(frozen=True)
class Federated:
    """FedAvg, or FedProx where ``pull`` is positive.

    Attributes:
        rounds: of communication; all parties take part in each.
        rate: of the local SGD.
        local: steps of it per round, on batches of 32.
        pull: FedProx's mu.
    """

    rounds: int
    rate: float
    local: int
    pull: float = 0.0

    def __str__(self) -> str:
        pull = f", mu {self.pull:g}" if self.pull else ""
        return f"rate {self.rate:g}, {self.local} local steps{pull}"

    def fit(self, shards: Shards) -> Outcome:
        """Run all rounds; the model is scored at the end only."""
        began = time.process_time()
        W, sent = train(self.strategy(len(shards.parts)), shards, self)
        score = shards.accuracy(softmax.scores(W, shards.X_test))
        return Outcome(score, sent, time.process_time() - began, self.rounds)

    def strategy(self, parties: int) -> Strategy:
        """Flower's; it waits for all parties, and does not begin with those who are there first."""
        common: dict[str, Any] = {"fraction_evaluate": 0.0, "min_train_nodes": parties, "min_available_nodes": parties}
        with quiet():
            return FedProx(**common, proximal_mu=self.pull) if self.pull else FedAvg(**common)


def train(strategy: Strategy, shards: Shards, peer: Federated, *, alike: bool = False) -> tuple[softmax.Weights, int]:
    """The weights that a strategy ends with, and the bytes that it moved.

    Args:
        strategy: Flower's.
        shards: of the parties.
        peer: rounds, rate and local steps.
        alike: whether every party weighs the same, and not as many records as it has.
    """
    grid = InProcess(app(shards, alike=alike), len(shards.parts))
    return serve(strategy, shards, peer, grid), grid.sent


def serve(strategy: Strategy, shards: Shards, peer: Federated, grid: Grid) -> softmax.Weights:
    """Flower's own loop over the rounds, on any of its grids."""
    config = ConfigRecord({"rate": peer.rate, "local": peer.local, "pull": 0.0})
    first = ArrayRecord([softmax.blank(shards.features, shards.classes)])
    with quiet():
        result = strategy.start(grid, first, num_rounds=peer.rounds, train_config=config)
    (W,) = result.arrays.to_numpy_ndarrays()
    return np.asarray(W)


def app(shards: Shards, *, alike: bool = False) -> ClientApp:
    """A client app that trains on the part that its node is told to be."""
    made = ClientApp()
    parts = [(softmax.with_bias(X), y) for X, y in shards.parts]
    seed = shards.seed

    @made.train()
    def answer(message: Message, context: Context) -> Message:
        told: Any = message.content
        place, config = int(context.node_config[PARTY]), told["config"]
        (W,) = told["arrays"].to_numpy_ndarrays()
        rng = np.random.default_rng((seed, int(config["server-round"]), place))
        pull = float(config.get("proximal-mu", 0.0))
        W = softmax.steps(W, parts[place], float(config["rate"]), int(config["local"]), rng, pull=pull)
        weight = MetricRecord({"num-examples": 1 if alike else len(parts[place][1])})
        return Message(RecordDict({"arrays": ArrayRecord([W]), "metrics": weight}), reply_to=message)

    return made


def federated_grid(*pulls: float, rounds: int = ROUNDS) -> tuple[Federated, ...]:
    """All rates and numbers of local steps, with every pull."""
    return tuple(Federated(rounds, *chosen) for chosen in itertools.product(RATES, LOCAL, pulls or (0.0,)))


def one_round_grid() -> tuple[Federated, ...]:
    """FedAvg with one round has all its steps in it."""
    return tuple(Federated(1, rate, local) for rate in RATES for local in (20, 100, 500))
