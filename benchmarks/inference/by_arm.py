"""Two arms from one course or one release: risks at a time, incidence by cause, numbers by arm, balance.

    python -m benchmarks.inference.by_arm --save

Arms that leave at different rates, a risk of one in fifty, an outcome whose spread differs fourfold; records through
measuring, summing and noising, and the public readers. Balance is a fact about these records, so theirs is the truth.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, Way, plan_of, promise, ran
from benchmarks.inference.coverings import tallied as reported_and_missed
from benchmarks.inference.runs import add_options, others_of
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats.randomness import Generator
from threat_models.audits.effect_worlds import played

NAME = "inference.by_arm"
CLIENTS, END, WIDTH = 4, 24, 3
LEAVING = (0.01, 0.05)  # rates a month of the two arms
MONTHS = (3, 12, 24)
RISKS = ((5_000, 3.0, (0.020, 0.012)), (5_000, 1.0, (0.020, 0.012)), (2_000, 8.0, (0.002, 0.002)))
CAUSES = ((5_000, 3.0), (2_000, 8.0))
OTHER_CAUSE = 0.010
MEASURES = (
    ("0/1", 0.3, 1.3, 4_000, 1.0),
    ("0/1", 0.3, 1.0, 1_000, 3.0),
    ("0/1", 0.05, 2.0, 10_000, 3.0),
    ("0/1", 0.3, 2.0, 4_000, 8.0),
    ("measured", 12.0, 1.3, 4_000, 3.0),
)
ADJUSTED = (
    ("0/1", "line", 0.5, 500, 1.0),
    ("0/1", "line", 0.5, 4_000, 1.0),
    ("0/1", "line", 0.5, 2_000, 8.0),
    ("0/1", "curve", 0.5, 4_000, 8.0),
    ("0/1", "line", 0.2, 4_000, 3.0),
    ("rare", "line", 0.5, 10_000, 3.0),
    ("measured", "curve", 0.5, 4_000, 3.0),
)
LEVELS = {"0/1": 0.3, "rare": 0.04, "measured": 12.0}
AGES = ((4_000, 1.0, 12.0, 3.0), (4_000, 1.0, 9.0, 0.0), (4_000, 1.0, 7.0, 0.0), (2_000, 2.0, 12.0, 3.0))
BINS = ps.Bins("t", tuple(range(0, END + 2 * WIDTH, WIDTH)))
ARM = ps.Categories("arm", (0, 1))
ARM_NUMBERS = ("treated", "others", "difference", "ratio")


def tables(options: argparse.Namespace) -> Tables:
    """A row per world."""
    runs, few = (2, 1) if options.quick else (options.runs, None)
    groups: dict[str, Callable[[], list[Row]]] = {
        "risks at a time": lambda: [row for cell in RISKS[:few] for row in risks(*cell, runs)],
        "incidence by cause": lambda: [incidence(*cell, runs) for cell in CAUSES[:few]],
        "both measures and both arms": lambda: [measures(*cell, runs) for cell in MEASURES[:few]],
        "adjusted means by arm": lambda: [adjusted(*cell, runs) for cell in ADJUSTED[:few]],
        "balance": lambda: [balance(*cell, runs) for cell in AGES[:few]],
    }
    for title, rows in groups.items():
        if options.only in title:
            yield title, rows()


def risks(records: int, epsilon: float, hazards: tuple[float, float], runs: int) -> list[Row]:
    """Difference and ratio of two arms' risks, by month."""
    missed = _missed(f"risks {records} {epsilon} {hazards}", two_risks(records, epsilon, hazards), runs)
    about = {"records": records, "epsilon": epsilon, "hazards": list(hazards), "runs": runs}
    names = ("risk difference", "risk ratio")
    return [{"what": name, **about, **_by_month(missed[3 * k : 3 * k + 3])} for k, name in enumerate(names)]


def two_risks(records: int, epsilon: float, hazards: tuple[float, float]) -> Way:
    """Return the function that draws two arms, and reads difference and ratio of their risks by month."""
    plan = plan_of(ps.CountSchema((BINS, ps.Categories("e", (0, 1)), ARM), (("arm", "t", "e"),)), 4, records, epsilon)
    one, other = (1 - np.exp(-rate * np.array(MONTHS)) for rate in hazards)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        arm = chance.integers(0, 2, records)
        release = ran(plan, _followed(arm, np.array(hazards)[arm][:, None], chance), rng)
        curves = inf.kaplan_meier(release, time="t", event="e", by="arm", times="continuous")
        found = [inf.risks_at(curves, month) for month in MONTHS]
        ends = np.array([each.difference for each in found] + [each.ratio for each in found])
        return Answer.of(ends[:, 0], ends[:, 1:], np.r_[other - one, other / one])

    return answer


