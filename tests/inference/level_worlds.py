"""Worlds with a declared level that few records or none have, and every table that reads declared levels.

A world is a table of persons. Its level is empty, or holds a few records, all of them treated and with outcomes unlike
the others'; or it holds many persons without an event, or followed for a shorter time. The same world without these
records, read by a plan that does not declare the level, is the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import privstats as ps
from privstats import course as courses
from privstats import session
from privstats.inference import effect, hazards, logit, ols, poisson
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.transforms import Cells, Centre, ConstantFeature, Interactions, Levels, Scale, Transform
from tests import made

__all__ = ["ARM", "EFFECT", "MEASURED", "RECORDS", "TABLES", "Reader", "World"]

ARM, EFFECT, RECORDS = 0.4, 0.1, 8_000
"""The arm's true coefficient in tables of rounds, and in those of a measured outcome; and the number of other records.
"""

_TEXTS = {"last": ("A", "B", "C"), "first": ("C", "A", "B"), "undeclared": ("A", "B")}
_REGIONS = {"last": ("X", "Y", "Z"), "first": ("Z", "X", "Y"), "undeclared": ("X", "Y")}
_EDGES, _MONTHS = (0, 6, 12, 18, 24), 6

Reader = Callable[["World", str, float], Any]


@dataclass(frozen=True)
class World:
    """Persons with an arm and a ward, of whom ``few`` are in ward C, all treated and with other outcomes.

    Attributes:
        events: whether persons of ward C have events; without, or with an end, arms of ward C are random too.
        until: month in which the follow-up of ward C ends, or None.
    """

    few: int
    seed: int
    events: bool = True
    until: float | None = None

    def table(self, levels: str) -> dict[str, Any]:
        """Return the columns that every table reads; without ward C where the plan does not declare it."""
        rng = np.random.default_rng(self.seed)
        count = RECORDS + self.few
        rare = np.arange(count) >= RECORDS
        treated = rare if self.events and self.until is None else rare & False
        arm = np.where(treated, 1, rng.integers(0, 2, count))
        fitted = -0.5 + ARM * arm + 1.5 * treated
        event = rng.exponential(30 / np.exp(ARM * arm + 1.5 * treated))
        left, other = rng.uniform(6, 24, count), rng.exponential(60, count)
        end = np.where(rare, self.until or _EDGES[-1], _EDGES[-1])
        event, left = np.where(rare & (not self.events), np.inf, event), np.minimum(left, end - 0.01)
        cause = np.argmin([left, event, other], axis=0)
        table = {
            "arm": arm,
            "ward": np.where(rare, "C", rng.choice(["A", "B"], count)),
            "months": np.minimum(left, event),
            "died": (event <= left) * 1,
            "first": np.minimum(np.minimum(left, event), other),
            "ended": np.array(["seen", "died", "left"])[cause],
            "visit": np.where(event < end, np.minimum(event, end - 1), end - 1) // _MONTHS,
            "by visit": (event < end) * 1,
            "ill": (rng.random(count) < 1 / (1 + np.exp(-fitted))) * 1,
            "visits": np.minimum(rng.poisson(np.exp(fitted)), 8),
        }
        table |= self._measured(rng, arm, rare, treated)
        table["region"] = np.where(rare, "Z", rng.choice(["X", "Y"], count))
        if not self.events:
            table |= {name: np.where(rare, 0, table[name]) for name in ("ill", "visits")}
        kept = slice(RECORDS) if levels == "undeclared" else slice(None)
        return {name: column[kept] for name, column in table.items()}

    def _measured(
        self, rng: np.random.Generator, arm: NDArray[Any], rare: NDArray[np.bool_], treated: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """Return a measured outcome of each design: the arm, a trial, one with gaps, and a treatment that x decides.

        Arms of a trial are random in ward C too, where most outcomes are missing.
        """
        x = np.clip(rng.normal(size=len(rare)) * 0.4, -1, 1)
        chosen = np.where(treated, 1, rng.random(len(rare)) < 1 / (1 + np.exp(-x)))
        fitted = 0.3 * x - 0.5 * treated + rng.normal(size=len(rare)) * 0.15
        gaps = rng.random(len(rare)) < 0.15 + 0.1 * (x > 0) + 0.4 * treated
        assigned = rng.integers(0, 2, len(rare))
        trial = np.clip(EFFECT * assigned + fitted, -1, 1)
        return {
            "x": x,
            "chosen": chosen * 1,
            "assigned": assigned,
            "level": np.clip(EFFECT * arm + fitted, -1, 1),
            "level, trial": trial,
            "level, gaps": np.where(gaps, np.nan, trial),
            "level, chosen": np.clip(EFFECT * chosen + fitted, -1, 1),
        }


class Effect(NamedTuple):
    """An effect as a table of one row."""

    names: tuple[str, ...]
    reported: NDArray[np.bool_]
    ends: NDArray[Any]
    notes: tuple[str, ...]
    table: Any
    converged: bool = True

    def conf_int(self) -> NDArray[Any]:
        """Return the ends, ``(1, 2)``."""
        return self.ends

    def summary(self) -> Any:
        """Return the effect's own table."""
        return self.table.summary()


