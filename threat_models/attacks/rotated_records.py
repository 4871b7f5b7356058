"""Attacks 4 and 5 as games: several records of a class, up to the rotation that constraints on records determine.

``rotation`` has the search. It gets few trials, because one may take a second.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.constraints import Constraints
from threat_models.attacks.rotation import recover

_STARTS, _ITERATIONS = 4, 400


class NonNegativeRotation(Attack):
    """Rows with these sums that are all at or above zero."""

    name = "rotation"
    number = 4
    goal = "reconstruction"
    title = "an attacker turns the second moment into records that are nowhere negative"
    needs = Adversary(knows="none", constraints=("non-negative",))
    reads = "S"
    records = 5
    effort = 0.05

    def refusal(self, plan: Plan) -> str | None:
        """Needs features that are known to be >= 0."""
        if not plan.schema.nonnegative:
            return "needs features that are known to be nonnegative, and the schema does not say so"
        return super().refusal(plan)

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Return one row per record."""
        return _rows(view, Constraints(lower=0.0), rng)


class GridRotation(Attack):
    """Rows with these sums that lie on the plan's grid: a solution certifies itself."""

    name = "rotation-on-the-grid"
    number = 5
    goal = "reconstruction"
    title = "an attacker turns the second moment into records that lie on the plan's grid"
    needs = Adversary(knows="none", constraints=("grid", "norm"))
    reads = "S"
    records = 4
    effort = 0.05

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Return one row per record."""
        schema = view.plan.schema
        lower = 0.0 if schema.nonnegative else -schema.clip_norm
        return _rows(view, Constraints(lower=lower, upper=schema.clip_norm, spacing=1 / schema.scale), rng)


def _rows(view: View, constraints: Constraints, rng: Generator) -> NDArray[np.float64]:
    label, sums = int(view.labels[0]), view.sums[0]
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    result = recover(
        view.records, sums["A"][label], sums["S"][label], constraints=constraints, rng=chance, starts=_STARTS,
        iterations=_ITERATIONS,
    )  # fmt: skip
    return result.rows
