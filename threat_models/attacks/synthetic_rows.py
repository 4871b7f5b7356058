"""Rows drawn from a synthetic course: is this unit among those that were counted, and which of a list is?

Both attackers know the course and every other record, and see rows alone. Rows are functions of noisy count tables, so
the promise of all sessions together bounds both.

Sources: membership by what rows hold beyond the known records (Houssiau and others, TAPAS, 2022), and by the closest
rows (Yao and others 2025); picking one of a list (Hayes, Mahloujifar and Balle 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privstats.dp import Guarantee
from privstats.kinds import CountSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import SIGHTS, Adversary
from threat_models.attack import CourseExamination
from threat_models.chance import integer_below
from threat_models.examined import compared_rates
from threat_models.membership import Trials, compared
from threat_models.one_missing import attacker_of
from threat_models.report import Row

if TYPE_CHECKING:
    from privstats.contrib.synthetic.course import Synthetic

_UNITS = 16
_LIKELIHOOD, _NEAREST = "AUC", "AUC of nearest rows"


class _ReadsRows(CourseExamination):
    """An attacker who lacks one unit and sees rows of a synthetic course."""

    kinds = (CountSchema,)
    courses = ("synthetic",)
    needs = Adversary(knows="all-but-one")
    effort = 0.5

    def adversary(self, plan: Plan) -> Adversary:
        """Return the attacker with all colluders that the plan counts with."""
        who = attacker_of(plan)
        return Adversary(knows=who.knows, colluders=who.colluders, unit=who.unit)

    def course_of(self, plan: Plan) -> Synthetic:
        """Return the synthetic course that keeps the plan's promise, with the usual parts of it."""
        from privstats.contrib.synthetic.course import Synthetic

        return Synthetic.within(plan)


class SyntheticMembership(_ReadsRows):
    """Rows with and without the unit that the fewest known records resemble."""

    name = "synthetic-membership"
    number = 16
    goal = "membership"
    title = "an attacker who knows everything but one unit asks synthetic rows whether it was counted"

    def examine_course(self, course: Synthetic, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row for the likelihood of the rows' tables, and one for the nearest rows."""
        from threat_models.drawn_rows import RowsWorld

        world = RowsWorld.drawn(course, _UNITS, rng)
        mine, other = world.exchange()
        scores: dict[str, list[list[float]]] = {_LIKELIHOOD: [[], []], _NEAREST: [[], []]}
        for _ in range(trials):
            for place, unit in enumerate((mine, other)):
                seen = world.seen(unit, rng)
                evidence = world.evidence(seen)
                scores[_LIKELIHOOD][place].append(evidence[mine] - (0.0 if other is None else evidence[other]))
                scores[_NEAREST][place].append(seen.nearness(world.units[mine, 0]))
        who, level = self.adversary(course.first), 1 - (1 - confidence) / len(scores)
        rows = []
        for metric, pair in scores.items():
            inside, outside = (np.array(values)[:, None] for values in pair)
            numbers = compared(Trials(inside, outside), Guarantee(course.mu), level, rng)
            rows.append(
                Row(
                    attack=self.name,
                    number=self.number,
                    goal=self.goal,
                    adversary=_described(who),
                    sees=who.sees,
                    metric=metric,
                    worlds=trials,
                    **numbers,
                )
            )
        return tuple(rows)


class SyntheticRecord(_ReadsRows):
    """The unit of a list for which the rows' tables of single columns and pairs are likeliest."""

    name = "synthetic-record"
    number = 1
    goal = "reconstruction"
    title = "an attacker who knows everything but one unit picks the likeliest of a list from synthetic rows"

    def examine_course(self, course: Synthetic, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """How often the unit that was counted is picked."""
        from threat_models.drawn_rows import RowsWorld

        world, hits = RowsWorld.drawn(course, _UNITS, rng), list[float]()
        count = len(world.units)
        for _ in range(trials):
            truth = integer_below(count, rng)
            evidence = world.evidence(world.seen(truth, rng))
            best = np.flatnonzero(evidence == evidence.max())
            hits.append(float(best[integer_below(len(best), rng)] == truth))
        who, guarantee = self.adversary(course.first), Guarantee(course.mu)
        more = {"metric": "picked", "note": f"picks one of {count}", "adversary": _described(who)}
        return (compared_rates(self, who, guarantee, hits, 1 / count, confidence, **more),)


def _described(who: Adversary) -> str:
    return who.describe().replace(SIGHTS["release"], "synthetic rows alone")
