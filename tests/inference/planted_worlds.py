"""Worlds at the edge of each assumption that a table prints, and past it: the check of the sentence must fail there.

A world is a function of chance and of whether the assumption is broken. It returns intervals and the truth that the
sentence promises. The bar is that of the benchmarks: a world is refuted where the 95 % interval of its share of misses
lies above 5 %. A bar that no broken world crosses could not count a rejection.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import privstats as ps
from benchmarks.inference.references import released, terms
from benchmarks.inference.runs import ends
from privstats import inference as inf
from privstats.contrib import imputation
from privstats.contrib.site_levels import random_intercept
from privstats.encoding import flatten
from privstats.moments import exact_moments
from privstats.transforms import ConstantFeature, Levels

__all__ = ["CHEAP", "COURSES", "Planted", "misses", "refuted"]

ALPHA = 0.05
CONSTANT = ConstantFeature(1.0)
EXACT_RUNS, COURSE_RUNS = 40, 30

Chance = np.random.Generator
Array = Any
Intervals = tuple[Array, Array]
"""Ends of intervals, ``(m, 2)``, and the truth, ``(m,)``."""


class Planted(NamedTuple):
    """A world that keeps an assumption or breaks it.

    Attributes:
        breaks: what the broken world does.
        draw: of chance and whether the assumption is broken, the intervals and the truth.
    """

    breaks: str
    draw: Callable[[Chance, bool], Intervals]


def misses(planted: Planted, *, broken: bool, runs: int) -> int:
    """Return in how many runs the worst parameter's interval misses."""
    found = np.zeros(0)
    for run in range(runs):
        bounds, truth = planted.draw(np.random.default_rng([run, zlib.crc32(planted.breaks.encode())]), broken)
        missed = (np.atleast_2d(bounds)[:, 0] > truth) | (np.atleast_2d(bounds)[:, 1] < truth)
        found = missed + (found if found.size else 0)
    return int(found.max())


def refuted(missed: int, runs: int) -> bool:
    """Return whether so many misses refute that at most 5 % miss."""
    return ends(missed, runs)["low end"] > ALPHA


# --- lines


def _ols(X: Array, y: Array, clip_norm: float = 0.0, bound: float = 60.0, **more: Any) -> Array:
    X = np.asarray(X, np.float64).reshape(len(y), -1)
    width = X.shape[1] + 1
    named: Any = {"clip_norm": clip_norm or math.sqrt(width), "target_bound": bound, "transform": (CONSTANT,)}
    schema = ps.RidgeSchema(width, **named, **more)
    return inf.ols(ps.Release.exact(schema, ps.measure(schema, X, y))).conf_int()[1:]


def _copied(chance: Chance, broken: bool) -> Intervals:
    x = chance.uniform(-1, 1, 100)
    y = 0.5 * x + chance.normal(size=100)
    times = 5 if broken else 1
    return _ols(np.tile(x, times), np.tile(y, times)), np.array([0.5])


def _long_rows(chance: Chance, broken: bool) -> Intervals:
    x = chance.uniform(-1, 1, 400)
    return _ols(x, 0.5 * x + 2 + chance.normal(size=400) / 2, 0.8 if broken else 0.0), np.array([0.5])


def _bent(chance: Chance, broken: bool) -> Intervals:
    x = chance.uniform(0, 1, 400)
    return _ols(x, 0.5 * x + 2 * broken * x**2 + chance.normal(size=400) / 2, folds=20), np.array([0.5])


def _spread(chance: Chance, broken: bool) -> Intervals:
    x = (chance.random(1_000) < 0.05) * 1.0
    return _ols(x, 0.5 * x + np.where(broken & (x == 1), 6.0, 1.0) * chance.normal(size=1_000)), np.array([0.5])


def _cells(chance: Chance, broken: bool) -> Intervals:
    first, second = chance.integers(0, 2, 600), chance.integers(0, 2, 600)
    columns = ps.Cells((ps.Truth("first"), ps.Truth("second")))
    schema = ps.RidgeSchema(columns.width + 1, clip_norm=3**0.5, target_bound=20.0, transform=(columns, CONSTANT))
    y = 0.5 * first + 0.5 * second + 2 * broken * first * second + chance.normal(size=600) / 2
    table = {"first": first.astype(bool), "second": second.astype(bool)}
    rows = inf.ols(ps.Release.exact(schema, ps.measure(schema, table, y))).cells().to_rows()
    (row,) = (each for each in rows if (each["variable"], each["level"]) == ("first", "true"))
    return np.array([row["conf_low"], row["conf_high"]]), np.array([0.5])


# --- sites


def _sites(groups: int, chance: Chance, slopes: float, bend: float) -> Intervals:
    schema = ps.SitesSchema(2, clip_norm=16.0, groups=groups)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(24, 24, 4_000), privacy=ps.NoPrivacy())
    parts = []
    for _ in range(24):
        x, own = chance.uniform(0, 1, (40, 1)), 0.5 + slopes * chance.normal()
        parts.append(ps.measure(schema, x, own * x[:, 0] + bend * x[:, 0] ** 2 + chance.normal(size=40) / 4))
    return inf.fixed_effects(ps.session.aggregate_unmasked(plan, parts)).conf_int(), np.array([0.5])


def _levels(chance: Chance, slopes: float, tied: float) -> Intervals:
    site = np.repeat(np.arange(24), 6)
    middle = chance.uniform(-1, 1, 24)
    x = middle[site] + chance.uniform(-0.3, 0.3, len(site))
    level = chance.normal(size=24) / 2 + tied * middle
    y = (0.5 + slopes * chance.normal(size=24))[site] * x + level[site] + chance.normal(size=len(site)) / 2
    schema = ps.RidgeSchema(25, clip_norm=2.0, target_bound=20.0)
    release = ps.Release.exact(schema, ps.measure(schema, np.column_stack([x, np.eye(24)[site]]), y))
    table = random_intercept(release, sites=range(1, 25))
    return table.conf_int()[table.names.index("x0")], np.array([0.5])


