"""The paper's private version as it is written, what it truly promises, and what the same promise costs here.

Algorithm 2 gives G and h the same noise, each as if it were released alone, by a formula that is no bound above epsilon
1; and it is run on records far outside the bounds that its proof assumes. Both are measured, neither is repaired here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

import privstats as ps
from benchmarks.papers.ridge.data import Array, Federation, Split, mse
from benchmarks.papers.ridge.library import PENALTY, measured
from benchmarks.refinement import least_squares, regression
from privstats import heads
from privstats.dp.gaussian import compose, gaussian_epsilon, gaussian_mu
from privstats.dp.privacy import Adjacency
from privstats.dp.sensitivities import joint_mu
from privstats.randomness import seeded

__all__ = [
    "DELTA",
    "algorithm_2",
    "dp_fedavg",
    "fedavg_epsilon",
    "private_plan",
    "private_weights",
    "tau",
    "true_epsilon",
]

DELTA = 1e-5
PROBLEM = regression.PROBLEMS[0]  # the paper's data within a clip norm of 11 and targets within 4
_ROUNDS = 100


def tau(epsilon: float) -> float:
    """The paper's noise per entry: sqrt(2 ln(1.25 / delta)) / epsilon."""
    return math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon


def algorithm_2(federation: Federation, epsilon: float, rng: np.random.Generator, noises: int | None = None) -> Array:
    """Weights ``(d,)`` of the paper's Algorithm 2: every client adds noise, nobody clips.

    Not differentially private at ``epsilon``, for any records: that is the point.

    Args:
        federation: who takes part.
        epsilon: what the paper claims for it.
        rng: of the noise.
        noises: how many clients' noise is in the sums; all of them as it is written.
    """
    d, deviation = federation.features, tau(epsilon)
    G, h = PENALTY * np.eye(d), np.zeros(d)
    G += federation.all_rows.T @ federation.all_rows
    h += federation.all_rows.T @ federation.all_targets
    for _ in range(federation.clients if noises is None else noises):
        noise = deviation * rng.standard_normal((d, d))
        G += (noise + noise.T) / 2
        h += deviation * rng.standard_normal(d)
    return np.asarray(np.linalg.solve(G, h), np.float64)


def true_epsilon(epsilon: float, adjacency: Adjacency, *, clip_norm: float = 1.0, target_bound: float = 1.0) -> float:
    """The smallest epsilon that Algorithm 2's noise for ``epsilon`` keeps at the same delta.

    Guarantee:
        Unit: one record of one client. G and h together are mu-GDP by ``joint_mu`` (docs/proofs/records.md), attained
        by some pair of data sets, and the Gaussian curve is exact: no smaller epsilon holds for records within the
        bounds.

    Args:
        epsilon: what the paper claims.
        adjacency: of the promise.
        clip_norm, target_bound: what the records obey; 1 and 1 are the paper's assumption.
    """
    schema = ps.RidgeSchema(2, clip_norm=clip_norm, target_bound=target_bound)
    deviation = tau(epsilon)
    return gaussian_epsilon(joint_mu(schema, {"G": deviation, "h": deviation}, adjacency), DELTA)


def fedavg_epsilon(epsilon: float) -> float:
    """The same for the paper's DP-FedAvg: a hundred rounds at epsilon / sqrt(100) each, one sensitivity of 1 a round.

    Guarantee:
        Unit: one record of one client, add-remove. The rounds compose as Gaussians: mu is 1 / tau of ``epsilon``.
    """
    return gaussian_epsilon(compose([1 / tau(epsilon / math.sqrt(_ROUNDS))] * _ROUNDS), DELTA)


def private_plan(federation: Federation, epsilon: float, model: Any, adjacency: Adjacency) -> ps.Plan:
    """A plan that keeps (epsilon, delta) for one record, on rows clipped to 11 and targets to 4."""
    schema = ps.RidgeSchema(federation.features, clip_norm=PROBLEM.bounds.row, target_bound=PROBLEM.bounds.target)
    privacy = ps.Privacy(model=model, unit="record", adjacency=adjacency, epsilon=epsilon, delta=DELTA)
    cohort = ps.Cohort(federation.clients, federation.clients, len(federation.all_targets))
    return ps.Plan(schema=schema, cohort=cohort, privacy=privacy)


def private_weights(federation: Federation, plan: ps.Plan, seed: int) -> Array:
    """Weights ``(d,)`` of one private release, read by a head that knows its noise."""
    release = ps.session.aggregate_unmasked(plan, measured(plan, federation), seeded(seed))
    head = heads.Ridge(solver="wiener", fit_intercept=False, records=len(federation.all_targets)).fit_release(release)
    return head.coef_


def dp_fedavg(splits: Sequence[Split], epsilon: float, adjacency: Adjacency) -> list[float]:
    """Test errors of a hundred rounds of clipped gradients under central noise, at the best of fifty recipes.

    Each round every client sends its sum of per-record gradients clipped to the recipe's norm; noise by exact Gaussian
    composition, twice as much where a record is replaced, whose gradient can turn around. The recipe (rate, clip,
    momentum) is the best on a fifth of the first training set, at no charge.
    """
    moved = 2 if adjacency == "replace-one" else 1
    noise = moved * math.sqrt(_ROUNDS) / gaussian_mu(epsilon, DELTA)
    X, _, y, _ = splits[0]
    fit, held, fit_y, held_y = train_test_split(X, y, test_size=0.2, random_state=0)
    recipes = [
        least_squares.Recipe(rate, clip, momentum, 1.0, _ROUNDS)
        for rate in least_squares.RATES
        for clip in least_squares.CLIPS
        for momentum in least_squares.MOMENTA
    ]
    tried, _ = least_squares.descended(
        PROBLEM.bounds, (fit, held, fit_y, held_y), recipes, noise, np.random.default_rng(0)
    )
    best = recipes[int(np.nanargmin([mse(weights, held, held_y) for weights in tried]))]
    errors = []
    for seed, split in enumerate(splits):
        last, _ = least_squares.descended(PROBLEM.bounds, split, [best], noise, np.random.default_rng(1 + seed))
        errors.append(mse(last[0], split[1], split[3]))
    return errors
