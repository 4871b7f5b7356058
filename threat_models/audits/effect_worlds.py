"""Do the intervals of treatment effects keep their claim? Worlds with known effects, read as a user reads them.

Every world is within the course's public ranges, goes through measuring, summing and noising as a session does, and is
read by the public reader. Truths are those of the population that the table names, and never of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privstats import session
from privstats.course import Effect, run
from privstats.course.base import Round
from privstats.errors import PlanError, ReleaseError
from privstats.inference import effect
from privstats.inference.evidence import map_columns
from privstats.moments import exact_moments
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from privstats.schema import EffectSchema
from privstats.transforms import ByArm
from threat_models.audits.inference import MOST_RECORDS, Tally, report_of
from threat_models.audits.verdict import Report

__all__ = ["WORLDS", "Trial", "audit_effect_intervals", "played", "tally"]

Array: TypeAlias = NDArray[np.float64]

_EFFECT, _SLOPE, _SPREAD = 0.1, 0.3, 0.25  # in halves of the range of outcomes
_EVENTS = 0.1  # of the others, where the world is of rare events


@dataclass(frozen=True, eq=False)
class Trial:
    """A randomised trial.

    Attributes:
        X: columns and the arm as they come in.
        y: outcomes.
        truth: the mean effect in the population.
    """

    X: Array
    y: Array
    truth: float

    @classmethod
    def curved(cls, schema: EffectSchema, records: int, chance: np.random.Generator) -> Trial:
        """Outcomes that no line fits, with an effect that differs by record."""
        u, arm = _rows(schema, records, chance)
        line = _SLOPE * (u[:, 0] - 2 * u[:, -1] ** 2) + arm * (_EFFECT + 0.1 * u[:, 0])
        y = np.clip(line + _SPREAD * chance.normal(size=records) * (1 + arm) / 1.5, -0.999, 0.999)
        return cls(_raw(schema, u, arm), schema.middle + schema.half * y, _clipped_truth(schema))

    @classmethod
    def events(cls, schema: EffectSchema, records: int, chance: np.random.Generator) -> Trial:
        """Outcomes at either end of the range, a tenth of the others' and half more of the treated at the upper."""
        u, arm = _rows(schema, records, chance)
        ill = chance.random(records) < _EVENTS * (1 + 0.5 * arm)
        return cls(_raw(schema, u, arm), np.where(ill, *schema.outcome[::-1]), _EVENTS * schema.half)


WORLDS: Mapping[str, Callable[[EffectSchema, int, np.random.Generator], Trial]] = {
    "trial": Trial.curved,
    "trial, rare events": Trial.events,
}
"""By name: a world of so many records."""


def audit_effect_intervals(course: Effect, rng: Generator, *, runs: int = 500) -> Report:
    """Count how often an effect is told and its interval misses, at the cohort's most records and at a third of them.

    Raises:
        PlanError: columns that are mapped by more than ranges.
    """
    most = min(course.plan.cohort.max_records, MOST_RECORDS)
    tallies = [(n, tally(course, name, n, rng, runs)) for n in (most, most // 3) for name in WORLDS]
    notes = (f"worlds: {', '.join(WORLDS)}; truths are the population's",)
    return report_of(tallies, runs, notes)


def tally(course: Effect, world: str, records: int, rng: Generator, runs: int) -> Tally:
    """Play ``runs`` worlds of this many records, and hold every interval against the truth."""
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    unread, told, missed = 0, 0, 0
    for _ in track("releasing", range(runs)):
        made = WORLDS[world](course.schema, records, chance)
        try:
            table = effect(played(course, made.X, made.y, rng))
        except ReleaseError:
            unread += 1
            continue
        low, high = table.conf_int()
        told, missed = told + table.told, missed + (not low <= made.truth <= high)
    return Tally((world,), runs, np.array([told * 1.0]), np.array([missed * 1.0]), unread)


def played(course: Effect, X: Array, y: Array, rng: Generator) -> list[Release | None]:
    """The releases of a course over these records, dealt to all clients of the plan."""

    def release(node: Round) -> Release:
        plan, clients = node.plan, node.plan.cohort.clients
        parts = [
            exact_moments(plan.schema, X[k::clients], y[k::clients], published=plan.published) for k in range(clients)
        ]
        return session.aggregate_unmasked(plan, parts, rng)

    return run(course, release)


def _rows(schema: EffectSchema, records: int, chance: np.random.Generator) -> tuple[Array, Array]:
    """Columns behind the ranges, and arms by the probability."""
    width = schema.width - 1
    u: Array = np.clip(chance.normal(size=(records, width)) * 0.4, -1, 1)
    return u, (chance.random(records) < (schema.probability or 0.5)).astype(np.float64)


def _raw(schema: EffectSchema, u: Array, arm: Array) -> Array:
    """The columns as they come in, the arm in its place."""
    last = schema.transform[-1]
    if not isinstance(last, ByArm):
        raise PlanError("audit inference takes a schema that EffectSchema.of builds")
    scale, shift = map_columns(schema.transform[:-1], schema.width)
    rows = np.insert(u, last.column, arm, axis=1)
    return np.asarray((rows - shift) / scale)


def _clipped_truth(schema: EffectSchema) -> float:
    """The mean effect of :meth:`Trial.curved`, whose outcomes are cut to the range, over a million fresh records."""
    chance, width = np.random.default_rng(1), schema.width - 1
    first, last = (np.clip(chance.normal(size=1_000_000) * 0.4, -1, 1) for _ in range(2))
    last = first if width == 1 else last
    noise, line = chance.normal(size=1_000_000), _SLOPE * (first - 2 * last**2)
    treated = np.clip(line + _EFFECT + 0.1 * first + _SPREAD * noise * 2 / 1.5, -0.999, 0.999)
    return float((treated - np.clip(line + _SPREAD * noise / 1.5, -0.999, 0.999)).mean()) * schema.half
