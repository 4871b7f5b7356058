"""A record that is in a class sum points its way."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.extend.support import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack


class AlignedSum(Attack):
    """The inner product of a candidate with the sum of its class."""

    name = "aligned-sum"
    number = 17
    goal = "membership"
    title = "somebody asks whether a record points the way of its class's sum"
    needs = Adversary(knows="none")
    reads = "A"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate."""
        del rng
        scores: NDArray[np.float64] = np.einsum("md,md->m", view.candidates, view.sums[0]["A"][view.labels])
        return scores
