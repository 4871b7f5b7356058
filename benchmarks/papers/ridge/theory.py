"""The paper's statements that print no table: Theorems 5 and 7, Corollaries 2 and 3, Proposition 4, each as numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Rows
from benchmarks.papers.cells import Ours
from benchmarks.papers.ridge.data import Array, Federation
from benchmarks.papers.ridge.library import PENALTY, exact_plan, measured, weights_of
from benchmarks.papers.ridge.private import DELTA, tau
from benchmarks.papers.ridge.scale import PAPER, Scale
from privstats.dp.gaussian import gaussian_mu
from privstats.encoding import flatten

__all__ = ["best_step", "composed", "composition", "crossover", "fewer_bytes", "first_step", "invariance"]

_ROUNDS = (100, 200, 500)
_COMPOSED = 100  # rounds of DP-FedAvg in Table V
_FEW = 20  # clients of two records each, fewer than features
_SINGULAR = 1e-12  # of the largest eigenvalue


def invariance(_: Scale) -> Iterator[tuple[str, Rows]]:
    """Theorem 5: one set of records in several partitions, and one whose Gram matrix is singular."""
    whole = Federation.draw(0, heterogeneity=1.0)
    few = Federation.draw(0, clients=_FEW, each=2)
    rng = np.random.default_rng(0)
    parted = {
        "as drawn, gamma 1": (whole, whole),
        "at random": (whole, _parted(whole, rng.permutation(len(whole.all_targets)))),
        "sorted by the target": (whole, _parted(whole, np.argsort(whole.all_targets))),
        "sorted by the first feature": (whole, _parted(whole, np.argsort(whole.all_rows[:, 0]))),
        "one client has all but 19": (whole, _parted(whole, np.arange(len(whole.all_targets)), uneven=True)),
        "40 records, two a client": (few, _parted(few, rng.permutation(len(few.all_targets)))),
    }
    yield f"{PAPER}, Theorem 5: any partition", [_compared(name, *pair) for name, pair in parted.items()]


def _compared(name: str, whole: Federation, parts: Federation) -> Row:
    plan = exact_plan(parts)
    release = ps.session.aggregate_unmasked(plan, measured(plan, parts))
    one_place = flatten(ps.measure(plan.schema, whole.all_rows, whole.all_targets))
    oracle = whole.oracle(PENALTY)
    values = np.linalg.eigvalsh(whole.all_rows.T @ whole.all_rows)
    return {
        "partition": name,
        "sums == one place's": bool(np.array_equal(release.vector, one_place)),
        "least eigenvalue of G, alpha": float(values[0]) if values[0] > _SINGULAR * values[-1] else 0.0,
        "weights from float64 ridge": float(np.linalg.norm(weights_of(release) - oracle) / np.linalg.norm(oracle)),
    }


def _parted(federation: Federation, order: NDArray[np.int64], *, uneven: bool = False) -> Federation:
    """The same records in another order, cut into as many clients."""
    X, y = federation.all_rows[order], federation.all_targets[order]
    cuts: int | list[int] = list(range(1, federation.clients)) if uneven else federation.clients
    return Federation(tuple(np.array_split(X, cuts)), tuple(np.array_split(y, cuts)), X, y)


def crossover(_: Scale) -> Iterator[tuple[str, Rows]]:
    """Corollary 2 and Figure 2: the most features at which one upload is smaller than R rounds."""
    rows: list[Row] = []
    for rounds in _ROUNDS:
        smaller = partial(fewer_bytes, rounds=rounds)
        rows.append(
            {
                "rounds": rounds,
                "printed, caption": 400 if rounds == 200 else None,
                "printed, text": 4 * rounds,
                "uploads alone": _largest(partial(smaller, downloads=False)),
                "with downloads": _largest(partial(smaller, downloads=True)),
                "privstats' upload, FedAvg in doubles": _largest(partial(_fewer_packed, rounds=rounds, each=8)),
                "privstats' upload, FedAvg in floats": _largest(partial(_fewer_packed, rounds=rounds, each=4)),
            }
        )
    yield f"{PAPER}, Corollary 2: the crossover, in features", rows


def fewer_bytes(features: int, rounds: int, *, downloads: bool) -> bool:
    """Whether Theorem 4's numbers of one upload are fewer than those of so many rounds."""
    one = features * (features + 1) // 2 + features + downloads * features
    return one < (1 + downloads) * rounds * features


def _fewer_packed(features: int, rounds: int, each: int) -> bool:
    """The same of the integers that a client of the library packs for 20 clients of 400 records."""
    shape = np.broadcast_to(0.0, (400, features))
    clients = Federation((shape,) * 20, (np.zeros(400),) * 20, shape, np.zeros(400))
    return bool(exact_plan(clients).ring.wire_bytes < each * rounds * features)


def _largest(holds: Callable[[int], bool]) -> int:
    """The largest number up to 4,096 for which it holds, by bisection: it stops holding once."""
    low, high = 0, 1 << 12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def composition(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Theorem 7 and Corollary 3: the noise of one release and of a hundred, for a sensitivity of 1 and one promise."""
    rows: list[Row] = []
    for epsilon in scale.epsilons:
        once = 1 / gaussian_mu(epsilon, DELTA)
        rows.append(
            {
                "epsilon": epsilon,
                "one release, as published": tau(epsilon),
                "one release, exact": once,
                "a round of 100, by (15)": composed(epsilon, _COMPOSED),
                "a round of 100, exact": once * math.sqrt(_COMPOSED),
                "mean of 100 rounds, exact": once,
            }
        )
    yield f"{PAPER}, Theorem 7: noise of one release and of 100 rounds", rows


def composed(epsilon: float, rounds: int) -> float:
    """The noise of a round by (15) and the paper's own formula, at delta / (rounds + 1) a round and for the slack."""
    each = DELTA / (rounds + 1)

    def total(part: float) -> float:
        return math.sqrt(2 * rounds * math.log(1 / each)) * part + rounds * part * math.expm1(part)

    low, high = 0.0, epsilon
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if total(middle) <= epsilon else (low, middle)
    return math.sqrt(2 * math.log(1.25 / each)) / low


def first_step(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Proposition 4: how far the best step from zero ends from the optimum."""
    drawn = [Federation.draw(seed) for seed in scale.seeds]
    rows: list[Row] = []
    for name, designs in {
        "as drawn": [(each.all_rows, each.all_targets) for each in drawn],
        "orthogonal columns": [(np.linalg.qr(each.all_rows)[0], each.all_targets) for each in drawn],
    }.items():
        found = Ours.of([round(best_step(X, y), 12) for X, y in designs])
        rows.append({"columns": name, "distance of the best step": found.mean, "se": found.error, "seeds": found.seeds})
    yield f"{PAPER}, Proposition 4: one gradient step from zero, relative distance", rows


def best_step(X: Array, y: Array) -> float:
    """``min over eta of |eta h - w| / |w|``, w the ridge weights: the sine of the angle between h and w."""
    h = X.T @ y
    w = np.linalg.solve(X.T @ X + PENALTY * np.eye(X.shape[1]), h)
    rest = w - h * (h @ w) / (h @ h)
    return float(np.linalg.norm(rest) / np.linalg.norm(w))
