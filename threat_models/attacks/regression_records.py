"""Records of a regression, read off G = X^T X, h = X^T y and q = y^T y.

One record's G is its row's outer product, which gives the row up to its sign; h then gives the target with the same
sign, and q its size. Of known rows, h is one linear equation in the targets for each feature, so up to as many targets
as features follow. Without noise both are exact.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.errors import PlanError
from privstats.kinds import RidgeSchema
from privstats.plan import Plan
from privstats.randomness import Generator, uniform
from privstats.release import Release
from privstats.schema import narrowed
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.audits.target import moments_of, of_single_rows
from threat_models.chance import normal
from threat_models.examined import rated
from threat_models.report import Row

Array: TypeAlias = NDArray[np.float64]

_NEAR = 0.05
_MOST_TARGETS = 8


class RidgeOneRecord(Examination):
    """The row is the leading eigenvector of G by the root of its eigenvalue; the target is h along it."""

    name = "ridge-one-record"
    number = 1
    goal = "reconstruction"
    title = "an attacker takes the sums of a regression over one record apart into its row and target"
    needs = Adversary(knows="none")
    reads = "Ghq"
    kinds = (RidgeSchema,)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often row and target both come out within 5 % of their bounds, up to one common sign."""
        schema = _schema(plan)
        found: list[float] = []
        blind: list[float] = []
        for _ in range(trials):
            x, y = _records(schema, 1, rng)
            for hits, other in ((found, (x, y)), (blind, _records(schema, 1, rng))):
                hits.append(float(_rebuilt(schema, (x[0], y[0]), row_and_target(*_sums(_released(plan, *other, rng))))))
        return (rated(self, plan, found, blind, confidence, metric="records rebuilt up to a sign"),)


class RidgeTargets(Examination):
    """Solve X^T y = h for the targets of known rows."""

    name = "ridge-targets"
    number = 1
    goal = "inference"
    title = "an attacker who knows every row of a regression solves its sums for the targets"
    needs = Adversary(knows="public")
    reads = "h"
    kinds = (RidgeSchema,)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: the share of targets within 5 % of the bound, of at most as many records as features."""
        schema = _schema(plan)
        found: list[float] = []
        blind: list[float] = []
        count = max(1, min(schema.features // 2, _MOST_TARGETS, plan.cohort.max_records))
        for _ in range(trials):
            x, y = _records(schema, count, rng)
            for hits, targets in ((found, y), (blind, _records(schema, count, rng)[1])):
                guess = targets_of(x, _sums(_released(plan, x, targets, rng))[1])
                hits.append(float(np.mean(np.linalg.norm(guess - y, axis=1) <= _NEAR * schema.target_bound)))
        return (rated(self, plan, found, blind, confidence, metric="targets found"),)


def row_and_target(G: Array, h: Array, q: float) -> tuple[Array, Array]:
    """Return the row ``(d,)`` and target ``(targets,)`` of the one record in these sums, up to one common sign.

    Args:
        G: ``(d, d)``.
        h: ``(d, targets)``.
        q: scales the target where noise in h leaves it longer than q says.
    """
    values, vectors = np.linalg.eigh(G)
    length = float(np.sqrt(max(float(values[-1]), 0.0)))
    if length == 0:
        return np.zeros(len(G)), np.zeros(h.shape[1])
    target = vectors[:, -1] @ h / length
    longest = float(np.sqrt(max(q, 0.0)))
    size = float(np.linalg.norm(target))
    return length * vectors[:, -1], target * (min(1.0, longest / size) if size > 0 else 1.0)


def targets_of(X: Array, h: Array) -> Array:
    """Return the shortest targets ``(n, targets)`` of known rows ``(n, d)`` that give h; exact for independent rows."""
    return np.asarray(np.linalg.pinv(X.T) @ h)


def _rebuilt(schema: RidgeSchema, truth: tuple[Array, Array], guess: tuple[Array, Array]) -> bool:
    bounds = schema.clip_norm, schema.target_bound
    pairs = list(zip(truth, guess, bounds, strict=True))
    return any(
        all(np.linalg.norm(true - sign * found) <= _NEAR * bound for true, found, bound in pairs)
        for sign in (1.0, -1.0)
    )


def _records(schema: RidgeSchema, count: int, rng: Generator) -> tuple[Array, Array]:
    """Rows of norms between a half of the clip and the clip, and targets likewise."""
    shapes = ((schema.features, schema.clip_norm), (schema.targets, schema.target_bound))
    drawn = [(normal(count * width, rng).reshape(count, width), bound) for width, bound in shapes]
    x, y = (
        bound * (0.5 + uniform(count, rng)[:, None] / 2) * rows / np.linalg.norm(rows, axis=1, keepdims=True)
        for rows, bound in drawn
    )
    return np.abs(x) if schema.nonnegative else x, y


def _released(plan: Plan, X: Array, y: Array, rng: Generator) -> Release:
    """The release of these records of the first client, in the smallest session that the plan admits."""
    targets = y if plan.schema.sizes["target"] > 1 else y[:, 0]
    mine = of_single_rows(plan, moments_of(plan.schema, X, targets))
    none = of_single_rows(plan, moments_of(plan.schema, X[:0], targets[:0]))
    return session.aggregate_unmasked(plan, [mine, *[none] * (plan.cohort.min_survivors - 1)], rng)


def _sums(release: Release) -> tuple[Array, Array, float]:
    real = release.moments
    return np.asarray(real.G), np.asarray(real.h), float(real.q)


def _schema(plan: Plan) -> RidgeSchema:
    return narrowed(plan.schema, RidgeSchema, PlanError("this attack is on the sums of a regression"))
