"""Worlds with a declared level that few records or none have, and every table of rounds that reads them.

A world is a table of persons. Its level is empty, or holds a few records, all of them treated and with outcomes unlike
the others'. The same world without these records, read by a plan that does not declare the level, is the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import privstats as ps
from privstats import course as courses
from privstats import session
from privstats.inference import hazards, logit, poisson
from privstats.moments import exact_moments
from privstats.randomness import seeded
from privstats.transforms import Centre, ConstantFeature, Interactions, Levels, Scale, Transform
from tests import made

__all__ = ["ARM", "RECORDS", "TABLES", "Reader", "World"]

ARM, RECORDS = 0.4, 8_000
"""The arm's true coefficient in every table, and the number of records outside the level."""

_TEXTS = {"last": ("A", "B", "C"), "first": ("C", "A", "B"), "undeclared": ("A", "B")}
_EDGES, _MONTHS = (0, 6, 12, 18, 24), 6

Reader = Callable[["World", str, float], Any]


@dataclass(frozen=True)
class World:
    """Persons with an arm and a ward, of whom ``few`` are in ward C, all treated and with other outcomes."""

    few: int
    seed: int

    def table(self, levels: str) -> dict[str, Any]:
        """Return the columns that every table reads; without ward C where the plan does not declare it."""
        rng = np.random.default_rng(self.seed)
        count = RECORDS + self.few
        rare = np.arange(count) >= RECORDS
        arm = np.where(rare, 1, rng.integers(0, 2, count))
        fitted = -0.5 + ARM * arm + 1.5 * rare
        event = rng.exponential(30 / np.exp(ARM * arm + 1.5 * rare))
        left, other = rng.uniform(6, 24, count), rng.exponential(60, count)
        cause = np.argmin([left, event, other], axis=0)
        visit = np.minimum(event // _MONTHS, 3)
        table = {
            "arm": arm,
            "ward": np.where(rare, "C", rng.choice(["A", "B"], count)),
            "months": np.minimum(left, event),
            "died": (event <= left) * 1,
            "first": np.minimum(np.minimum(left, event), other),
            "ended": np.array(["seen", "died", "left"])[cause],
            "visit": visit,
            "by visit": (event < _EDGES[-1]) * 1,
            "ill": (rng.random(count) < 1 / (1 + np.exp(-fitted))) * 1,
            "visits": np.minimum(rng.poisson(np.exp(fitted)), 8),
        }
        kept = slice(RECORDS) if levels == "undeclared" else slice(None)
        return {name: column[kept] for name, column in table.items()}


def _maps(levels: str, *, products: bool = False, column: bool = True) -> tuple[Transform, ...]:
    """Return maps of arm and ward, or of the arm alone, to -1 and 1."""
    if not column:
        return (Centre((0.5,)), Scale((0.5,)), ConstantFeature(1.0))
    texts = _TEXTS[levels]
    read = Levels((ps.Categories("arm", (0, 1)), ps.Categories("ward", texts)), (), (1,) if len(texts) > 2 else ())
    halves = (0.5,) * len(texts)
    crossed = (Interactions.between(("arm", "ward"), (("arm", "ward"),), read),) if products else ()
    return (read, Centre(halves), Scale(halves), *crossed, ConstantFeature(1.0))


def _scores(
    world: World, levels: str, epsilon: float, outcome: str, reader: Any, *, products: bool = False, **how: Any
) -> Any:
    maps, names = _maps(levels, products=products), ("arm", "ward")
    width = 1 + len(_TEXTS[levels]) + (len(_TEXTS[levels]) - 1) * products
    schema = ps.ScoreSchema(width, width**0.5, transform=maps, feature_names=names, **how)
    return reader(_played(ps.Newton.start(schema, _COHORT, _privacy(epsilon)), world, levels, outcome))


def _hazards(world: World, levels: str, epsilon: float, *, strata: bool = False, early: int = 0, **how: Any) -> Any:
    usual: dict[str, Any] = {"bins": ps.Bins("months", _EDGES), "event": "died", "times": "continuous"}
    names = ("arm",) if strata else ("arm", "ward")
    maps = _maps(levels, column=not strata)
    if strata:
        usual["strata"] = ps.Categories("ward", _TEXTS[levels])
    if how.get("event") == "ended":
        maps = (_with_causes(maps[0]), *maps[1:])
    width = len(maps[-2].per) + 1
    schema = ps.HazardSchema(width, max(width, 2) ** 0.5, feature_names=names, transform=maps, **{**usual, **how})
    course = ps.Hazard.start(schema, _COHORT, _privacy(epsilon), early_bins=early)
    return hazards(_played(course, world, levels, None))


def _with_causes(read: Levels) -> Levels:
    return replace(read, outcomes=(ps.Categories("ended", ("seen", "died", "left")),))


def _privacy(epsilon: float) -> ps.Privacy:
    return made.promise(epsilon=epsilon, delta=1e-6)


def _played(course: Any, world: World, levels: str, outcome: str | None) -> list[Any]:
    """Return all releases of a course of two parties, without the masking protocol."""
    table, rng = world.table(levels), seeded(world.seed)

    def release(node: Any) -> ps.Release:
        schema, parts = node.plan.schema, []
        for party in range(2):
            part = {name: column[party::2] for name, column in table.items()}
            X = part if outcome is None else pd.DataFrame(part)[list(schema.feature_names)]
            y = None if outcome is None else part[outcome]
            parts.append(exact_moments(schema, X, y, published=node.plan.published))
        return session.aggregate_unmasked(node.plan, parts, rng)

    return courses.run(course, release)


_COHORT = ps.Cohort(2, 2, 2 * RECORDS)

TABLES: dict[str, Reader] = {
    "logit": partial(_scores, outcome="ill", reader=logit),
    "logit, errors of the model": partial(_scores, outcome="ill", reader=logit, errors="model"),
    "logit, arm by ward": partial(_scores, outcome="ill", reader=logit, products=True),
    "poisson": partial(_scores, outcome="visits", reader=poisson, family="poisson", target_bound=8.0),
    "hazards": _hazards,
    "hazards at visits": partial(_hazards, bins=ps.Bins("visit", (0, 1, 2, 3, 4)), event="by visit", times="discrete"),
    "hazards of one cause": partial(_hazards, bins=ps.Bins("first", _EDGES), event="ended"),
    "subdistribution hazards": partial(
        _hazards, bins=ps.Bins("first", _EDGES), event="ended", ratios="subdistribution"
    ),
    "hazards by stratum": partial(_hazards, strata=True),
    "hazards with a test by column": partial(_hazards, early=2),
    "hazards by stratum with a test by column": partial(_hazards, strata=True, early=2),
}
"""Every reader of rounds, by name."""
