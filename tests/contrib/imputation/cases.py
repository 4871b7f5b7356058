"""Columns with gaps at random, whose complete cases are biased."""

from typing import Any

import numpy as np

import privstats as ps
from privstats import session
from privstats.contrib.imputation import SHARES, by_gaps, schema_of
from privstats.kinds import ClassSchema
from privstats.randomness import seeded
from tests import made

COLUMNS = {"dose": (1.0, 2.0), "age": (60.0, 15.0), "days": (5.0, 3.0)}
SLOPES = {"dose": 1.0, "age": -0.08}


def schema(incomplete: tuple[str, ...] = ("dose",), clip_norm: float = 9.0) -> ClassSchema:
    return schema_of(COLUMNS, incomplete, clip_norm=clip_norm, grid_bits=16)


def table(n: int, seed: int = 0, share: float = 0.3) -> dict[str, Any]:
    """The dose is missing more often the longer somebody stays."""
    rng = np.random.default_rng(seed)
    age = 60 + 15 * rng.standard_normal(n)
    dose = 1 + 2 * (0.6 * (age - 60) / 15 + 0.8 * rng.standard_normal(n))
    days = 5 + SLOPES["dose"] * (dose - 1) + SLOPES["age"] * (age - 60) + 2 * rng.standard_normal(n)
    score = (days - 5) / 2 + rng.logistic(size=n) * 0.7
    gone = np.argsort(np.argsort(score)) >= round(n * (1 - share))
    return {"dose": np.where(gone, np.nan, dose), "age": age, "days": days}


def exact(records: dict[str, Any], incomplete: tuple[str, ...] = ("dose",)) -> ps.Release:
    measured = schema(incomplete)
    return ps.Release.exact(measured, ps.measure(measured, *by_gaps(measured, records)))


def noisy(records: dict[str, Any], epsilon: float, seed: int = 1, **changes: Any) -> ps.Release:
    measured = schema(clip_norm=5.0)
    promise = made.promise(epsilon=epsilon, delta=1e-6, shares=dict(SHARES))
    plan = made.plan(measured, ps.Cohort(2, 2, 2 * len(records["age"])), promise, **changes)
    parts = [
        ps.measure(
            measured,
            *by_gaps(measured, {name: column[k::2] for name, column in records.items()}),
            unreadable=plan.unreadable,
        )
        for k in range(2)
    ]
    return session.aggregate_unmasked(plan, parts, seeded(seed))
