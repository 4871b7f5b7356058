"""SCAFFOLD: local steps corrected by control variates, which no library at hand has.

Written from Karimireddy et al., ICML 2020 (arXiv:1910.06378), algorithm 1 with option II and all parties in every
round. Checked: with one party it is SGD, and with many it goes on where FedAvg's drift stops.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np

from benchmarks.peers import softmax
from benchmarks.peers.interface import Outcome, Shards

__all__ = ["Scaffold", "scaffold_grid", "train"]

RATES = (16.0, 64.0, 256.0)
LOCAL = (5, 20, 50)


@dataclass(frozen=True)
class Scaffold:
    """SCAFFOLD, server rate 1.

    Attributes:
        rounds: all parties take part in each.
        rate: of the local SGD.
        local: steps of it per round, on batches of 32.
    """

    rounds: int
    rate: float
    local: int

    def __str__(self) -> str:
        return f"rate {self.rate:g}, {self.local} local steps"

    def fit(self, shards: Shards) -> Outcome:
        """Run all rounds."""
        began = time.process_time()
        W = train(self, shards)
        score = shards.accuracy(softmax.scores(W, shards.X_test))
        sent = 4 * W.nbytes * len(shards.parts) * self.rounds  # the model and a control variate, there and back
        return Outcome(score, sent, time.process_time() - began, self.rounds)


def train(peer: Scaffold, shards: Shards) -> softmax.Weights:
    """The weights after all rounds; parties weigh as many records as they have.

    Every step of party k follows ``g_k(W) - c_k + c``; after K steps ``c_k += (W_0 - W_K) / (K rate) - c``.
    """
    parts = [(softmax.with_bias(X), y) for X, y in shards.parts]
    weights = np.array([len(y) for _, y in parts], np.float32)[:, None, None] / np.float32(shards.records)
    W = softmax.blank(shards.features, shards.classes)
    own, common = np.zeros((len(parts), *W.shape), np.float32), np.zeros_like(W)
    for turn in range(1, peer.rounds + 1):
        moved, changed = np.empty_like(own), np.empty_like(own)
        for place, part in enumerate(parts):
            rng = np.random.default_rng((shards.seed, turn, place))
            end = softmax.steps(W, part, peer.rate, peer.local, rng, drift=common - own[place])
            moved[place] = end - W
            changed[place] = -moved[place] / np.float32(peer.local * peer.rate) - common
        own += changed
        W = W + (weights * moved).sum(axis=0)
        common = common + (weights * changed).sum(axis=0)
    return W


def scaffold_grid(rounds: int) -> tuple[Scaffold, ...]:
    """All rates and numbers of local steps."""
    return tuple(Scaffold(rounds, *chosen) for chosen in itertools.product(RATES, LOCAL))
