"""Compute how far noise moves the mean predicted probability, without B's in the map of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from privstats.estimates import softmax
from privstats.estimates.clip_link import Match
from privstats.estimates.denoise import Array, NoisyClassSums
from privstats.estimates.filter_bank import Filter
from privstats.estimates.recipes import CAUTION, SoftmaxRecipe
from privstats.estimates.softmax import INTERCEPT, SoftmaxWhitening


def mean_noise(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    states: Sequence[Filter],
    rounds: Sequence[tuple[float, float]],
    temperature: float = 1.0,
    match: Match | None = None,
) -> float:
    """Return the standard deviation, by noise alone, of the mean probability of the second of two classes.

    A round's step is ``eta (G + e) / cur + .3 old``, and G grows by ``cur`` times the earlier noise in the weights. The
    mean row's score moves by ``d'u``, the mean probability by that times the mean of ``p (1 - p)``.

    Args:
        states: the filter after every release.
        rounds: kappa and the gradient's noise standard deviation, per round.
        temperature: divisor of the scores.
        match: response of the clip's link to the last round, which undoes a part of all noise before its own.
    """
    A = sums.A.sum(axis=0) @ whitening.vectors * (whitening.scale * whitening.stretch)
    row = np.append(A / sums.records, INTERCEPT)
    scale = softmax.hessian_scale(recipe, sums, rounds[-1][0])  # twice the mean of p (1 - p)
    moved = [(1 - softmax.LDA_SHARE) * row * each for each in weight_noise(recipe, sums, whitening, states, rounds)]
    variance = scale / 2
    if match is not None:
        variance = match.variance
        moved = [match.kept * each for each in moved]
        moved[-1] = moved[-1] - match.pull * rounds[-1][1] / (2 * sums.records * float(row @ row)) * row
    spread = math.sqrt(2 * sum(float(np.square(each).sum()) for each in moved))
    return variance * spread / temperature


def weight_noise(
    recipe: SoftmaxRecipe,
    sums: NoisyClassSums,
    whitening: SoftmaxWhitening,
    states: Sequence[Filter],
    rounds: Sequence[tuple[float, float]],
    answered: Sequence[float] | None = None,
) -> list[Array]:
    """Return the final weights' noise ``(k,)`` by release; ``answered`` scales each round's answer to earlier noise."""
    n, Kd = sums.records, whitening.curvature
    stretched = sums.sigma["A"] * whitening.scale * whitening.stretch
    noise = np.append(stretched, INTERCEPT * sums.sigma["N"]) / n
    curvature = (1 / recipe.classes + recipe.ridge) * Kd
    moved: list[Array] = []
    last: list[Array] = []
    for place, before in enumerate([recipe.prior_variance * Kd.mean() / Kd, *(each.variance for each in states[:-1])]):
        if place:
            kappa, sigma = rounds[place - 1]
            noise, scale = np.full(len(Kd), sigma / n), softmax.hessian_scale(recipe, sums, kappa)
            curvature = softmax.class_curvature(recipe, sums, whitening, states[place - 1], scale, (sigma / n) ** 2)
        variance, curved = (np.atleast_2d(each).mean(axis=0) for each in (before, curvature))
        gain = variance / ((1 + CAUTION) * variance + np.square(noise / curved))
        answer = 1.0 if answered is None or not place else answered[place - 1]
        steps = [gain * answer * each + softmax.MOMENTUM * old for each, old in zip(moved, last, strict=True)]
        steps.append(gain * noise / curved)
        moved = [each - step for each, step in zip([*moved, np.zeros(len(Kd))], steps, strict=True)]
        last = [(1 + CAUTION) * gain * step for step in steps]
    return moved
