"""Subtracting sessions: two that differ by one client give that client's sums; many random cohorts give all clients'.

Masking protects one session. These attacks read only releases and the public lists of participants.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import of_records
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Attack


class OfTwoCohorts(Attack):
    """An attack on sessions with different clients."""

    def refusal(self, plan: Plan) -> str | None:
        """Needs a plan in which one client may be absent."""
        if plan.cohort.clients == plan.cohort.min_survivors:
            return "needs sessions with different clients, and this plan lets nobody vanish"
        return super().refusal(plan)


class _OfSums(OfTwoCohorts):
    """The common part: the goal, the letter, and that a client's class must hold one record."""

    goal = "reconstruction"
    reads = "A"


class Differencing(_OfSums):
    """Session one minus session two: the absent client's one record of the class, exactly when there is no noise."""

    name = "differencing"
    number = 9
    title = "an attacker subtracts two releases that differ by one client"
    needs = Adversary(sees="releases", releases=2, cohorts="without-target", knows="none")
    records = 1
    effort = 0.5

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """The difference of the class's sums, one vector."""
        del rng
        first, second = view.sums[:2]
        label = int(view.labels[0])
        return np.asarray(first["A"][label] - second["A"][label])[None]


class RandomCohorts(_OfSums):
    """Least squares over sessions with random survivors: one unknown sum per client, one equation per session."""

    name = "random-cohorts"
    number = 9
    title = "an attacker solves for every client's sums from many releases with different survivors"
    needs = Adversary(sees="releases", releases=2, cohorts="random", knows="none")
    records = 4
    effort = 0.05

    def adversary(self, plan: Plan) -> Adversary:
        """Ten sessions more than clients, so that the equations nearly always determine all clients."""
        return replace(self.needs, releases=plan.cohort.clients + 10)

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """The record-sized sums of the clients with the largest ones."""
        del rng
        schema = of_records(view.plan.schema)
        label = int(view.labels[0]) if "class" in schema.sizes else 0
        present = np.zeros((len(view.cohorts), view.plan.cohort.clients))
        for turn, clients in enumerate(view.cohorts):
            present[turn, list(clients)] = 1.0
        totals = np.stack([sums["A"][label] for sums in view.sums])
        result, *_ = np.linalg.lstsq(present, totals, rcond=None)
        largest = np.argsort(-np.linalg.norm(result, axis=1))[: view.records]
        return np.asarray(result[largest])
