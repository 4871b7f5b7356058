"""Measure how often intervals of cells of declared columns cover, and how many cuts a release can resolve.

    python -m benchmarks.inference.cells --save

Eight columns: six of numbers, a category of three values, a truth. Every cell has a known effect; records go through
measuring, summing and noising, and ``ols(release).cells()`` reads them. Cells without a record count in no share.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.inference.coverings import Answer, Array, plan_of, ran, tallied
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats.intake.declared.columns import Column
from privstats.randomness import Generator
from privstats.transforms import Cells, ConstantFeature

__all__ = ["CellWorld", "coverage"]

CLIENTS = 2
EFFECT, RESIDUAL, BOUND = 0.15, 0.3, 2.0
RARE, FAR = 0.006, 1.0  # share of gaps that noise can hide at 10,000 records and epsilon 1, and their effect


@dataclass(frozen=True)
class CellWorld:
    """A table of eight columns.

    Attributes:
        cuts: of a numeric column, at even quantiles of a normal law.
        gaps: share of every column's values that is missing.
        gap: the effect of a gap; None for one that is drawn as all others.
    """

    cuts: int
    gaps: float = 0.0
    gap: float | None = None

    @property
    def cells(self) -> Cells:
        """The declaration."""
        cuts = {1: (0.0,), 3: (-0.67, 0.0, 0.67), 7: (-1.15, -0.67, -0.32, 0.0, 0.32, 0.67, 1.15)}[self.cuts]
        numbers: list[Column] = [ps.Numeric(f"x{j}", cuts) for j in range(6)]
        columns = (*numbers, ps.Categories("stage", ("a", "b", "c")), ps.Truth("smoker"))
        return ps.Cells(columns, signs=self.cuts, ramp=False)

    @property
    def schema(self) -> ps.RidgeSchema:
        """Schema of the measured sums."""
        cells = self.cells
        transform = (cells, ConstantFeature(1.0))
        return ps.RidgeSchema(cells.width + 1, clip_norm=math.sqrt(2), target_bound=BOUND, transform=transform)

    def draw(self, records: int, chance: np.random.Generator) -> tuple[Mapping[str, Any], Array, Sequence[Array]]:
        """A table, its targets, and of each column the effects of its cells."""
        values: dict[str, Any] = {f"x{j}": chance.normal(size=records) for j in range(6)}
        values["stage"] = chance.choice(["a", "b", "c"], records).astype(object)
        values["smoker"] = chance.integers(0, 2, records).astype(np.float64)
        for column in values.values():
            column[chance.random(records) < self.gaps] = None
        cells = self.cells
        effects = [chance.uniform(-EFFECT, EFFECT, len(table)) for table in cells.tables]
        for each in effects:
            each[-1] = each[-1] if self.gap is None else self.gap
        places = cells.indices(cells.codes(values))
        fitted = sum((each[places[:, j]] for j, each in enumerate(effects)), np.zeros(records))
        return values, fitted + chance.normal(size=records) * RESIDUAL, effects

    def read(self, records: int, plan: ps.Plan, chance: np.random.Generator, rng: Generator) -> Answer:
        """The contrasts of cells that may hold records, from one release."""
        values, y, effects = self.draw(records, chance)
        shares = [({name: each[k::CLIENTS] for name, each in values.items()}, y[k::CLIENTS]) for k in range(CLIENTS)]
        found = inf.ols(ran(plan, shares, rng), gaps_as_cells=True).cells()
        blocks = zip(effects, np.split(found.reference, np.cumsum([len(each) for each in effects])[:-1]), strict=True)
        truth = np.concatenate([each - each[first] for each, first in blocks])
        gap = np.array([cell == "other" or (cell == "missing" and not self.gaps) for cell in found.cells])
        shown = ~found.reference & ~gap
        return Answer(found.estimate[shown], found.low[shown], found.high[shown], truth[shown])


def coverage(world: CellWorld, records: int, epsilon: float, runs: int) -> Row:
    """Reported, reported and missed, and width over ``runs`` releases."""
    plan = plan_of(world.schema, CLIENTS, records, epsilon)
    name = f"cells {world} {records} {epsilon}"
    found = tallied(name, lambda chance, rng: world.read(records, plan, chance, rng), runs)
    return {"cuts": world.cuts, "gaps": world.gaps, "records": records, "epsilon": epsilon, **found}


def tables(options: argparse.Namespace) -> Tables:
    """Yield the tables by number of cuts, share of gaps, records and epsilon."""
    runs = 2 if options.quick else options.runs
    sizes = [(10_000, 1.0)] if options.quick else [(10_000, 1.0), (10_000, 3.0), (30_000, 1.0)]
    worlds = [CellWorld(cuts, gaps) for cuts in (1, 3, 7) for gaps in (0.0, 0.1)]
    yield "cells of eight columns", [coverage(world, n, epsilon, runs) for n, epsilon in sizes for world in worlds]
    rare = CellWorld(3, RARE, FAR)
    yield "gaps that noise hides, far from all other cells", [coverage(rare, 10_000, 1.0, runs)]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="releases per row")


if __name__ == "__main__":
    command("inference.cells", __doc__, tables, _options)
