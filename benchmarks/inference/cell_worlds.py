"""Worlds of what cells and bins hide: gaps of a confounder, values inside a bin, rare spikes, few events.

``stretched`` measures them beside its own worlds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy.special import expit, ndtr

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, Way, plan_of, promise, ran
from benchmarks.inference.readers import intervals_of
from privstats import course as courses
from privstats import inference as inf
from privstats.randomness import Generator
from privstats.transforms import Cells, ConstantFeature

__all__ = ["balanced", "bin_ends", "gaps", "independent", "means", "spikes", "stays"]

CLIENTS = 2
Chance = np.random.Generator
Made = Callable[[int, float], Way]
Gaps = Literal["left out", "cells", "hidden cells"]
"""How a table reads gaps: complete records; cells, with ``gaps_as_cells``; cells, as they are read without it."""

CONFOUNDED = Cells(
    (ps.Categories("cause", ("low", "high")), ps.Categories("arm", ("placebo", "drug"))), signs=2, ramp=False
)
_EFFECT, _BOUND = 1.0, 5.0  # of the cause; of a number
_STAY, _LOG, _LONGEST = 0.05, 1.5, 60.0  # share with a stay, mean of its logarithm (of spread 1), most days


def gaps(family: Literal["linear", "logistic"], share: float, by: str, way: Gaps) -> Made:
    """The arm's contrast, which is 0: a cause of arm and outcome has this share of gaps."""
    cells = replace(CONFOUNDED, missing="left out") if way == "left out" else CONFOUNDED
    transform = (cells, ConstantFeature(1.0))
    linear = ps.RidgeSchema(clip_norm=math.sqrt(2), target_bound=_BOUND, transform=transform)
    score = ps.ScoreSchema(clip_norm=math.sqrt(2), transform=transform, errors="model")
    how: dict[str, Any] = {"gaps_as_cells": way == "cells"}

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(linear, CLIENTS, records, epsilon)
        course = ps.Newton.start(score, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon))

        def answer(chance: Chance, rng: Generator) -> Answer:
            cause, gap = (chance.random(records) < 0.5).astype(int), chance.random(records)
            arm = (chance.random(records) < np.where(cause, 0.7, 0.3)).astype(int)
            likelier = {"coin": np.ones(records), "arm": 0.5 + arm, "value": 0.5 + cause}[by]
            gone = gap < share * likelier
            table: Any = {
                "cause": np.where(gone, None, np.array(["low", "high"], object)[cause]),
                "arm": np.array(["placebo", "drug"], object)[arm],
            }
            if family == "linear":
                y = np.clip(_EFFECT * cause + chance.normal(size=records), -_BOUND, _BOUND)
            else:
                y = (chance.random(records) < expit(_EFFECT * cause - 1)).astype(int)
            if way == "left out":  # as a data holder's program excludes them
                table, y = {name: column[~gone] for name, column in table.items()}, y[~gone]
            parts = [
                ({name: column[k::CLIENTS] for name, column in table.items()}, y[k::CLIENTS]) for k in range(CLIENTS)
            ]
            if family == "linear":
                found = inf.ols(ran(plan, parts, rng), **how).cells()
            else:
                found = inf.logit(courses.run(course, lambda node: ran(node.plan, parts, rng)), **how).cells()
            (place,) = (
                k for k, each in enumerate(zip(found.columns, found.cells, strict=True)) if each == ("arm", "drug")
            )
            ends = np.array([[found.low[place], found.high[place]]])
            return Answer.of(found.estimate[[place]], ends, np.zeros(1))

        return answer

    return made


def _counted(schema: ps.CountSchema, draw: Callable[[Chance, int], Any], read: Callable[[Any], Answer]) -> Made:
    """Count tables of records from ``draw``."""

    def made(records: int, epsilon: float) -> Way:
        plan = plan_of(schema, CLIENTS, records, epsilon)

        def answer(chance: Chance, rng: Generator) -> Answer:
            table = draw(chance, records)
            parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
            return read(ran(plan, parts, rng))

        return answer

    return made


