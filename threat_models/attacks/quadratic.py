"""Quadratic membership on second moments: does x stand out in x^T (S / n - I) x?

After whitening with a public sample. Theory for Gaussian records: d' about sqrt(d (d + 1) / 2n), so second moments
reveal members until n is far above d^2 / 2.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.population import whitener


class Quadratic(Attack):
    """x^T (S / n - I) x in public whitening; S of the class, or B over all classes, or G."""

    name = "quadratic"
    number = 8
    goal = "membership"
    title = "an attacker with a public sample asks of a record whether it is part of the second moments"
    needs = Adversary(knows="public")
    reads = "SBG"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Score of every candidate."""
        del rng
        W = whitener(view)
        scores = np.zeros(len(view.candidates))
        for rows, moment, records in second_moments(view):
            Z = view.candidates[rows] @ W.T
            scores[rows] = np.sum((Z @ (W @ moment @ W.T / records)) * Z, axis=1) - np.sum(Z * Z, axis=1)
        return scores


def second_moments(view: View) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64], float]]:
    """The sharpest second moment that each candidate's label has: which candidates, the moment, records in it.

    S of the class where it is sent; else B over all classes, or G, for all records together.
    """
    sums, everybody = view.sums[0], np.ones(len(view.candidates), np.bool_)
    if "S" in sums:
        for label in np.unique(view.labels):
            yield view.labels == label, sums["S"][int(label)], float(view.records)
    elif "B" in sums:
        yield everybody, sums["B"], max(1.0, float(sums["N"].sum())) if "N" in sums else float(view.records)
    else:
        yield everybody, sums["G"], float(view.records)
