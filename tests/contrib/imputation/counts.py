"""A table of counts whose gaps depend on the outcome, so that complete cases are biased."""

from typing import Any

import numpy as np

import privstats as ps
from privstats import session
from privstats.randomness import seeded
from tests import made

DOSE = ps.Categories("dose", ("low", "middle", "high"), missing=True)
SEX, ARM, ILL = (
    ps.Categories("sex", ("f", "m")),
    ps.Categories("arm", ("drug", "placebo")),
    ps.Categories("ill", (0, 1)),
)
SCHEMA = ps.CountSchema((DOSE, SEX, ARM, ILL), (("dose", "sex", "arm", "ill"),))
SLOPES = {"dose: middle vs low": 0.5, "dose: high vs low": 1.0, "sex: m vs f": -0.6, "arm: placebo vs drug": 0.4}


def records(n: int, seed: int = 0, missing: float = 0.3) -> dict[str, Any]:
    """The dose is missing more often where the record is ill."""
    rng = np.random.default_rng(seed)
    sex, arm = rng.integers(0, 2, (2, n))
    dose = np.minimum(rng.binomial(2, np.where(sex == 1, 0.6, 0.4)), 2)
    log_odds = -1.0 + 0.5 * dose - 0.6 * sex + 0.4 * arm
    ill = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    gone = rng.random(n) < missing * np.where(ill == 1, 1.6, 0.5)
    names = np.array(["low", "middle", "high"], object)[dose]
    names[gone] = None
    return {
        "dose": names.tolist(),
        "sex": np.array(["f", "m"])[sex].tolist(),
        "arm": np.array(["drug", "placebo"])[arm].tolist(),
        "ill": ill.tolist(),
    }


def exact(table: dict[str, Any], schema: ps.CountSchema = SCHEMA) -> ps.Release:
    return ps.Release.exact(schema, ps.measure(schema, table))


def noisy(table: dict[str, Any], epsilon: float, seed: int = 1, schema: ps.CountSchema = SCHEMA) -> ps.Release:
    n = len(table["ill"])
    plan = made.plan(schema, ps.Cohort(2, 2, 2 * n), made.promise(epsilon=epsilon, delta=1e-6))
    parts = [ps.measure(schema, {name: column[k::2] for name, column in table.items()}) for k in range(2)]
    return session.aggregate_unmasked(plan, parts, seeded(seed))