# --- counts


def _curve(records: dict[str, Any], edges: tuple[float, ...], at: float, times: str, **late: Any) -> Array:
    """Return the interval of survival at a time."""
    entry = late.get("entry")
    clocks = [ps.Bins(name, edges, open="above") for name in ("months", *filter(None, [entry]))]
    more: Any = {"late_entry": ps.LateEntry(entry, "months", times=times)} if entry else {}
    tables = (("months", "died"), *([(entry,)] if entry else []))
    schema = ps.CountSchema((*clocks, ps.Categories("died", (0, 1))), tables, **more)
    release = ps.Release.exact(schema, ps.measure(schema, records))
    rows = inf.kaplan_meier(release, time="months", event="died", times=times, **late).to_rows()
    (row,) = (row for row in rows if row["time"] == at)
    return np.array([row["conf_low"], row["conf_high"]])


def _leaving(chance: Chance, broken: bool) -> Intervals:
    event, left = chance.geometric(0.1, 400), chance.integers(1, 12, 400)
    # Half of those who would die leave then, so that leaving tells of death.
    flees = broken & (chance.random(400) < 0.5)
    months, died = np.minimum(event, left), (event <= left) & ~flees
    found = _curve({"months": months, "died": died * 1}, tuple(range(12)), 6, "discrete")
    return found, np.array([0.9**6])


def _late_in_bin(chance: Chance, broken: bool) -> Intervals:
    n = 1_000
    event = np.where(chance.random(n) < 0.4, chance.uniform(5.8 if broken else 0, 6, n), 12.0)
    left = np.minimum(chance.exponential(4, n), 11.9)
    records = {"months": np.minimum(event, left), "died": (event <= left) * 1}
    return _curve(records, (0, 6, 12), 6, "continuous"), np.array([0.6])


def _crowding(chance: Chance, broken: bool) -> Intervals:
    n = 3_000
    enters = chance.uniform(0, 24, n)
    enters = 6 * (np.floor(enters / 6) + 0.99) if broken else enters
    event = chance.exponential(20, n)
    seen, left = event > enters, 35.9
    records = {"months": np.minimum(event, left)[seen], "enters": enters[seen], "died": (event <= left)[seen] * 1}
    found = _curve(records, (0, 6, 12, 18, 24, 30), 24, "continuous", entry="enters", start=6)
    return found, np.array([math.exp(-18 / 20)])


def _entering(chance: Chance, broken: bool) -> Intervals:
    n = 1_500
    enters, died = chance.integers(0, 6, n), chance.geometric(0.08, n)
    # Who enters late is who will live: two of three late entries would die past month 12.
    enters = np.where(broken & (died < 12) & (chance.random(n) < 2 / 3), 0, enters)
    seen = died > enters
    records = {"months": np.minimum(died, 14)[seen], "enters": enters[seen], "died": (died <= 13)[seen] * 1}
    found = _curve(records, tuple(range(15)), 12, "discrete", entry="enters", start=1)
    return found, np.array([0.92**12])


def _skewed(chance: Chance, broken: bool) -> Intervals:
    y = np.arange(120) % 2
    x = np.where(chance.random(120) < 0.03, 1.0, 0.0) if broken else 0.03 + 0.2 * chance.normal(size=120)
    schema = ps.ClassSchema(2, 2, "NAD", 2.0)
    found = inf.table_one(ps.Release.exact(schema, ps.measure(schema, np.c_[x, chance.uniform(size=120)], y)))
    return np.column_stack([found.low[:, 0], found.high[:, 0]]), np.full(2, 0.03)


def _own_records(chance: Chance, broken: bool) -> Intervals:
    X, y = chance.normal(size=(160, 60)), chance.integers(0, 2, 160)
    head = ps.heads.LDA().fit(X[:80], y[:80])
    X, y = (X[:80], y[:80]) if broken else (X[80:], y[80:])
    plan = ps.Scoring(head).plan(cohort=ps.Cohort(2, 2, 400), privacy=ps.NoPrivacy())
    parts = [ps.measure(plan.schema, X[k::2], y[k::2], published=plan.published) for k in (0, 1)]
    found = inf.head_score(ps.session.aggregate_unmasked(plan, parts)).accuracy
    return np.array([found.low, found.high]), np.array([0.5])


def _dosed(chance: Chance, n: int, gone: Callable[[Array, Array], Array]) -> ps.Release:
    """Return counts of a dose, unknown by these probabilities, and of an outcome that .2 and .4 have."""
    high = chance.random(n) < 0.5
    ill = chance.random(n) < 0.2 + 0.2 * high
    lost = chance.random(n) < gone(high, ill)
    schema = ps.CountSchema(
        (ps.Categories("dose", ("low", "high"), missing=True), ps.Categories("ill", ("no", "yes"))), (("dose", "ill"),)
    )
    dose: Any = np.where(lost, None, np.where(high, "high", "low"))  # type: ignore[call-overload]
    return ps.Release.exact(schema, ps.measure(schema, {"dose": dose, "ill": np.where(ill, "yes", "no")}))


def _imputed(chance: Chance, broken: bool) -> Intervals:
    # Gaps depend on the value and the outcome together, past what the other variables say.
    release = _dosed(chance, 2_000, lambda high, ill: np.where(broken & high & ill, 0.7, 0.1))
    table = imputation.logit(release, outcome="ill")
    (row,) = (each for each in table.to_rows() if each["term"].startswith("dose"))
    return np.array([row["conf_low"], row["conf_high"]]), np.array([math.log(0.4 / 0.6) - math.log(0.2 / 0.8)])


