"""Span and leverage: below d records a member lies in the span of S, above it has leverage at most 1.

Needs only the second moments: x^T S^-1 x <= 1 for every member (its leverage), while non-members scatter around d / n
and leave the span when n < d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.quadratic import second_moments

_RANK = 1e-10


class Leverage(Attack):
    """- x^T (S + tau I)^-1 x, with tau at the noise level: outside the span it is hugely negative."""

    name = "span-leverage"
    number = 6
    goal = "membership"
    title = "an attacker asks whether a record lies in the span of the second moments, and how far out"
    needs = Adversary(knows="none")
    reads = "SBG"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate: minus its leverage, with eigenvalues below the noise held at its level."""
        del rng
        letter = next(s for s in "SBG" if s in view.sums[0])
        scores = np.zeros(len(view.candidates))
        for rows, moment, _ in second_moments(view):
            values, vectors = np.linalg.eigh(moment)
            noise = view.sigma.get(letter, 0.0) * np.sqrt(2 * len(values))
            floor = max(noise, _RANK * max(float(values[-1]), 0.0), 1e-12)
            scores[rows] = -np.sum((view.candidates[rows] @ vectors) ** 2 / np.maximum(values, floor), axis=1)
        return scores
