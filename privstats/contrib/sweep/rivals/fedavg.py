"""FedAvg over the study's partition: local SGD on a softmax layer, averaged by records in every round.

Source: McMahan et al. 2017, arXiv:1602.05629, Algorithm 1, with all parties in every round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privstats.contrib.sweep.rivals.local_training import NO_PRIVACY, WEIGHT_BYTES, LocalTraining
from privstats.contrib.sweep.rivals.softmax_layer import BATCH, Part, SoftmaxModels, Weights, steps, zero_weights
from privstats.plan import Plan


@dataclass(frozen=True)
class Rounds:
    """Hyperparameters of federated averaging.

    Attributes:
        rounds: number of rounds; all parties take part in each.
        rate: learning rate of the local SGD.
        local: local steps per round, each on 32 records.
        pull: FedProx's mu; 0 is FedAvg.

    Example:
        >>> from privstats.contrib.sweep.rivals.fedavg import Rounds
        >>> print(Rounds(rounds=50, rate=16.0, local=20))
        50 rounds of 20 local steps on 32 records, rate 16
    """

    rounds: int
    rate: float
    local: int
    pull: float = 0.0

    def __str__(self) -> str:
        pull = f", mu {self.pull:g}" if self.pull else ""
        return f"{self.rounds} rounds of {self.local} local steps on {BATCH} records, rate {self.rate:g}{pull}"


RECIPE = Rounds(rounds=50, rate=16.0, local=20)


@dataclass(frozen=True)
class FedAvg(LocalTraining):
    """Federated averaging of a softmax layer, without privacy.

    ``W = sum_k n_k / n W_k`` after every round, where party k computes ``W_k`` by local SGD from the round's W.

    Example:
        >>> from privstats.contrib.sweep.rivals.fedavg import FedAvg, Rounds
        >>> FedAvg(Rounds(rounds=10, rate=16.0, local=20)).name
        'FedAvg, 10 rounds'
    """

    recipe: Rounds = RECIPE

    @property
    def name(self) -> str:
        """Name of the method and its number of rounds."""
        return f"FedAvg, {self.recipe.rounds} rounds"

    def __str__(self) -> str:
        return f"a softmax that the parties train over the same partition, by {self.recipe}; {NO_PRIVACY} in each round"

    def upload_bytes(self, plan: Plan) -> int:
        """Bytes that one party uploads: a softmax layer per round."""
        schema = plan.schema
        return WEIGHT_BYTES * self.recipe.rounds * (schema.features + 1) * int(schema.sizes["class"])

    def fit(self, parts: Sequence[Part], features: int, classes: int, seed: int) -> SoftmaxModels:
        """Return the layer after the last round."""
        W = zero_weights(features, classes)
        for turn in range(self.recipe.rounds):
            W = self._round(W, parts, seed, turn)
        return SoftmaxModels((W,), (1.0,))

    def _round(self, W: Weights, parts: Sequence[Part], seed: int, turn: int) -> Weights:
        records = sum(len(y) for _, y in parts)
        mean = np.zeros_like(W)
        for place, part in enumerate(parts):
            rng = np.random.default_rng((seed, turn, place))
            local = steps(W, part, self.recipe.rate, self.recipe.local, rng, pull=self.recipe.pull)
            mean += np.float32(len(part[1]) / records) * local
        return mean
