"""Do the intervals of treatment effects keep their claim? Worlds with known effects, read as a user reads them.

Every world is within the course's public ranges, goes through measuring, summing and noising as a session does, and is
read by the public reader. Truths are those of the population that the table names, and never of the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from privstats import session
from privstats.course import Effect, run
from privstats.course.base import Round
from privstats.errors import PlanError, ReleaseError
from privstats.inference import EffectTable, effects
from privstats.inference.releases import map_columns
from privstats.inference.treatment_effects.rows import subgroups_of
from privstats.kinds import EffectSchema
from privstats.kinds.effect.sums import blocks_of
from privstats.progress import track
from privstats.randomness import Generator
from privstats.release import Release
from privstats.transforms import ByArm
from threat_models.audits.inference import MOST_RECORDS, Tally, report_of
from threat_models.audits.verdict import Report
from threat_models.made_up import sums_of

Array: TypeAlias = NDArray[np.float64]

_FRESH = 100_000  # records of the population, for truths
_EVENTS = 0.1  # of the others, where the world is of rare events


@dataclass(frozen=True)
class World:
    """Treatment and outcomes as functions of columns in -1..1, in units of half the range of outcomes.

    Attributes:
        treated: log odds of treatment; not read in a trial.
        others: mean outcome of the untreated, before outcomes are cut to -1..1.
        effect: of treatment on that mean.
        spread: standard deviation of outcomes about their mean; None: outcomes at either end of the range.
        seen: log odds that an outcome is observed, of columns and arms; None: every outcome is.
    """

    treated: Callable[[Array], Array]
    others: Callable[[Array], Array]
    effect: Callable[[Array], Array]
    spread: float | None
    seen: Callable[[Array, Array], Array] | None = None

    def draw(self, schema: EffectSchema, records: int, chance: np.random.Generator) -> tuple[Array, Array]:
        """Columns and the arm as they come in, and outcomes: the k-th has 1 / k of the effect on the first. Record i is
        one of client i modulo all clients."""
        u = _columns(schema, records, chance)
        pi = expit(self.treated(u)) if schema.probability is None else _assigned(schema, records)
        arm = (chance.random(records) < pi).astype(np.float64)
        means = (self.others(u) + arm * self.effect(u) / place for place in range(1, schema.outcomes + 1))
        y = np.stack([self._around(mean, chance) for mean in means], axis=1)
        if self.seen is not None:
            y[chance.random(records) >= expit(self.seen(u, arm))] = np.nan
        return _raw(schema, u, arm), schema.middle + schema.half * (y if schema.outcomes > 1 else y[:, 0])

    def _around(self, mean: Array, chance: np.random.Generator) -> Array:
        """Outcomes of these means."""
        if self.spread is None:
            return np.where(chance.random(len(mean)) < (1 + mean) / 2, 1.0, -1.0)
        return np.clip(mean + self.spread * chance.normal(size=len(mean)), -1.0, 1.0)

    def truth(
        self, schema: EffectSchema, w: Array | None, place: int = 0, blocks: Sequence[int] | None = None
    ) -> float:
        """The effect on an outcome in the population that the table names: over fresh records, at the published
        weights, in these blocks of the records."""
        return self.mean_effect(schema, self.population(schema, w), place, blocks)

    def population(self, schema: EffectSchema, w: Array | None) -> Array:
        """Return how much each fresh record counts in the population that a table at these published weights names."""
        u = _fresh(schema.width - 1)
        if w is None:
            return np.ones(_FRESH)
        low = schema.trim or 0.0
        if self.seen is not None:
            chances = expit(u @ w.reshape(2, -1)[:, :-1].T + w.reshape(2, -1)[:, -1])
            return np.asarray((chances >= low).all(axis=1), np.float64)
        e = expit(u @ w[:-1] + w[-1])
        kept = (e <= 1 - low) * ((e >= low) | (schema.estimand == "att"))
        if schema.estimand == "att":
            return np.asarray(_fresh_treated(self, schema.width - 1) * kept)
        return np.asarray(e * (1 - e) * kept if schema.estimand == "overlap" else kept, np.float64)

    def mean_effect(
        self, schema: EffectSchema, weight: Array, place: int = 0, blocks: Sequence[int] | None = None
    ) -> float:
        """Return the effect on an outcome over fresh records that count this much, in these blocks of them."""
        if blocks is not None:
            weight = weight * _fresh_inside(schema, tuple(blocks))
        untreated, gain = _fresh_means(self, schema.width - 1, place)
        share = max(float(weight.sum()), 1e-9)
        if schema.measure:
            others = schema.middle + schema.half * float((weight * untreated).sum() / share)
            return 1 + schema.half * float((weight * gain).sum() / share) / others
        return schema.half * float((weight * gain).sum() / share)

    def _mean(self, mean: Array) -> Array:
        """The mean of outcomes that were cut to -1..1 where they are drawn about this one."""
        if self.spread is None:
            return mean
        low, high = (-1 - mean) / self.spread, (1 - mean) / self.spread
        inside = mean * (ndtr(high) - ndtr(low)) + self.spread * (_density(low) - _density(high))
        return np.asarray(inside + ndtr(-high) - ndtr(low))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-z * z / 2) / np.sqrt(2 * np.pi))


def _assigned(schema: EffectSchema, records: int) -> Array:
    """The probability of treatment of every record, dealt to the clients in turn."""
    return np.resize(np.asarray(schema.probability, np.float64), records)


def _curve(u: Array) -> Array:
    return np.asarray(0.3 * u[:, 0] - 0.2 * u[:, -1] + 0.4 * u[:, 0] ** 2)


TRIALS: Mapping[str, World] = {
    "trial": World(lambda u: 0 * u[:, 0], _curve, lambda u: 0.1 + 0.2 * u[:, 0], 0.2),
    "trial, rare events": World(
        lambda u: 0 * u[:, 0], lambda u: 2 * _EVENTS - 1 + 0 * u[:, 0], lambda u: _EVENTS + 0 * u[:, 0], None
    ),
}
"""Worlds of trials, by name: outcomes that no line fits, and rare events."""

OBSERVED: Mapping[str, World] = {
    "confounded": World(
        lambda u: 1.8 * u[:, 0] - 1.35 * u[:, -1],
        lambda u: 0.45 * u[:, 0] - 0.3 * u[:, -1],
        lambda u: 0.1 + 0 * u[:, 0],
        0.08,
    ),
    "beyond": World(lambda u: -3.2 + 2.5 * u[:, 0] + 1.5 * u[:, -1], _curve, lambda u: 0.1 + 0 * u[:, 0], 0.15),
    "differing": World(
        lambda u: -0.95 + u[:, 0] - 0.5 * u[:, -1],
        lambda u: 0.3 * u[:, 0] - 0.2 * u[:, -1],
        lambda u: 0.05 + 0.4 * u[:, 0],
        0.15,
    ),
}
"""Worlds without randomisation: strong confounding, a tenth treated and most of them beyond the trim with
outcomes that no line fits, and effects that differ between records."""

INCOMPLETE: Mapping[str, World] = {
    "missing": World(
        lambda u: 0 * u[:, 0],
        _curve,
        lambda u: 0.1 + 0.2 * u[:, 0],
        0.2,
        lambda u, arm: 1.2 + 1.5 * u[:, 0] * (2 * arm - 1) - 0.75 * u[:, -1],
    ),
    "missing, few": World(
        lambda u: 0 * u[:, 0],
        lambda u: _curve(u) - 0.3,
        lambda u: 0.1 + 0.2 * u[:, 0],
        0.2,
        lambda u, arm: 3 + 1.5 * u[:, 0] * (2 * arm - 1),
    ),
    "missing, most beyond": World(
        lambda u: 0 * u[:, 0],
        lambda u: 0.5 * u[:, 0] - 0.3 * u[:, -1],
        lambda u: 0.1 + 0 * u[:, 0],
        0.08,
        lambda u, arm: 0.6 + 2.5 * u[:, 0] * (2 * arm - 1) - 1.5 * u[:, -1],
    ),
    "missing, wrong lines": World(
        lambda u: 0 * u[:, 0],
        lambda u: u[:, 0] ** 2 - 0.6,
        lambda u: 0.1 + 0.2 * u[:, 0] + 0.2 * u[:, 0] ** 2,
        0.05,
        lambda u, arm: 1 + 2.5 * u[:, 0] * (2 * arm - 1) - u[:, -1],
    ),
    "missing, wrong propensity": World(
        lambda u: 0 * u[:, 0],
        lambda u: 0.45 * u[:, 0] - 0.3 * u[:, -1],
        lambda u: 0.1 + 0.1 * u[:, 0],
        0.1,
        lambda u, arm: 0.6 + 1.5 * u[:, 0] * (2 * arm - 1) + (2.5 * arm - 0.8) * (u[:, 1] ** 2 - 0.16),
    ),
}
"""Worlds of trials in which columns and arms decide together whose outcome is missing: of a fourth; of one in twenty;
of so many that most records are left out; under lines that are wrong; and under a propensity of being observed that is.
Where few are missing outcomes lie lower: those of extremes, kept there, would be cut, and the truth another."""


def worlds_of(schema: EffectSchema) -> Mapping[str, World]:
    """Return the worlds of the schema's design."""
    if schema.missing:
        return INCOMPLETE
    return OBSERVED if schema.probability is None else TRIALS