def incidence(records: int, epsilon: float, runs: int) -> Row:
    """Incidence of two causes in two arms, by month: of the one that is missed most often."""
    worst = _missed(f"causes {records} {epsilon}", incidences(records, epsilon), runs).reshape(4, 3).max(axis=0)
    about = {"records": records, "epsilon": epsilon, "hazards": [0.012, 0.020, OTHER_CAUSE], "runs": runs}
    return {"what": "incidence by cause, worst of all", **about, **_by_month(worst)}


def incidences(records: int, epsilon: float) -> Way:
    """Return the function that draws two causes in two arms, and reads each one's incidence by month."""
    schema = ps.CountSchema((BINS, ps.Categories("e", (0, 1, 2)), ARM), (("arm", "t", "e"),))
    plan = plan_of(schema, CLIENTS, records, epsilon)
    rates = np.array([[0.012, OTHER_CAUSE], [0.020, OTHER_CAUSE]])
    whole = rates.sum(axis=1, keepdims=True)
    truth = (rates / whole)[:, :, None] * (1 - np.exp(-whole[:, :, None] * np.array(MONTHS)))

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        arm = chance.integers(0, 2, records)
        release = ran(plan, _followed(arm, rates[arm], chance), rng)
        found = inf.cumulative_incidence(release, time="t", event="e", by="arm", times="continuous").curves
        places = [month // WIDTH - 1 for month in MONTHS]
        ends = np.concatenate([found[arm, cause][places] for arm in ("0", "1") for cause in ("1", "2")])
        return Answer.of(ends[:, 0], ends[:, 1:], truth.ravel())

    return answer


def _followed(arm: Any, rates: Array, chance: np.random.Generator) -> list[tuple[dict[str, Any]]]:
    """Times of the causes in two arms, who leave at rates of their own or are seen beyond the end; dealt in turns."""
    times = chance.exponential(1 / rates, (len(arm), rates.shape[1]))
    left = np.minimum(chance.exponential(1 / np.array(LEAVING)[arm]), END + chance.uniform(0, WIDTH, len(arm)))
    first = times.min(axis=1)
    event = np.where(first <= left, times.argmin(axis=1) + 1, 0)
    table = {"t": np.minimum(first, left), "e": event, "arm": arm}
    return [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]


def measures(kind: str, level: float, ratio: float, records: int, epsilon: float, runs: int) -> Row:
    """Risk or mean of both arms, difference and ratio, of one course with ``measure="both"``."""
    way = both_measures(kind, level, ratio, records, epsilon)
    missed = _missed(f"measures {kind} {level} {ratio} {records} {epsilon}", way, runs)
    about = {"outcome": kind, "of the others": level, "true ratio": ratio, "records": records, "epsilon": epsilon}
    return {**about, "runs": runs, **dict(zip(ARM_NUMBERS, map(float, missed), strict=True))}


def both_measures(kind: str, level: float, ratio: float, records: int, epsilon: float) -> Way:
    """Return the function that draws a trial, and reads the numbers of both arms and the two effects."""
    outcome = (0.0, 1.0) if kind == "0/1" else (0.0, 30.0)
    ranges = dict.fromkeys("ab", (-1.0, 1.0))
    schema = ps.EffectSchema.of(ranges, treatment="arm", outcome=outcome, probability=0.5, measure="both")
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))
    truth = np.array([level * ratio, level, level * (ratio - 1), ratio])

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        u, arm = chance.uniform(-1, 1, (records, 2)), chance.integers(0, 2, records)
        mean = level * (1 + 0.4 * u[:, 0] - 0.2 * u[:, 1]) * np.where(arm, ratio, 1.0)
        apart = chance.uniform(-1, 1, records) * np.where(arm, 6.0, 1.5)
        y = np.asarray(chance.random(records) < mean if kind == "0/1" else mean + apart, np.float64)
        rows = inf.effects(played(course, np.c_[u, arm], y, rng), course).by_arm().to_rows()
        ends = _ends(row for row in rows if not str(row["metric"]).startswith("adjusted"))
        return Answer.of(ends[:, 0], ends[:, 1:], truth)

    return answer


