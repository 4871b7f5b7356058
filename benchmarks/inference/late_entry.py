"""Measure how often survival curves, log-rank tests and hazard ratios hold where records enter late.

    python -m benchmarks.inference.late_entry --save

Persons of two arms enter at 0 to 12 months, those of the second arm later, and are seen if they have not had the event
by then. "Missed" is of the curve at 18 and 30 months, given survival to 6. "Rejected" is of the log-rank test where
both arms have the same hazards. "Entry ignored" counts the same of readers that put everyone at risk from 0 on.
"""

from __future__ import annotations

import argparse
import math
import zlib
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Way
from benchmarks.inference.runs import add_options, ends, noisy_releases, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import session
from privstats.moments import exact_moments
from privstats.randomness import Generator, seeded
from privstats.transforms import ConstantFeature

NAME = "inference.late_entry"
ALPHA, START, AT = 0.05, 6.0, (18.0, 30.0)
EDGES = tuple(range(0, 40, 3))
CELLS = (("continuous", 4_000, 1.0), ("continuous", 4_000, 8.0), ("continuous", 20_000, 1.0), ("discrete", 4_000, 8.0))
WORDS: dict[str, Any] = {"time": "months", "event": "died", "by": "arm"}


def schema_of(times: str) -> ps.CountSchema:
    """Counts of exits by arm, month and event, and of entries by arm and month."""
    edges = EDGES if times == "continuous" else tuple(range(40))
    arm, died = ps.Categories("arm", ("a", "b")), ps.Categories("died", (0, 1))
    months, enters = (ps.Bins(name, edges, open="above") for name in ("months", "enters"))
    tables = ("arm", "months", "died"), ("arm", "enters")
    return ps.CountSchema((arm, months, enters, died), tables, late_entry=ps.LateEntry("enters", "months", times))


def persons(records: int, times: str, chance: np.random.Generator) -> tuple[dict[str, Any], dict[float, float]]:
    """Draw persons who have not had the event before their entry; return true survival from START on, too."""
    rate, several = 0.04, 3 * records
    arm = chance.integers(0, 2, several)
    enters = chance.uniform(0, 9, several) + 3 * arm
    died = chance.exponential(1 / rate, several)
    left = enters + chance.exponential(np.where(arm, 15.0, 30.0))
    if times == "discrete":
        enters, died, left = np.floor(enters), np.floor(died), np.floor(left) + 1
    seen = np.flatnonzero(died > enters)[:records]
    arm, enters, died, left = arm[seen], enters[seen], died[seen], left[seen]
    months = np.minimum(died, left)
    table = {"arm": np.where(arm, "b", "a"), "months": months, "enters": enters, "died": (died <= left) * 1}
    steps = 1 if times == "discrete" else 0  # a whole month that has the event counts
    return table, {at: math.exp(-rate * (at + steps - START)) for at in AT}


def tables(options: argparse.Namespace) -> Tables:
    """Curves and tests."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    if options.only in "curves and tests":
        yield from table_of(NAME, "curves and tests", CELLS[:few], partial(measured, runs=runs))
    if options.only in "hazard ratios":
        yield from table_of(NAME, "hazard ratios", RATIOS[:few], partial(ratios, runs=runs))


def measured(times: Any, records: int, epsilon: float, runs: int) -> Row:
    """Count points of curves that miss, and tests that reject equal hazards."""
    schema = schema_of(times)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * records), privacy=privacy)
    seed = zlib.crc32(repr((times, records, epsilon)).encode())
    chance, rng = np.random.default_rng(seed), seeded(seed)
    reported, missed, ignored = np.zeros(4), np.zeros(4), np.zeros(4)
    tests = {"reported tests": 0, "rejected": 0, "entry ignored rejects": 0}
    for _ in range(runs):
        table, truth = persons(records, times, chance)
        parts = [{name: column[k::2] for name, column in table.items()} for k in (0, 1)]
        release = session.aggregate_unmasked(plan, [exact_moments(schema, part) for part in parts], rng)
        late: Any = ps.inference.kaplan_meier(release, **WORDS, times=times, entry="enters", start=START)
        plain: Any = ps.inference.kaplan_meier(release, **WORDS, times=times)
        pairs = [(arm, at) for arm in ("a", "b") for at in AT]
        for place, (arm, at) in enumerate(pairs):
            inside = _inside(late[arm], at, truth[at])
            reported[place] += inside is not None
            missed[place] += inside is False
            ignored[place] += _inside(plain[arm], at, truth[at] * math.exp(-0.04 * START)) is False
        test = ps.inference.logrank_test(release, **WORDS, times=times, entry="enters", start=START)
        tests["reported tests"] += test.reported
        tests["rejected"] += test.p_value < ALPHA
        tests["entry ignored rejects"] += ps.inference.logrank_test(release, **WORDS, times=times).p_value < ALPHA
    worst = float(max(missed.max(), tests["rejected"]))
    return {
        "times": times,
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": float(reported.mean()) / runs,
        "reported and missed": float(missed.mean()) / runs,
        "worst point": float(missed.max()) / runs,
        **{name: count / runs for name, count in tests.items()},
        **ends(worst, runs),
        "entry ignored misses": float(ignored.max()) / runs,
    }


def points(times: Any, records: int, epsilon: float) -> Way:
    """Return the function that draws persons, and reads both arms' curves at the times of the table."""
    schema = schema_of(times)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 2 * records), privacy=privacy)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        table, truth = persons(records, times, chance)
        parts = [exact_moments(schema, {name: column[k::2] for name, column in table.items()}) for k in (0, 1)]
        release = session.aggregate_unmasked(plan, parts, rng)
        curves: Any = ps.inference.kaplan_meier(release, **WORDS, times=times, entry="enters", start=START)
        rows = [_at(curves[arm], at) for arm in ("a", "b") for at in AT]
        ends = np.array([(math.nan, -math.inf, math.inf) if row is None else row for row in rows])
        return Answer.of(ends[:, 0], ends[:, 1:], np.array([*truth.values()] * 2))

    return answer


