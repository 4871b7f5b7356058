"""Attack 12, ridge: the second moment behind models that were published at several penalties.

``heads`` has the linear algebra. The attacker gets only coefficients, and recovers the released sum, noise included.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.heads import Ridge, RidgeClassifier
from privstats.kinds import ClassSchema, of_records
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.release import Release
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.attacks.heads import baseline, ridge_sums
from threat_models.chance import permutation
from threat_models.data import synthetic_pool
from threat_models.examined import error, rated
from threat_models.report import Row
from threat_models.world import released

_NEAR = 0.05
_PENALTIES = 12


class PenaltyPath(Examination):
    """G from ridge weights at twelve penalties: differences of the normal equations are linear in it."""

    name = "penalty-path"
    number = 12
    goal = "reconstruction"
    title = "an attacker who has a ridge model at several penalties solves for the second moment behind it"
    needs = Adversary(sees="heads", knows="public")
    reads = "BSG"
    effort = 0.2

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often the second moment comes out within 5 % of the records' own."""
        result, blind = [], []
        for _ in range(trials):
            pool = synthetic_pool(plan, rng)
            rows = permutation(len(pool.y), rng)[: min(4 * plan.schema.features, plan.cohort.max_records)]
            X, public = pool.vectors(plan, pool.X[rows]), pool.vectors(plan, pool.public_X)
            if isinstance(of_records(plan.schema), ClassSchema):  # the classifier centres its records
                X, public = X - X.mean(axis=0), public - public.mean(axis=0)
            prior = len(rows) * baseline(public)
            penalties = np.trace(prior) / len(prior) * np.geomspace(1e-3, 10, _PENALTIES)
            path = _published(released(pool, plan, rows, rng), penalties)
            result.append(float(error(ridge_sums(penalties, path, prior=prior).G, X.T @ X) <= _NEAR))
            blind.append(float(error(prior, X.T @ X) <= _NEAR))
        note = "sums of many records, which a promise about single ones allows to be known"
        return (rated(self, plan, result, blind, confidence, metric="G rebuilt", promised=False, note=note),)


def _published(release: Release, penalties: NDArray[np.float64]) -> NDArray[np.float64]:
    """Coefficients of one model per penalty, ``(m, d, T)``."""
    plain = isinstance(of_records(release.plan.schema), ClassSchema)
    path = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # few records, no intercept: the attacker does not mind
        for penalty in penalties:
            head: Any
            if plain:
                head = RidgeClassifier(solver="plain", penalty=float(penalty)).fit_release(release)
            else:
                head = Ridge(solver="plain", penalty=float(penalty), fit_intercept=False).fit_release(release)
            path.append(head.rule_.coef.T)
    return np.stack(path)
