"""Lower bounds on mu from a group of canaries: copies of the worst-case record, present or not, distinguished by score.

Trials with and without the group give confidence bounds on (TPR, FPR), and those a bound on mu that is valid for any
mechanism. An audit of the real path, contribution to release; the ceiling is the promise in the plan.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from privstats.dp import gaussian_epsilon
from privstats.printable import delta_text
from privstats.progress import track
from privstats.randomness import Generator
from threat_models.audits.canary_unit import canary_shift
from threat_models.audits.edges import edge_cases
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

GROUP_MU = 3.2
"""mu of the group at which (TPR, FPR) pins mu down best for a given number of trials."""

_PILOT = 0.1
_CHUNK_ENTRIES = 1 << 18
_TOLERANCE = 1e-9
_COLUMNS = (
    "statistic",
    "copies",
    "mu claimed",
    "mu at least",
    "ratio",
    "eps claimed",
    "eps at least",
    "by one canary",
    "verdict",
)

Scores: TypeAlias = NDArray[np.float64]
Row: TypeAlias = tuple[str, int, float, float, float, float, float, float, str]


@dataclass(frozen=True)
class Bounds:
    """The result of trials with and without the canaries, at the stated confidence.

    Attributes:
        mu: lower bound on mu of the group, Phi^-1(TPR) - Phi^-1(FPR) at the ends of their Clopper-Pearson intervals.
        epsilon: lower bound on epsilon of the group straight from the definition, log((TPR - delta) / FPR).
    """

    mu: float
    epsilon: float


def lower_bounds(out: Scores, present: Scores, confidence: float, delta: float) -> Bounds:
    """Bounds on mu and epsilon from scores without and with the group, higher meaning present.

    The threshold is chosen on the first tenth of the trials, the bounds come from the rest, so they hold at
    ``confidence`` for any mechanism with independent trials. An attacker that guesses worse than a coin proves 0.
    """
    pilot = max(1, int(_PILOT * min(len(out), len(present))))
    threshold = (np.median(out[:pilot]) + np.median(present[:pilot])) / 2
    out, present = out[pilot:], present[pilot:]
    tail = (1 - confidence) / 2
    tpr = _least(int((present > threshold).sum()), len(present), tail)
    fpr = 1 - _least(int((out <= threshold).sum()), len(out), tail)
    mu = max(0.0, float(ndtri(tpr) - ndtri(fpr)))
    epsilon = math.log((tpr - delta) / fpr) if tpr - delta > fpr else 0.0
    return Bounds(mu, epsilon)


def audit_canary(target: Target, rng: Generator, *, trials: int = 5000, confidence: float = 0.95) -> Report:
    """Lower bounds per statistic and jointly, and at the edges of the path, beside the claims.

    The claim of the joint row is the mu of the plan's epsilon and delta; that of a statistic what the plan prints for
    it, or the joint one where that is smaller. The confidence is that of the whole table: each row is bounded at
    1 - (1 - confidence) / rows.

    Args:
        trials: releases, each of which is looked at with and without the canaries.
    """
    questions = {**{s: {s: value} for s, value in target.sigma.items()}, "joint": target.sigma}
    experiments = {name: _Experiment.build(target, noise, rng) for name, noise in questions.items()}
    table = _play(target, list(experiments.values()), trials, rng)
    edges = edge_cases(target, experiments["joint"].shift, rng, trials)
    level = 1 - (1 - confidence) / (len(experiments) + len(edges))
    rows = [
        _row(target, name, experiment.copies, table[:, place], experiment.separation, level)
        for place, (name, experiment) in enumerate(experiments.items())
    ]
    rows += [
        _row_of(target, edge.name, 1, lower_bounds(edge.out, edge.present, level, _delta(target))) for edge in edges
    ]
    promise = target.promise
    notes = (
        f"{trials} releases of the worst session the plan admits ({target.privacy.model}), each with and without "
        f"the group; {confidence:.0%} confidence for the table",
        f"joint is held against epsilon {promise.epsilon:g} at delta {delta_text(promise.delta)} as the plan states "
        "them",
    )
    hidden = ("by one canary", "verdict")
    return Report("canary", _COLUMNS, tuple(rows), notes, any(row[-1] == "violates" for row in rows), json_only=hidden)


@dataclass(frozen=True, eq=False)
class _Experiment:
    """One attacker, along ``direction``: one canary moves the release by ``separation`` deviations there."""

    shift: NDArray[np.int64]
    separation: float
    copies: int
    direction: NDArray[np.float64]

    @classmethod
    def build(cls, target: Target, sigmas: Mapping[str, float], rng: Generator) -> _Experiment:
        shift = canary_shift(target, sigmas, rng)
        named = np.concatenate([np.full(s.size, s.statistic in sigmas) for s in target.layout.segments])
        weighted = np.where(named, shift / target.levels() ** 2, 0.0)
        separation = math.sqrt(float(weighted @ shift))
        return cls(shift, separation, max(1, round(GROUP_MU / separation)), weighted / separation)


def _play(target: Target, experiments: Sequence[_Experiment], trials: int, rng: Generator) -> Scores:
    """Scores of every attacker on every release without canaries, ``(trials, attackers)``.

    Adding the same integers to a release moves its score by exactly copies x separation, so one release serves both
    worlds: the two confidence intervals are joined by a union bound, which does not ask for independence.
    """
    directions = np.stack([experiment.direction for experiment in experiments], axis=1)
    chunk = max(1, _CHUNK_ENTRIES // target.layout.size)
    starts = track("playing", range(0, trials, chunk))
    return np.vstack([target.draw(min(chunk, trials - start), rng) @ directions for start in starts])


def _row(target: Target, name: str, copies: int, noise: Scores, separation: float, confidence: float) -> Row:
    group = lower_bounds(noise, noise + copies * separation, confidence, _delta(target))
    single = lower_bounds(noise, noise + separation, confidence, _delta(target))
    return _row_of(target, name, copies, Bounds(group.mu / copies, single.epsilon))


def _row_of(target: Target, name: str, copies: int, bounds: Bounds) -> Row:
    printed = next((row.mu for row in target.noise.rows if row.statistic == name), math.inf)
    claimed = min(printed, target.promise.mu)
    violated = bounds.mu > claimed * (1 + _TOLERANCE)
    return (
        name,
        copies,
        claimed,
        bounds.mu,
        bounds.mu / claimed,
        gaussian_epsilon(claimed, _delta(target)),
        gaussian_epsilon(bounds.mu, _delta(target)) if bounds.mu > 0 else 0.0,
        bounds.epsilon,
        "violates" if violated else "no evidence",
    )


def _delta(target: Target) -> float:
    return target.promise.delta


def _least(successes: int, trials: int, tail: float) -> float:
    """Clopper-Pearson: the lower end of the interval for a success probability."""
    return float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0
