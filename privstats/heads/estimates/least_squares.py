"""The one solve behind both ridge heads: a penalty is chosen, then weights are computed.

Input: least-squares evidence. Output: weights on the columns as they came.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from privstats.errors import MissingStatisticError
from privstats.estimates.spectrum import adassp_penalty, denoised_solve
from privstats.heads.estimates.intercept import eliminate_constant, sums_about
from privstats.heads.estimates.penalty import (
    SINGULAR,
    GramSpectrum,
    fold_losses,
    gcv_penalty,
    likelihood_penalty,
    penalty_grid,
)
from privstats.heads.evidence import Array, FoldSums, GramEvidence

__all__ = ["Penalty", "Solution", "Solver", "solve"]

Solver: TypeAlias = Literal["auto", "plain", "adassp", "wiener"]
Penalty: TypeAlias = Literal["auto", "gcv", "evidence", "folds"] | float


@dataclass(frozen=True)
class Solution:
    """Weights ``(d, T)``, intercepts ``(T,)``, the penalty and the solver that gave them, and the condition number."""

    weights: Array
    intercept: Array
    penalty: float
    solver: str
    condition: float


def solve(evidence: GramEvidence, solver: Solver, penalty: Penalty) -> Solution:
    """Weights from sums.

    Raises:
        MissingStatisticError: the penalty needs a record count or folds that the evidence does not have.
    """
    noisy = evidence.sigma_G > 0 or evidence.sigma_h > 0
    solver = ("wiener" if noisy else "plain") if solver == "auto" else solver
    centred = eliminate_constant(evidence)
    chosen = _penalty(evidence, centred, penalty, noisy)
    if solver == "wiener":
        fit = denoised_solve(_counted(centred), chosen)
        return _with_intercept(evidence, centred, fit.weights, fit.penalty, solver, fit.values)
    spectrum = GramSpectrum.of(centred.G, centred.h)
    if chosen is None:
        chosen = denoised_solve(_counted(centred)).penalty
    if solver == "adassp":
        chosen += adassp_penalty(spectrum.raw, centred.sigma_G)
    # half the radius of the noise's own semicircle: a smaller eigenvalue is uninformative, and its inverse is large
    noise_alone = centred.sigma_G * math.sqrt(len(spectrum.values) / 2)
    return _with_intercept(evidence, centred, spectrum.weights(chosen, noise_alone), chosen, solver, spectrum.values)


def _penalty(evidence: GramEvidence, centred: GramEvidence, penalty: Penalty, noisy: bool) -> float | None:
    """The penalty as a number; None where the marginal likelihood of h alone must give it."""
    if not isinstance(penalty, str):
        return float(penalty)
    if penalty == "auto":
        counted = centred.records is not None and not noisy
        # folds have sqrt(F) times the noise of one sum, and choose worse by it than the evidence does
        penalty = "folds" if evidence.folds is not None and not noisy else "gcv" if counted else "evidence"
    if penalty == "folds":
        return _from_folds(evidence, centred)
    if penalty == "evidence" and (centred.sigma_q > 0 or centred.records is None):
        return None
    if centred.records is None:
        raise MissingStatisticError(
            "penalty='gcv' needs the record count, which G, h and q do not hold; pass records=, "
            "end the schema's transform with ConstantFeature, or use penalty='evidence'"
        )
    spectrum = GramSpectrum.denoised(centred.G, centred.h, centred.sigma_G)
    if penalty == "evidence":
        return likelihood_penalty(spectrum, centred.q, centred.records)
    intercept = evidence.constant is not None or bool(centred.feature_means.any() or centred.target_means.any())
    return gcv_penalty(spectrum, centred.q, centred.records, intercept)


def _counted(evidence: GramEvidence) -> GramEvidence:
    """With the fewest records that can have such sums, where their number is unknown.

    The targets' noise variance is estimated from q per record: a smaller count would give more than their bound allows.
    """
    return evidence if evidence.records is not None else replace(evidence, records=evidence.least_records)


def _from_folds(evidence: GramEvidence, centred: GramEvidence) -> float:
    folds = evidence.folds
    if folds is None:
        raise MissingStatisticError("penalty='folds' needs fold sums; give the RidgeSchema folds=5, or use 'evidence'")
    grid = penalty_grid(np.diagonal(centred.G))
    losses = [_fold_losses(evidence, folds, held, grid) for held in range(len(folds.q))]
    return float(grid[int(np.sum(losses, axis=0).argmin())])


def _fold_losses(evidence: GramEvidence, folds: FoldSums, held: int, grid: Array) -> Array:
    """Squared error on one fold of weights fitted on the others, for each penalty, ``(len(grid),)``."""
    rest = replace(
        evidence,
        G=evidence.G - folds.G[held],
        h=evidence.h - folds.h[held],
        q=evidence.q - float(folds.q[held]),
        folds=None,
    )
    trained = eliminate_constant(rest)
    test = replace(rest, G=folds.G[held], h=folds.h[held], q=float(folds.q[held]))
    return fold_losses(GramSpectrum.of(trained.G, trained.h), *_about(test, trained), grid)


def _about(test: GramEvidence, trained: GramEvidence) -> tuple[Array, Array, float]:
    """Sums of a held-out fold about the training folds' means, which is where a fitted intercept puts the origin."""
    c = test.constant
    if c is None:
        return test.G, test.h, test.q
    totals = (test.G[:-1, -1] / c, test.h[-1] / c, float(test.G[-1, -1]) / c**2)
    return sums_about(test.G[:-1, :-1], test.h[:-1], test.q, totals, (trained.feature_means, trained.target_means))


def _with_intercept(
    evidence: GramEvidence, centred: GramEvidence, weights: Array, penalty: float, solver: str, values: Array
) -> Solution:
    """Weights for the columns as they came: the intercept goes to the constant column where there is one."""
    intercept = centred.target_means - centred.feature_means @ weights
    if evidence.constant is None:
        return Solution(weights, intercept, penalty, solver, _condition(values, penalty))
    full = np.vstack([weights, intercept / evidence.constant])
    return Solution(full, np.zeros_like(intercept), penalty, solver, _condition(values, penalty))


def _condition(values: Array, penalty: float) -> float:
    least, most = float(values.min()) + penalty, float(values.max()) + penalty
    return most / least if least > SINGULAR * most else math.inf
