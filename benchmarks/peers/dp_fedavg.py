"""DP-FedAvg: Flower's wrapper that clips every party's update at the server and adds noise to their mean.

McMahan et al. 2018 (arXiv:1710.06963), over ``flower``'s FedAvg. The promise is for a whole party.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass

import numpy as np
from flwr.serverapp.strategy import DifferentialPrivacyServerSideFixedClipping

from benchmarks.peers import softmax
from benchmarks.peers.flower import Federated, train
from benchmarks.peers.interface import DELTA, Outcome, Shards
from privstats.dp.gaussian import gaussian_mu

__all__ = ["DPFedAvg", "dp_grid"]


@dataclass(frozen=True)
class DPFedAvg:
    """FedAvg in Flower's wrapper that clips every party's update at the server and adds Gaussian noise to the mean.

    The promise is for a whole party. Parties count alike, as the wrapper's sensitivity needs.

    Attributes:
        epsilon: at delta 1e-5, add-remove, exact composition of Gaussians over the rounds.
        clip: L2 norm that a party's update is clipped to.
        rounds, rate, local: as in :class:`Federated`.
    """

    epsilon: float
    clip: float
    rounds: int
    rate: float
    local: int

    def __str__(self) -> str:
        return f"clip {self.clip:g}, {self.rounds} rounds, rate {self.rate:g}, {self.local} local steps"

    @property
    def multiplier(self) -> float:
        """Noise over clip in every round."""
        return math.sqrt(self.rounds) / gaussian_mu(self.epsilon, DELTA)

    def fit(self, shards: Shards) -> Outcome:
        """Run all rounds."""
        began = time.process_time()
        np.random.seed(shards.seed)  # Flower's wrapper draws its noise from numpy's global generator
        plain = Federated(self.rounds, self.rate, self.local).strategy(len(shards.parts))
        strategy = DifferentialPrivacyServerSideFixedClipping(plain, self.multiplier, self.clip, len(shards.parts))
        W, sent = train(strategy, shards, Federated(self.rounds, self.rate, self.local), alike=True)
        score = shards.accuracy(softmax.scores(W, shards.X_test))
        return Outcome(score, sent, time.process_time() - began, self.rounds, self.epsilon, "party")


def dp_grid(epsilon: float) -> tuple[DPFedAvg, ...]:
    """Clips, rounds and rates."""
    chosen = itertools.product((0.3, 1.0, 3.0), (1, 3, 10), (4.0, 16.0), (5, 20))
    return tuple(DPFedAvg(epsilon, *each) for each in chosen)
