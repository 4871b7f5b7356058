"""Attack 10, attributes: an unknown attribute of a person, from two-way counts with a known one.

``properties`` has the arithmetic. Records are synthetic, because the attack needs binary columns; the sums are the
plan's own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.plan import Plan
from privstats.randomness import Generator
from threat_models.adversary import Adversary, View
from threat_models.attack import Examination
from threat_models.attacks.properties import attribute, attribute_baseline
from threat_models.data import people
from threat_models.examined import rated
from threat_models.report import Row
from threat_models.world import Setting, draw

_ATTRIBUTES, _MOST_VALUES = 3, 5
_RECORDS = 6
_POOL = 90


class AttributeInference(Examination):
    """The last of three attributes of a person in a class of six, whose first two are known."""

    name = "attribute-inference"
    number = 10
    goal = "inference"
    title = "an attacker who knows two attributes of a person reads the third off two-way counts"
    needs = Adversary(knows="public")
    reads = "SBG"

    def refusal(self, plan: Plan) -> str | None:
        """Needs room for three attributes of two values."""
        if plan.schema.features < 2 * _ATTRIBUTES:
            return f"needs {2 * _ATTRIBUTES} features for three attributes, and the plan has {plan.schema.features}"
        return super().refusal(plan)

    def examine(self, plan: Plan, rng: Generator, *, trials: int, confidence: float) -> tuple[Row, ...]:
        """One row: how often the guess is right, and how often from public tables alone."""
        values = min(_MOST_VALUES, plan.schema.features // _ATTRIBUTES)
        field = people(plan, rng, (values,) * _ATTRIBUTES, count=_POOL, follows=0.3).of(plan)
        hidden = np.arange(2 * values, 3 * values)
        right, blind = [], []
        for _ in range(trials):
            world = draw(field, Setting(plan, _RECORDS), self.needs, 0, True, rng)
            held = np.flatnonzero(world.truth[0] > 0)
            known, secret = held[:-1], held[-1]
            view = self.needs.view(world)
            right.append(float(hidden[attribute(_counts(view), known, hidden).guess] == secret))
            guess = attribute_baseline(_public(view) > 0, known, hidden).guess
            blind.append(float(hidden[guess] == secret))
        return (rated(self, plan, right, blind, confidence, metric="guessed", note="made-up people in a class of six"),)


def _counts(view: View) -> NDArray[np.float64]:
    """Two-way counts ``(d, d)`` of the class, or of all where only all are sent: moments in units of one record."""
    unit = view.plan.schema.clip_norm**2 / _ATTRIBUTES
    letter = next(letter for letter in "SBG" if letter in view.sums[0])
    moments = view.sums[0][letter]
    d = view.plan.schema.features
    return np.asarray(moments.reshape(-1, d, d)[0] / unit)


def _public(view: View) -> NDArray[np.float64]:
    return np.empty((0, 0)) if view.public is None else view.public[0]