def bin_ends(scale: float, width: float) -> Made:
    """Four quantiles of an exponential law by the ends of their bins, up to 100."""
    levels = (0.25, 0.5, 0.75, 0.9)
    truth = -scale * np.log(1 - np.array(levels))
    bins = ps.Bins("days", tuple(np.arange(0, 100 + width, width)), open="above")
    return _counted(
        ps.CountSchema((bins,), (("days",),)),
        lambda chance, n: {"days": np.minimum(chance.exponential(scale, n), 99.9)},
        lambda release: intervals_of([inf.Interval(*inf.quantile(release, "days", q)[:4]) for q in levels], truth),
    )


def means(draw: Callable[[Chance, int], Array], most: float, mean: float, variance: float) -> Made:
    """Mean and variance of a number from 0 to ``most`` in two groups of 30 and 70 %."""
    number = ps.Number("x", 0, most, by=("group",))
    schema = ps.CountSchema((ps.Categories("group", ("a", "b")),), (("group",),), numbers=(number,))

    def read(release: Any) -> Answer:
        found = inf.averages(release, "x")
        each = [found[group,] for group in "ab"]
        intervals = [one.mean for one in each] + [one.variance for one in each]
        return intervals_of(intervals, np.array([mean, mean, variance, variance]))

    def table(chance: Chance, n: int) -> Any:
        return {"x": draw(chance, n), "group": np.where(chance.random(n) < 0.3, "a", "b")}

    return _counted(schema, table, read)


def spikes(share: float) -> Made:
    """10 for this share of the records, else 0."""
    return means(
        lambda chance, n: np.where(chance.random(n) < share, 10.0, 0.0).astype(np.float64),
        10,
        10 * share,
        100 * share * (1 - share),
    )


def stays() -> Made:
    """Days in hospital, up to 60: lognormal for 5 % of the records, else 0."""

    def days(chance: Chance, n: int) -> Array:
        stay = np.minimum(chance.lognormal(_LOG, 1.0, n), _LONGEST)
        return np.where(chance.random(n) < _STAY, stay, 0.0).astype(np.float64)

    end = math.log(_LONGEST) - _LOG
    first, second = (
        _STAY * (math.exp(k * _LOG + k * k / 2) * ndtr(end - k) + _LONGEST**k * ndtr(-end)) for k in (1, 2)
    )
    return means(days, _LONGEST, first, second - first**2)


def balanced(events: float) -> Made:
    """Balanced accuracy where this share has the outcome, with recalls .9 and .7."""
    outcome, guessed, recall = ps.Categories("y", (0, 1)), ps.Categories("guess", (0, 1)), np.array([0.9, 0.7])

    def table(chance: Chance, n: int) -> Any:
        y = (chance.random(n) < events).astype(int)
        return {"y": y, "guess": np.where(chance.random(n) < recall[y], y, 1 - y)}

    return _counted(
        ps.CountSchema((outcome, guessed), (("y", "guess"),)),
        table,
        lambda release: intervals_of(
            [inf.confusion(release, "y", "guess").balanced_accuracy], recall.mean(keepdims=True)
        ),
    )


def independent(rows: Sequence[float], columns: Sequence[float]) -> Made:
    """The chi-squared test of independent variables with these shares: missed where it rejects at .05."""
    names = [tuple(f"{side}{k}" for k in range(len(shares))) for side, shares in (("r", rows), ("c", columns))]
    schema = ps.CountSchema(
        tuple(ps.Categories(side, each) for side, each in zip("rc", names, strict=True)), (("r", "c"),)
    )

    def read(release: Any) -> Answer:
        found = inf.chi2_contingency(release, "r", "c")
        ends = [0.05, 1.0] if found.reported else [-np.inf, np.inf]
        return Answer.of(np.array([found.pvalue]), np.array([ends]), np.array([found.pvalue]))

    def table(chance: Chance, n: int) -> Any:
        return {"r": chance.choice(names[0], n, p=rows), "c": chance.choice(names[1], n, p=columns)}

    return _counted(schema, table, read)
