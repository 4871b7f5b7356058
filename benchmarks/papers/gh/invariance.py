"""Partition invariance, as equality of integers: any cut of the records among any clients sums to one release.

Not a table of equal accuracies, which rounding can hide behind: every entry of the released vector is compared. Beside
it, what the cuts do to sums in float32, and one cut of each set through the whole masked protocol. With Table 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from operator import add

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Rows
from benchmarks.papers.cells import Sheet
from benchmarks.papers.gh import published
from benchmarks.papers.gh.accuracy import MAKERS, SEEDS
from benchmarks.papers.partitions import Places, by_classes, by_dirichlet
from benchmarks.papers.sets import Features, at_hand, nearest_to

__all__ = [
    "ALPHAS",
    "CLIENTS",
    "equal_accuracies",
    "equal_integers",
    "float_sums",
    "masked",
    "require_one_value",
    "shards_of",
]

ALPHAS = (0.05, 0.1, 0.5)
CLIENTS = (10, 50, 100)
_MANY_ENTRIES = 2_000_000
_BEST = "GH-LDA"


def equal_integers(*, quick: bool) -> tuple[str, Rows]:
    """A row per set and K: how many partitions of every alpha gave the pooled integers, entry for entry."""
    rows: list[Row] = []
    for features in at_hand(quick=quick).values():
        for clients in CLIENTS[:1] if quick else CLIENTS:
            rows.append(_compared(features, clients, SEEDS[:2] if quick else SEEDS))
    return "partitions at alpha .05, .1 and .5 beside the pooled release, as integers", rows


def masked(*, quick: bool) -> tuple[str, Rows]:
    """A row per set: ten clients, alpha .05, through the masked protocol over bytes, and the pooled integers again."""
    rows: list[Row] = []
    for features in at_hand(quick=quick).values():
        X, _, y, _ = features.split
        schema = features.schema("NAB")
        shards = shards_of(X, y, by_dirichlet(y, CLIENTS[0], ALPHAS[0], np.random.default_rng(0)))
        plan = ps.Plan(
            schema=schema,
            cohort=ps.Cohort(clients=len(shards), min_survivors=len(shards), max_records=len(X)),
            privacy=ps.NoPrivacy(),
        )
        whole = ps.simulate(plan, shards)
        pooled = ps.Release.exact(schema, ps.measure(schema, X, y))
        rows.append(
            {
                "data": features.name,
                "statistics": "NAB",
                "clients": len(shards),
                "alpha": ALPHAS[0],
                "entries": plan.layout.size,
                "entries that differ": int((whole.vector != pooled.vector).sum()),
                "upload bytes of a client": plan.masking.upload_bytes,
            }
        )
    return "one partition of each set through the masked protocol", rows


def equal_accuracies(*, quick: bool) -> tuple[str, Rows]:
    """Table 7: the best head from the sums of one partition a cell; that others sum to the same is shown above."""
    sheet = Sheet(published.PAPER, "Table 7", "test accuracy of the best head on CIFAR-10, %", better="higher")
    features = nearest_to("CIFAR-10", quick=quick)
    X, X_test, y, y_test = features.split
    statistics, make = MAKERS[_BEST]
    schema = features.schema(statistics)
    cells = []
    for setting, printed in published.INVARIANCE.items():
        for clients, text in printed.items():
            shards = shards_of(X, y, _cut(setting, y, clients))
            head = make(0).fit_release(ps.Release.exact(schema, _summed(schema, shards)))
            values = 100 * head.score(X_test, y_test)
            said = f"{_BEST} on {features.said}; over all partitions the paper's move by {published.SCALE}, ours by 0"
            cells.append(sheet.nearest(setting, f"K = {clients}", text, values, said))
    require_one_value([cell.ours.mean for cell in cells if cell.ours])
    return sheet.rows(cells)


def _cut(setting: str, labels: Places, clients: int) -> list[Places]:
    """One partition of a row of Table 7: Dirichlet shares, or so many classes a client."""
    rng, (name, _, value) = np.random.default_rng(clients), setting.partition(" = ")
    if name == "#C":
        return by_classes(labels, clients, int(value), rng)
    return by_dirichlet(labels, clients, float(value), rng)


def _compared(features: Features, clients: int, seeds: Sequence[int]) -> Row:
    X, _, y, _ = features.split
    schema = features.schema(_statistics(features))
    pooled = ps.Release.exact(schema, ps.measure(schema, X, y)).vector
    single = float_sums([X])
    equal, sizes, classes, differing = [], [], [], []
    for alpha, seed in product(ALPHAS, seeds):
        cut = by_dirichlet(y, clients, alpha, np.random.default_rng(seed))
        shards = shards_of(X, y, cut)
        equal.append(bool(np.array_equal(ps.Release.exact(schema, _summed(schema, shards)).vector, pooled)))
        sizes += [len(part) for part in cut]
        classes += [len(np.unique(labels)) for _, labels in shards if alpha == min(ALPHAS)]
        differing.append(float((float_sums([rows for rows, _ in shards]) != single).mean()))
    return {
        "data": features.name,
        "statistics": schema.statistics,
        "entries": len(pooled),
        "clients": clients,
        "partitions": len(equal),
        "equal to the pooled integers": sum(equal),
        "records of the smallest client": min(sizes),
        "classes of the median client at alpha .05": float(np.median(classes)),
        "% of B's entries that differ in float32": 100 * float(np.mean(differing)),
    }


def _summed(schema: ps.ClassSchema, shards: Sequence[tuple[NDArray[np.float64], Places]]) -> ps.ClassMoments:
    """Each client's own moments, one after another, so that a hundred of them need not be held at once."""
    return reduce(add, (ps.measure(schema, rows, labels) for rows, labels in shards))


def shards_of(X: NDArray[np.float64], y: Places, cut: Sequence[Places]) -> list[tuple[NDArray[np.float64], Places]]:
    """Records by client; a client without a record has nothing to send and takes no part."""
    return [(X[part], y[part]) for part in cut if len(part)]


def float_sums(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float32]:
    """B as the authors' code sums it: one float32 matrix per client."""
    total = np.zeros((parts[0].shape[1],) * 2, np.float32)
    for rows in parts:
        single = rows.astype(np.float32)
        total += single.T @ single
    return total


def _statistics(features: Features) -> str:
    """All of them, unless the class covariances are so many numbers that a hundred clients take minutes."""
    d = features.split[0].shape[1]
    return "NABSD" if features.classes * d * d / 2 < _MANY_ENTRIES else "NABD"


def require_one_value(values: Sequence[float]) -> None:
    """The verdicts of Table 7 say that ours do not move."""
    if len(set(values)) > 1:
        raise AssertionError(f"partitions of the same records gave accuracies from {min(values)} to {max(values)}")
