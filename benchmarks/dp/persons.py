"""One patient with several rows: a clip of the whole person beside k times the noise of a row.

    python -m benchmarks.dp.persons --save

Rows of real feature sets are dealt to persons of 1 to 5 rows, twice: at random, and so that a person's rows are alike
(of one class, beside one another along a random direction). The promise is for a person with up to k = 5 rows, central
model; at c = k rows of nobody shrink, which is k times the noise that one row needs, and at smaller c the noise shrinks
with it and rows of some persons do; or each person adds the average of all rows, at the noise of one. LDA, means and
standard errors over ten draws of noise.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.data import Task, agnews, tasks
from benchmarks.measuring import Row, Tables, command, standard_error
from privstats.moments import exact_moments
from privstats.randomness import seeded

K, PARTIES = 5, 3
CLIPS: dict[str, Any] = {"c = 5": 5.0, "c = sqrt 5": math.sqrt(5), "c = 1": 1.0, "average": "average"}
EPSILONS = (0.3, 1.0, 3.0)
DELTA = 1e-5


def options(parser: argparse.ArgumentParser) -> None:
    """The draws."""
    parser.add_argument("--draws", type=int, default=10, help="draws of noise")


def tables(chosen: argparse.Namespace) -> Tables:
    """One table per data set."""
    found = tasks(bundled_only=True) if chosen.quick else _chosen()
    draws, epsilons = (2, EPSILONS[1:2]) if chosen.quick else (chosen.draws, EPSILONS)
    for task in found:
        yield (
            f"accuracy, %: {task.name}",
            [row for alike in (False, True) for row in rows(task, alike, epsilons, draws)],
        )


def _chosen() -> Iterator[Task]:
    yield from agnews()
    yield from (task for task in tasks() if task.name in ("banking77", "digits"))


def rows(task: Task, alike: bool, epsilons: tuple[float, ...], draws: int) -> Iterator[Row]:
    """One row per epsilon and clip, after the promise of a single row."""
    X, X_test, y, y_test = task.transformed()
    persons = dealt(X, y, alike)
    schema = ps.ClassSchema(int(y.max()) + 1, X.shape[1], "NAB", clip_norm=1.0)
    what = {"persons": int(persons.max()) + 1, "rows of a person": "alike" if alike else "at random"}
    for clip in (None, *CLIPS):
        first = plan_of(schema, len(X), 1.0, clip)
        sums = measured(first, X, y, persons)
        shrunk = sum(getattr(part, "shrunk", 0) for part in sums) / (int(persons.max()) + 1)
        for epsilon in epsilons:
            plan = plan_of(schema, len(X), epsilon, clip)
            scores = [100 * scored(plan, sums, X_test, y_test, draw) for draw in range(draws)]
            yield {
                **what,
                "promise": "one row" if clip is None else f"one person, {clip}",
                "epsilon": epsilon,
                "accuracy": float(np.mean(scores)),
                "standard error": standard_error(scores),
                "persons who shrink": shrunk,
            }


def dealt(X: NDArray[np.float64], y: NDArray[np.intp], alike: bool) -> NDArray[np.intp]:
    """A person for every row, each of 1 to 5 rows."""
    rng = np.random.default_rng(0)
    along = X @ rng.standard_normal(X.shape[1])
    order = np.lexsort((along, y)) if alike else rng.permutation(len(X))
    sizes = rng.integers(1, K + 1, len(X))
    ends = np.cumsum(sizes)
    out = np.empty(len(X), np.intp)
    out[order] = np.searchsorted(ends, np.arange(len(X)), side="right")
    if alike:  # nobody has rows of two classes
        pairs = np.unique(np.column_stack((out, y)), axis=0, return_inverse=True)[1]
        return np.asarray(pairs.reshape(-1), np.intp)
    return out


def plan_of(schema: ps.ClassSchema, records: int, epsilon: float, clip: str | None) -> ps.Plan:
    """The plan of three parties; a promise of one row where no clip is named."""
    unit: dict[str, Any] = {"unit": "record"}
    if clip is not None:
        most = {} if clip == "average" else {"max_records_per_person": K}
        unit = {"unit": "person", "person_clip": CLIPS[clip], **most}
    promise = ps.Privacy(model="central", adjacency="add-remove", epsilon=epsilon, delta=DELTA, **unit)
    return ps.Plan(schema=schema, cohort=ps.Cohort(PARTIES, PARTIES, records), privacy=promise)


def measured(plan: ps.Plan, X: NDArray[np.float64], y: NDArray[np.intp], persons: NDArray[np.intp]) -> list[Any]:
    """The sums of every party; a person is at one."""
    parts = []
    for party in range(PARTIES):
        mine = persons % PARTIES == party
        ids = {} if plan.person_clip is None else {"persons": persons[mine], "person_clip": plan.person_clip}
        parts.append(exact_moments(plan.schema, X[mine], y[mine], **ids))
    return parts


def scored(plan: ps.Plan, sums: list[Any], X: NDArray[np.float64], y: NDArray[np.intp], draw: int) -> float:
    """Accuracy of LDA from one release."""
    head = ps.heads.LDA().fit_release(ps.simulate(plan, sums, rng=seeded(draw)))
    return float(head.score(X, y))


if __name__ == "__main__":
    command("dp.persons", __doc__ or "", tables, options)