class _Map(NamedTuple):
    """Maps of declared columns to -1 and 1, and the number of columns behind them, a constant included."""

    names: tuple[str, ...]
    steps: tuple[Transform, ...]
    width: int


def _map(levels: str, *names: str, products: bool = False) -> _Map:
    """Return the maps of declared columns, or of the arm's numbers; ``products`` adds those of the first two."""
    texts: dict[str, tuple[Any, ...]] = {"arm": (0, 1), "ward": _TEXTS[levels], "region": _REGIONS[levels]}
    columns = tuple(ps.Categories(name, texts[name]) for name in names)
    several = tuple(place for place, each in enumerate(columns) if len(each.values) > 2)
    read = Levels(columns, (), several)
    width = sum(len(each.values) - 1 for each in columns)
    crossed = (Interactions.between(names, (names[:2],), read),) if products else ()
    steps = (*((read,) if len(names) > 1 else ()), Centre((0.5,) * width), Scale((0.5,) * width), *crossed)
    return _Map(names, (*steps, ConstantFeature(1.0)), width + 1 + sum(len(each.pairs) for each in crossed))


def _scores(world: World, levels: str, epsilon: float, maps: Callable[[str], _Map], outcome: str, **how: Any) -> Any:
    (names, steps, width), reader = maps(levels), poisson if how.get("family") else logit
    schema = ps.ScoreSchema(width, width**0.5, transform=steps, feature_names=names, **how)
    return reader(_played(ps.Newton.start(schema, _COHORT, _privacy(epsilon)), world, levels, outcome))


def _hazards(world: World, levels: str, epsilon: float, *, strata: bool = False, early: int = 0, **how: Any) -> Any:
    usual: dict[str, Any] = {"bins": ps.Bins("months", _EDGES), "event": "died", "times": "continuous"}
    names, steps, width = _map(levels, "arm") if strata else _two(levels)
    if strata:
        usual["strata"] = ps.Categories("ward", _TEXTS[levels])
    if how.get("event") == "ended":
        steps = (_with_causes(steps[0]), *steps[1:])
    schema = ps.HazardSchema(width, max(width, 2) ** 0.5, feature_names=names, transform=steps, **{**usual, **how})
    course = ps.Hazard.start(schema, _COHORT, _privacy(epsilon), by=None if early else "arm", early_bins=early)
    return hazards(_played(course, world, levels, None))


def _effect(world: World, levels: str, epsilon: float, *, arm: str, outcome: str, **how: Any) -> Effect:
    columns = {"x": (-1.0, 1.0), "ward": _TEXTS[levels]}
    schema = ps.EffectSchema.of(columns, treatment=arm, outcome=(-1, 1), **how)
    table = effect(_played(ps.Effect.start(schema, _COHORT, _privacy(epsilon)), world, levels, outcome))
    notes = (*table.widened, *filter(None, [table.why_not_reported]))
    return Effect(("arm",), np.array([table.reported]), table.conf_int()[None], notes, table)


