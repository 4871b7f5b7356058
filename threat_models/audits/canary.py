"""Lower bounds on mu from a group of canaries: copies of the worst-case record, present or not, told apart by score.

Trials with and without the group give confidence bounds on (TPR, FPR), and those a bound on mu that holds whatever the
mechanism is. An audit of the noise actually drawn; the ceiling is the plan's claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from privstats.dp import gaussian_epsilon, joint_mu
from privstats.encoding import flatten
from privstats.moments import measure
from privstats.randomness import Generator
from privstats.schema import ClassSchema, bare
from threat_models.audits.sensitivity import WorstPair, worst_pair
from threat_models.audits.target import Target
from threat_models.audits.verdict import Report

__all__ = ["GROUP_MU", "Bounds", "audit_canary", "canary_shift", "lower_bounds"]

GROUP_MU = 3.2
"""mu of the group at which (TPR, FPR) pins mu down best for a given number of trials."""

_PILOT = 0.1
_CHUNK_ENTRIES = 1 << 18

Scores: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Bounds:
    """What trials with and without the canaries prove, at the stated confidence.

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


def canary_shift(target: Target, sigmas: Mapping[str, float], rng: Generator) -> NDArray[np.int64]:
    """What one worst-case record moves in the flat vector, through the library's own measuring.

    The record comes from the adversarial search, not from the closed form that is under audit. Under replace-one it is
    the difference of the two records of the worst pair.
    """
    pair = worst_pair(target.schema, sigmas, target.privacy.adjacency, rng, starts=4)
    shift = _flat(target, pair, 0)
    return shift if len(pair.features) == 1 else shift - _flat(target, pair, 1)


def audit_canary(target: Target, rng: Generator, *, trials: int = 5000, confidence: float = 0.95) -> Report:
    """Lower bounds per statistic and jointly, beside the claims.

    The confidence is that of the whole table: each row is bounded at 1 - (1 - confidence) / rows.

    Args:
        trials: releases with and as many without the canaries.
    """
    sigma = dict(target.noise.sigma)
    questions = {**{s: {s: value} for s, value in sigma.items()}, "joint": sigma}
    experiments = {name: _Experiment.build(target, noise, rng) for name, noise in questions.items()}
    scores = _play(target, experiments, trials, rng)
    each = 1 - (1 - confidence) / len(experiments)
    rows = [_row(target, name, experiment, *scores(name), confidence=each) for name, experiment in experiments.items()]
    notes = (
        f"{trials} releases with and {trials} without the group, worst session the plan admits "
        f"({target.privacy.model}); {confidence:.0%} confidence for the table",
    )
    columns = (
        "statistic",
        "copies",
        "mu claimed",
        "mu at least",
        "ratio",
        "eps claimed",
        "eps at least",
        "by one canary",
    )
    violated = any(row[-1] for row in rows)
    return Report("canary", columns, tuple(row[:-1] for row in rows), notes, violated, json_only=("by one canary",))


@dataclass(frozen=True)
class _Experiment:
    """One attacker: it looks along ``direction``, in which one canary moves the release by ``step`` deviations."""

    claimed: float
    step: float
    copies: int
    direction: NDArray[np.float64]

    @classmethod
    def build(cls, target: Target, sigmas: Mapping[str, float], rng: Generator) -> _Experiment:
        shift = canary_shift(target, sigmas, rng)
        levels = target.claimed_sigma()
        named = np.concatenate([np.full(s.size, s.statistic in sigmas) for s in target.layout.segments])
        weighted = np.where(named, shift / levels**2, 0.0)
        step = math.sqrt(float(weighted @ shift))
        claimed = joint_mu(target.schema, sigmas, target.privacy.adjacency)
        return cls(claimed, step, max(1, round(GROUP_MU / claimed)), weighted / step)


def _play(
    target: Target, experiments: Mapping[str, _Experiment], trials: int, rng: Generator
) -> Callable[[str], tuple[Scores, Scores]]:
    """Draw the releases once and let every attacker look: (scores without, scores with one canary's worth at hand)."""
    directions = np.stack([experiment.direction for experiment in experiments.values()], axis=1)
    chunk = max(1, _CHUNK_ENTRIES // target.layout.size)
    seen = [
        target.draw(min(chunk, 2 * trials - start), rng) @ directions for start in range(0, 2 * trials, chunk)
    ]  # adding the same integers to every release moves its score by exactly copies x step
    table = np.vstack(seen)
    place = {name: i for i, name in enumerate(experiments)}
    return lambda name: (table[:trials, place[name]], table[trials:, place[name]])


def _row(
    target: Target, name: str, experiment: _Experiment, out: Scores, noise: Scores, *, confidence: float
) -> tuple[str, int, float, float, float, float, float, float, bool]:
    privacy = target.privacy
    group = lower_bounds(out, noise + experiment.copies * experiment.step, confidence, privacy.delta)
    single = lower_bounds(out, noise + experiment.step, confidence, privacy.delta)
    per_record = group.mu / experiment.copies
    unit = _unit_mu(target, name) / experiment.claimed
    claimed, found = experiment.claimed * unit, per_record * unit
    return (
        name,
        experiment.copies,
        claimed,
        found,
        found / claimed,
        gaussian_epsilon(claimed, privacy.delta),
        gaussian_epsilon(found, privacy.delta) if found > 0 else 0.0,
        single.epsilon,
        found > claimed,
    )


def _unit_mu(target: Target, name: str) -> float:
    """What the plan claims of one unit: of all statistics, or of one alone."""
    return next((row.mu for row in target.noise.rows if row.statistic == name), target.noise.mu)


def _least(successes: int, trials: int, tail: float) -> float:
    """Clopper-Pearson: the lower end of the interval for a success probability."""
    return float(beta.ppf(tail, successes, trials - successes + 1)) if successes else 0.0


def _flat(target: Target, pair: WorstPair, which: int) -> NDArray[np.int64]:
    x = pair.features[which : which + 1]
    schema = bare(target.schema)  # a canary is a vector behind the public transform: any may be there
    if isinstance(schema, ClassSchema):
        label = np.array([which if pair.apart else 0])
        return flatten(measure(schema, x, label))
    return flatten(measure(schema, x, pair.targets[which : which + 1]))
