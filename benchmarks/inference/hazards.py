"""Hazard ratios: how often their intervals cover, whether proportionality is rejected, and how near Cox's model is.

    python -m benchmarks.inference.hazards --save

Persons with known hazards go through counts, rounds and noise as in a session and are read by the public reader. Cox's
model is lifelines', on the data that it brings, each followed to a time that nearly everybody reaches within the cap.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, Way, promise, ran, seed_of, tallied
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import Row, Rows, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.course.hazard import first_values
from privstats.estimates.score import damped_step
from privstats.randomness import Generator, seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms import Centre, ConstantFeature, Levels, Scale

NAME = "inference.hazards"
CLIENTS = 4
WIDTH, BINS = 3.0, 6
EDGES = tuple(WIDTH * place for place in range(BINS + 1))
NAMES = ("arm", "age", "dose")
RATIOS = np.array([0.5, -0.4, 0.3])
SCHEMA = ps.HazardSchema(
    4,
    (3 + 1.5**2) ** 0.5,
    bins=ps.Bins("months", EDGES),
    event="died",
    feature_names=NAMES,
    transform=(Centre((0.5, 0.0, 0.0)), Scale((0.5, 1.0, 1.0)), ConstantFeature(1.5)),
    times="continuous",
    errors="model",
)
USUAL, RARE = 0.06, 0.006
CELLS = [(2_000, 3.0), (5_000, 1.0), (5_000, 3.0), (20_000, 1.0), (20_000, 8.0)]
RARE_CELLS = [(5_000, 3.0), (20_000, 3.0), (20_000, 8.0)]
COUNTS = [(2_000, 1.0), (5_000, 0.3), (5_000, 1.0), (20_000, 1.0)]
FOLLOWED, BASE, AGE = 24.0, 0.02, 0.4  # months, events a month, log ratio of the other column
LEAVING = {  # rates a month at which two arms leave, and the shape of Weibull's law; each printed assumption stretched
    "drop-out 5 % and 1 % a month": ((0.05, 0.01), 1.0),
    "the same, hazards falling steeply (Weibull .5)": ((0.05, 0.01), 0.5),
    "the same, hazards rising (Weibull 2)": ((0.05, 0.01), 2.0),
    "drop-out 1 % a month in both arms, Weibull .5": ((0.01, 0.01), 0.5),
}
STRETCHED = [
    (ratio, records, epsilon, width)
    for ratio in (0.0, 0.5)
    for records in (5_000, 20_000)
    for epsilon in (1.0, 3.0, 8.0)
    for width in (6, 2)
]
CAUSES = [(5_000, 3.0), (5_000, 8.0), (20_000, 1.0), (20_000, 8.0)]
SMOKING, ENDED = ("never", "former", "current"), ("seen", "relapse", "death")
STRATA = [(5_000, 8.0), (20_000, 1.0), (20_000, 3.0), (20_000, 8.0)]
COLUMNS = [(5_000, 3.0), (5_000, 8.0), (20_000, 1.0), (20_000, 8.0)]
SPLIT, LATER = 12, 0.8  # month and log ratio: by how much that of age or the arm rises there
FEW, TIE = 0.3, 2.0  # rate at which few pass a cumulative hazard of 1; log odds of the arm per unit of age
STEPS = 40
FINEST = 20


def tables(options: argparse.Namespace) -> Tables:
    """Cells of records and epsilon; the check of proportionality; arms that leave at their own rates; Cox's model."""
    quick = options.quick
    runs = 2 if quick else options.runs
    some = slice(1 if quick else None)
    usual, rare, counts, stretch = CELLS[some], RARE_CELLS[some], COUNTS[some], STRETCHED[some]
    groups: dict[str, Callable[[], Rows]] = {
        "a third has the event, four rounds": lambda: [covered(USUAL, 4, *cell, runs) for cell in usual],
        "4 % have the event, six rounds": lambda: [covered(RARE, 6, *cell, runs) for cell in rare],
        "proportional hazards": lambda: [checked(0.0, *cell, 2 * runs) for cell in counts],
        "a log ratio that runs from 0 to .8": lambda: [checked(0.8, *cell, 2 * runs) for cell in counts],
        **{
            world: partial(_stretched, how, stretch if place == 0 else [(0.5, 20_000, 3.0, 6)], runs)
            for place, (world, how) in enumerate(LEAVING.items())
        },
        "one cause of two, a column of three texts": lambda: [by_cause(*cell, runs) for cell in CAUSES[some]],
        **_each("two strata, one baseline each", by_stratum, STRATA[some], runs),
        "beside Cox's model": lambda: list(beside_cox()),
        **_each("each column's proportionality, ratios that stay", partial(by_column, 0.0), COLUMNS[some], runs),
        **_each(
            "each column's proportionality, a ratio of age that rises",
            partial(by_column, LATER),
            COLUMNS[some],
            -(-runs // 4),
        ),
        **_each(
            "each column's proportionality, a ratio of the arm that rises, few events",
            partial(by_column, 0.0, arms=LATER, rate=FEW),
            COLUMNS[some],
            -(-runs // 4),
        ),
        **_each(
            "each column's proportionality, the same, with more of the older in the arm",
            partial(by_column, 0.0, arms=LATER, rate=FEW, tie=TIE),
            COLUMNS[some],
            -(-runs // 4),
        ),
    }
    for title, rows in groups.items():
        if options.only in title:
            yield title, rows()


def _each(
    title: str, row: Callable[[int, float, int], Row], cells: Sequence[tuple[int, float]], runs: int
) -> dict[str, Callable[[], Rows]]:
    """A table for every cell, so that each can be run alone."""
    return {
        f"{title}: {records:,} persons, epsilon {epsilon:g}": partial(_only, row, records, epsilon, runs)
        for records, epsilon in cells
    }


def _only(row: Callable[[int, float, int], Row], records: int, epsilon: float, runs: int) -> Rows:
    return [row(records, epsilon, runs)]


def _stretched(
    how: tuple[tuple[float, float], float], cells: Sequence[tuple[float, int, float, int]], runs: int
) -> Rows:
    return [stretched(*how, *cell, runs) for cell in cells]


def covered(hazard: float, rounds: int, records: int, epsilon: float, runs: int) -> Row:
    """Reported, reported and missed, and half width of three log ratios."""
    name = f"hazards {hazard} {rounds} {records} {epsilon}"
    found = tallied(name, three_ratios(hazard, rounds, records, epsilon), runs)
    return {"records": records, "epsilon": epsilon, **found}


def three_ratios(hazard: float, rounds: int, records: int, epsilon: float) -> Way:
    """Return the function that draws a world of three columns and reads its log ratios."""
    course = ps.Hazard.start(
        SCHEMA, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm", rounds=rounds
    )

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        table = persons(records, hazard, chance)
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        return Answer.of(found.params, found.conf_int(), RATIOS)

    return answer


def persons(records: int, hazard: float, chance: np.random.Generator) -> dict[str, Array]:
    """A constant hazard per bin, times the ratios of an arm and two columns; people leave at any time."""
    X = np.c_[chance.integers(0, 2, records), chance.uniform(-1, 1, (records, 2))]
    times = chance.exponential(WIDTH / (hazard * np.exp(X @ RATIOS)))
    leaves = chance.uniform(0, 30, records)
    columns = dict(zip(NAMES, X.T, strict=True))
    return columns | {"months": np.minimum(times, leaves), "died": (times <= leaves).astype(np.float64)}


def two_columns(width: int, strata: ps.Categories | None = None) -> ps.HazardSchema:
    """Return the schema of a trial's arm and age, with bins of ``width`` months."""
    return ps.HazardSchema(
        3,
        3**0.5,
        bins=ps.Bins("months", tuple(range(0, round(FOLLOWED) + 1, width))),
        event="died",
        feature_names=("arm", "age"),
        transform=(Centre((0.5, 0.0)), Scale((0.5, 1.0)), ConstantFeature(1.0)),
        times="continuous",
        strata=strata,
        errors="model",
    )


def stretched(
    leaving: tuple[float, float], shape: float, ratio: float, records: int, epsilon: float, width: int, runs: int
) -> Row:
    """Misses of an arm's and of another column's log ratio, and how often the tests of the counts reject.

    Arms leave at different rates, at any time of a bin, and followed ones leave beyond the last edge.
    """
    trial = leaving_trial(leaving, shape, ratio, records, epsilon, width)
    missed, reported, tests = np.zeros(2), np.zeros(2), np.zeros(2)
    for run in range(runs):
        seeds = [records, round(10 * epsilon), round(10 * ratio), width, run]
        found = trial(np.random.default_rng(seeds), seeded(run))
        low, high = found.conf_int().T
        reported += found.reported
        missed += (low > np.array([ratio, AGE])) | (high < np.array([ratio, AGE]))
        tests += [found.logrank().p_value < 0.05, found.proportionality().p_value < 0.05]
    return {
        "log ratio": ratio,
        "records": records,
        "epsilon": epsilon,
        "months a bin": width,
        "runs": runs,
        "reported": float(reported[0] / runs),
        "arm missed": float(missed[0] / runs),
        **ends(missed[0], runs),
        "age missed": float(missed[1] / runs),
        "log-rank rejects": float(tests[0] / runs),
        "proportionality rejects": float(tests[1] / runs),
    }


def leaving_trial(
    leaving: tuple[float, float], shape: float, ratio: float, records: int, epsilon: float, width: int
) -> Callable[[np.random.Generator, Generator], inf.HazardRatios]:
    """Return the function that draws a trial whose arms leave at rates of their own, and reads its course."""
    cohort = ps.Cohort(CLIENTS, CLIENTS, 2 * records)
    course = ps.Hazard.start(two_columns(width), cohort, promise(epsilon), by="arm")

    def read(chance: np.random.Generator, rng: Generator) -> inf.HazardRatios:
        table = followed(records, ratio, leaving, shape, chance)
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        return inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))

    return read


def by_cause(records: int, epsilon: float, runs: int) -> Row:
    """Misses of three cause-specific log ratios: of an arm, and of two texts, the second of which 6 % have.

    The other cause is three times as frequent in one arm, and arms leave at 5 % and 1 % a month.
    """
    levels = Levels((ps.Categories("smoking", SMOKING),), (ps.Categories("ended", ENDED),), (1,))
    schema = ps.HazardSchema(
        4,
        3**0.5,
        bins=ps.Bins("months", tuple(range(0, round(FOLLOWED) + 1, 6))),
        event="ended",
        feature_names=("arm", "smoking"),
        transform=(levels, Centre((0.5, 0.0, 0.0)), Scale((0.5, 1.0, 1.0)), ConstantFeature(1.0)),
        times="continuous",
        errors="model",
    )
    course = ps.Hazard.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm")
    truth = np.array([0.3, 0.4, 0.8])

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        arm, smoking = chance.integers(0, 2, records), chance.choice(3, records, p=[0.6, 0.34, 0.06])
        rate = BASE * np.exp(truth[0] * arm + np.array([0, *truth[1:]])[smoking])
        first = np.stack([chance.exponential(1 / rate), chance.exponential(1 / np.array([0.01, 0.03])[arm])])
        left = np.minimum(
            chance.exponential(1 / np.array([0.05, 0.01])[arm]), FOLLOWED + chance.uniform(0, 12, records)
        )
        times = np.minimum(first.min(axis=0), left)
        ended = np.select([times == left, times == first[0]], ENDED[:2], ENDED[2])
        table = {"arm": arm, "smoking": np.array(SMOKING)[smoking], "months": times, "ended": ended}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        return Answer.of(found.params, found.conf_int(), truth)

    found = tallied(f"by cause {records} {epsilon}", answer, runs)
    worst = found["worst parameter"] or 0.0
    return {"records": records, "epsilon": epsilon, **found, **ends(round(worst * runs), runs)}


def by_stratum(records: int, epsilon: float, runs: int) -> Row:
    """Misses of two log ratios under two strata: hazards differ sevenfold, fall in one stratum and rise in the other.

    The arm depends on the stratum, and arms leave at 5 % and 1 % a month.
    """
    schema = two_columns(6, ps.Categories("site", (0, 1)))
    course = ps.Hazard.start(schema, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm")
    truth, tests = np.array([0.5, AGE]), np.zeros(2)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        site, age = chance.integers(0, 2, records), chance.uniform(-1, 1, records)
        arm = (chance.random(records) < np.array([0.3, 0.7])[site]) * 1
        cumulative = np.array([0.1, 0.7])[site] * np.exp(truth[0] * arm + truth[1] * age)
        event = FOLLOWED * (chance.exponential(size=records) / cumulative) ** (1 / np.array([2.0, 0.5])[site])
        left = np.minimum(
            chance.exponential(1 / np.array([0.05, 0.01])[arm]), FOLLOWED + chance.uniform(0, 12, records)
        )
        table = {"arm": arm, "age": age, "site": site}
        table |= {"months": np.minimum(event, left), "died": (event <= left) * 1}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        tests[:] += [found.proportionality().reported, found.proportionality().p_value < 0.05]
        return Answer.of(found.params, found.conf_int(), truth)

    found = tallied(f"by stratum {records} {epsilon}", answer, runs)
    worst = found["worst parameter"] or 0.0
    checks = {"check reported": float(tests[0] / runs), "proportionality rejects": float(tests[1] / runs)}
    return {"records": records, "epsilon": epsilon, **found, **ends(round(worst * runs), runs), **checks}


def by_column(
    later: float, records: int, epsilon: float, runs: int, *, arms: float = 0.0, rate: float = 1.0, tie: float = 0.0
) -> Row:
    """How often the test of every column is reported, and rejects at .05; arms leave at 5 % and 1 % a month.

    From month 12 on the log ratio of age is ``later`` higher, and that of the arm ``arms`` higher.

    Args:
        rate: all hazards, in those of the other worlds.
        tie: log odds of the second arm per unit of age.
    """
    schema = two_columns(6)
    cohort = ps.Cohort(CLIENTS, CLIENTS, 2 * records)
    course = ps.Hazard.start(schema, cohort, promise(epsilon), by="arm", early_bins=SPLIT // 6)
    reported, rejected = np.zeros(2), np.zeros(2)
    for run in range(runs):
        world = f" {arms} {rate} {tie}" if arms else ""
        seed = seed_of(f"by column {later} {records} {epsilon}{world}", run)
        chance, rng = np.random.default_rng(seed), seeded(seed)
        arm, age = chance.integers(0, 2, records), chance.uniform(-1, 1, records)
        if tie:
            arm = (chance.random(records) < 1 / (1 + np.exp(-tie * age))).astype(arm.dtype)
        early = rate * BASE * np.exp(0.5 * arm + AGE * age)
        late, passed = early * np.exp(later * age + arms * arm), chance.exponential(size=records)
        event = np.where(passed < early * SPLIT, passed / early, SPLIT + (passed - early * SPLIT) / late)
        left = np.minimum(
            chance.exponential(1 / np.array([0.05, 0.01])[arm]), FOLLOWED + chance.uniform(0, 12, records)
        )
        table = {"arm": arm, "age": age, "months": np.minimum(event, left), "died": (event <= left) * 1}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        releases = courses.run(course, lambda node, parts=parts, rng=rng: ran(node.plan, parts, rng))  # type: ignore[misc]
        found = inf.hazards(releases).proportionality_by_column()
        reported += found.reported
        rejected += found.p_value < 0.05
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": float(reported.min() / runs),
        "arm rejected": float(rejected[0] / runs),
        "age rejected": float(rejected[1] / runs),
        **ends(float(rejected[1]), runs),
    }


def followed(
    records: int, ratio: float, leaving: tuple[float, float], shape: float, chance: np.random.Generator
) -> dict[str, Array]:
    """Weibull times of two arms, who leave at rates of their own or are seen beyond the end."""
    arm, age = chance.integers(0, 2, records), chance.uniform(-1, 1, records)
    cumulative = BASE * FOLLOWED * np.exp(ratio * arm + AGE * age)  # at the end of follow-up
    event = FOLLOWED * (chance.exponential(size=records) / cumulative) ** (1 / shape)
    left = np.minimum(chance.exponential(1 / np.array(leaving)[arm]), FOLLOWED + chance.uniform(0, 12, records))
    return {"arm": arm, "age": age, "months": np.minimum(event, left), "died": (event <= left) * 1.0}


def checked(trend: float, records: int, epsilon: float, runs: int) -> Row:
    """How often proportionality is reported, and rejected at .05, at the noise of a course's counts."""
    course = ps.Hazard.start(SCHEMA, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm")
    reported = rejected = 0
    for run in range(runs):
        chance = np.random.default_rng([records, round(10 * epsilon), round(10 * trend), run])
        arm = chance.integers(0, 2, records)
        hazards = USUAL * np.exp(np.linspace(0, trend, BINS) * arm[:, None] + 0.4 * (trend == 0) * arm[:, None])
        place = (np.cumsum(hazards, axis=1) < chance.exponential(size=records)[:, None]).sum(axis=1)
        leaves = chance.integers(0, 2 * BINS, records)
        table = {"months": WIDTH * np.minimum(place, leaves) + 1, "died": (place <= leaves) * 1, "arm": arm}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        counts = ran(course.first, parts, seeded(run))
        found = inf.proportionality_test(counts, time="months", event="died", by="arm", times="continuous")
        reported, rejected = reported + found.reported, rejected + (found.p_value < 0.05)
    return {
        "records": records,
        "epsilon": epsilon,
        "runs": runs,
        "reported": reported / runs,
        "rejected": rejected / runs,
    }


def beside_cox() -> Rows:
    """The largest distance of a coefficient from lifelines', in its standard errors, without noise."""
    if importlib.util.find_spec("lifelines") is None:
        return [{"data": "lifelines' own", "not run": "lifelines is not installed"}]
    return [cox_row(name, *followed, bins) for name, followed in packaged() for bins in (8, 12)]


def packaged() -> Iterator[tuple[str, tuple[Any, str, str]]]:
    """Data that lifelines brings: columns, time and event, each to a time within the cap."""
    data = import_module("lifelines.datasets")
    yield "rossi", (data.load_rossi(), "week", "arrest")
    yield "kidney", (data.load_kidney_transplant(), "time", "death")
    lung = data.load_lung()[["time", "status", "age", "sex", "ph.ecog", "wt.loss"]].dropna()
    lung["status"] = (lung["status"] == lung["status"].max()) * 1
    yield "lung, to three quarters alive", (_to(lung, "time", "status", 0.75), "time", "status")
    cancer = data.load_gbsg2()
    cancer = cancer.assign(
        horTh=(cancer.horTh == "yes") * 1,
        menostat=(cancer.menostat == "Post") * 1,
        tgrade=cancer.tgrade.map({"I": 1, "II": 2, "III": 3}),
        progrec=np.log1p(cancer.progrec),
        estrec=np.log1p(cancer.estrec),
        pnodes=np.log(cancer.pnodes),
    )
    yield (
        "gbsg2, logs of receptors and nodes, to four fifths alive",
        (
            _to(cancer, "time", "cens", 0.8),
            "time",
            "cens",
        ),
    )


def _to(frame: Any, time: str, event: str, alive: float) -> Any:
    """Followed to the time at which this share is alive."""
    lifelines = import_module("lifelines")
    end = lifelines.KaplanMeierFitter().fit(frame[time], frame[event]).percentile(alive)
    return frame.assign(**{event: frame[event] * (frame[time] <= end), time: frame[time].clip(upper=end)})


def cox_row(name: str, frame: Any, time: str, event: str, bins: int) -> Row:
    """One data set at one number of bins of equal events."""
    lifelines = import_module("lifelines")
    frame = frame.astype(float)
    theirs = lifelines.CoxPHFitter().fit(frame, time, event)
    columns = [column for column in frame if column not in (time, event)]
    params, errors = theirs.params_[columns].to_numpy(), theirs.standard_errors_[columns].to_numpy()
    mine, own = grouped(frame, columns, time, event, bins)
    return {
        "data": name,
        "records": len(frame),
        "events": int(frame[event].sum()),
        "bins": bins,
        "standard errors from Cox": float(np.abs((mine - params) / errors).max()),
        "least error ratio": float((own / errors).min()),
        "largest error ratio": float((own / errors).max()),
    }


def grouped(frame: Any, columns: list[str], time: str, event: str, bins: int) -> tuple[Array, Array]:
    """Coefficients and standard errors of the sums of a course without noise, on the finest grid."""
    X, times, died = frame[columns].to_numpy(), frame[time].to_numpy(), frame[event].to_numpy() == 1
    cuts = np.unique(np.quantile(times[died], np.linspace(0, 1, bins + 1)[1:-1]))
    mean, per = X.mean(axis=0), 4 * X.std(axis=0)
    reach = float(np.square((X - mean) / per).sum(axis=1).max())
    schema = ps.HazardSchema(
        len(columns) + 1,
        math.sqrt(reach + 0.25) + 0.01,
        bins=ps.Bins(time, (0.0, *cuts, times[died].max()), closed="right"),
        event=event,
        feature_names=tuple(columns),
        transform=(Centre(tuple(mean)), Scale(tuple(per)), ConstantFeature(0.5)),
        times="continuous",
        grid_bits=FINEST,
        errors="model",
    )
    table = {name: frame[name].to_numpy() for name in frame}
    counts = ps.Release.exact(schema.counted(), ps.measure(schema.counted(), table))
    values = first_values(schema, counts)
    w = values["w"].real
    for _ in range(STEPS):
        published = Published.of({**values, "w": Values.rounded(w)})
        found: Any = ps.measure(schema, table, published=published).real()
        w = Values.rounded(w).real + damped_step(found.g, found.H, 0.0, schema.clip_norm)
    errors = np.sqrt(np.diag(np.linalg.inv(found.H)))[: len(columns)]
    return w[: len(columns)] / per, errors / per


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