def _imputed_by_value(chance: Chance, broken: bool) -> Intervals:
    release = _dosed(chance, 3_000, lambda high, _: np.where(high & broken, 0.6, 0.1))
    rows = imputation.risks(release, outcome="ill", by="dose").to_rows()
    (row,) = (each for each in rows if (each["measure"], each["group"]) == ("risk", "low"))
    return np.array([row["conf_low"], row["conf_high"]]), np.array([0.2])


def _direction(chance: Chance, broken: bool) -> Intervals:
    rows = imputation.risks(_dosed(chance, 1_000, lambda *_: 0.1), outcome="ill", by="dose").to_rows()
    (row,) = (each for each in rows if each["measure"] == "difference")
    return np.array([row["conf_low"], row["conf_high"]]), np.array([-0.2 if broken else 0.2])


def _scales(chance: Chance, broken: bool) -> Intervals:
    """Return how far a ratio's and a risk's intervals are from symmetric on their scales, or on the printed ones."""
    rows = imputation.risks(_dosed(chance, 1_000, lambda *_: 0.1), outcome="ill", by="dose").to_rows()
    scales: dict[str, Any] = {"ratio": math.log, "risk": lambda risk: math.log(risk / (1 - risk))}
    apart = []
    for row in (each for each in rows if each["measure"] in scales):
        scaled = (lambda value: value) if broken else scales[row["measure"]]
        low, middle, high = (scaled(row[name]) for name in ("conf_low", "estimate", "conf_high"))
        apart.append((low + high - 2 * middle) / (high - low))
    return np.array([(each - 1e-6, each + 1e-6) for each in apart]), np.zeros(len(apart))


def _products(chance: Chance, broken: bool) -> Intervals:
    n = 4_000
    dose, sex = chance.integers(0, 2, n), chance.integers(0, 2, n)
    ill = chance.random(n) < 1 / (1 + np.exp(0.5 - np.where(broken, 2.0 * (dose != sex), 0.5 * dose)))
    gone = chance.random(n) < np.where(ill == (sex == 1), 0.6, 0.1)
    texts = {"dose": ("low", "high"), "sex": ("f", "m"), "ill": ("no", "yes")}
    variables = tuple(ps.Categories(name, each, missing=name == "dose") for name, each in texts.items())
    columns: dict[str, Any] = {
        name: np.array(each)[values * 1] for (name, each), values in zip(texts.items(), (dose, sex, ill), strict=True)
    }
    columns["dose"] = np.where(gone, None, columns["dose"])
    schema = ps.CountSchema(variables, (tuple(texts),))
    release = ps.Release.exact(schema, ps.measure(schema, columns))
    rows = imputation.risks(release, outcome="ill", by="dose").to_rows()
    (row,) = (each for each in rows if each["measure"] == "difference")
    truth = 0.0 if broken else 0.5 - 1 / (1 + math.exp(0.5))
    return np.array([row["conf_low"], row["conf_high"]]), np.array([truth])


def _narrow(chance: Chance, broken: bool) -> Intervals:
    x = chance.uniform(-1, 1, 100)
    ((low, high),) = _ols(x, 0.5 * x + chance.normal(size=100))
    middle, half = (low + high) / 2, (high - low) / (6 if broken else 2)
    return np.array([middle - half, middle + half]), np.array([0.5])


def _rejected(p_value: float) -> Intervals:
    """Return an interval that misses exactly where a test of a true null rejects it."""
    return np.array([0.0 if p_value >= ALPHA else 2.0, 3.0]), np.array([1.0])


def _welch(chance: Chance, broken: bool) -> Intervals:
    group, x = np.resize(["a", "b"], 60), chance.normal(size=(60, 2)) / 4
    schema = ps.ClassSchema(2, 2, "NAD", 4.0, class_names=("a", "b"), feature_names=("dose", "age"))
    times = 6 if broken else 1
    release = ps.Release.exact(schema, ps.measure(schema, np.tile(x, (times, 1)), np.tile(group, times)))
    return _rejected(inf.table_one(release, tests=True).to_rows()[0]["p_value"])


def _by_arm(chance: Chance, broken: bool) -> ps.Release:
    """Return counts of an arm and of an outcome with gaps that have nothing to do with each other."""
    arm, ill = np.resize(["a", "b"], 120), chance.choice(["no", "yes"], 120)
    given: Any = np.where(chance.random(120) < 0.3, None, ill)  # type: ignore[call-overload]
    schema = ps.CountSchema(
        (ps.Categories("arm", ("a", "b")), ps.Categories("ill", ("no", "yes"), missing=True)), (("arm", "ill"),)
    )
    times = 6 if broken else 1
    return ps.Release.exact(schema, ps.measure(schema, {"arm": np.tile(arm, times), "ill": np.tile(given, times)}))


def _chi_squared(chance: Chance, broken: bool) -> Intervals:
    return _rejected(inf.table_one(_by_arm(chance, broken), by="arm", tests=True).to_rows()[0]["p_value"])


def _share(rows: Any, level: str, truth: float) -> Intervals:
    (row,) = (each for each in rows if each["group"] == "a" and each.get("level", level) == level)
    return np.array([row["conf_low"], row["conf_high"]]), np.array([truth])


def _cell_shares(chance: Chance, broken: bool) -> Intervals:
    return _share(inf.table_one(_by_arm(chance, broken), by="arm").to_rows(), "yes", 0.5)


def _missing_shares(chance: Chance, broken: bool) -> Intervals:
    return _share(inf.missing_values(_by_arm(chance, broken), by="arm").to_rows(), "", 0.3)


