"""Parties with six columns that go together in a chain, and the course over them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import privstats as ps
from privstats.contrib.synthetic.columns import Hashed, coded, schema_of
from privstats.contrib.synthetic.course import Synthetic

COLUMNS = (
    ps.Numeric("age", tuple(range(0, 101, 5))),
    ps.Categories("ward", ("a", "b", "c")),
    ps.Truth("smoker"),
    ps.Dates("admitted", ("2024-01-01", "2024-04-01", "2024-07-01", "2024-10-01", "2025-01-01")),
    Hashed("icd", buckets=8),
    ps.Truth("death"),
)


def table(records: int, seed: int) -> dict[str, list[Any]]:
    """Records of one party: age decides the ward and death, the ward the code; smoking and dates stand alone."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 100, records)
    ward = np.digitize(age + rng.normal(0, 8, records), (33, 66))
    code = np.where(rng.random(records) < 0.8, ward, rng.integers(0, 30, records))
    days = rng.integers(0, 366, records)
    return {
        "age": np.where(rng.random(records) < 0.05, np.nan, age).tolist(),
        "ward": np.array(["a", "b", "c"])[ward].tolist(),
        "smoker": (rng.random(records) < 0.3).tolist(),
        "admitted": (np.datetime64("2024-01-01") + days).astype(str).tolist(),
        "icd": [f"E{each}" for each in code],
        "death": (rng.random(records) < age / 120).astype(int).tolist(),
    }


def course(epsilon: float = 8.0, columns: Any = COLUMNS, **options: Any) -> Synthetic:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema_of(columns), cohort=ps.Cohort(2, 2, 20_000), privacy=privacy)
    return Synthetic.within(plan, **options)


@cache
def released(records: int = 3_000, epsilon: float = 8.0) -> tuple[Synthetic, tuple[ps.Release, ...]]:
    """The course, and the releases of two parties."""
    parts = [(coded(COLUMNS, table(records, seed)), None) for seed in (1, 2)]
    own = course(epsilon)
    return own, tuple(ps.simulate(own, parts))
