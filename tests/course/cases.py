"""Small courses and records for the tests of this room."""

import os
from typing import Any

import numpy as np

import privstats as ps
from tests import made

D, C, CLIENTS, N = 6, 3, 5, 600
COHORT = ps.Cohort(CLIENTS, 4, N)
SOFTMAX = ps.ClassSchema(C, D, "NAB", 1.0, transform=(ps.transforms.UnitNorm(),))
RIDGE = ps.RidgeSchema(D, clip_norm=2.0, target_bound=3.0, transform=(ps.transforms.ConstantFeature(1.0),))
PARTIES = ps.PartySchema(C, D, transform=(ps.transforms.UnitNorm(),))
TABLE = ps.Cells((ps.Numeric("age"), ps.Numeric("sodium"), ps.Truth("ill"), ps.Categories("ward", ("a", "b", "c"))))
"""Two columns whose cuts nobody knows, and two of public values."""
CLOSED = TABLE.with_edges({"age": (40.0, 60.0), "sodium": (140.0,)})
OF_CELLS = ps.ClassSchema(2, TABLE.width, "NAB", 1.0, transform=(TABLE,))
OF_CLOSED = ps.ClassSchema(2, CLOSED.width, "NAB", 1.0, transform=(CLOSED,))
HELPERS = tuple(ps.secagg.Identity.generate(os.urandom).public.hex() for _ in range(3))


def promise(**changes: Any) -> ps.Privacy:
    return made.promise(**{"epsilon": 4.0, **changes})


def plan_of(schema: Any = SOFTMAX, cohort: ps.Cohort = COHORT, **changes: Any) -> ps.Plan:
    extra = {name: changes.pop(name) for name in ("protocol", "panel") if name in changes}
    return ps.Plan(schema=schema, cohort=cohort, privacy=promise(**changes), **extra)


def parties_plan(parties: int = CLIENTS, **changes: Any) -> ps.Plan:
    """Of whole parties, one direction of each."""
    cohort = ps.Cohort(parties, parties, parties)
    return plan_of(PARTIES, cohort, **{"unit": "client", "max_records_per_client": 1, **changes})


def rounds(schema: Any = SOFTMAX, rounds: int = 2, **changes: Any) -> ps.Rounds:
    mine = {
        name: changes.pop(name) for name in ("retries", "expected_records", "calibrated", "module") if name in changes
    }
    return ps.Rounds.within(plan_of(schema, **changes), rounds, **mine)


def shards(schema: Any = SOFTMAX, clients: int = CLIENTS, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    if schema is SOFTMAX:
        y = rng.integers(0, C, N)
        X = rng.normal(size=(N, D)) + 2.0 * np.eye(C, D)[y]
        return [(X[i::clients], y[i::clients]) for i in range(clients)]
    X = rng.normal(size=(N, D - 1)) / 2
    y = X @ np.linspace(-1, 1, D - 1) + 0.3 + 0.1 * rng.normal(size=N)
    return [(X[i::clients], y[i::clients]) for i in range(clients)]


def table(records: int = N, seed: int = 0) -> tuple[dict[str, list[object]], np.ndarray]:
    """A raw table with gaps, texts and an odd value in every column, and the classes of its records."""
    rng = np.random.default_rng(seed)
    age, sodium, y = rng.normal(60, 15, records), rng.normal(140, 3, records), rng.integers(0, 2, records)
    columns: dict[str, list[object]] = {
        "id": [f"patient {place}" for place in range(records)],
        "ward": rng.choice(["a", "b", "c", "elsewhere"], records).tolist(),
        "Sodium": (sodium + 3 * y).tolist(),
        "ill": rng.choice(["true", "FALSE"], records).tolist(),
        "age": age.tolist(),
    }
    for name, odd in (("ward", None), ("Sodium", "n/a"), ("ill", "perhaps"), ("age", "12 mg")):
        columns[name][:: records // 10] = [odd] * len(columns[name][:: records // 10])
    return columns, y


def tables(clients: int = CLIENTS) -> list[tuple[dict[str, list[object]], np.ndarray]]:
    """The same records, dealt out."""
    X, y = table()
    return [({name: column[i::clients] for name, column in X.items()}, y[i::clients]) for i in range(clients)]