def _at_risk(times: str, chance: Chance, broken: bool) -> Intervals:
    """Return a printed number at risk and the number that its legend states, or with ``broken`` the bin's other end."""
    months, width = chance.integers(1, 12, 200), 1 if times == "discrete" else 3
    died, edges, at = chance.integers(0, 2, 200), tuple(range(0, 13, width)), 6
    schema = ps.CountSchema((ps.Bins("months", edges), ps.Categories("died", (0, 1))), (("months", "died"),))
    release = ps.Release.exact(schema, ps.measure(schema, {"months": months, "died": died}))
    rows = inf.kaplan_meier(release, time="months", event="died", times=times).to_rows()
    (number,) = (row["n_risk"] for row in rows if row["time"] == at)
    begins = at if times == "discrete" else at - width
    counted = (months >= (begins + width if broken else begins)).sum()
    return np.array([number - 0.5, number + 0.5]), np.array([counted])


def _contrast(chance: Chance, broken: bool) -> Intervals:
    sex = chance.integers(0, 3, 600)
    columns = ps.Cells((ps.Categories("ward", ("a", "b", "c")),))
    schema = ps.RidgeSchema(columns.width + 1, clip_norm=3**0.5, target_bound=20.0, transform=(columns, CONSTANT))
    y = np.array([0.0, 0.5, 1.5])[sex] + chance.normal(size=600) / 2
    release = ps.Release.exact(schema, ps.measure(schema, {"ward": np.array(["a", "b", "c"])[sex]}, y))
    (row,) = (each for each in inf.ols(release).cells().to_rows() if each["level"] == "c")
    # Whoever reads it as a difference to the mean of all cells reads 1.5 for 5 / 6.
    return np.array([row["conf_low"], row["conf_high"]]), np.array([5 / 6 if broken else 1.5])


def _competing(chance: Chance, broken: bool) -> Intervals:
    n = 800
    first, second = chance.exponential(20, n), chance.exponential(10, n)
    ended = np.where(np.minimum(first, second) > 24, "no", np.where(first < second, "relapse", "death"))
    months = np.minimum(np.minimum(first, second), 24.5)
    schema = ps.CountSchema(
        (ps.Bins("months", tuple(range(26))), ps.Categories("ended", ("no", "relapse", "death"))),
        (("months", "ended"),),
    )
    release = ps.Release.exact(schema, ps.measure(schema, {"months": months, "ended": ended}))
    rows = inf.cumulative_incidence(release, time="months", event="ended", times="continuous").to_rows()
    (row,) = (each for each in rows if (each["cause"], each["time"]) == ("relapse", 12))
    # Without the other cause 1 - exp(-12 / 20) would have it by then.
    truth = 1 - math.exp(-12 / 20) if broken else (1 - math.exp(-12 * 0.15)) / 3
    return np.array([row["conf_low"], row["conf_high"]]), np.array([truth])


def _standardised(chance: Chance, broken: bool) -> Intervals:
    x, group = chance.normal(size=(200, 2)) / 4, np.resize(["a", "b"], 200)
    x[:, 0] += 0.1 * (group == "a")
    schema = ps.ClassSchema(2, 2, "NAD", 4.0, class_names=("a", "b"), feature_names=("dose", "age"))
    release = ps.Release.exact(schema, ps.measure(schema, x, group))
    row, (first, second) = inf.table_one(release).to_rows()[0], (x[group == each, 0] for each in "ab")
    apart = (first.mean() - second.mean()) / math.sqrt((first.var() + second.var()) / 2)
    return np.array([row["smd"] - 1e-3, row["smd"] + 1e-3]), np.array([-apart if broken else apart])


# --- rounds


def _rounds(
    family: str, bend: float, chance: Chance, frailty: float = 0.0, errors: str = "robust", bound: int = 15
) -> Intervals:
    n = 4_000
    x = chance.uniform(0, 1, n)
    logs = x - 0.5 + bend * x**2
    own = chance.gamma(1 / frailty, frailty, n) if frailty else 1.0
    y = chance.random(n) < 1 / (1 + np.exp(-logs)) if family == "logistic" else chance.poisson(np.exp(logs) * own)
    more: Any = {"target_bound": float(bound)} if family == "poisson" else {}
    schema: Any = ps.ScoreSchema(2, 2**0.5, family=family, transform=(CONSTANT,), errors=errors, grid_bits=16, **more)
    releases = released(ps.Newton.start(schema, *terms(n)), x[:, None], np.minimum(y, bound).astype(int))
    table = (inf.logit if family == "logistic" else inf.poisson)(releases)
    return table.conf_int()[list(table.names).index("x0")], np.array([1.0])


# --- hazards


def _hazards(records: dict[str, Any], truth: float, times: str | None = "continuous", **more: Any) -> Intervals:
    more |= {"times": times} if times else {}
    schema = ps.HazardSchema(
        2,
        2**0.5,
        bins=ps.Bins("months", (0, 6, 12, 18, 24)),
        event="died",
        feature_names=("arm",),
        transform=(CONSTANT,),
        **more,
    )
    cohort, promise = terms(len(records["arm"]))
    if more:
        course = ps.Hazard.start(schema, cohort, promise)
    else:  # a plan of before, which does not state what a bin is
        course = ps.Hazard.within(ps.Hazard.full_plan(schema=schema, cohort=cohort, privacy=promise), "arm")
    return inf.hazards(released(course, records, None)).conf_int()[0], np.array([truth])


def _persons(chance: Chance, n: int = 1_200) -> tuple[Array, Array, Array]:
    arm = chance.integers(0, 2, n)
    return arm, chance.exponential(25 / np.exp(0.5 * arm)), np.minimum(chance.exponential(40, n), 23.9)


