"""Measure how often intervals of cells cover between cut points that counts of the same records gave.

    python -m benchmarks.inference.found_cuts --save

Four columns of numbers around 100, each of its own magnitude, and a truth. A column's effect is a line, so what is true
of a cell is the line's mean in it, at the cuts that the course found; ``ols(releases).cells()`` reads them all.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, plan_of, tallied
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats.intake.declared.columns import Column
from privstats.randomness import Generator
from privstats.transforms import ConstantFeature

__all__ = ["FoundWorld", "coverage"]

CLIENTS = 2
RESIDUAL, BOUND = 0.3, 3.0
CENTRE, SPREADS, SLOPE = 100.0, (0.01, 1.0, 100.0, 10_000.0), 0.3


@dataclass(frozen=True)
class FoundWorld:
    """A table of four columns of numbers, each of its own magnitude around 100, and a truth, whose cuts are found.

    Attributes:
        cuts: of a numeric column, as the course finds them.
    """

    cuts: int

    @property
    def schema(self) -> ps.RidgeSchema:
        """Schema of the sums after the cuts."""
        numbers: list[Column] = [ps.Numeric(f"x{j}") for j in range(len(SPREADS))]
        cells = ps.Cells((*numbers, ps.Truth("smoker")), signs=self.cuts, ramp=False)
        transform = (cells, ConstantFeature(1.0))
        return ps.RidgeSchema(cells.width + 1, clip_norm=math.sqrt(2), target_bound=BOUND, transform=transform)

    def read(self, records: int, plan: ps.Plan, chance: np.random.Generator, rng: Generator) -> Answer:
        """The contrasts of cells between the cuts of one course; effects are lines, so a cell has their mean."""
        slopes, smoker = chance.uniform(-SLOPE, SLOPE, len(SPREADS)), chance.uniform(-SLOPE, SLOPE)
        normal = chance.normal(size=(records, len(SPREADS)))
        values: dict[str, Any] = {f"x{j}": CENTRE + normal[:, j] * spread for j, spread in enumerate(SPREADS)}
        values["smoker"] = chance.integers(0, 2, records).astype(np.float64)
        y = normal @ slopes + values["smoker"] * smoker + chance.normal(size=records) * RESIDUAL
        shares = [({name: each[k::CLIENTS] for name, each in values.items()}, y[k::CLIENTS]) for k in range(CLIENTS)]
        releases = ps.simulate(ps.Binned.within(plan, expected_records=records), shares, rng=rng)
        found = inf.ols([each for each in releases if each is not None]).cells()
        cells: Any = releases[-1].plan.schema.transform[0]  # type: ignore[union-attr]
        effects = [
            slope * _means((np.array(column.edges) - CENTRE) / spread)
            for slope, column, spread in zip(slopes, cells.columns, SPREADS, strict=False)
        ]
        blocks = [*(np.append(each, np.nan) for each in effects), np.array([0.0, smoker, np.nan])]
        first = np.split(found.reference, np.cumsum([len(each) for each in blocks])[:-1])
        truth = np.concatenate([each - each[here] for each, here in zip(blocks, first, strict=True)])
        shown = ~found.reference & np.isfinite(truth)
        lacking = len(SPREADS) * self.cuts + 1 - int(shown.sum())  # a cut that was not found is not reported
        pairs = ((found.estimate, np.nan), (found.low, -np.inf), (found.high, np.inf), (truth, np.nan))
        return Answer(*(np.append(each[shown], np.full(lacking, untold)) for each, untold in pairs))


def _means(cuts: Array) -> Array:
    """Return the mean of a normal law in each cell between these cuts."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    return np.asarray(-np.diff(norm.pdf(ends)) / np.diff(norm.cdf(ends)))


def coverage(world: FoundWorld, records: int, epsilon: float, runs: int) -> Row:
    """Reported, reported and missed, and width over ``runs`` courses."""
    plan = plan_of(world.schema, CLIENTS, records, epsilon)
    name = f"found cuts {world.cuts} {records} {epsilon}"
    found = tallied(name, lambda chance, rng: world.read(records, plan, chance, rng), runs)
    return {"cuts": world.cuts, "records": records, "epsilon": epsilon, **found}


def tables(options: argparse.Namespace) -> Tables:
    """Yield the tables by number of cuts, records and epsilon."""
    runs, sizes = options.runs, [(20_000, 1.0), (20_000, 3.0), (60_000, 1.0)]
    if options.quick:
        runs, sizes = 2, [(20_000, 3.0)]
    yield (
        "cuts that were found",
        [coverage(FoundWorld(cuts), n, epsilon, runs) for n, epsilon in sizes for cuts in (1, 3)],
    )


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=200, help="courses per row")


if __name__ == "__main__":
    command("inference.found_cuts", __doc__, tables, _options)