def audit_effect_intervals(course: Effect, rng: Generator, *, runs: int = 500) -> Report:
    """Count how often a reported effect's interval misses, at the cohort's most records and at a third of them.

    Raises:
        PlanError: columns that are mapped by more than ranges.
    """
    most, worlds = min(course.plan.cohort.max_records, MOST_RECORDS), worlds_of(course.schema)
    tallies = [(n, tally(course, name, n, rng, runs)) for n in (most, most // 3) for name in worlds]
    notes = (f"worlds: {', '.join(worlds)}; truths are those of the population that the table names",)
    return report_of(tallies, runs, notes)


def tally(course: Effect, world: str, records: int, rng: Generator, runs: int) -> Tally:
    """Play ``runs`` worlds of this many records, and compare every interval of each with the truth."""
    chance = np.random.default_rng(int.from_bytes(rng.bytes(8), "little"))
    worlds, asked, unread = worlds_of(course.schema)[world], questions_of(course.schema), 0
    reported, missed = np.zeros(len(asked)), np.zeros(len(asked))
    for _ in track("releasing", range(runs)):
        releases = played(course, *worlds.draw(course.schema, records, chance), rng)
        try:
            table = effects(releases)
        except ReleaseError:
            unread += 1
            continue
        ends, weight = table.conf_int(), worlds.population(course.schema, population_of(table.tables[0]))
        reported += [row.reported for row in table]
        truths = np.array([worlds.mean_effect(course.schema, weight, place, blocks) for place, blocks in asked])
        missed += (truths < ends[:, 0]) | (truths > ends[:, 1])
    return Tally(_named(course.schema, world), runs, reported, missed, unread)


def _named(schema: EffectSchema, world: str) -> tuple[str, ...]:
    """The rows of a tally."""
    parts = ["", *(name for _, name, _ in subgroups_of(schema))]
    names = schema.outcome_names or ("",)
    return tuple(", ".join(filter(None, (world, name, part))) for name in names for part in parts)


def questions_of(schema: EffectSchema) -> list[tuple[int, list[int] | None]]:
    """Return, for each row of the table, the outcome and the blocks of the records."""
    parts = [None, *(blocks for _, _, blocks in subgroups_of(schema))]
    return [(place, blocks) for place in range(schema.outcomes) for blocks in parts]


def population_of(table: EffectTable) -> Array | None:
    """The published weights of the propensity that a table's population follows from; None of a trial."""
    published = table.release.plan.published
    values = {} if published is None else published.read()
    return values["w"].real if "w" in values else None


@cache
def _fresh_blocks(schema: EffectSchema) -> NDArray[np.intp]:
    """The block of each of them."""
    return blocks_of(schema, _raw(schema, _fresh(schema.width - 1), np.zeros(_FRESH)))


@cache
def _fresh_inside(schema: EffectSchema, blocks: tuple[int, ...]) -> NDArray[np.bool_]:
    """Whether each of them is in these blocks."""
    return np.isin(_fresh_blocks(schema), blocks)


@cache
def _fresh_treated(world: World, width: int) -> Array:
    """The probability of treatment of each of them."""
    return np.asarray(expit(world.treated(_fresh(width))))


@cache
def _fresh_means(world: World, width: int, place: int) -> tuple[Array, Array]:
    """Means of their outcomes on one of several, untreated, and how much treatment adds."""
    u = _fresh(width)
    untreated = world._mean(world.others(u) / (1 + place))
    return untreated, world._mean((world.others(u) + world.effect(u)) / (1 + place)) - untreated


@cache
def _fresh(width: int) -> Array:
    """Columns of records that no release has seen; with their opposites, so that what is odd in them has no error."""
    half = _drawn(_FRESH // 2, width, np.random.default_rng(1))
    return np.concatenate([half, -half])


def played(course: Effect, X: Array, y: Array, rng: Generator) -> list[Release | None]:
    """The releases of a course over these records, dealt to all clients of the plan."""

    def release(node: Round) -> Release:
        plan, clients = node.plan, node.plan.cohort.clients
        dealt = [(X[k::clients], y[k::clients]) for k in range(clients)]
        parts = [sums_of(plan.schema, *each, published=plan.published) for each in dealt]
        return session.aggregate_unmasked(plan, parts, rng)

    return run(course, release)


def _columns(schema: EffectSchema, records: int, chance: np.random.Generator) -> Array:
    """Columns behind their ranges."""
    return _drawn(records, schema.width - 1, chance)


def _drawn(records: int, width: int, chance: np.random.Generator) -> Array:
    columns: Array = np.clip(chance.normal(size=(records, width)) * 0.4, -1, 1)
    return columns


def _raw(schema: EffectSchema, u: Array, arm: Array) -> Array:
    """The columns as they come in, the arm in its place."""
    last = schema.transform[-1]
    if not isinstance(last, ByArm):
        raise PlanError("audit inference takes a schema that EffectSchema.of builds")
    scale, shift = map_columns(schema.transform[:-1], schema.width)
    rows = np.insert(u, last.column, arm, axis=1)
    return np.asarray((rows - shift) / scale)