def _seen(arm: Array, event: Array, left: Array) -> dict[str, Any]:
    return {"arm": arm, "months": np.minimum(event, left), "died": (event <= left) * 1}


def _crossing(chance: Chance, broken: bool) -> Intervals:
    arm, event, left = _persons(chance)
    later = 6 + chance.exponential(25 * np.exp(np.where(broken, 1.0, -0.5) * arm))
    return _hazards(_seen(arm, np.where(event < 6, event, later), left), 0.5)


def _leaving_arm(chance: Chance, broken: bool) -> Intervals:
    arm, event, left = _persons(chance)
    flees = broken & (arm == 1) & (chance.random(len(arm)) < 0.5)
    return _hazards(_seen(arm, event, left) | {"died": ((event <= left) & ~flees) * 1}, 0.5)


def _late_clock(chance: Chance, broken: bool) -> Intervals:
    n = 1_600
    arm, event, left = (
        chance.integers(0, 2, n),
        60 * chance.exponential(size=n) ** 2,
        np.minimum(chance.exponential(40, n), 23.9),
    )
    # Hazards fall, and the clock of one arm starts after four months.
    start = np.where(broken & (arm == 1), 4.0, 0.0)
    seen = np.minimum(event, left) > start
    records = {"arm": arm, "months": np.minimum(event, left) - start, "died": (event <= left) * 1}
    return _hazards({name: column[seen] for name, column in records.items()}, 0.0)


def _whole_bins(chance: Chance, broken: bool) -> Intervals:
    arm, event, left = _persons(chance, 2_000)
    left = np.where(broken & (arm == 1), np.minimum(left, chance.exponential(3, len(arm))), 24.0)
    return _hazards(_seen(arm, event, np.minimum(left, 23.9)), 0.5, None)


def _capped(chance: Chance, broken: bool) -> Intervals:
    n = 2_000
    arm = chance.integers(0, 2, n)
    # The ratio is 2 until half of the time in which most pass the cap, and 1 / 4 behind it.
    early, late = chance.exponential(14 / np.exp(0.7 * arm)), 12 + chance.exponential(14 * np.exp(1.4 * arm))
    event = np.where(early < 12, early, late)
    return _hazards(_seen(arm, event, np.full(n, 23.9)), 0.0 if broken else 0.7)


def _one_cause(chance: Chance, broken: bool) -> Intervals:
    n = 2_000
    arm = chance.integers(0, 2, n)
    own, other = chance.exponential(40 / np.exp(0.5 * arm)), chance.exponential(np.where(arm == 1, 8, 60))
    months = np.minimum(np.minimum(own, other), 23.9)
    ended = np.select([months == own, months == other], ["relapse", "death"], "no")
    schema = ps.HazardSchema(
        2,
        2**0.5,
        bins=ps.Bins("months", (0, 6, 12, 18, 24)),
        event="ended",
        feature_names=("arm",),
        transform=(Levels((), (ps.Categories("ended", ("no", "relapse", "death")),)), CONSTANT),
        times="continuous",
    )
    records = {"arm": arm, "months": months, "ended": ended}
    found = inf.hazards(released(ps.Hazard.start(schema, *terms(n)), records, None)).conf_int()[0]
    # Fewer of the arm relapse in the end, because more of them die first: read as a risk, the ratio is below 1.
    return found, np.array([-0.5 if broken else 0.5])


def _frail(chance: Chance, broken: bool) -> Intervals:
    n = 2_000
    arm, frailty = chance.integers(0, 2, n), chance.gamma(0.4, 1 / 0.4, n) if broken else np.ones(n)
    event = chance.exponential(25 / np.exp(0.5 * arm)) / frailty
    # Each person's ratio is exp(.5); those still at risk are frailer in the arm in which fewer died.
    return _hazards(_seen(arm, event, np.full(n, 23.9)), 0.5)


def _families(chance: Chance, broken: bool) -> Intervals:
    arm, event, left = _persons(chance, 300)
    times = 10 if broken else 1
    return _hazards({name: np.tile(each, times) for name, each in _seen(arm, event, left).items()}, 0.5)


# --- trials


def _effect(X: Array, y: Array, truth: float, outcome: tuple[float, float] = (-4.0, 4.0), **more: Any) -> Intervals:
    schema = ps.EffectSchema.of({"age": (-3, 3)}, treatment="arm", outcome=outcome, **({"probability": 0.5} | more))
    return inf.effect(released(ps.Effect.start(schema, *terms(len(y))), X, y)).conf_int(), np.array([truth])


def _assigned(chance: Chance, broken: bool) -> Intervals:
    age, hope = chance.uniform(-1, 1, 600), chance.normal(size=600) / 2
    arm = chance.random(600) < np.where(broken & (hope > 0), 0.8, np.where(broken, 0.2, 0.5))
    return _effect(np.c_[age, arm], np.clip(0.2 * arm + hope, -4, 4), 0.2)


def _measured_late(chance: Chance, broken: bool) -> Intervals:
    arm, age = chance.integers(0, 2, 600), chance.uniform(-1, 1, 600)
    later = age + arm  # what the arm did to the column
    y = 0.5 * later + chance.normal(size=600) / 4
    return _effect(np.c_[later if broken else age, arm], np.clip(y, -4, 4), 0.5)


def _counted_twice(chance: Chance, broken: bool) -> Intervals:
    arm, age = chance.integers(0, 2, 200), chance.uniform(-1, 1, 200)
    y, times = np.clip(0.2 * arm + chance.normal(size=200) / 2, -4, 4), 5 if broken else 1
    return _effect(np.tile(np.c_[age, arm], (times, 1)), np.tile(y, times), 0.2)


