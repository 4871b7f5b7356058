"""Persons with known hazards, and the sums of a round by their definition."""

from __future__ import annotations

from typing import Any

import numpy as np

import privstats as ps
from privstats import course as courses
from privstats import session
from privstats.randomness import seeded
from privstats.schema.public_values import Published, Values
from tests import made

__all__ = ["BETA", "EDGES", "NAMES", "course_of", "defined", "played", "promise", "published", "schema", "world"]

EDGES = (0, 3, 6, 9, 12, 15, 18)
NAMES = ("arm", "age", "dose")
BETA = np.array([0.5, -0.4, 0.3])


def schema(**changes: Any) -> ps.HazardSchema:
    usual: dict[str, Any] = {
        "features": 4,
        "clip_norm": 2.0,
        "bins": ps.Bins("months", EDGES),
        "event": "died",
        "feature_names": NAMES,
        "transform": (ps.transforms.ConstantFeature(1.0),),
    }
    return ps.HazardSchema(**{**usual, **changes})


def in_months(unit: float | None) -> ps.HazardSchema:
    """Deaths in two bins of six months, of one column."""
    return ps.HazardSchema(
        2,
        clip_norm=2.0,
        bins=ps.Bins("months", (0, 6, 12)),
        event="died",
        feature_names=("age",),
        transform=(ps.transforms.ConstantFeature(1.0),),
        times="continuous",
        time_unit=unit,
    )


def world(
    count: int,
    seed: int = 0,
    *,
    hazard: float = 0.07,
    beta: np.ndarray = BETA,
    censored: float = 30.0,
    whole: bool = False,
) -> dict[str, np.ndarray]:
    """A hazard of so much in each bin where the columns are 0; ``whole``: nobody is censored inside a bin."""
    rng = np.random.default_rng(seed)
    rest = np.rint(np.clip(rng.normal(size=(count, 2)) * 0.5, -1, 1) * 1024) / 1024
    X = np.c_[rng.integers(0, 2, count), rest]
    times = rng.exponential(EDGES[1] / (hazard * np.exp(X @ beta)))
    leaves = rng.uniform(0, censored, count)
    leaves = np.ceil(leaves / EDGES[1]) * EDGES[1] - 1e-9 if whole else leaves
    table = dict(zip(NAMES, X.T, strict=True))
    return table | {"months": np.minimum(times, leaves), "died": (times <= leaves).astype(int)}


def published(w: Any, clock: Any = None) -> Published:
    values = {"w": Values.rounded(np.asarray(w, float))}
    return Published.of(values if clock is None else {**values, "c": Values(np.asarray(clock, np.int64), 16)})


def defined(
    plan: ps.HazardSchema, table: dict[str, np.ndarray], w: Any, clock: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """g and H in floating point, person by person and bin by bin."""
    passed = None if clock is None else np.asarray(clock) / 2**16 + plan.in_bin
    X, w = np.column_stack([table[name] for name in plan.feature_names]), Values.rounded(np.asarray(w, float)).real
    edges, bins = np.array(plan.bins.edges), plan.periods
    g, H = np.zeros(len(w)), np.zeros((len(w), len(w)))
    for x, time, event in zip(X, table[plan.bins.name], table[plan.event], strict=True):
        last, total = min(int(np.searchsorted(edges, time, side="right")) - 1, bins - 1), 0.0
        for place in range(last + 1):
            u = np.concatenate([x, plan.constant * np.eye(bins)[place]])
            mu = float(np.exp(u @ w))
            total += mu
            if total > 1:
                break
            died = place == last and event == 1 and time < edges[-1]
            whole = clock is None or place < last or died or time >= edges[-1]
            f = 1.0 if whole else np.interp(time, plan.marks, np.append(0, passed)) - place
            g += (mu / np.expm1(mu) if died else -mu * np.expm1(f * mu) / np.expm1(mu)) * u
            H += mu**2 / np.expm1(mu) * (1 - (1 - f) * np.exp(f * mu)) * np.outer(u, u)
    return g, H


def promise(epsilon: float, **changes: Any) -> ps.Privacy:
    return made.promise(**{"epsilon": epsilon, "delta": 1e-6, **changes})


def course_of(records: int, epsilon: float, **changes: Any) -> ps.Hazard:
    asked: dict[str, Any] = {"by": "arm", **changes}
    return ps.Hazard.start(schema(times="continuous"), ps.Cohort(2, 2, 2 * records), promise(epsilon), **asked)


def halves(table: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    return [{name: column[place::2] for name, column in table.items()} for place in range(2)]


def played(course: ps.Hazard, table: dict[str, np.ndarray], seed: int) -> list[ps.Release | None]:
    """All releases of a course, without the masking protocol."""
    rng = seeded(seed)

    def release(node: courses.Round) -> ps.Release:
        plan = node.plan
        parts = [ps.moments.exact_moments(plan.schema, part, published=plan.published) for part in halves(table)]
        return session.aggregate_unmasked(plan, parts, rng)

    return courses.run(course, release)
