"""One round of local models: the ensemble of them, and their average (O-FedAvg).

Guha, Talwalkar and Smith 2019 (arXiv:1902.11175) for the ensemble; the average is FedAvg with one round, from
``flower``. Every party trains a linear softmax layer on its own records.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax as probabilities

from benchmarks.peers import softmax
from benchmarks.peers.interface import Outcome, Shards

__all__ = ["Ensemble", "ensemble_grid"]


@dataclass(frozen=True)
class Ensemble:
    """The mean of all parties' probabilities, by their records or each alike.

    Attributes:
        rate: of the local SGD.
        local: its steps, on batches of 32.
        alike: whether parties weigh the same.
    """

    rate: float
    local: int
    alike: bool

    def __str__(self) -> str:
        return f"rate {self.rate:g}, {self.local} steps, parties weigh {'alike' if self.alike else 'by records'}"

    def fit(self, shards: Shards) -> Outcome:
        """Train everywhere, send every model up, mix what they say."""
        began = time.process_time()
        total = np.zeros((len(shards.y_test), shards.classes))
        for place, (X, y) in enumerate(shards.parts):
            rng = np.random.default_rng((shards.seed, place))
            W = softmax.blank(shards.features, shards.classes)
            W = softmax.steps(W, (softmax.with_bias(X), y), self.rate, self.local, rng)
            total += (1 if self.alike else len(y)) * probabilities(softmax.scores(W, shards.X_test), axis=1)
        sent = W.nbytes * len(shards.parts)
        return Outcome(shards.accuracy(total), sent, time.process_time() - began, 1)


def ensemble_grid() -> tuple[Ensemble, ...]:
    """Rates, steps and both weightings."""
    return tuple(Ensemble(*chosen) for chosen in itertools.product((4.0, 16.0, 64.0), (20, 100, 500), (False, True)))
