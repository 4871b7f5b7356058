"""Likelihood ratio on a class's sum: was this vector part of the mean?

Needs a public sample for the class's mean and covariance. Theory for Gaussian records: d' = sqrt(d / n), so the AUC is
Phi(sqrt(d / n) / sqrt 2) (Dwork et al. 2015; Sankararaman et al. 2009): it falls only when n is far above d.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.population import population


class MeanRatio(Attack):
    """(x - mu)^T Sigma^-1 (A / n - mu)."""

    name = "mean-ratio"
    number = 7
    goal = "membership"
    title = "an attacker with a public sample asks of a record whether it is part of a class's sum"
    needs = Adversary(knows="public")
    reads = "A"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate against the class of its own label."""
        del rng
        scores = np.zeros(len(view.candidates))
        for label in np.unique(view.labels):
            mine = view.labels == label
            mean, inverse = population(view, label)
            gap = view.sums[0]["A"][int(label)] / view.records - mean
            scores[mine] = (view.candidates[mine] - mean) @ (inverse @ gap)
        return scores
