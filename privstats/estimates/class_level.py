"""Set the level of a softmax whose rounds end before it: the mean probability of each class.

Rounds start at equally likely classes, and the constant column of a row is short. So under noise a rare class keeps too
much probability, and clipped residuals take too much from each of several uneven classes. The class release knows the
shares. Shifts of the scores, one per class, cost no budget. They follow the shares only as far as the counts' noise and
the model of scores leave no doubt.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from privstats.estimates import denoise
from privstats.estimates.clip_link import normal_scores
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening

_TOLERANCE = 0.3
"""Standard deviation of a modelled mean probability, over the class's share: scores need not be normal."""
_MAX_ITERATIONS = 100
_TINY = float(np.finfo(np.float64).tiny)


def level_shifts(whitening: SoftmaxWhitening, sums: NoisyClassSums, weights: Array) -> Array:
    """Return what to add to each class's score ``W u``, ``(C,)``, of sum 0.

    Over the records scores are taken for normal, about the mean row's; they yield each class's mean probability p. The
    release's share is s, with noise v. Then p moves by ``(s - p) max(0, 1 - (v^2 + t^2) / (s - p)^2)``, with t = .3 of
    s or of 1 - s, whichever is less (James and Stein 1961).

    Args:
        weights: W, ``(C, k)``, in the filter's coordinates.

    Example:
        >>> from privstats.estimates.class_level import level_shifts
        >>> from privstats.estimates.denoise import NoisyClassSums
        >>> from privstats.estimates.softmax import SoftmaxWhitening
        >>> N, A = np.array([9_900.0, 100.0]), np.diag([9_900.0, 100.0])
        >>> sums = NoisyClassSums(N, A, B=A, sigma={"N": 0.1, "A": 0.1, "B": 0.1})
        >>> even = np.zeros((2, 3))  # both classes are equally likely
        >>> level_shifts(SoftmaxWhitening.of(sums), sums, even).round(1).tolist()  # half of log 99
        [2.3, -2.3]
    """
    counts = denoise.counts(sums.N, sums.sigma["N"])
    shares, noise = counts / counts.sum(), sums.sigma["N"] / counts.sum()
    row = np.append(sums.A.sum(axis=0) @ whitening.vectors * (whitening.scale * whitening.stretch), 0.0) / counts.sum()
    row[-1] = INTERCEPT
    scores = normal_scores(whitening, sums, weights, counts) + weights @ row
    found = softmax(scores, axis=1).mean(axis=0)
    gap = shares - found
    doubt = noise**2 + np.square(_TOLERANCE * np.minimum(shares, 1 - shares))
    certain = np.maximum(0.0, 1 - doubt / np.maximum(np.square(gap), _TINY))
    target = found + certain * gap
    target = target / target.sum()
    shifts = np.zeros(len(shares))
    for _ in range(_MAX_ITERATIONS if certain.any() else 0):
        shifts += np.log(target / softmax(scores + shifts, axis=1).mean(axis=0))
    return np.asarray(shifts - shifts.mean())
