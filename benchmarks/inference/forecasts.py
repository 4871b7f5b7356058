"""Do forecasts of hazard ratios promise what the reader then reports?

    python -m benchmarks.inference.forecasts --save --runs 1000

A forecast draws 100 releases from public guesses: the share of the rarest stratum, the number of events. "reported" is
of other persons, whose ratios, strata and leaving the guesses do not know: the arm's log ratio is .5, that of age .4,
hazards of strata differ up to fourfold, and 1 % leave a month. Both are of the row that is hidden most often.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from functools import partial

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, promise, ran, tallied
from benchmarks.inference.hazards import AGE, CLIENTS, FOLLOWED, two_columns
from benchmarks.inference.runs import add_options, add_row, ends, others_of, table_of
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.randomness import Generator

__all__ = ["promised"]

NAME = "inference.forecasts"
EVENTS, RATIO, LEAVING = 0.25, 0.5, 0.01
SITES = ("a", "b", "c", "d")
DESIGNS: dict[str, tuple[int, float | None, int | None]] = {
    "four strata, one of 2 %": (4, 0.02, None),
    "four strata, one of 2 %, six rounds": (4, 0.02, 6),
    "four even strata": (4, None, None),
    "one baseline": (1, None, None),
}
"""Number of strata, share of the rarest, and rounds; None: an even share, the course's own number of rounds."""
CELLS = ((8_000, 8.0), (20_000, 3.0), (20_000, 8.0))


def promised(strata: int, rarest: float | None, rounds: int | None, records: int, epsilon: float, runs: int) -> Row:
    """What a forecast says of a course, and what the reader reports of ``runs`` releases of it."""
    sites = ps.Categories("site", SITES[:strata]) if strata > 1 else None
    schema = replace(two_columns(6, sites), expected_events=round(EVENTS * records))
    cohort = ps.Cohort(CLIENTS, CLIENTS, records)
    course = ps.Hazard.start(
        schema, cohort, promise(epsilon), by="arm", **({} if rounds is None else {"rounds": rounds})
    )
    said = inf.forecast(course, records=records, rarest=rarest)
    last = 1 / strata if rarest is None else rarest
    shares = np.append(np.full(strata - 1, (1 - last) / max(strata - 1, 1)), last)
    levels = np.linspace(0.5, 2, strata) if strata > 1 else np.ones(1)
    notes, reported = set[str](), np.zeros(2)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        site, age = chance.choice(strata, records, p=shares), chance.uniform(-1, 1, records)
        arm = chance.integers(0, 2, records)
        hazard = EVENTS / FOLLOWED * levels[site] * np.exp(RATIO * arm + AGE * age)
        event, left = chance.exponential(1 / hazard), chance.exponential(1 / LEAVING, records)
        ended = np.minimum(left, FOLLOWED)
        table = {"arm": arm, "age": age, "site": np.array(SITES)[site]}
        table |= {"months": np.minimum(event, ended), "died": (event <= ended) * 1}
        parts = [({name: column[k::CLIENTS] for name, column in table.items()},) for k in range(CLIENTS)]
        found = inf.hazards(courses.run(course, lambda node: ran(node.plan, parts, rng)))
        reported[:] += found.reported
        notes.update(note for note in found.notes if "plan six rounds" in note)
        return Answer.of(found.params, found.conf_int(), np.array([RATIO, AGE]))

    found = tallied(f"forecast {strata} {rarest} {rounds} {records} {epsilon}", answer, runs)
    worst = said.worst
    return {
        "records": records,
        "epsilon": epsilon,
        "rounds": course.rounds,
        "forecast reported": worst.reported,
        "forecast draws": said.draws,
        "forecast half width": worst.half_width if math.isfinite(worst.half_width) else None,
        **found,
        "reported of the worst": float(reported.min() / runs),
        **ends(int(reported.min()), runs),
        "advice of six rounds": bool(notes),
    }


def tables(options: argparse.Namespace) -> Tables:
    """A table per design; with ``--row`` one of its rows alone, between the stored ones."""
    runs, cells = (2, CELLS[:1]) if options.quick else (options.runs, CELLS)
    for title, design in list(DESIGNS.items())[: 1 if options.quick else None]:
        if options.only in title:
            yield from table_of(NAME, title, cells, partial(promised, *design, runs=runs), options.row)


def _options(parser: argparse.ArgumentParser) -> None:
    add_options(parser)
    add_row(parser)


if __name__ == "__main__":
    command(NAME, __doc__, tables, _options, others_of(NAME))
