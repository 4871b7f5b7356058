"""Attack 13 as a game: the last digits of a release, which noise drawn in floating point would reveal.

``floats`` has the test, which a naive double mechanism fails; our noise is whole grid steps, so every output is
possible. The attacker knows all records but one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.floats import digit_scores
from threat_models.attacks.informed import record_sums

__all__ = ["FloatDigits"]


class FloatDigits(Attack):
    """Entries of A that one of the two worlds could not have produced, then the likelihood ratio."""

    name = "float-digits"
    number = 13
    goal = "membership"
    title = "somebody looks for digits of the noise that cannot be"
    needs = Adversary(knows="all-but-one")
    reads = "A"

    def refusal(self, plan: Plan) -> str | None:
        """Needs noise."""
        return super().refusal(plan) or ("needs noise, and the plan adds none" if plan.noise is None else None)

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """One score."""
        del rng
        if view.background is None:
            return np.zeros(len(view.candidates))
        without = view.background["A"].ravel()
        target = record_sums(view, view.candidates[0], view.labels[0])["A"].ravel()
        return digit_scores(view.sums[0]["A"].reshape(1, -1), without, without + target, view.sigma["A"])
