"""Records read off their sums: one, two, and many up to a rotation; with the same attacker without the release.

python -m benchmarks.attacks.reconstruction --save
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.measuring import Row, Tables, command
from privstats import ClassSchema
from privstats.dp import Privacy, calibrate
from privstats.stopwatch import Stopwatch
from threat_models.attacks.constraints import NONNEGATIVE, Constraints
from threat_models.attacks.encoder import conv_features, digit_images
from threat_models.attacks.inversion import one_record, pair_from_moments, pair_from_squares
from threat_models.attacks.matching import match
from threat_models.attacks.rotation import Recovered, baseline, recover

Array: TypeAlias = NDArray[np.float64]

KNOWN: Mapping[str, Constraints] = {
    "not negative": NONNEGATIVE,
    "pixels in [0, 16]": Constraints(0.0, 16.0),
    "17 grey levels": Constraints(0.0, 16.0, spacing=1.0),
}
ASKED = {("not negative", 7): 1.0, ("not negative", 10): 0.84, ("not negative", 15): 0.38}


def tables(options: argparse.Namespace) -> Tables:
    """Yield tables from one record to a hundred, then under noise."""
    trials = 2 if options.quick else 8
    yield "one and two records: largest error of a coordinate", [few(kind) for kind in ("real", "grid")]
    yield "half-zero ReLU records, d = 512", [relu(n) for n in ((30,) if options.quick else (30, 100))]
    sizes = (7, 10) if options.quick else (7, 10, 15)
    rows = (digits(name, n, trials, options.quick) for name in KNOWN for n in sizes)
    yield "digits of one class, d = 64: share of rows within 5 %", list(rows)
    yield "conv features of digits, d = 256: share of rows within 5 %", list(convolved(trials, options.quick))
    epsilons = (math.inf, 8.0) if options.quick else (math.inf, 100.0, 8.0, 1.0)
    yield "seven digits under central noise, record level, delta 1e-5", [noisy(e, trials) for e in epsilons]


def few(kind: str) -> Row:
    """Attacks 1 to 3 on twenty draws."""
    rng = np.random.default_rng(0)
    worst = {"one record": 0.0, "two, with S": 0.0, "two, with D": 0.0}
    pairs = []
    for _ in range(20):
        rows = rng.standard_normal((2, 64))
        if kind == "grid":
            rows = np.rint(rows * 2**12).astype(np.int64)
        A, S, D = rows.sum(axis=0), rows.T @ rows, np.square(rows).sum(axis=0)
        found = pair_from_moments(A, S)
        ordered = np.sort(rows, axis=0)
        unordered = pair_from_squares(A, D)
        errors = (
            np.abs(one_record(rows[0]) - rows[0]).max(),
            np.abs(found[match(rows.astype(np.float64), found).order] - rows).max(),
            max(np.abs(unordered.low - ordered[0]).max(), np.abs(unordered.high - ordered[1]).max()),
        )
        worst = {name: max(old, float(new)) for (name, old), new in zip(worst.items(), errors, strict=True)}
        pairs.append(unordered.found(rows, 1e-9))
    return {"sums": kind, **worst, "pairs of D within 1e-9": float(np.mean(pairs)), "asked": 1e-9}


def relu(n: int) -> Row:
    """Attack 4 on rectified Gaussians."""
    rng = np.random.default_rng(0)
    rows = np.maximum(rng.standard_normal((n, 512)), 0.0)
    found, seconds = attack(rows, NONNEGATIVE, rng, starts=2)
    error = float(np.abs(rows - found.rows[match(rows, found.rows).order]).max())
    return {"records": n, "largest error": error, "asked": 1e-8, "certified": found.certified, "seconds": seconds}


def digits(name: str, n: int, trials: int, quick: bool) -> Row:
    """Attacks 4 and 5 on pixels, with what the attacker knows of them."""
    X, y = load_digits(return_X_y=True)
    effort = {"starts": 4, "iterations": 1000} if quick else {"starts": 8, "iterations": 3000}
    row = shares(X, y, n, trials, KNOWN[name], effort)
    return {"known": name, "records": n, "asked": ASKED.get((name, n)), **row}


def convolved(trials: int, quick: bool) -> Iterator[Row]:
    """Attack 4 on 256 features behind a ReLU."""
    images, y = digit_images()
    features = conv_features(images)
    effort = {"starts": 4, "iterations": 1000} if quick else {"starts": 8, "iterations": 3000}
    for n, asked in ((10, 0.95),) if quick else ((10, 0.95), (30, 0.81)):
        yield {"records": n, "asked": asked, **shares(features, y, n, trials, NONNEGATIVE, effort)}


def noisy(epsilon: float, trials: int) -> Row:
    """Measure what remains of attack 4 in the noise of a plan; pixels are scaled to norm at most 1."""
    X, y = load_digits(return_X_y=True)
    X = X / np.linalg.norm(X, axis=1).max()
    sigma = levels(epsilon)

    def disturbed(A: Array, S: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        half = np.triu(rng.standard_normal(S.shape)) / math.sqrt(2)
        noise = half + half.T  # variance 2 on the diagonal, 1/2 off it
        noise[np.diag_indices(len(S))] /= math.sqrt(2)
        return A + sigma["A"] * rng.standard_normal(len(A)), S + sigma["S"] * noise

    found = shares(X, y, 7, trials, NONNEGATIVE, {"starts": 8, "iterations": 1000}, disturbed)
    return {"epsilon": epsilon if math.isfinite(epsilon) else "none", "sigma of S": sigma["S"], **found}


def levels(epsilon: float) -> dict[str, float]:
    """Noise of A and S at a total epsilon, in units of the clip norm."""
    if math.isinf(epsilon):
        return {"A": 0.0, "S": 0.0}
    schema = ClassSchema(10, 64, "NAS", clip_norm=1.0, nonnegative=True)
    privacy = Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    return {row.statistic: row.sigma for row in calibrate(schema, privacy, honest_shares=1).rows}


def shares(
    X: Array,
    y: NDArray[Any],
    n: int,
    trials: int,
    constraints: Constraints,
    effort: Mapping[str, int],
    disturbed: Callable[[Array, Array, np.random.Generator], tuple[Array, Array]] | None = None,
) -> Row:
    """Mean share of rows within 5 %, of certified runs, and of the baseline, over draws from the classes in turn."""
    got, prior, certified, seconds = [], [], [], []
    for trial in range(trials):
        rng = np.random.default_rng(trial)
        chosen = rng.choice(np.flatnonzero(y == trial % 10), n, replace=False)
        rows = X[chosen]
        found, took = attack(rows, constraints, rng, disturbed=disturbed, **effort)
        got.append(match(rows, found.rows).within())
        prior.append(match(rows, baseline(np.delete(X, chosen, axis=0), n, rng)).within())
        certified.append(found.certified)
        seconds.append(took)
    error = float(np.std(got) / math.sqrt(trials))
    return {
        "measured": float(np.mean(got)),
        "standard error": error,
        "certified": float(np.mean(certified)),
        "baseline": float(np.mean(prior)),
        "seconds": float(np.mean(seconds)),
    }


def attack(
    rows: Array,
    constraints: Constraints,
    rng: np.random.Generator,
    disturbed: Callable[[Array, Array, np.random.Generator], tuple[Array, Array]] | None = None,
    **effort: int,
) -> tuple[Recovered, float]:
    """The attack on the sums of rows, and its processor time in seconds."""
    A, S = rows.sum(axis=0), rows.T @ rows
    if disturbed is not None:
        A, S = disturbed(A, S, rng)
    watch: Stopwatch[str] = Stopwatch(time.process_time)
    with watch.timing("recover"):
        found = recover(len(rows), A, S, constraints=constraints, rng=rng, **effort)
    return found, watch.seconds["recover"]


if __name__ == "__main__":
    command("attacks.reconstruction", __doc__, tables)
