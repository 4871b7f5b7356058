"""Attack 15 on a plan: lies of one client among many, and whether the checks that a total allows detect them.

``poisoning`` has the lies and the checks; ``benchmarks/attacks`` measures accuracy against scale. The attacker learns
nothing about others: the row counts undetected lies, which no promise excludes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.errors import DataError
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.schema import narrowed
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.poisoning import Lie, Moments, accuracy, check_total, poisoned
from threat_models.bounds import clopper_pearson
from threat_models.chance import normal
from threat_models.data import synthetic_pool
from threat_models.report import Row

_LIES: tuple[Lie, ...] = ("scaled sums", "scaled records", "negated sums", "swapped classes")
_SCALES = (3.0, 30.0, 300.0)


class OnePoisoner(Examination):
    """Four lies at three scales by one client of the cohort, in made-up records."""

    name = "one-poisoner"
    number = 15
    goal = "poisoning"
    title = "an attacker who is a client sends sums that no records have, to spoil the model"
    needs = Adversary(active=True, knows="none")
    reads = "S"
    kinds = (ClassSchema,)
    effort = 0.05

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: the share of lies that no check of the noisy total sees; the note has the price in accuracy."""
        schema = narrowed(plan.schema, ClassSchema, DataError("the attack is written for class sums"))
        sigma = _noise(plan)
        unseen, honest, spoilt = [], [], []
        for _ in range(max(2, trials // len(_LIES))):
            pool = synthetic_pool(plan, rng)
            X, y = pool.vectors(plan, pool.X), pool.y
            test = pool.vectors(plan, pool.public_X), pool.public_y
            share = -(-len(y) // plan.cohort.clients)
            own, others = (Moments.of(X[rows], y[rows], schema.classes) for rows in (slice(share), slice(share, None)))
            honest.append(accuracy(_noisy(own + others, sigma, rng), *test))
            for lie in _LIES:
                for scale in _SCALES:
                    total = _noisy(poisoned(own, lie, scale) + others, sigma, rng)
                    checks = check_total(total, schema.clip_norm, **{f"sigma_{s}": level for s, level in sigma.items()})
                    unseen.append(not checks.caught_by)
                    spoilt.append(accuracy(total, *test))
        interval = clopper_pearson(sum(unseen), len(unseen), confidence)
        return (
            Row(
                attack=self.name,
                number=self.number,
                goal=self.goal,
                adversary=f"{self.needs.describe()}; is a client",
                sees=self.needs.sees,
                metric="unseen",
                measured=float(np.mean(unseen)),
                interval=interval,
                baseline=0.0,
                verdict="leaks" if interval[0] > 0 else "no evidence",
                note=f"accuracy {np.mean(honest):.2f} without the lie, down to {min(spoilt):.2f} with it; nothing here "
                "is promised: honest input is an assumption",
                worlds=len(unseen),
            ),
        )


def _noise(plan: Plan) -> dict[str, float]:
    """Noise in the release of all clients, per statistic."""
    levels = {} if plan.noise is None else plan.noise.released_sigma(plan.cohort.clients)
    return {letter: float(levels.get(letter, 0.0)) for letter in "NAS"}


def _noisy(total: Moments, sigma: dict[str, float], rng: Generator) -> Moments:
    """Gaussian noise of the release's size, for a model of a model: nothing here is private."""

    def add(array: NDArray[np.float64], level: float) -> NDArray[np.float64]:
        return array + level * normal(array.size, rng).reshape(array.shape)

    S = add(total.S, sigma["S"])
    return Moments(add(total.N, sigma["N"]), add(total.A, sigma["A"]), (S + S.transpose(0, 2, 1)) / 2)
