"""The strongest reader of a release: it knows all records but one and asks whether that one is in.

A matched filter on the release less all other records. Against our noise it is optimal, so it must reach the ceiling
and never exceed it: the harness's own self-test.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import ClassSchema, RidgeSchema, row_of
from privstats.plan import Plan
from privstats.randomness import Generator
from privstats.schema import Schema
from threat_models.adversary import Adversary, Sums, View
from threat_models.attack import Attack


class Informed(Attack):
    """Neyman-Pearson test of one record against Gaussian noise of known size, all statistics together."""

    name = "informed"
    number = 16
    goal = "membership"
    title = "an attacker who knows every other record asks whether one more is in"
    needs = Adversary(knows="all-but-one")
    effort = 2.0

    def adversary(self, plan: Plan) -> Adversary:
        """Return the worst admitted adversary: in the distributed model, with the plan's full number of colluders."""
        distributed = plan.noise is not None and plan.noise.trust.divided
        return replace(self.needs, colluders=plan.cohort.colluders if distributed else 0)

    def run(self, view: View, rng: Generator) -> NDArray[np.float64]:
        """<release - other records, record> weighted by 1 / sigma^2: the log likelihood ratio up to a constant."""
        del rng
        if view.background is None:
            return np.zeros(len(view.candidates))
        shift = record_sums(view, view.candidates[0], view.labels[0])
        if view.rivals is not None and view.rival_labels is not None:
            rival = record_sums(view, view.rivals[0], view.rival_labels[0])
            shift = {s: shift[s] - rival[s] for s in shift}
        score = 0.0
        for letter, part in shift.items():
            seen = sum(sums[letter] for sums in view.sums) / len(view.sums)
            weight = 1 / max(view.sigma.get(letter, 0.0), 1e-9) ** 2
            score += weight * float(np.sum((seen - view.background[letter]) * part))
        return np.array([score])


class RepeatedReleases(Informed):
    """Run the test on the mean of several releases of the same records: mu grows with the root of their number."""

    name = "repeated-releases"
    number = 9
    title = "an attacker collects several noisy releases of the same records and averages them"
    needs = Adversary(sees="releases", releases=4, knows="all-but-one")
    effort = 0.5


def record_sums(view: View, x: NDArray[np.float64], label: Any) -> Sums:
    """One record's contribution to every statistic that is sent and seen, in real units."""
    schema = view.plan.schema
    every = row_of(_SUMS, schema, "test of one record")(schema, x, label)
    return {s: np.asarray(every[s], np.float64) for s in schema.statistics if s in view.sums[0]}


def _of_classes(schema: ClassSchema, x: NDArray[np.float64], label: Any) -> Sums:
    row, outer = np.zeros(schema.classes), np.outer(x, x)
    row[int(label)] = 1.0
    return {"N": row, "A": np.outer(row, x), "B": outer, "S": row[:, None, None] * outer, "D": np.outer(row, x * x)}


def _of_targets(schema: RidgeSchema, x: NDArray[np.float64], label: Any) -> Sums:
    target = np.atleast_1d(np.asarray(label, np.float64))
    target = target * (schema.target_bound / max(schema.target_bound, math.sqrt(float(target @ target))))
    return {"G": np.outer(x, x), "h": np.outer(x, target), "q": np.asarray(target @ target)}


_SUMS: Mapping[type[Schema], Callable[[Any, NDArray[np.float64], Any], Sums]] = {
    ClassSchema: _of_classes,
    RidgeSchema: _of_targets,
}
"""One record's own sums, by the schema's class."""