_IGNORED = 100  # runs of the course without entry, which misses in most
RATIOS = ((20_000, 3.0), (20_000, 8.0))
LOGS = {"arm": 0.5, "age": 0.4}


def ratios(records: int, epsilon: float, runs: int) -> Row:
    """Count intervals of hazard ratios that miss, where the second arm enters later and leaves faster."""
    schema = ps.HazardSchema(
        3,
        3**0.5,
        bins=ps.Bins("months", (0, 4, 8, 12, 16, 20, 24)),
        event="died",
        feature_names=tuple(LOGS),
        transform=(ConstantFeature(1.0),),
        times="continuous",
        entry="enters",
    )
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    made = {
        entry: ps.Hazard.start(replace(schema, entry=entry), ps.Cohort(2, 2, 2 * records), privacy, rounds=6)
        for entry in ("enters", None)
    }
    seed = zlib.crc32(repr(("ratios", records, epsilon)).encode())
    chance, rng, truth = np.random.default_rng(seed), seeded(seed), np.array([*LOGS.values()])
    reported, missed, ignored, few = np.zeros(2), np.zeros(2), np.zeros(2), min(runs, _IGNORED)
    for run in range(runs):
        table = _entering(records, chance)
        parts = [({name: column[k::2] for name, column in table.items()}, None) for k in (0, 1)]
        for entry, course in made.items():
            if entry is None and run >= few:
                continue
            found = ps.inference.hazards(noisy_releases(course, parts, rng))
            low, high = found.conf_int().T
            wrong = (low > truth) | (high < truth)
            if entry is None:
                ignored += wrong
            else:
                reported, missed = reported + found.reported, missed + wrong
    worst = float(missed.max())
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": float(reported.mean()) / runs,
        "reported and missed": float(missed.mean()) / runs,
        "worst row": worst / runs,
        **ends(worst, runs),
        "entry ignored misses": float(ignored.max()) / few,
    }


def _entering(records: int, chance: np.random.Generator) -> dict[str, Any]:
    """Draw persons of whom a third are there at 0 and the others enter up to month 16, the second arm later."""
    several = 3 * records
    arm, age = chance.integers(0, 2, several), chance.uniform(-1, 1, several)
    enters = np.where(chance.random(several) < 1 / 3, 0.0, chance.uniform(0, 12, several) + 4 * arm)
    died = chance.exponential(40 / np.exp(LOGS["arm"] * arm + LOGS["age"] * age))
    left = enters + chance.exponential(np.where(arm, 20.0, 40.0))
    seen = np.flatnonzero(died > enters)[:records]
    months = np.minimum(np.minimum(died, left), 24.5)
    table = {"arm": arm, "age": age, "enters": enters, "months": months, "died": ((died <= left) & (died < 24.5)) * 1}
    return {name: column[seen] for name, column in table.items()}


def _inside(curve: ps.inference.SurvivalCurve, at: float, truth: float) -> bool | None:
    """Whether the curve's interval at a time holds the truth; None where it is not reported."""
    row = _at(curve, at)
    return None if row is None else bool(row[1] <= truth <= row[2])


def _at(curve: ps.inference.SurvivalCurve, at: float) -> tuple[float, float, float] | None:
    """Return survival and both ends at a time; None where it is not reported."""
    places = np.flatnonzero(np.isclose(curve.timeline, at))
    if not len(places):
        return None
    place = int(places[0])
    low, high = map(float, curve.confidence_interval_[place])
    return float(curve.survival_function_[place]), low, high


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
