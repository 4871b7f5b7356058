"""Attack 10, properties: the frequency of a property among the records of a class, from its column of the sums.

A property of a group, such as the share of smokers; a promise about single records does not hide it. Records are
synthetic; ``properties`` has the arithmetic.
"""

from __future__ import annotations

import numpy as np

from privstats.kinds import ClassSchema, of_records
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.properties import property_scores
from threat_models.data import people
from threat_models.examined import rated
from threat_models.report import Row
from threat_models.world import Setting, draw

_RECORDS, _POOL = 30, 90
_COMMON, _RARE = 2, 4


class PropertyInference(Examination):
    """Whether a half or a quarter of a class of thirty has a property."""

    name = "property-inference"
    number = 10
    goal = "inference"
    title = "an attacker reads off the sums how common a property is in a class"
    needs = Adversary(knows="none")
    reads = "A"

    def refusal(self, plan: Plan) -> str | None:
        """Needs room for a property of four values."""
        few = plan.schema.features < _RARE
        return f"needs {_RARE} features, and the plan has {plan.schema.features}" if few else super().refusal(plan)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often the attacker names the right one of two shares; a coin is right in half of the worlds."""
        fields = [people(plan, rng, (values,), count=_POOL).of(plan) for values in (_COMMON, _RARE)]
        middle = (1 / _COMMON + 1 / _RARE) / 2
        right = []
        for trial in range(trials):
            rare = bool(trial % 2)
            world = draw(fields[rare], Setting(plan, _RECORDS), self.needs, 0, True, rng)
            sums = self.needs.view(world).sums[0]
            counts = sums["N"] if isinstance(of_records(plan.schema), ClassSchema) else np.full(1, float(_RECORDS))
            share = property_scores(counts, sums["A"] / plan.schema.clip_norm, 0)[0]
            right.append(float((share < middle) == rare))
        coin = np.full(trials, 0.5)
        note = "a property of many records: no promise about single ones hides it"
        return (rated(self, plan, right, coin, confidence, metric="guessed", promised=False, note=note),)
