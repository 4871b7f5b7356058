"""Quadratic membership on second moments: does x stand out in x^T (S / n - I) x?

After whitening with a public sample. Theory for Gaussian records: d' about sqrt(d (d + 1) / 2n), so second moments
betray members until n is far above d^2 / 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.population import whitener

__all__ = ["Quadratic", "second_moment"]


class Quadratic(Attack):
    """x^T (S / n - I) x in public whitening; S of the class, or B over all classes, or G."""

    name = "quadratic"
    number = 8
    goal = "membership"
    title = "somebody with a public sample asks of a record whether it is part of the second moments"
    needs = Adversary(knows="public")
    reads = "SBG"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate."""
        del rng
        W = whitener(view)
        scores = np.zeros(len(view.candidates))
        for index, x in enumerate(view.candidates):
            moment, records = second_moment(view, view.labels[index])
            z = W @ x
            scores[index] = z @ (W @ moment @ W.T / records) @ z - z @ z
        return scores


def second_moment(view: View, label: object) -> tuple[NDArray[np.float64], float]:
    """The sharpest second moment that a record of this label is in, and how many records are in that."""
    sums = view.sums[0]
    if "S" in sums:
        return sums["S"][int(label)], float(view.records)  # type: ignore[call-overload]
    if "B" in sums:
        return sums["B"], max(1.0, float(sums["N"].sum())) if "N" in sums else float(view.records)
    return sums["G"], float(view.records)
