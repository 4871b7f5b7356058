"""Measure how often intervals of restricted means, of median follow-up and of curves with many events a bin miss, and
how often a false claim about a margin is printed as shown.

    python -m benchmarks.inference.margins --save --runs 1000

Persons of two arms have constant hazards, of the event and, from a month on, of leaving. The truth is that of the
hazards, not of a sample. "Beyond" is a world where leaving is not even inside the cells of the counts, as it is assumed
to be. In the trials each true effect lies on its margin, so every claim is false. "Shown" is how often any claim
is printed as shown, which the table states to be at most 2.5 %.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Way
from benchmarks.inference.runs import add_options, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.encoding import flatten
from privstats.moments import exact_moments
from privstats.randomness import Generator, seeded
from threat_models.audits.effect_worlds import played

NAME = "inference.margins"
TAU = 12.0
STATED = 100.0
"""Epsilon of the plan of exact sums: readers count its noise, which the sums do not have."""

_EDGES = (*range(0, 25, 2), 60)
_SCHEMA = ps.CountSchema(
    (ps.Categories("arm", ("a", "b")), ps.Bins("months", _EDGES, open="above"), ps.Categories("died", (0, 1))),
    (("arm", "months", "died"),),
)
_WORDS: dict[str, Any] = {"time": "months", "event": "died", "by": "arm", "times": "continuous"}
_HOW: dict[str, Any] = {"model": "central", "unit": "record", "adjacency": "add-remove", "delta": 1e-6}


@dataclass(frozen=True)
class World:
    """Persons of two arms.

    Attributes:
        hazards: of the event per month, by arm.
        second: share of persons in the second arm.
        leaving: first month at which persons leave, and the hazard from then on, by arm.
        until: last month, where persons leave at evenly distributed times instead.
        epsilon: None for exact counts.
    """

    name: str
    hazards: tuple[float, float]
    records: int
    epsilon: float | None
    second: float = 0.5
    leaving: tuple[tuple[float, float], tuple[float, float]] = ((14.0, 0.15), (14.0, 0.15))
    until: float | None = None

    @property
    def means(self) -> tuple[float, float]:
        """True means up to month 12."""
        first, second = (-math.expm1(-hazard * TAU) / hazard for hazard in self.hazards)
        return first, second

    @property
    def follow_up(self) -> tuple[float, float]:
        """True median months of follow-up."""
        if self.until is not None:
            first, second = ((start + self.until) / 2 for start, _ in self.leaving)
        else:
            first, second = (start + math.log(2) / hazard for start, hazard in self.leaving)
        return first, second


_SIZES = ((400, None), (2_000, 8.0), (4_000, 3.0), (10_000, 1.0))
_EARLY = ((4.0, 0.06), (4.0, 0.15))
WORLDS = (
    *(World("usual", (0.04, 0.06), *size) for size in _SIZES),
    *(World("few events", (0.002, 0.004), *size) for size in _SIZES),
    *(World("a tenth in the second arm", (0.04, 0.06), 2 * records, epsilon, 0.1) for records, epsilon in _SIZES),
    *(World("the second arm leaves early", (0.04, 0.06), n, epsilon, leaving=_EARLY) for n, epsilon in _SIZES),
    *(World("most have the event", (0.15, 0.3), *size) for size in _SIZES),
    *(World("beyond: leaving evenly up to month 24", (0.04, 0.06), n, epsilon, until=24.0) for n, epsilon in _SIZES),
)

_CURVE = ps.CountSchema((ps.Bins("months", _EDGES, open="above"), ps.Categories("died", (0, 1))), (("months", "died"),))
_LEAVES = 0.03
_FEW = 20
CURVES = tuple((hazard, *size) for hazard in (0.05, 0.15, 0.3, 0.4) for size in _SIZES)
"""Hazard per month, records and epsilon."""

TRIALS = (
    ("non-inferiority of two outcomes", 1_000, None),
    ("non-inferiority of two outcomes", 2_000, 8.0),
    ("non-inferiority of two outcomes", 4_000, 3.0),
    ("non-inferiority of two outcomes", 10_000, 1.0),
    ("equivalence, a rare outcome", 2_000, None),
    ("equivalence, a rare outcome", 4_000, 8.0),
    ("equivalence, a rare outcome", 10_000, 3.0),
    ("equivalence, a rare outcome", 20_000, 1.0),
)
"""Claim, records and epsilon."""


def options(parser: argparse.ArgumentParser) -> None:
    """``--runs`` and ``--only``."""
    add_options(parser)


def tables(options: argparse.Namespace) -> Tables:
    """Restricted means with follow-up, and verdicts on margins."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    if options.only in (title := "restricted means and follow-up"):
        cells = [(world,) for world in WORLDS[:few]]
        yield from table_of(NAME, title, cells, partial(means, runs=runs))
    if options.only in (title := "curves with many events a bin"):
        yield from table_of(NAME, title, CURVES[:few], partial(curves, runs=runs))
    if options.only in (title := "claims that are false"):
        yield from table_of(NAME, title, TRIALS[:few], partial(claims, runs=runs))


