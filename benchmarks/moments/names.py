"""Measure what names in the plan are worth: ten class-skewed parties with text labels, and DataFrames with different
columns.

    python -m benchmarks.moments.names --save

BANKING77 where its features are at hand (``benchmarks.data`` says where), digits always. No noise: a wrong number is a
wrong class here, and nothing else.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.data import tasks
from benchmarks.measuring import Rows, Tables, command
from privstats.randomness import seeded
from privstats.workflows.simulate import dirichlet_partition

PARTIES = 10
ALPHA = 0.1


@dataclass(frozen=True)
class Frame:
    """A DataFrame as far as ``measure`` looks: named columns, without a dependency."""

    columns: tuple[str, ...]
    values: Any

    def __getitem__(self, name: str) -> Any:
        """One column."""
        return self.values[:, self.columns.index(name)]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The values, in the frame's own order."""
        return np.asarray(self.values, dtype)


def tables(options: argparse.Namespace) -> Tables:
    """One table per data set."""
    for task in tasks(bundled_only=options.quick):
        if task.name in ("digits", "banking77"):
            yield f"names in the plan: {task.name}", rows(*task.load())


def rows(X: Any, X_test: Any, y: Any, y_test: Any) -> Rows:
    """LDA's test accuracy from one release per way of naming, and whether its integers are the right ones."""
    texts = np.array([f"intent {label:02d}" for label in range(int(y.max()) + 1)])
    columns = tuple(f"feature {k:03d}" for k in range(X.shape[1]))
    owner = dirichlet_partition(y, PARTIES, ALPHA, seeded(0))
    radius = math.ceil(float(np.linalg.norm(X, axis=1).max()))
    names, truth = {"class_names": tuple(texts)}, texts[y_test]
    frames = [_frame(X[rows], columns, party % 2 == 1) for party, rows in enumerate(owner)]
    shuffled = [_shuffled(X[rows], columns, party) for party, rows in enumerate(owner)]
    both = {**names, "feature_names": columns}
    numbered = [np.unique(texts[y[rows]], return_inverse=True)[1] for rows in owner]
    ways: dict[str, tuple[Sequence[Any], Sequence[Any], dict[str, Any], Any]] = {
        "numbers of the sorted names": ([X[r] for r in owner], [y[r] for r in owner], {}, y_test),
        "texts, class_names in the plan": ([X[r] for r in owner], [texts[y[r]] for r in owner], names, truth),
        "numpy.unique at each party": ([X[r] for r in owner], numbered, {}, y_test),
        "columns reversed at half the parties": (frames, [y[r] for r in owner], {}, y_test),
        "the same, feature_names in the plan": (frames, [y[r] for r in owner], {"feature_names": columns}, y_test),
        "texts, and columns shuffled at every party, both named": (shuffled, [texts[y[r]] for r in owner], both, truth),
    }
    out, right = [], None
    for way, (features, labels, named, expected) in ways.items():
        schema = ps.ClassSchema(len(texts), X.shape[1], "NAB", float(radius), **named)
        cohort = ps.Cohort(PARTIES, PARTIES, len(X))
        plan = ps.Plan(schema=schema, cohort=cohort, privacy=ps.NoPrivacy())
        release = ps.simulate(plan, list(zip(features, labels, strict=True)))
        right = release.vector if right is None else right
        accuracy = 100 * ps.heads.LDA().fit_release(release).score(X_test, expected)
        out.append({"way": way, "accuracy": accuracy, "right integers": bool(np.array_equal(release.vector, right))})
    return out


def _frame(rows: Any, columns: tuple[str, ...], turned: bool) -> Frame:
    return Frame(columns[::-1], rows[:, ::-1]) if turned else Frame(columns, rows)


def _shuffled(rows: Any, columns: tuple[str, ...], party: int) -> Frame:
    """Columns in an order of the party's own."""
    order = np.argsort(seeded(party).uint64(len(columns)), kind="stable")
    return Frame(tuple(columns[k] for k in order), rows[:, order])


if __name__ == "__main__":
    command("moments.names", __doc__, tables)
