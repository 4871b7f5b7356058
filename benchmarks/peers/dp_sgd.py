"""Opacus's DP-SGD on all records in one place, with the search of the refinement benchmark.

Central: whoever holds the records is trusted with them. Rates, clips, momenta and schedules are ``refinement.peers``'.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.peers.interface import DELTA, Outcome, Shards
from benchmarks.refinement import gradient
from benchmarks.refinement.peers import opacus, tuned
from privstats.contrib.sweep.rivals.private_descent import Recipe

__all__ = ["DPSGD", "dp_sgd"]


@dataclass(frozen=True)
class DPSGD:
    """Opacus trains a linear softmax layer on the pooled records; central, record level.

    Attributes:
        epsilon: at delta 1e-5, by Opacus's PRV accountant.
        recipe: rate, clip, momentum, steps and sample, as :func:`dp_sgd` finds them.
    """

    epsilon: float
    recipe: Recipe

    def __str__(self) -> str:
        return str(self.recipe)

    def fit(self, shards: Shards) -> Outcome:
        """Train by the recipe."""
        began = time.process_time()
        score = 100 * opacus(shards.split, self.recipe, self.epsilon, DELTA, shards.seed)
        return Outcome(score, shards.record_bytes, time.process_time() - began, 1, self.epsilon, "record")


def dp_sgd(epsilon: float, shards: Shards) -> tuple[DPSGD, ...]:
    """The one candidate that the search of ``refinement.peers`` leaves, on held-out records of the shards."""
    return (DPSGD(epsilon, tuned(shards.split, epsilon, DELTA, gradient.SAMPLED)),)