def _spilling(chance: Chance, broken: bool) -> Intervals:
    arm, age = chance.integers(0, 2, 600), chance.uniform(-1, 1, 600)
    other = np.roll(arm, 1)  # a neighbour's arm helps, so that treating all does more than treating one
    y = 0.2 * arm + 0.3 * broken * other + chance.normal(size=600) / 4
    return _effect(np.c_[age, arm], np.clip(y, -4, 4), 0.5 if broken else 0.2)


def _unread(chance: Chance, broken: bool) -> Intervals:
    arm, age = chance.integers(0, 2, 1_000), chance.uniform(-1, 1, 1_000)
    y = (chance.random(1_000) < 0.5) * 1.0
    lost = chance.random(1_000) < np.where(broken & (arm == 1) & (y == 1), 0.5, 0.1)
    read = ~lost
    return _effect(np.c_[age, arm][read], y[read], 0.0, (0.0, 1.0))


def _means(X: Array, y: Array, truth: float, metric: str) -> Intervals:
    schema = ps.EffectSchema.of({"age": (-3, 3)}, treatment="arm", outcome=(-4, 4), probability=0.5)
    rows = inf.effects(released(ps.Effect.start(schema, *terms(len(y))), X, np.clip(y, -4, 4))).by_arm().to_rows()
    (row,) = (each for each in rows if (each["group"], each["metric"]) == ("treated", metric))
    return np.array([row["conf_low"], row["conf_high"]]), np.array([truth])


def _means_of_chosen(chance: Chance, broken: bool) -> Intervals:
    age, hope = chance.uniform(-1, 1, 600), chance.normal(size=600) / 2
    arm = chance.random(600) < np.where(broken & (hope > 0), 0.8, np.where(broken, 0.2, 0.5))
    return _means(np.c_[age, arm], 0.2 * arm + age**2 + hope, 0.2 + 1 / 3, "adjusted mean")


def _means_of_copies(chance: Chance, broken: bool) -> Intervals:
    arm, age = chance.integers(0, 2, 200), chance.uniform(-1, 1, 200)
    y, times = 0.2 * arm + chance.normal(size=200) * np.where(arm == 1, 1.0, 0.3), 6 if broken else 1
    return _means(np.tile(np.c_[age, arm], (times, 1)), np.tile(y, times), 0.2, "mean")


def _not_complying(chance: Chance, broken: bool) -> Intervals:
    age, arm = chance.uniform(-1, 1, 600), chance.integers(0, 2, 600)
    taken = arm * (chance.random(600) < 0.6)
    # The table is of assignment; whoever reads it as the effect of what was taken reads .5 for .3.
    return _effect(np.c_[age, arm], np.clip(0.5 * taken + chance.normal(size=600) / 4, -4, 4), 0.5 if broken else 0.3)


def _looks(early: float, late: float, chance: Chance) -> Intervals:
    """Return the intervals of three looks at a trial whose effect is this in early and in late records."""
    n, schema = 900, ps.EffectSchema.of({"age": (-1, 1)}, treatment="arm", outcome={"y": (-4, 4)}, probability=0.5)
    declared = ps.course.Analysis(primary=("y",), looks=ps.course.Looks(3, "pocock"))
    course = ps.Effect.start(schema, *terms(n), analysis=declared)
    age, arm = chance.uniform(-1, 1, n), chance.integers(0, 2, n)
    y = np.clip(np.where(np.arange(n) < n / 3, early, late) * arm + chance.normal(size=n) / 2, -4, 4)
    X, releases = np.c_[age, arm], list[ps.Release | None]()
    for round_ in ps.course.iter_rounds(course, releases):
        so_far = n * ((course.look_of(round_.place) or 0) + 1) // 3
        plan = round_.plan
        sums = exact_moments(plan.schema, X[:so_far], y[:so_far, None], published=plan.published)
        releases.append(ps.Release(plan, flatten(sums), (0, 1)))
    rows = inf.looks(releases, course).to_rows()
    return np.array([(row["conf_low"], row["conf_high"]) for row in rows]), np.full(3, 0.1)


def _counted(chance: Chance, broken: bool) -> Intervals:
    """Return the printed numbers of an arm and the counts of these records, or of all who might have been drawn."""
    age, arm = chance.uniform(-1, 1, 400), chance.integers(0, 2, 400)
    y = (chance.random(400) < 0.3) * 1.0
    schema = ps.EffectSchema.of({"age": (-1, 1)}, treatment="arm", outcome={"ill": (0, 1)}, probability=0.5)
    course = ps.Effect.start(schema, *terms(400))
    (row, *_) = inf.effects(released(course, np.c_[age, arm], y[:, None])).by_arm().to_rows()
    own = np.array([(arm == 1).sum(), y[arm == 1].sum()])
    found = np.array([(row[name] - 2.0, row[name] + 2.0) for name in ("n", "n_event")])
    return found, np.array([200.0, 60.0]) if broken else own


_ADJUSTED: dict[str, Any] = {"probability": None, "estimand": "overlap", "trim": 0.1}


def _confounded(chance: Chance, broken: bool) -> Intervals:
    age, hope = chance.uniform(-1, 1, 800), chance.normal(size=800) / 2
    arm = chance.random(800) < 1 / (1 + np.exp(-age - 2 * broken * hope))
    return _effect(np.c_[age, arm], np.clip(0.2 * arm + age / 2 + hope, -4, 4), 0.2, **_ADJUSTED)


def _treated_first(chance: Chance, broken: bool) -> Intervals:
    age = chance.uniform(-1, 1, 800)
    arm = chance.random(800) < 1 / (1 + np.exp(-age))
    later = age + arm
    y = 0.5 * later + chance.normal(size=800) / 4
    return _effect(np.c_[later if broken else age, arm], np.clip(y, -4, 4), 0.5, **_ADJUSTED)