def adjusted(kind: str, shape: str, probability: float, records: int, epsilon: float, runs: int) -> Row:
    """Adjusted means of both arms in a trial; a curve is one that no line fits.

    ``width`` is the median width of both intervals over that of the plain means' intervals.
    """
    level, outcome = LEVELS[kind], (0.0, 30.0) if kind == "measured" else (0.0, 1.0)
    ranges = dict.fromkeys("abc", (-1.0, 1.0))
    schema = ps.EffectSchema.of(ranges, treatment="arm", outcome=outcome, probability=probability)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))
    bend, ratio = (2 / 3 if shape == "curve" else 0.0), 1.4
    truth, widths = np.array([level * ratio, level]), list[float]()

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        u, arm = chance.uniform(-1, 1, (records, 3)), (chance.random(records) < probability) * 1
        moved = u[:, 0] if shape == "line" else 1.5 * (u[:, 0] ** 2 - 1 / 3)
        mean = level * (1 + (0.9 - bend * arm) * moved + 0.1 * u[:, 1]) * np.where(arm, ratio, 1.0)
        apart = chance.uniform(-1, 1, records) * np.where(arm, 6.0, 1.5)
        y = np.asarray(mean + apart if kind == "measured" else chance.random(records) < mean, np.float64)
        rows = inf.effects(played(course, np.c_[u, arm], y, rng), course).by_arm().to_rows()
        ends = _ends(row for row in rows if str(row["metric"]).startswith("adjusted"))
        plain = _ends(row for row in rows if row["group"] and not str(row["metric"]).startswith("adjusted"))
        with np.errstate(invalid="ignore"):
            widths.extend(np.ptp(ends[:, 1:], axis=1) / np.ptp(plain[:, 1:], axis=1))
        return Answer.of(ends[:, 0], ends[:, 1:], truth)

    missed = _missed(f"adjusted {kind} {shape} {probability} {records} {epsilon}", answer, runs)
    about = {"outcome": kind, "of columns": shape, "probability": probability, "records": records, "epsilon": epsilon}
    share = {"reported": float(np.isfinite(widths).mean()), "width": float(np.nanmedian(widths))}
    return {**about, "runs": runs, **dict(zip(("treated", "others"), map(float, missed), strict=True)), **share}


def balance(records: int, epsilon: float, spread: float, apart: float, runs: int) -> Row:
    """The standardised difference of an age on a public range of 70 years, in a trial with a second column."""
    name = f"balance {records} {epsilon} {spread} {apart}"
    found = reported_and_missed(name, difference_of_ages(records, epsilon, spread, apart), runs)
    return {"records": records, "epsilon": epsilon, "spread": spread, "apart": apart, **found}


def difference_of_ages(records: int, epsilon: float, spread: float, apart: float) -> Way:
    """Return the function that draws a trial, and reads the standardised difference of age."""
    ranges = {"age": (20.0, 90.0), "b": (-1.0, 1.0)}
    schema = ps.EffectSchema.of(ranges, treatment="arm", outcome=(-1, 1), probability=0.5)
    course = ps.Effect.start(schema, ps.Cohort(2, 2, 2 * records), promise(epsilon))

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        arm = chance.integers(0, 2, records)
        age = np.clip(chance.normal(55 + apart * arm, spread), 20, 90)
        y = np.clip(0.2 * chance.normal(size=records), -1, 1)
        of = [age[arm == each] for each in (1, 0)]
        truth = (of[0].mean() - of[1].mean()) / math.sqrt((of[0].var() + of[1].var()) / 2)
        releases = played(course, np.c_[age, chance.uniform(-1, 1, records), arm], y, rng)
        found = inf.effect(releases).balance()
        return Answer(found.difference[:1], found.low[:1], found.high[:1], np.array([truth]))

    return answer


def _missed(name: str, answer: Way, runs: int) -> Array:
    """Shares of the releases whose intervals miss, by parameter."""
    hits = list[Array]()

    def kept(chance: np.random.Generator, rng: Generator) -> Answer:
        found: Any = answer(chance, rng)
        hits.append((found.low > found.truth) | (found.high < found.truth))
        return found  # type: ignore[no-any-return]

    reported_and_missed(name, kept, runs)
    return np.asarray(np.mean(hits, axis=0))


def _ends(rows: Iterable[dict[str, object]]) -> Array:
    """Estimates and ends of intervals, ``(rows, 3)``."""
    return np.array([[row[name] for name in ("estimate", "conf_low", "conf_high")] for row in rows], np.float64)


def _by_month(shares: Array) -> dict[str, float]:
    return {f"month {month}": float(share) for month, share in zip(MONTHS, shares, strict=True)}


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
