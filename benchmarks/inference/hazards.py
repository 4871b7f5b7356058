"""Hazard ratios: how often their intervals cover, whether proportionality is rejected, and how near Cox's model is.

    python -m benchmarks.inference.hazards --save

Persons with known hazards go through counts, rounds and noise as in a session and are read by the public reader. Cox's
model is lifelines', on the data that it brings, each followed to a time that nearly everybody reaches within the cap.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, promise, ran, tallied
from benchmarks.measuring import Row, Rows, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.course.hazard import first_weights
from privstats.estimates.score import damped_step
from privstats.randomness import Generator, seeded
from privstats.schema.public_values import Published, Values
from privstats.transforms import Centre, ConstantFeature, Scale

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
)
USUAL, RARE = 0.06, 0.006
CELLS = [(2_000, 3.0), (5_000, 1.0), (5_000, 3.0), (20_000, 1.0), (20_000, 8.0)]
RARE_CELLS = [(5_000, 3.0), (20_000, 3.0), (20_000, 8.0)]
COUNTS = [(2_000, 1.0), (5_000, 0.3), (5_000, 1.0), (20_000, 1.0)]
STEPS = 40
FINEST = 20


def tables(options: argparse.Namespace) -> Tables:
    """Cells of records and epsilon; the check of proportionality; beside Cox's model."""
    quick = options.quick
    runs = 2 if quick else options.runs
    usual, rare, counts = (cells[:1] if quick else cells for cells in (CELLS, RARE_CELLS, COUNTS))
    yield "a third has the event, four rounds", [covered(USUAL, 4, *cell, _runs(cell, runs)) for cell in usual]
    yield "4 % have the event, six rounds", [covered(RARE, 6, *cell, runs) for cell in rare]
    yield "proportional hazards", [checked(0.0, *cell, 10 * runs // 3) for cell in counts]
    yield "a log ratio that runs from 0 to .8", [checked(0.8, *cell, 10 * runs // 3) for cell in counts]
    yield "beside Cox's model", list(beside_cox())


def _runs(cell: tuple[int, float], runs: int) -> int:
    """More for the two cells that the claim is tried in."""
    return 5 * runs // 3 if cell in ((5_000, 3.0), (20_000, 1.0)) else runs


def covered(hazard: float, rounds: int, records: int, epsilon: float, runs: int) -> Row:
    """Told, told and missed, and half width of three log ratios."""
    course = ps.Hazard.start(
        SCHEMA, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm", rounds=rounds
    )

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        table = persons(records, hazard, chance)
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        return Answer.of(found.params, found.conf_int(), RATIOS)

    name = f"hazards {hazard} {rounds} {records} {epsilon}"
    return {"records": records, "epsilon": epsilon, **tallied(name, answer, runs)}


def persons(records: int, hazard: float, chance: np.random.Generator) -> dict[str, Array]:
    """A constant hazard per bin, times the ratios of an arm and two columns; people leave at any time."""
    X = np.c_[chance.integers(0, 2, records), chance.uniform(-1, 1, (records, 2))]
    times = chance.exponential(WIDTH / (hazard * np.exp(X @ RATIOS)))
    leaves = chance.uniform(0, 30, records)
    columns = dict(zip(NAMES, X.T, strict=True))
    return columns | {"months": np.minimum(times, leaves), "died": (times <= leaves).astype(np.float64)}


def checked(trend: float, records: int, epsilon: float, runs: int) -> Row:
    """How often proportionality is told, and rejected at .05, at the noise of a course's counts."""
    course = ps.Hazard.start(SCHEMA, ps.Cohort(CLIENTS, CLIENTS, 2 * records), promise(epsilon), by="arm")
    told = rejected = 0
    for run in range(runs):
        chance = np.random.default_rng([records, round(10 * epsilon), round(10 * trend), run])
        arm = chance.integers(0, 2, records)
        hazards = USUAL * np.exp(np.linspace(0, trend, BINS) * arm[:, None] + 0.4 * (trend == 0) * arm[:, None])
        place = (np.cumsum(hazards, axis=1) < chance.exponential(size=records)[:, None]).sum(axis=1)
        leaves = chance.integers(0, 2 * BINS, records)
        table = {"months": WIDTH * np.minimum(place, leaves) + 1, "died": (place <= leaves) * 1, "arm": arm}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        counts = ran(course.first, parts, seeded(run))
        found = inf.proportionality_test(counts, time="months", event="died", by="arm", bins=BINS)
        told, rejected = told + found.told, rejected + (found.p_value < 0.05)
    return {"records": records, "epsilon": epsilon, "runs": runs, "told": told / runs, "rejected": rejected / runs}


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
        grid_bits=FINEST,
    )
    table, w = {name: frame[name].to_numpy() for name in frame}, first_weights(schema).real
    for _ in range(STEPS):
        published = Published.of({"w": Values.rounded(w)})
        found: Any = ps.measure(schema, table, published=published).real()
        w = Values.rounded(w).real + damped_step(found.g, found.H, 0.0, schema.clip_norm)
    errors = np.sqrt(np.diag(np.linalg.inv(found.H)))[: len(columns)]
    return w[: len(columns)] / per, errors / per


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=300, help="releases per cell, five for three of them in two cells")


if __name__ == "__main__":
    command("inference.hazards", __doc__, tables, _options)
