"""Confidence intervals for measured rates: proportions over worlds, ROC points with held-out thresholds, bands.

They are valid for any attack and any mechanism with independent worlds. The report turns them into verdicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, t

from privstats.randomness import Generator, uniform

Scores = NDArray[np.float64]
Interval = tuple[float, float]


def clopper_pearson(successes: float, trials: float, confidence: float) -> Interval:
    """The exact interval of a success probability; (0, 1) without trials.

    Fractional trials are those of :func:`proportion`, for which the Beta quantiles are the usual extension.
    """
    if trials <= 0:
        return 0.0, 1.0
    tail = (1 - confidence) / 2
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes > 0 else 0.0
    high = float(beta.ppf(1 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return low, high


def proportion(values: Scores, confidence: float) -> Interval:
    """Interval of a mean rate from one value in [0, 1] per independent world.

    Clopper-Pearson with the effective number of trials, p (1 - p) over the variance of the mean, corrected for the
    degrees of freedom (Korn and Graubard 1998). Never fewer trials than worlds when they all agree, so that twenty
    perfect worlds do not prove perfection. With values 0 and 1 it is Clopper-Pearson.
    """
    worlds = len(values)
    if worlds < 2:
        return 0.0, 1.0
    mean = float(values.mean())
    variance = float(values.var(ddof=1)) / worlds
    if variance == 0 or np.isin(values, (0.0, 1.0)).all():
        return clopper_pearson(mean * worlds, worlds, confidence)
    tail = (1 + confidence) / 2
    shrink = (float(t.ppf(tail, 10**6)) / float(t.ppf(tail, worlds - 1))) ** 2
    trials = max(1.0, mean * (1 - mean) / variance * shrink)
    return clopper_pearson(mean * trials, trials, confidence)


def wins(inside: Scores, outside: Scores, rng: Generator) -> float:
    """Share of pairs in which the member scores higher; a tie is a coin, so that the mean is the area under the ROC.

    A single pair gives 0 or 1, which keeps the interval of :func:`proportion` exact.
    """
    higher = inside[:, None] > outside[None, :]
    tied = inside[:, None] == outside[None, :]
    coins = uniform(tied.size, rng).reshape(tied.shape) < 0.5
    return float((higher | (tied & coins)).mean())


def dkw_margin(samples: int, confidence: float) -> float:
    """Half the width of a band around an empirical distribution function that holds everywhere at once (Massart 1990).

    sqrt(ln(2 / (1 - confidence)) / 2n); an ROC takes one such margin on each axis.
    """
    return math.sqrt(math.log(2 / (1 - confidence)) / (2 * samples)) if samples else 1.0


@dataclass(frozen=True)
class Point:
    """One operating point whose threshold was chosen on other trials than it was measured on.

    Attributes:
        wanted: the false positive rate that was aimed at.
        fpr, tpr: what was measured on the trials that were held out.
        fpr_interval, tpr_interval: Clopper-Pearson.
    """

    wanted: float
    fpr: float
    tpr: float
    fpr_interval: Interval
    tpr_interval: Interval


def operating_point(inside: Scores, outside: Scores, wanted: float, confidence: float) -> Point | None:
    """TPR at a wanted FPR: even worlds choose the threshold, odd worlds measure; None with too few strangers.

    A score equal to the threshold counts as "not a member" on both sides, so ties cannot raise the FPR unseen.

    Args:
        inside, outside: scores of members and strangers, ``(worlds, each)``.
    """
    chosen, held = outside[::2].ravel(), outside[1::2]
    if chosen.size * wanted < 1 or held.size * wanted < 1:
        return None
    threshold = np.sort(chosen)[::-1][int(chosen.size * wanted)]
    hits = (inside[1::2] > threshold).mean(axis=1)
    alarms = (held > threshold).mean(axis=1)
    level = 1 - (1 - confidence) / 2
    return Point(
        wanted,
        float(alarms.mean()),
        float(hits.mean()),
        proportion(alarms, level),
        proportion(hits, level),
    )


@dataclass(frozen=True)
class Roc:
    """The empirical curve, thinned for drawing: increasing FPR, with a band that holds for the whole curve."""

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    margin: tuple[float, float]


def roc(inside: Scores, outside: Scores, confidence: float, points: int = 200) -> Roc:
    """The empirical ROC of scores ``(worlds, each)`` with its DKW margins on (FPR, TPR), counted in worlds."""
    level = 1 - (1 - confidence) / 2
    margin = (dkw_margin(len(outside), level), dkw_margin(len(inside), level))
    levels = np.unique(np.concatenate([inside.ravel(), outside.ravel()]))[::-1]
    fpr, tpr = _above(outside.ravel(), levels), _above(inside.ravel(), levels)
    grid = np.concatenate([[0.0], np.geomspace(1e-4, 1, points)])
    keep = np.unique(np.searchsorted(fpr, grid, side="right") - 1)
    return Roc(tuple(map(float, fpr[keep])), tuple(map(float, tpr[keep])), margin)


def _above(scores: Scores, levels: Scores) -> Scores:
    """Share of scores at or above each level, after a leading 0."""
    return np.concatenate([[0.0], 1 - np.searchsorted(np.sort(scores), levels, side="left") / len(scores)])
