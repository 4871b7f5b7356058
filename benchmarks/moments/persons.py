"""Seconds of sums over persons, beside those of the same rows as records, for every kind that takes persons.

Of the widest rows only class sums are timed, whose second moments each person's clip truncates entry by entry.

    OMP_NUM_THREADS=1 python -m benchmarks.moments.persons --cpu --save

The floor of persons is the least that clipping or averaging them whole must do: their rows are read once, and each
person's own vector, as long as the plan's, is written once in tiles that stay in the cache.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

import privstats as ps
from benchmarks.measuring import Rows, Tables, command, least_seconds
from privstats.encoding import PersonAverage, layout_of
from privstats.schema import Schema
from privstats.schema.public_values import Published, Values

ROWS, PERSONS = 50_000, 20_000
WIDTHS = (16, 64, 512)
_WIDE = 512
CLASSES = 5
CLIPS: tuple[float | str, ...] = (1.0, 2.0, "average")
_TILE = 1 << 15

Clocked: TypeAlias = Callable[[Mapping[str, Callable[[], object]]], dict[str, float]]


class Case(NamedTuple):
    """A schema, records of it, and the values that its plans publish."""

    schema: Schema
    X: Any
    y: Any
    published: Published | None


def options(parser: argparse.ArgumentParser) -> None:
    """The clock and how often."""
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, for a busy machine; set OMP_NUM_THREADS=1")


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield the tables by width, then a rehearsal of the same persons."""
    clock, unit = (time.process_time, "CPU seconds") if chosen.cpu else (time.perf_counter, "seconds")
    least = partial(least_seconds, repeats=1 if chosen.quick else chosen.repeats, clock=clock)
    rows, persons, widths = (600, 200, (4,)) if chosen.quick else (ROWS, PERSONS, WIDTHS)
    for width in widths:
        title = f"measure {rows:,} rows of {persons:,} persons, {width} columns"
        timed = islice(cases(rows, width), 1 if width >= _WIDE else None)
        yield title, [row for case in timed for row in rows_of(case, persons, least, unit)]
    yield f"rehearse {rows:,} rows of {persons:,} persons", rehearsals(rows, persons, least, unit)


def cases(n: int, d: int) -> Iterator[Case]:
    """Records of every kind that takes persons."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    labels, real, yes = rng.integers(0, CLASSES, n), rng.uniform(-1, 1, n), rng.integers(0, 2, n).astype(float)
    head = ps.heads.LDA().fit(X[:2_000], yes[:2_000].astype(int))
    scored = ps.Scoring(head, score_bins=20)
    course: dict[str, Any] = {"expected_records": n, "course_mu": 1.0}
    pairs: tuple[tuple[Schema, Any, Any], ...] = (
        (ps.ClassSchema(CLASSES, d, "NAB", 1.0), X, labels),
        (ps.ClassSchema(CLASSES, d, "NAD", 1.0), X, labels),
        (ps.RidgeSchema(d, clip_norm=1.0, target_bound=1.0), X, real),
        (ps.MeanSchema(d, 1.0), X, real),
        (ps.ScoreSchema(d, 1.0, errors="model"), X, yes),
        (ps.GradientSchema(d, CLASSES, residual_norm=0.3, **course), X, labels),
        (ps.CalibrationSchema(d, CLASSES, **course), X, labels),
        (ps.EffectSchema(d + 2, 1.0, outcome=(0.0, 1.0), probability=0.5), np.c_[X, np.ones(n), yes], yes),
        (scored.schema, X, yes.astype(int)),
        (_counted(), {"sex": rng.choice(["f", "m"], n), "age": rng.uniform(0, 60, n)}, None),
    )
    for schema, rows, targets in pairs:
        yield Case(schema, rows, targets, scored.published if schema is scored.schema else _published(schema))


def _counted() -> ps.CountSchema:
    return ps.CountSchema((ps.Categories("sex", ("f", "m")), ps.Bins("age", (0, 20, 40, 60))), (("sex", "age"),))


def _published(schema: Schema) -> Published | None:
    values = {name: Values.rounded(np.full(shape, 0.1)) for name, shape in schema.needs.items()}
    return Published.of(values) if values else None


def rows_of(case: Case, persons: int, least: Clocked, unit: str) -> Rows:
    """A row for every way in which a person may count."""
    schema, X, y, published = case
    n = len(y) if y is not None else len(next(iter(X.values()))) if isinstance(X, dict) else len(X)
    ids = np.random.default_rng(1).integers(0, persons, n)
    summed = partial(ps.moments.exact_moments, schema, X, y, published=published)
    tasks: dict[str, Callable[[], object]] = {"records": summed}
    for clip in CLIPS:
        if not schema.refuses_persons(averaged=clip == "average"):
            tasks[str(clip)] = partial(summed, persons=ids, person_clip=_clip(schema, clip))
    read = X if isinstance(X, np.ndarray) else np.zeros((n, 2))
    tasks["floor"] = partial(floor, read, persons, layout_of(schema).size)
    seconds = least(tasks)
    return [
        {
            "sums": f"{schema.task} {''.join(schema.statistics)}",
            "person_clip": clip,
            unit: seconds[clip],
            "x records": seconds[clip] / seconds["records"],
            "x floor": seconds[clip] / (seconds["records"] + seconds["floor"]),
        }
        for clip in tasks
        if clip not in ("records", "floor")
    ]


def _clip(schema: Schema, clip: float | str) -> Any:
    if isinstance(clip, str):
        return PersonAverage()
    promise: dict[str, Any] = {"adjacency": "add-remove", "epsilon": 1.0, "delta": 1e-6}
    privacy = ps.Privacy(model="central", unit="person", max_records_per_person=16, person_clip=clip, **promise)
    return ps.dp.person_clip(schema, privacy)


def floor(X: NDArray[np.float64], persons: int, entries: int) -> float:
    """Every row read once, and a vector for each person written once, in tiles that stay in the cache."""
    held = np.empty(max(_TILE // entries, 1) * entries)
    for _ in range(-(-persons * entries // held.size)):
        held.fill(1.0)
    return float(X.sum()) + float(held[0])


def rehearsals(n: int, persons: int, least: Clocked, unit: str) -> Rows:
    """Three parties, twelve columns, per record and per person."""
    rng = np.random.default_rng(2)
    tables = {}
    for name in ("north", "south", "west"):
        size = n // 3
        X = rng.normal(size=(size, 12))
        ill = rng.random(size) < 1 / (1 + np.exp(-X[:, :4].sum(axis=1)))
        ids = [f"{name}-{each}" for each in rng.integers(0, max(persons // 3, 1), size)]
        tables[name] = {"patient": ids, "ill": ill, **{f"c{place}": X[:, place] for place in range(12)}}
    run = partial(ps.rehearse, tables, target="ill", epsilon=3.0, rng=ps.randomness.seeded(3))
    seconds = least({"records": partial(run, drop=("patient",)), "persons": partial(run, persons="patient")})
    return [
        {"rehearsal": name, unit: value, "x records": value / seconds["records"]} for name, value in seconds.items()
    ]


if __name__ == "__main__":
    command("moments.persons", __doc__, tables, options)