def _both_wrong(chance: Chance, broken: bool) -> Intervals:
    age = chance.uniform(-1, 1, 800)
    bend = (3 * age**2 - 1) * (1.0 if broken else 0.0)
    arm = chance.random(800) < 1 / (1 + np.exp(-age / 2 - bend))
    return _effect(
        np.c_[age, arm], np.clip(0.2 * arm + bend / 2 + chance.normal(size=800) / 4, -4, 4), 0.2, **_ADJUSTED
    )


def _outcomes_lost(chance: Chance, broken: bool) -> Intervals:
    age, arm, other = chance.uniform(-1, 1, 800), chance.integers(0, 2, 800), chance.normal(size=800) / 2
    lost = chance.random(800) < np.where(broken & (arm == 1) & (other < 0), 0.7, 0.2)
    y = np.where(lost, np.nan, np.clip(0.2 * arm + age / 4 + other, -4, 4))
    return _effect(np.c_[age, arm], y, 0.2, missing="weights", trim=0.5)


def _both_lost_wrongly(chance: Chance, broken: bool) -> Intervals:
    age, arm = chance.uniform(-1, 1, 1_500), chance.integers(0, 2, 1_500)
    bend = (3 * age**2 - 1) * (1.0 if broken else 0.0)
    lost = chance.random(1_500) < np.where(arm == 1, 1 / (1 + np.exp(1.5 - 2 * bend)), 0.2)
    y = np.where(lost, np.nan, np.clip(0.2 * arm + bend / 2 + chance.normal(size=1_500) / 4, -4, 4))
    return _effect(np.c_[age, arm], np.clip(y, -2, 2), 0.2, (-2.0, 2.0), missing="weights", trim=0.2)


def _entering_arm(chance: Chance, broken: bool) -> Intervals:
    arm, event, left = _persons(chance, 4_000)
    event *= 2.4  # so that few pass the cap of a cumulative hazard of 1
    enters = chance.uniform(0, 6, len(arm))
    # In one arm who enters late is who will live.
    enters = np.where(broken & (arm == 1) & (event < 12) & (chance.random(len(arm)) < 0.7), 0.0, enters)
    seen = np.minimum(event, left) > enters
    records = _seen(arm, event, left) | {"enters": enters}
    return _hazards({name: column[seen] for name, column in records.items()}, 0.5, entry="enters")


CHEAP: dict[str, Planted] = {
    "independent records(?! that)": Planted("each record is copied four times", _copied),
    "negligible clipping": Planted("rows are clipped to about half of their length", _long_rows),
    "the model is linear": Planted("the line bends by twice a square", _bent),
    "residuals have one variance whatever the columns are": Planted("6 times the spread under a rare column", _spread),
    "effects of columns add up": Planted("two columns have a product", _cells),
    "a linear model with the same slopes at all sites": Planted(
        "slopes differ by site", lambda chance, broken: _sites(1, chance, 0.4 * broken, 0.0)
    ),
    "a linear model with slopes that may differ by site": Planted(
        "lines bend at all sites", lambda chance, broken: _sites(6, chance, 0.1, 2.0 * broken)
    ),
    "a linear model with the same slopes and normal levels at all sites": Planted(
        "slopes differ by site", lambda chance, broken: _levels(chance, 1.5 * broken, 0.0)
    ),
    "levels independent of columns and site sizes": Planted(
        "levels follow the column", lambda chance, broken: _levels(chance, 0.0, 3.0 * broken)
    ),
    "censoring independent of the events?": Planted("half of those who would die leave then", _leaving),
    "hazards even inside a cell of the counts, or nobody leaves inside it": Planted(
        "all die late in a bin in which most leave", _late_in_bin
    ),
    "hazards even inside a bin, or nobody leaves inside it": Planted(
        "all die late in the bin, most leave", _late_in_bin
    ),
    "entry independent of the event among those still alive": Planted("who will live enters late", _entering),
    "entries even inside a bin": Planted("all enter at the end of a bin", _crowding),
    "means near normal": Planted("3 % have a value of 1, all others 0, in groups of 60", _skewed),
    "independent records that the head was not fitted on": Planted("the head's own records score it", _own_records),
    "values missing at random given the table's other variables": Planted("gaps follow the value itself", _imputed),
    r"missing: [^;]+ \d+ %; no sum can test that values are missing at random: where a gap depends on the value "
    "itself, complete cases may be right and this table wrong": Planted(
        "gaps follow the value alone", _imputed_by_value
    ),
    "no product of three variables in the cells' log probabilities": Planted(
        "the dose helps one sex and harms the other", _products
    ),
    r"At most 5% of releases report an interval that misses, if the assumptions hold\.": Planted(
        "an interval is a third as wide as printed", _narrow
    ),
    r"P: Welch's t with df degrees of freedom; of shares the chi-squared test with 1\.": Planted(
        "each record is copied six times", _welch
    ),
    r"P: chi-squared test with .* noise in its covariance\.": Planted("each record is copied six times", _chi_squared),
    r"Cells: number .* under the noise alone\.": Planted("each record is copied six times", _cell_shares),
    r"Each share is of a column's own missing values: .* an analysis of complete cases leaves out\.": Planted(
        "each record is copied six times", _missing_shares
    ),
    r'"At risk" is the number of records under observation at the time of the row\.': Planted(
        "the number after the time is read", lambda chance, broken: _at_risk("discrete", chance, broken)
    ),
    r'"At risk" is the number [a-z ]+ when the bin of the row begins; the time is the bin\'s end\.': Planted(
        "the number at the bin's end is read", lambda chance, broken: _at_risk("continuous", chance, broken)
    ),
    r"A contrast is the difference to the column's reference cell, other columns equal\.": Planted(
        "it is read as a difference to the mean", _contrast
    ),
    r"Causes compete: an incidence is the share of persons who had this cause first\.": Planted(
        "it is read as a risk without the other cause", _competing
    ),
    r"Differences and ratios are to \w+, over the [\w ]+ of all records\.": Planted(
        "the difference is read the other way round", _direction
    ),
    r"P values and intervals of ratios are on the scale of logarithms, intervals of risks on that of log "
    r"odds\.": Planted("they are read on the printed scales", _scales),
    r"SMD: the first group's mean less .* under the noise alone\.": Planted(
        "the second group's mean comes first", _standardised
    ),
}
"""Worlds of exact sums, by the assumption's pattern in ``test_printed_sentences.WORLDS``."""

