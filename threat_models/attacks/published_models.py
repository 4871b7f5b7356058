"""Attack 12 as a game: from a published model back to sums, and from those to membership.

``heads`` recovers moments from heads; here the class means of a model fitted on the release replace the sums, because a
mean is a sum over a count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View, published_heads
from threat_models.attack import Attack
from threat_models.attacks.mean_ratio import MeanRatio


class PublishedModels(Attack):
    """The likelihood ratio on sums, with means times counts in their place."""

    name = "published-model"
    number = 12
    goal = "membership"
    title = "an attacker who has only the model turns it back into sums and asks who is in them"
    needs = Adversary(sees="heads", knows="public")

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan whose release gives a model with class means."""
        if published_heads(plan.schema.statistics):
            return None
        return "needs a model with class means; the statistics of this plan give none (add B, S or D)"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate."""
        return MeanRatio().run(view.instead(({"A": view.sums[0]["means"] * view.records},)), rng)
