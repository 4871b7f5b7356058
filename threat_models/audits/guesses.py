"""Bound mu from guesses, or from scores, about canaries that one release was made with or without."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import nct

_SHARES = (1.0, 0.8, 0.6, 0.4, 0.2, 0.1, 0.05)
_HALVINGS = 40
_HIGHEST_MU = 64.0
_NORMAL = NormalDist()
# Keeps ndtri finite where a probability has reached 1.
_ALMOST = 1 - 2.0**-53


def lower_bound(correct: int, guesses: int, canaries: int, confidence: float) -> float:
    """Return a lower bound on mu, in standard deviations, that holds at ``confidence``.

    Every canary was present or absent by an independent fair coin. An attacker who did not see the coins guessed
    ``guesses`` of them, and ``correct`` guesses were right. The attacker may choose which coins to guess, and the
    guesses may depend on each other. The bound is the supremum of the mu that :func:`contradicted` excludes; 0 if it
    excludes none.

    Args:
        correct: right guesses, 0 to ``guesses``.
        guesses: coins that the attacker guessed.
        canaries: coins in total.
        confidence: probability, over coins and noise, that the bound does not exceed the true mu.

    Example:
        >>> from threat_models.audits.guesses import lower_bound
        >>> lower_bound(50, 100, 100, 0.95)
        0.0
        >>> round(lower_bound(800, 1000, 1000, 0.95), 2)
        0.58
    """
    if not contradicted(0.0, correct, guesses, canaries, confidence):
        return 0.0
    low, high = 0.0, _HIGHEST_MU
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        excluded = contradicted(middle, correct, guesses, canaries, confidence)
        low, high = (middle, high) if excluded else (low, middle)
    return low


def contradicted(mu: float, correct: int, guesses: int, canaries: int, confidence: float) -> bool:
    """Return whether a mu-GDP release yields that many right guesses with probability below ``1 - confidence``.

    Formula (Mahloujifar, Melis, Chaudhuri: Auditing f-Differential Privacy in One Run, arXiv 2410.22235, Algorithm 3,
    for coins, with the trade-off curve of N(0, 1) against N(mu, 1)). Let tau = 1 - confidence and suppose that at
    least ``correct`` of ``guesses`` are right with probability tau or more. Then, over a coin drawn at random from
    all, r bounds the probability that it is guessed right, and h that it is guessed wrong, in runs with at least i
    right guesses. Both start at i = ``correct`` with r = tau correct / canaries and h = tau (guesses - correct) /
    canaries. Each step down to i - 1 raises them, since a wrong guess turns right when the coin turns, and turning one
    coin moves no probability by more than the curve allows: h <- max(h, Phi(Phi^-1(r) - mu)), and r grows by
    i / (guesses - i) times the growth of h. At i = 0 their sum is the probability that the coin is guessed at all,
    which is guesses / canaries. A larger sum contradicts the assumption.

    Adjacency: one canary present or absent, or exchanged; unit: the canary.

    Example:
        >>> from threat_models.audits.guesses import contradicted
        >>> contradicted(1.0, 950, 1000, 1000, 0.95), contradicted(4.0, 950, 1000, 1000, 0.95)
        (True, False)
    """
    tau = 1 - confidence
    right = tau * correct / canaries
    wrong = tau * (guesses - correct) / canaries
    limit = guesses / canaries
    for place in range(correct - 1, -1, -1):
        raised = max(wrong, _turned(right, mu))
        right = min(1.0, right + place / (guesses - place) * (raised - wrong))
        wrong = raised
        if right + wrong > limit:
            return True
    return False


def _turned(probability: float, mu: float) -> float:
    """Return the least probability of an event under a neighbour: Phi(Phi^-1(p) - mu)."""
    if probability <= 0:
        return 0.0
    return _NORMAL.cdf(_NORMAL.inv_cdf(min(probability, _ALMOST)) - mu)


def normal_bound(scores: NDArray[np.float64], coins: NDArray[np.bool_], confidence: float) -> float:
    """Return a lower bound on mu that holds at ``confidence`` where scores are normal with one variance.

    Formula: scores of present canaries exceed those of absent ones by mu standard deviations, so the two-sample t
    statistic has a noncentral t distribution with noncentrality mu sqrt(n1 n0 / (n1 + n0)). The bound is the mu at
    which a statistic as large as the measured one has probability 1 - confidence; 0 where that is negative. Scores in
    place of guesses are an idea of Agrawal et al., Let's Ask Gauss (arXiv 2606.12733), whose distribution is
    asymptotic. With normal noise and fair coins this one is exact up to the canaries' mutual interference.

    Args:
        scores: larger means present, ``(n,)``.
        coins: True where the canary was present.

    Example:
        >>> from threat_models.audits.guesses import normal_bound
        >>> chance = np.random.default_rng(1)
        >>> coins = chance.random(1000) < 0.5
        >>> round(normal_bound(chance.normal(size=1000) + coins, coins, 0.95), 2)
        0.92
    """
    present, absent = scores[coins], scores[~coins]
    if min(len(present), len(absent)) < 2:
        return 0.0
    freedom, scale = len(scores) - 2, np.sqrt(len(present) * len(absent) / len(scores))
    spread = np.sqrt((np.var(present) * len(present) + np.var(absent) * len(absent)) / freedom)
    statistic = float(scale * (present.mean() - absent.mean()) / spread)
    if nct.sf(statistic, freedom, 0.0) >= 1 - confidence:
        return 0.0
    low, high = 0.0, _HIGHEST_MU
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rare = nct.sf(statistic, freedom, middle * scale) < 1 - confidence
        low, high = (middle, high) if rare else (low, middle)
    return low


def number_of_guesses(mu: float, canaries: int, confidence: float) -> tuple[int, float]:
    """Return how many coins an attacker should guess if canaries move the release by ``mu``, and the expected bound.

    An attacker sees each coin's score, N(mu / 2, 1) or N(-mu / 2, 1), and guesses those with the largest absolute
    values. The number follows from public values alone, so choosing it costs no confidence.

    Example:
        >>> from threat_models.audits.guesses import number_of_guesses
        >>> guesses, expected = number_of_guesses(1.0, 1000, 0.95)
        >>> guesses, round(expected, 2)
        (200, 0.61)
    """
    expected = {}
    for share in _SHARES:
        guesses = max(1, round(share * canaries))
        right = round(_accuracy(mu, guesses / canaries) * guesses)
        expected[guesses] = lower_bound(min(right, guesses), guesses, canaries, confidence)
    best = max(expected, key=lambda guesses: (expected[guesses], guesses))
    return best, expected[best]


def _accuracy(mu: float, share: float) -> float:
    """Return the share of right guesses among the ``share`` of scores that are largest in absolute value."""
    low, high = 0.0, -float(ndtri(share / 2)) + mu + 1
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = float(np.sum(ndtr([mu / 2 - middle, -mu / 2 - middle])))
        low, high = (middle, high) if beyond > share else (low, middle)
    return float(ndtr(mu / 2 - low)) / share