COURSES: dict[str, Planted] = {
    "log odds are linear in the columns": Planted(
        "log odds bend by 2.5 times a square", lambda chance, broken: _rounds("logistic", 2.5 * broken, chance)
    ),
    "log mean counts are linear in the columns": Planted(
        "they bend by a square", lambda chance, broken: _rounds("poisson", 1.0 * broken, chance)
    ),
    "the variance of counts with equal columns equals their mean": Planted(
        "a frailty of 2", lambda chance, broken: _rounds("poisson", 0.0, chance, 2.0 * broken, "model")
    ),
    "proportional hazards given the columns": Planted("the ratio turns after six months", _crossing),
    "censoring independent of the event given the columns": Planted("half of one arm leave as they die", _leaving_arm),
    "independent persons": Planted("families of ten die together", _families),
    "one time zero for all": Planted("the clock of one arm starts after four months", _late_clock),
    "nobody leaves inside a bin, or all groups leave alike": Planted("one arm leaves after three months", _whole_bins),
    "one row per person": Planted("a person has ten rows", _families),
    "each record, a patient or a whole clinic, was assigned by the plan's probability, alone or in permuted blocks and "
    "not together with other records": Planted("who hopes is treated", _assigned),
    "the columns were measured before assignment": Planted("the arm moved the column", _measured_late),
    "one outcome per record analysed": Planted("each record is copied four times", _counted_twice),
    "what one receives does not affect another's outcome": Planted("a neighbour's arm helps", _spilling),
    r"whether a record is excluded as unreadable does not depend on its \w+( and event)?( given the columns)?": Planted(
        "half of one arm's events are unreadable", _unread
    ),
    r"No unmeasured confounding given the columns named in the plan: no sum can test this\.": Planted(
        "who hopes is treated, and no column states it", _confounded
    ),
    "the columns were measured before treatment": Planted("the treatment moved the column", _treated_first),
    "the propensity or the outcome models are right among the records included": Planted(
        "both bend by the same square", _both_wrong
    ),
    r"Outcomes are missing at random given the arm and the columns named in the plan: no sum can test this\.": Planted(
        "in one arm the worse half is lost", _outcomes_lost
    ),
    "one outcome per record; the propensity of being observed or the outcome models are right for the records "
    "included": Planted("both bend by the same square", _both_lost_wrongly),
    "censoring and entry independent of the event given the columns": Planted(
        "who will live enters late in one arm", _entering_arm
    ),
    r"An adjusted risk or mean averages its arm's regression line .* right or wrong\.": Planted(
        "who hopes is treated, and the arms differ by more than chance", _means_of_chosen
    ),
    r"Risks and means by arm are not adjusted, .* are adjusted\.": Planted(
        "each record is copied five times", _means_of_copies
    ),
    r"The effect is that of assignment: people who did not comply count in their assigned arm\.": Planted(
        "two of five do not comply, and the effect of what they took is read", _not_complying
    ),
    r"A hazard ratio is not a causal effect, even in a trial: it compares persons still at risk, and depends on the "
    r"columns; kaplan_meier of the same releases gives risks\.": Planted("it is read as each person's ratio", _frail),
    r"In at most 5% of trials the interval of any of the looks misses, if the assumptions hold; it is that of the "
    r"look's level\. '-' means not reported: noise hides it, or no alpha is spent yet\.": Planted(
        "early records have another effect, and the mean of all is meant",
        lambda chance, broken: _looks(0.4 if broken else 0.1, -0.05 if broken else 0.1, chance),
    ),
    r"The effect is assumed to be the same for early and late records\. A trial that goes on after a crossing, or "
    r"stops without one, keeps the claim\.": Planted(
        "early records have another effect",
        lambda chance, broken: _looks(0.4 if broken else 0.1, -0.05 if broken else 0.1, chance),
    ),
    "A person counts up to a cumulative hazard of 1; where hazards are not proportional, the ratio covers that "
    r"time\.": Planted("it is read as an average over all of the follow-up", _capped),
    r"The ratios compare rates of \w+ among persons with neither .* \(cumulative_incidence\)\.": Planted(
        "it is read as a ratio of risks", _one_cause
    ),
    r"Counts above target_bound, [\d.]+, were cut, which pulls coefficients toward 0\. The sums do not show how many "
    r"were, and no interval of a coefficient allows for it: where 0\.1% of counts were cut, 8 to 64% of releases "
    r"missed\. Each party's clip report has its own share\.": Planted(
        "counts above 2 are cut", lambda chance, broken: _rounds("poisson", 0.0, chance, bound=2 if broken else 15)
    ),
    r"Numbers analysed and events describe these records; .* have an outcome\.": Planted(
        "they are read as those of the population", _counted
    ),
}
"""Worlds of courses with exact sums, likewise."""
