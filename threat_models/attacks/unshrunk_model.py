"""Attack 12, discriminants: the second moment behind a published linear discriminant, its shrinkage undone.

Shrinkage serves accuracy and hides nothing: its intensity is published or can be solved for. ``heads`` has the algebra.
"""

from __future__ import annotations

import warnings

import numpy as np

from privstats.heads import LDA
from privstats.kinds import ClassSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.heads import baseline, pooled_moment, unshrink
from threat_models.chance import permutation
from threat_models.data import synthetic_pool
from threat_models.examined import error, rated
from threat_models.report import Row
from threat_models.world import released

_NEAR = 0.05


class UnshrunkModel(Examination):
    """B from the means, the shrunk covariance and the shrinkage of a linear discriminant."""

    name = "unshrunk-model"
    number = 12
    goal = "reconstruction"
    title = "an attacker who has a discriminant model undoes its shrinkage and has the second moment"
    needs = Adversary(sees="heads", knows="public")
    reads = "BS"
    kinds = (ClassSchema,)
    effort = 0.2

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often the second moment comes out within 5 % of the records' own."""
        result, blind = [], []
        for _ in range(trials):
            pool = synthetic_pool(plan, rng)
            rows = permutation(len(pool.y), rng)[: min(4 * plan.schema.features, plan.cohort.max_records)]
            X = pool.vectors(plan, pool.X[rows])
            release = released(pool, plan, rows, rng)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # few records: the attacker does not mind
                head = LDA().fit_release(release)
            counts = np.asarray(release.moments.N)[list(head.classes_)]
            plain = unshrink(head.covariance_, min(float(head.shrinkage_), 1 - 1e-9))
            result.append(float(error(pooled_moment(counts, head.means_, plain), X.T @ X) <= _NEAR))
            blind.append(float(error(len(rows) * baseline(pool.vectors(plan, pool.public_X)), X.T @ X) <= _NEAR))
        note = "sums of many records, which a promise about single ones allows to be known"
        return (rated(self, plan, result, blind, confidence, metric="B rebuilt", promised=False, note=note),)
