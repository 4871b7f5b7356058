"""Linear regression behind ranges that a first release gives, beside the same promise spent in public ranges.

    python -m benchmarks.inference.standardised --save

The worlds, the schema and the epsilons of ``coverage``; both ways read the same records.
"""

from __future__ import annotations

import argparse

import numpy as np

import privstats as ps
from benchmarks.inference.coverage import SCHEMA, plan_of
from benchmarks.inference.coverings import Answer, Way, tallied
from benchmarks.measuring import Row, Tables, command
from privstats import course as courses
from privstats import inference as inf
from privstats.course import Single
from privstats.randomness import Generator
from threat_models.audits.inference import World, released

CELLS = [(2_000, 1.0), (2_000, 3.0), (5_000, 1.0), (5_000, 3.0), (10_000, 0.3), (10_000, 1.0), (50_000, 1.0)]


def tables(options: argparse.Namespace) -> Tables:
    """A row per way, number of records and epsilon."""
    cells, runs = (CELLS[:1], 2) if options.quick else (CELLS, options.runs)
    yield "public ranges", [covered(*cell, runs, ranged=False) for cell in cells]
    yield "ranges first", [covered(*cell, runs, ranged=True) for cell in cells]


def covered(records: int, epsilon: float, runs: int, *, ranged: bool) -> Row:
    """Reported, reported and missed, and half width of five slopes."""
    return {
        "records": records,
        "epsilon": epsilon,
        **tallied(f"ranges {records} {epsilon}", slopes(records, epsilon, ranged=ranged), runs),
    }


def slopes(records: int, epsilon: float, *, ranged: bool) -> Way:
    """Return the function that draws records, and reads their slopes behind ranges of one of the two ways."""
    plan = plan_of(SCHEMA, records, epsilon, "central")
    course = ps.Standardised.within(plan)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        world = World.draw(SCHEMA, records, chance)
        both = courses.run(course if ranged else Single(plan), lambda node: released(node.plan, world, rng))
        table = inf.ols(both if ranged else both[0], cov_type="nonrobust")  # type: ignore[arg-type]
        return Answer.of(table.params[1:], table.conf_int()[1:], world.truth[1:])

    return answer


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=300, help="releases per cell")


if __name__ == "__main__":
    command("inference.standardised", __doc__, tables, _options)
