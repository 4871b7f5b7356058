"""The same FedAvg on Flower's simulation engine and on the grid in one process: the same weights, other seconds.

What allows the comparison to drive Flower's strategies by ``grid``. Not part of it: ray starts processes.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.data import private_tasks
from benchmarks.measuring import Rows
from benchmarks.peers import flower, softmax
from benchmarks.peers.flower import Federated
from benchmarks.peers.grid import InProcess, simulated
from benchmarks.peers.interface import Shards, dealt

__all__ = ["beside_the_grid", "on_the_engine"]

PEER = Federated(5, 16.0, 20)


def beside_the_grid(parties: int = 20) -> Rows:
    """Wall seconds of both, accuracy of both, and the largest difference of a weight."""
    task = next(private_tasks(bundled_only=True))
    shards = dealt(task.transformed(), parties, 0.1, 0)
    began = time.perf_counter()
    here = flower.serve(PEER.strategy(parties), shards, PEER, InProcess(flower.app(shards), parties))
    between = time.perf_counter()
    there = on_the_engine(shards, PEER)
    ended = time.perf_counter()
    score = [shards.accuracy(softmax.scores(W, shards.X_test)) for W in (here, there)]
    common = {"rounds": PEER.rounds, "parties": parties}
    return [
        {"driven by": "the grid in one process", **common, "accuracy": score[0], "wall seconds": between - began},
        {
            "driven by": "the simulation engine, on ray",
            **common,
            "accuracy": score[1],
            "wall seconds": ended - between,
            "largest difference of a weight": float(np.abs(here - there).max()),
        },
    ]


def on_the_engine(shards: Shards, peer: Federated) -> softmax.Weights:
    """FedAvg's weights from Flower's simulation engine."""
    found: list[softmax.Weights] = []
    simulated(
        lambda grid: found.append(flower.serve(peer.strategy(len(shards.parts)), shards, peer, grid)),
        flower.app(shards),
        len(shards.parts),
    )
    return found[0]