def _generators(*cell: Any) -> tuple[np.random.Generator, Generator]:
    seed = zlib.crc32(repr(cell).encode())
    return np.random.default_rng(seed), seeded(seed)


def _plan(schema: ps.CountSchema, records: int, epsilon: float | None) -> ps.Plan:
    privacy = ps.Privacy(**_HOW, epsilon=epsilon or STATED)
    return ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * records), privacy=privacy)


def _released(plan: ps.Plan, table: Mapping[str, Any], epsilon: float | None, rng: Generator) -> ps.Release:
    parts = [exact_moments(plan.schema, {name: column[k::2] for name, column in table.items()}) for k in (0, 1)]
    if epsilon is None:
        return ps.Release.exact(plan.schema, parts[0] + parts[1])
    return session.aggregate_unmasked(plan, parts, rng)


def persons(world: World, chance: np.random.Generator) -> dict[str, Any]:
    """Draw arms, months and events."""
    arm = (chance.random(world.records) < world.second).astype(int)
    died = chance.exponential(1 / np.asarray(world.hazards)[arm])
    start, hazard = np.asarray(world.leaving)[arm].T
    left = start + (chance.exponential(1 / hazard) if world.until is None else chance.uniform(0, world.until - start))
    return {"arm": np.where(arm, "b", "a"), "months": np.minimum(died, left), "died": (died <= left) * 1}


def means(world: World, runs: int) -> Row:
    """Count intervals of the means, their difference and ratio, and of the median follow-up, that miss."""
    plan = _plan(_SCHEMA, world.records, world.epsilon)
    first, second = world.means
    truth = {"mean a": first, "mean b": second, "difference": second - first, "ratio": second / first}
    truth |= dict(zip(("follow-up a", "follow-up b"), world.follow_up, strict=True))
    chance, rng = _generators(world)
    reported, missed = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0)
    for _ in range(runs):
        release = _released(plan, persons(world, chance), world.epsilon, rng)
        found = ps.inference.restricted_means(ps.inference.kaplan_meier(release, **_WORDS), TAU)
        medians = ps.inference.follow_up(release, **_WORDS).medians
        read = {f"mean {arm}": each for arm, each in found.means.items()}
        read |= {"difference": found.difference, "ratio": found.ratio}
        read |= {f"follow-up {arm}": each for arm, each in medians.items()}
        for name, each in read.items():
            reported[name] += each.reported
            missed[name] += each.reported and not each.low <= truth[name] <= each.high
    worst = max(missed.values())
    return {
        "world": world.name,
        "records": world.records,
        "epsilon": world.epsilon,
        "runs": runs,
        "reported": sum(reported.values()) / len(reported) / runs,
        **{f"{name}: missed": hits / runs for name, hits in missed.items()},
        "worst row": worst / runs,
        **ends(worst, runs),
    }


def mean_times(world: World) -> Way:
    """Return the function that draws persons, and reads both arms' means, their difference and ratio."""
    plan, (first, second) = _plan(_SCHEMA, world.records, world.epsilon), world.means
    truth = np.array([first, second, second - first, second / first])

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        release = _released(plan, persons(world, chance), world.epsilon, rng)
        found = ps.inference.restricted_means(ps.inference.kaplan_meier(release, **_WORDS), TAU)
        read = [*found.means.values(), found.difference, found.ratio]
        ends = np.array([(each.low, each.high) if each.reported else (-math.inf, math.inf) for each in read])
        return Answer.of(np.array([each.value for each in read]), ends, truth)

    return answer


def many_events(hazard: float, records: int, epsilon: float | None, bins: int) -> Way:
    """Return the function that draws persons, and reads survival after each of the first bins."""
    plan, truth = _plan(_CURVE, records, epsilon), np.exp(-hazard * np.array(_EDGES[1 : bins + 1]))

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        curve = _survival(plan, hazard, chance, epsilon, rng)
        ends = np.full((bins, 2), [-math.inf, math.inf])
        ends[: len(curve.timeline)] = curve.confidence_interval_[:bins]
        return Answer.of(np.full(bins, math.nan), ends, truth)

    return answer


