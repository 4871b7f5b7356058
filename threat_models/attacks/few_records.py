"""Attacks 1 to 3 as games: one and two records of a class, read off its sums.

``inversion`` has the arithmetic. Without noise it is exact, so a class of two hides no record.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack
from threat_models.attacks.inversion import one_record, pair_from_moments, pair_from_squares


class OneRecord(Attack):
    """x = A."""

    name = "one-record"
    number = 1
    goal = "reconstruction"
    title = "an attacker takes the sum of a class of one for its record"
    needs = Adversary(knows="none")
    reads = "A"
    records = 1
    effort = 0.5

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """The class's sum, ``(1, d)``."""
        del rng
        return one_record(view.sums[0]["A"][int(view.labels[0])])


class TwoRecords(Attack):
    """x = A / 2 +- delta / 2 with 2 S - A A^T = delta delta^T."""

    name = "two-records"
    number = 2
    goal = "reconstruction"
    title = "an attacker solves the sum and second moment of a class of two for its records"
    needs = Adversary(knows="none")
    reads = "S"
    records = 2
    effort = 0.5

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """Return both records, ``(2, d)``."""
        del rng
        label = int(view.labels[0])
        return pair_from_moments(view.sums[0]["A"][label], view.sums[0]["S"][label])


class TwoRecordsSquares(Attack):
    """The two values of every coordinate, without saying which record has which."""

    name = "two-records-squares"
    number = 3
    goal = "reconstruction"
    title = "an attacker solves the sum and squares of a class of two for the two values of every coordinate"
    needs = Adversary(knows="none")
    reads = "D"
    records = 2
    effort = 0.5
    scored = "pairs"

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """The lower and the higher value of every coordinate, ``(2, d)``."""
        del rng
        label = int(view.labels[0])
        pairs = pair_from_squares(view.sums[0]["A"][label], view.sums[0]["D"][label])
        return np.stack([pairs.low, pairs.high])
