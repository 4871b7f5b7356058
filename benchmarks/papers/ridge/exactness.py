"""Theorems 2 and 8 and Proposition 5, as equalities of integers where the paper has equalities.

The paper shows equal errors; equal sums say more, because every digit of every model follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Row, Rows
from benchmarks.papers.cells import Ours
from benchmarks.papers.ridge.data import Array, Federation
from benchmarks.papers.ridge.library import PENALTY, exact_plan, measured, one_message, weights_of
from benchmarks.papers.ridge.scale import PAPER, Scale
from privstats import heads
from privstats.encoding import flatten
from privstats.workflows.simulate import run

__all__ = ["dropouts", "penalties", "recovery"]

_VANISHED = (0.1, 0.3, 0.5)
_GRID = tuple(10.0**power for power in range(-4, 4))
_FEW = 13  # records a client: about a hundred and sixty more than features, so that the penalty matters


def recovery(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Theorem 2: the total of the clients' sums is the sums of all records in one place, with ``==``."""
    rows: list[Row] = []
    for count in scale.cohorts:
        federation = Federation.draw(0, clients=count, each=200)
        plan = exact_plan(federation)
        release = ps.session.aggregate_unmasked(plan, measured(plan, federation))
        oracle = federation.oracle(PENALTY)
        distance = np.linalg.norm(weights_of(release) - oracle) / np.linalg.norm(oracle)
        rows.append(
            {
                "clients": count,
                "federated == centralised": bool(np.array_equal(release.vector, _pooled(plan, federation))),
                "weights from float64 ridge": float(distance),
            }
        )
    yield f"{PAPER}, Theorem 2: exact recovery", rows


def dropouts(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Theorem 8, under masks: clients vanish before their one message; the sum is that of the others."""
    rows: list[Row] = []
    for share in _VANISHED if len(scale.seeds) > 2 else _VANISHED[-1:]:
        errors, equal = [], []
        for seed in scale.seeds:
            federation = Federation.draw(seed)
            gone = np.random.default_rng(seed).permutation(federation.clients)[: round(share * federation.clients)]
            there = np.setdiff1d(np.arange(federation.clients), gone)
            rng = ps.randomness.seeded(seed)
            plan = one_message(exact_plan(federation), rng, fewest=len(there))
            vanishing = {plan.masking.upload_step: {int(client) for client in gone}}
            session = run(plan, measured(plan, federation), vanishing, rng)
            equal.append(bool(np.array_equal(session.release.vector, _pooled(plan, federation.among(there)))))
            errors.append(federation.error(weights_of(session.release)))
        found = Ours.of(errors)
        rows.append(
            {
                "vanished": f"{share:.0%}",
                "sum == the others' pooled": all(equal),
                "MSE": found.mean,
                "se": found.error,
                "seeds": found.seeds,
            }
        )
    yield f"{PAPER}, Theorem 8: vanished clients", rows


def penalties(scale: Scale) -> Iterator[tuple[str, Rows]]:
    """Proposition 5: leaving a client out shows the server every client's sums; folds within the clients do not."""
    federations = [Federation.draw(seed, each=_FEW) for seed in scale.seeds]
    ways = {
        "the paper's default, .01": ([f.error(f.oracle(PENALTY)) for f in federations], "all"),
        "leave one client out": ([f.error(f.oracle(_left_out(f))) for f in federations], "each client's"),
        "privstats, five folds": ([f.error(_by_folds(f)) for f in federations], "all"),
    }
    rows = []
    for way, (errors, seen) in ways.items():
        found = Ours.of(errors)
        rows.append({"penalty by": way, "MSE": found.mean, "se": found.error, "seeds": found.seeds, "sums seen": seen})
    yield f"{PAPER}, Proposition 5: the penalty, 11 records a client", rows


def _pooled(plan: ps.Plan, federation: Federation) -> NDArray[np.int64]:
    """The sums of all records, measured in one place."""
    return flatten(ps.measure(plan.schema, federation.all_rows, federation.all_targets))


def _left_out(federation: Federation) -> float:
    """The penalty with the least total squared error of clients that were left out."""
    losses = []
    for penalty in _GRID:
        total = 0.0
        for client in range(federation.clients):
            others = federation.among(np.setdiff1d(np.arange(federation.clients), [client]))
            error = federation.targets[client] - federation.rows[client] @ others.oracle(penalty)
            total += float(error @ error)
        losses.append(total)
    return _GRID[int(np.argmin(losses))]


def _by_folds(federation: Federation) -> Array:
    plan = exact_plan(federation, folds=5)
    release = ps.session.aggregate_unmasked(plan, measured(plan, federation))
    return heads.Ridge(penalty="folds", fit_intercept=False).fit_release(release).coef_