def _survival(
    plan: ps.Plan, hazard: float, chance: np.random.Generator, epsilon: float | None, rng: Generator
) -> ps.inference.SurvivalCurve:
    records = plan.cohort.max_records // 2
    died, left = chance.exponential(1 / hazard, records), chance.exponential(1 / _LEAVES, records)
    release = _released(plan, {"months": np.minimum(died, left), "died": (died <= left) * 1}, epsilon, rng)
    curve = ps.inference.kaplan_meier(release, time="months", event="died", times="continuous")
    assert isinstance(curve, ps.inference.SurvivalCurve)
    return curve


def curves(hazard: float, records: int, epsilon: float | None, runs: int) -> Row:
    """Count intervals of survival after each reported bin that miss."""
    plan = _plan(_CURVE, records, epsilon)
    ends_of_bins = np.array(_EDGES[1:-1])
    truth = np.exp(-hazard * ends_of_bins)
    reported, missed, widths = np.zeros(len(truth), int), np.zeros(len(truth), int), []
    few_reported, few_missed = 0, 0
    chance, rng = _generators("curves", hazard, records, epsilon)
    for _ in range(runs):
        curve = _survival(plan, hazard, chance, epsilon, rng)
        low, high = curve.confidence_interval_.T
        n, out = len(low), (low > truth[: len(low)]) | (high < truth[: len(low)])
        few = curve.at_risk < _FEW
        reported[:n] += ~few
        missed[:n] += out & ~few
        few_reported, few_missed = few_reported + int(few.sum()), few_missed + int((out & few).sum())
        widths.append(float((high - low)[~few][-1]) / 2)
    often = reported >= runs / 2
    shares = missed[often] / reported[often]
    worst = int(np.argmax(shares))
    return {
        "hazard": 2 * hazard,
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "bins": int(often.sum()),
        "missed": float(missed.sum() / reported.sum()),
        "last bin": float(shares[-1]),
        "worst bin": float(shares[worst]),
        **ends(int(missed[often][worst]), int(reported[often][worst])),
        "half width of the last": float(np.median(widths)),
        "fewer at risk: missed": few_missed / few_reported if few_reported else None,
    }


def claims(claim: str, records: int, epsilon: float | None, runs: int) -> Row:
    """Count trials that show any claim, where the true effects are on the margins."""
    rare = claim.startswith("equivalence")
    margins = (ps.course.Margin("first", low=-0.03, high=0.03), ps.course.Margin("second", low=-0.03, high=0.03))
    if not rare:
        margins = (ps.course.Margin("first", low=-0.05), ps.course.Margin("second", low=-0.05))
    base, effect = (0.04, 0.03) if rare else (0.6, -0.05)
    outcome = {"first": (0.0, 1.0), "second": (0.0, 1.0)}
    schema = ps.EffectSchema.of({"age": (-1, 1)}, treatment="arm", outcome=outcome, probability=0.5)
    privacy = ps.Privacy(**_HOW, epsilon=epsilon or STATED)
    analysis = ps.course.Analysis(primary=("first", "second"), margins=margins)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), privacy, analysis=analysis)
    chance, rng = _generators(claim, records, epsilon)
    reported, shown, each = 0, 0, np.zeros(2)
    for _ in range(runs):
        age, arm = chance.uniform(-1, 1, records), chance.integers(0, 2, records)
        risk = base + effect * arm + base / 2 * age
        y = (chance.random((records, 2)) < risk[:, None]).astype(np.float64)
        X = np.column_stack([age, arm])
        releases = _exact(course, X, y) if epsilon is None else played(course, X, y, rng)
        verdicts = ps.inference.effects(releases, course).verdicts()
        reported += all(math.isfinite(verdict.conf_low) for verdict in verdicts)
        shown += any(verdict.shown for verdict in verdicts)
        each += [verdict.shown for verdict in verdicts]
    return {
        "claim": claim,
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / runs,
        "shown": shown / runs,
        **ends(shown, runs),
        "more often shown": float(each.max()) / runs,
    }


def _exact(course: ps.Effect, X: Any, y: Any) -> list[ps.Release | None]:
    def release(node: Any) -> ps.Release:
        parts = [exact_moments(node.plan.schema, X[k::2], y[k::2], published=node.plan.published) for k in (0, 1)]
        return ps.Release(node.plan, flatten(parts[0] + parts[1]), (0, 1))

    return ps.course.run(course, release)


if __name__ == "__main__":
    command(NAME, __doc__, tables, options, others_of(NAME))