def _cells(world: World, levels: str, epsilon: float, *, outcome: str) -> Any:
    columns = (ps.Categories("arm", (0, 1)), ps.Categories("ward", _TEXTS[levels]))
    cells = Cells(columns, missing="left out")
    terms: dict[str, Any] = {"clip_norm": 1.5, "transform": (cells, ConstantFeature(1.0))}
    if outcome == "level":
        plan = made.plan(ps.RidgeSchema(cells.width + 1, target_bound=1.0, **terms), _COHORT, _privacy(epsilon))
        return _named(ols(_released(plan, world, levels, outcome)))
    course = ps.Newton.start(ps.ScoreSchema(cells.width + 1, **terms), _COHORT, _privacy(epsilon))
    return _named(logit(_played(course, world, levels, outcome)))


def _named(table: Any) -> Any:
    return replace(table, names=tuple("arm" if name == "arm: 1" else name for name in table.names))


def _with_causes(read: Transform) -> Transform:
    assert isinstance(read, Levels)
    return replace(read, outcomes=(ps.Categories("ended", ("seen", "died", "left")),))


def _privacy(epsilon: float) -> ps.Privacy:
    return made.promise(epsilon=epsilon, delta=1e-6)


def _played(course: Any, world: World, levels: str, outcome: str | None) -> list[Any]:
    """Return all releases of a course of two parties, without the masking protocol."""
    table, rng = world.table(levels), seeded(world.seed)
    return courses.run(course, lambda node: _summed(node.plan, table, outcome, rng))


def _released(plan: ps.Plan, world: World, levels: str, outcome: str) -> ps.Release:
    return _summed(plan, world.table(levels), outcome, seeded(world.seed))


def _summed(plan: ps.Plan, table: dict[str, Any], outcome: str | None, rng: Any) -> ps.Release:
    schema: Any = plan.schema
    parts = []
    for party in range(2):
        part = {name: column[party::2] for name, column in table.items()}
        X: Any = part
        if outcome is not None:
            X = pd.DataFrame(part)[list(schema.feature_names or [each.name for each in schema.transform[0].columns])]
        y = None if outcome is None else part[outcome]
        parts.append(exact_moments(schema, X, y, published=plan.published))
    return session.aggregate_unmasked(plan, parts, rng)


_COHORT = ps.Cohort(2, 2, 2 * RECORDS)


def _two(levels: str) -> _Map:
    return _map(levels, "arm", "ward")


def _crossed(levels: str) -> _Map:
    return _map(levels, "arm", "ward", products=True)


def _three(levels: str) -> _Map:
    return _map(levels, "arm", "ward", "region")


_visits = partial(_hazards, bins=ps.Bins("visit", (0, 1, 2, 3, 4)), event="by visit", times="discrete")
_causes = partial(_hazards, bins=ps.Bins("first", _EDGES), event="ended")
_observed = partial(_effect, arm="chosen", outcome="level, chosen", trim=0.1)

TABLES: dict[str, Reader] = {
    "logit": partial(_scores, maps=_two, outcome="ill"),
    "logit, errors of the model": partial(_scores, maps=_two, outcome="ill", errors="model"),
    "logit, arm by ward": partial(_scores, maps=_crossed, outcome="ill"),
    "logit, two columns alike": partial(_scores, maps=_three, outcome="ill"),
    "logit of cells": partial(_cells, outcome="ill"),
    "poisson": partial(_scores, maps=_two, outcome="visits", family="poisson", target_bound=8.0),
    "hazards": _hazards,
    "hazards at visits": _visits,
    "hazards of one cause": _causes,
    "subdistribution hazards": partial(_causes, ratios="subdistribution"),
    "hazards by stratum": partial(_hazards, strata=True),
    "hazards with a test by column": partial(_hazards, early=2),
    "hazards by stratum with a test by column": partial(_hazards, strata=True, early=2),
    "ols of cells": partial(_cells, outcome="level"),
    "effect, trial": partial(_effect, arm="assigned", outcome="level, trial", probability=0.5),
    "effect, missing outcomes": partial(
        _effect, arm="assigned", outcome="level, gaps", probability=0.5, missing="weights", trim=0.5
    ),
    "effect, not randomised": _observed,
    "effect, of the treated": partial(_observed, estimand="att"),
    "effect, overlap weights": partial(_observed, estimand="overlap"),
}
"""Every reader of declared levels, by name."""

MEASURED = tuple(name for name in TABLES if name.startswith(("ols", "effect")))
"""Tables of a measured outcome, whose true coefficient is :data:`EFFECT`."""
