"""Attack 11 on a round: one record's row and label out of its clipped gradient.

The gradient of one record under a linear model is r u', its residual times its mapped row (Zhu, Liu and Han 2019;
Geiping and others 2020). A clip changes its length alone. So the leading singular vector is the row up to a factor, and
the only negative entry of a softmax's residual names the label (Zhao, Mopuri and Bilen 2020). The constant in a mapped
row settles the sign; where rows have none, the row is known up to a sign.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import to_real
from privstats.kinds import GradientSchema, ScoreSchema
from privstats.moments import quantize
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.chance import integer_below
from threat_models.examined import rated
from threat_models.one_missing import OneMissing, attacker_of, drawn, known_of, rows_of
from threat_models.report import Row

Array: TypeAlias = NDArray[np.float64]

_UNITS = 16
_NEAR = 0.05


class GradientInversion(Examination):
    """The direction of one record's mapped row, and of a softmax its label, from the round less all other records."""

    name = "gradient-inversion"
    number = 11
    goal = "reconstruction"
    title = "an attacker who knows all other records turns a round's gradient back into one record"
    needs = Adversary(knows="all-but-one")
    reads = "g"
    kinds = (GradientSchema, ScoreSchema)

    def adversary(self, plan: Plan) -> Adversary:
        """Return the attacker with all colluders that the plan counts with."""
        return attacker_of(plan)

    def refusal(self, plan: Plan) -> str | None:
        """Needs the gradient of one row under a linear model."""
        if (other := super().refusal(plan)) is not None:
            return other
        if getattr(plan.schema, "module", None) is not None:
            return "is written for linear models, and the plan's rounds are of a module"
        return None if rows_of(plan) == 1 else "turns one row's gradient back, and a unit of this plan has several rows"

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often the row comes out within 5 %, up to its length, with its label."""
        records = drawn(plan, known_of(plan) + _UNITS, rng)
        world = OneMissing.of_records(plan, records)
        truths = [mapped(plan, records, place) for place in world.places]
        found: list[float] = []
        blind: list[float] = []
        for _ in range(trials):
            truth = integer_below(len(truths), rng)
            other = (truth + 1 + integer_below(len(truths) - 1, rng)) % len(truths)
            seen = world.released(world.present[truth], rng)
            guess = inverted(plan, np.atleast_2d(to_real(plan.schema, seen - world.without).g))
            found.append(float(_alike(plan, truths[truth], guess)))
            blind.append(float(_alike(plan, truths[truth], truths[other])))
        who = self.adversary(plan)
        return (rated(self, plan, found, blind, confidence, metric="row rebuilt up to its length", who=who),)


def inverted(plan: Plan, g: Array) -> tuple[Array, int]:
    """Return the direction of the one mapped row in a gradient ``(targets, features)``, and its label.

    Up to a sign, and with the label 0, where the plan's rows have no constant.
    """
    _, _, vectors = np.linalg.svd(g)
    row = vectors[0]
    if not _of_classes(plan):
        return row, 0
    row = row * (1.0 if row[-1] >= 0 else -1.0)
    return _unit(row[:-1]), int((g @ row).argmin())


def mapped(plan: Plan, records: tuple[Any, Any], place: int) -> tuple[Array, int]:
    """Return the direction of a record's row as the round maps it, and its label."""
    schema: Any = plan.schema
    X, y = records
    row = np.asarray(quantize(schema.rows, X[place : place + 1]), np.float64)[0]
    if isinstance(schema, GradientSchema) and plan.published is not None:
        row = plan.published.read()["M"].real @ row
    if getattr(schema, "by_arm", False):  # the row of either arm, beside zeros
        row = row.reshape(2, -1).sum(axis=0)
    if not _of_classes(plan):
        return _unit(row), 0
    return _unit(row), int(y[place]) if schema.class_names is None else list(schema.class_names).index(y[place])


def _of_classes(plan: Plan) -> bool:
    return isinstance(plan.schema, GradientSchema) and plan.schema.classes is not None


def _alike(plan: Plan, truth: tuple[Array, int], guess: tuple[Array, int]) -> bool:
    signs = (1.0,) if _of_classes(plan) else (1.0, -1.0)
    return truth[1] == guess[1] and any(np.linalg.norm(truth[0] - sign * guess[0]) <= _NEAR for sign in signs)


def _unit(row: Array) -> Array:
    return np.asarray(row / max(float(np.linalg.norm(row)), np.finfo(np.float64).tiny))
