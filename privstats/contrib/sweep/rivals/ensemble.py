"""A one-shot ensemble over the study's partition: the mean probability of the parties' own models.

Source: Guha, Talwalkar and Smith 2019, arXiv:1902.11175.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privstats.contrib.sweep.rivals.local_training import NO_PRIVACY, WEIGHT_BYTES, LocalTraining
from privstats.contrib.sweep.rivals.softmax_layer import BATCH, Part, SoftmaxModels, steps, zero_weights
from privstats.plan import Plan


@dataclass(frozen=True)
class Once:
    """Hyperparameters of a party's own model.

    Attributes:
        rate: learning rate of the SGD.
        local: number of steps, each on 32 records.

    Example:
        >>> from privstats.contrib.sweep.rivals.ensemble import Once
        >>> print(Once(rate=4.0, local=2000))
        2000 local steps on 32 records, rate 4
    """

    rate: float
    local: int

    def __str__(self) -> str:
        return f"{self.local} local steps on {BATCH} records, rate {self.rate:g}"


RECIPE = Once(rate=4.0, local=2000)


@dataclass(frozen=True)
class Ensemble(LocalTraining):
    """The mean of the parties' softmax probabilities, weighted by their records; one upload, without privacy.

    Example:
        >>> from privstats.contrib.sweep.rivals.ensemble import Ensemble
        >>> Ensemble().name
        'one-shot ensemble'
    """

    recipe: Once = RECIPE

    @property
    def name(self) -> str:
        """Name of the method."""
        return "one-shot ensemble"

    def __str__(self) -> str:
        return (
            "the mean probability of one softmax per party, trained on its own records of the same partition by "
            f"{self.recipe}; {NO_PRIVACY}"
        )

    def upload_bytes(self, plan: Plan) -> int:
        """Bytes that one party uploads: one softmax layer."""
        return WEIGHT_BYTES * (plan.schema.features + 1) * int(plan.schema.sizes["class"])

    def fit(self, parts: Sequence[Part], features: int, classes: int, seed: int) -> SoftmaxModels:
        """Return the layers of all parties with records."""
        start = zero_weights(features, classes)
        layers = [
            steps(start, part, self.recipe.rate, self.recipe.local, np.random.default_rng((seed, 0, place)))
            for place, part in enumerate(parts)
        ]
        records = sum(len(y) for _, y in parts)
        return SoftmaxModels(layers, [len(y) / records for _, y in parts])
