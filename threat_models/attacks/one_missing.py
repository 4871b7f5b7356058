"""The likelihood of every unit under the noise that a plan states: membership and reconstruction on sums of any kind.

Both attackers know all records but one unit. The likelihood ratio is the strongest test of its presence against noise
of a known law (Neyman and Pearson 1933). Picking the likeliest of a list is the reconstruction of Hayes, Mahloujifar
and Balle (2023). A guess is a test, so its rate is at most the true positive rate at a false positive rate of one in
the length of the list. One row is about all statistics, and one about each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.kinds import HazardSchema
from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models import ceilings
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.chance import integer_below
from threat_models.examined import rated
from threat_models.membership import Trials, compared
from threat_models.one_missing import Exchange, OneMissing, Records, attacker_of, drawn, known_of
from threat_models.report import Row

_UNITS = 16
AUC, PICKED = "AUC", "picked"
ALL = ""
"""The question about all statistics together; others are letters."""


class LikelihoodRatio(Examination):
    """The exact likelihood ratio of the released sums with and without the unit that shows most."""

    name = "likelihood-ratio"
    number = 16
    goal = "membership"
    title = "an attacker who knows everything but one unit asks whether it is in the sums, of any kind"
    needs = Adversary(knows="all-but-one")
    effort = 2.0

    def adversary(self, plan: Plan) -> Adversary:
        """Return the attacker with all colluders that the plan counts with."""
        return attacker_of(plan)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row for all statistics, and one for each: how well scores with and without the unit are distinguished."""
        world = OneMissing.drawn(plan, _UNITS, rng)
        exchanges = {letters: _exchange(world, letters) for letters in questions(plan)}
        scores: dict[str, list[list[float]]] = {letters: [[], []] for letters in exchanges}
        for exchange in dict.fromkeys(exchanges.values()):
            ends = world.ends(exchange)
            (_, with_it), (_, without) = ends
            asked = [letters for letters, each in exchanges.items() if each == exchange]
            for _ in range(trials):
                for place, (moments, _) in enumerate(ends):
                    seen = world.released(moments, rng)
                    before, after = world.misfit(seen, without), world.misfit(seen, with_it)
                    for letters in asked:
                        scores[letters][place].append(_total(before, letters) - _total(after, letters))
        who, level = self.adversary(plan), 1 - (1 - confidence) / len(scores)
        return tuple(self._row(plan, who, letter, pair, level, rng) for letter, pair in scores.items())

    def _row(
        self, plan: Plan, who: Adversary, letter: str, pair: Sequence[list[float]], confidence: float, rng: Generator
    ) -> Row:
        inside, outside = (np.array(scores)[:, None] for scores in pair)
        promised = ceilings.guaranteed(plan, who, letter)
        numbers = compared(Trials(inside, outside), promised, confidence, rng)
        if letter:
            numbers["roc"] = None  # a picture shows all statistics together
        return Row(
            attack=self.name,
            number=self.number,
            goal=self.goal,
            adversary=who.describe(),
            sees=who.sees,
            metric=f"{AUC}{_alone(letter)}",
            worlds=len(inside),
            note=_note(plan),
            **numbers,
        )


class LikeliestUnit(Examination):
    """The unit of a list under which the released sums are likeliest."""

    name = "likeliest-unit"
    number = 1
    goal = "reconstruction"
    title = "an attacker who knows everything but one unit picks the likeliest out of a list, for sums of any kind"
    needs = Adversary(knows="all-but-one")

    def adversary(self, plan: Plan) -> Adversary:
        """Return the attacker with all colluders that the plan counts with."""
        return attacker_of(plan)

    def world(self, plan: Plan, rng: Generator) -> OneMissing:
        """The units to pick from, of which one is in the sums."""
        return OneMissing.drawn(plan, _UNITS, rng)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row for all statistics, and one for each: how often the unit in the sums is picked."""
        world = self.world(plan, rng)
        count = len(world.present)
        hits: dict[str, list[float]] = {question: [] for question in questions(plan)}
        for _ in range(trials):
            truth = integer_below(count, rng)
            seen = world.released(world.present[truth], rng)
            misfits = [world.misfit(seen, sums) for sums in world.sums]
            for letters, found in hits.items():
                total = np.array([_total(each, letters) for each in misfits])
                best = np.flatnonzero(total == total.min())  # equal where the statistic shows no difference
                found.append(float(best[integer_below(len(best), rng)] == truth))
        who, level = self.adversary(plan), 1 - (1 - confidence) / len(hits)
        note = f"picks one of {count}{_note(plan, joined=True)}"
        common: dict[str, Any] = {"who": who, "note": note}
        return tuple(
            rated(self, plan, found, 1 / count, level, metric=f"{PICKED}{_alone(letter)}", letter=letter, **common)
            for letter, found in hits.items()
        )


class EventTime(LikeliestUnit):
    """When a known person's event happened, or until when it had not: the likeliest of all cells of time."""

    name = "event-time"
    title = "an attacker who knows a person's columns and all other persons picks the time of that person's event"
    kinds = (HazardSchema,)

    def world(self, plan: Plan, rng: Generator) -> OneMissing:
        """One person at the middle of every cell of time, with the event and without it."""
        known = known_of(plan)
        return OneMissing.of_records(plan, at_every_time(plan, drawn(plan, known + 1, rng), known))


def at_every_time(plan: Plan, records: Records, known: int) -> Records:
    """Return the known persons, and the one after them at the middle of every cell of time and beyond the last."""
    schema, (table, _) = plan.schema, records
    assert isinstance(schema, HazardSchema)  # noqa: S101  the attack is for this kind alone
    marks = np.array(schema.marks)
    middles = np.concatenate([(marks[1:] + marks[:-1]) / 2, [marks[-1] + 1]])
    ends = [(time, event) for time in middles for event in (0, 1) if event == 0 or time < marks[-1]]
    every = {
        name: np.concatenate([column[:known], np.repeat(column[known], len(ends))]) for name, column in table.items()
    }
    every[schema.bins.name] = np.concatenate([table[schema.bins.name][:known], [time for time, _ in ends]])
    happened = np.array([event for _, event in ends])
    every[schema.event] = np.concatenate([table[schema.event][:known], _events(schema, happened)])
    return every, None


def _events(schema: HazardSchema, happened: NDArray[np.int64]) -> NDArray[Any]:
    """Events as a file states them."""
    event: Any = schema.counted().variable(schema.event)  # of declared values
    return np.array(event.values, object)[happened]


def questions(plan: Plan) -> tuple[str, ...]:
    """All statistics together, and each of several alone."""
    sent = plan.schema.statistics
    return (ALL, *sent) if len(sent) > 1 else (ALL,)


def _exchange(world: OneMissing, letters: str) -> Exchange:
    """Return the unit that shows most in all statistics, or in these where it does not move them."""
    exchange = world.most_visible()
    (_, with_it), (_, without) = world.ends(exchange)
    return exchange if _total(world.misfit(with_it, without), letters) > 0 else world.most_visible(letters)


def _total(by_letter: Mapping[str, float], letters: str) -> float:
    return sum(by_letter.values()) if letters == ALL else by_letter[letters]


def _alone(letter: str) -> str:
    return f" by {letter} alone" if letter else ""


def _note(plan: Plan, *, joined: bool = False) -> str:
    """A minimum count is left out, because the attacker sees the sums before it."""
    text = "the minimum count is left out: it is no part of the promise" if plan.min_count else ""
    return f"; {text}" if joined and text else text
