"""Measure how often a scorecard's bands hold the points that the same records give without noise.

    python -m benchmarks.inference.card_bands --save

Columns of numbers with an effect that bends, a truth and a category of four values; ``LDA`` of one release of the class
sums. Cells that hold records, over releases.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats import inference as inf
from privstats import randomness
from privstats.intake.declared.columns import Column

__all__ = ["held"]

SIZES = ((5_000, 1.0, 2, 3), (5_000, 1.0, 8, 3), (5_000, 1.0, 4, 7), (5_000, 1.0, 8, 7), (5_000, 3.0, 8, 7),
         (20_000, 1.0, 8, 7), (2_000, 1.0, 6, 7))  # fmt: skip
PARTIES = 2


def made(records: int, numbers: int) -> tuple[dict[str, Any], Any]:
    """A table and its labels."""
    chance = np.random.default_rng(0)
    table: dict[str, Any] = {f"x{j}": chance.normal(size=records) for j in range(numbers)}
    table |= {"truth": chance.integers(0, 2, records), "kind": chance.integers(1, 5, records)}
    bent = sum((-1) ** (j + 1) * np.tanh(table[f"x{j}"] * (1 + j % 3)) for j in range(numbers))
    score = 1.2 * bent / np.sqrt(numbers) + table["truth"] + 0.4 * (table["kind"] == 2) - 0.5
    return table, (chance.random(records) < 1 / (1 + np.exp(-score))).astype(int)


def cells_of(numbers: int, cuts: int) -> ps.Cells:
    """Cut points even in the middle of a normal law."""
    edges = tuple(np.linspace(-1.2, 1.2, cuts).tolist())
    columns: list[Column] = [ps.Numeric(f"x{j}", edges) for j in range(numbers)]
    return ps.Cells((*columns, ps.Truth("truth"), ps.Categories("kind", (1, 2, 3, 4))))


def held(records: int, epsilon: float, numbers: int, cuts: int, runs: int, draws: int) -> Row:
    """Over releases: the share of points in their band, its half width, and how far points lie from those sought."""
    schema = ps.ClassSchema(2, statistics="NAB", clip_norm=1.0, transform=(cells_of(numbers, cuts),))
    table, y = made(records, numbers)
    parts = [
        ps.measure(schema, {name: each[k::PARTIES] for name, each in table.items()}, y[k::PARTIES])
        for k in range(PARTIES)
    ]
    exact = ps.Release.exact(schema, sum(parts[1:], parts[0]))
    sought = inf.scorecard(ps.heads.LDA().fit_release(exact), exact)
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema, cohort=ps.Cohort(PARTIES, PARTIES, 2 * records), privacy=privacy)
    inside, wide, off = [], [], []
    for seed in range(runs):
        release = ps.simulate(plan, parts, rng=randomness.seeded(seed))
        card = inf.scorecard(ps.heads.LDA().fit_release(release), release, draws=draws)
        for one, other in zip(card.columns, sought.columns, strict=True):
            filled = one.filled[one.intervals.of_codes]
            inside += ((one.low <= other.points) & (other.points <= one.high))[:, filled].ravel().tolist()
            wide += ((one.high - one.low) / 2)[:, filled].ravel().tolist()
            off += np.abs(one.points - other.points)[:, filled].ravel().tolist()
    what = {"records": records, "epsilon": epsilon, "columns": numbers + 2, "cuts": cuts, "runs": runs}
    return {**what, "held": float(np.mean(inside)), "half width": float(np.mean(wide)), "off": float(np.mean(off))}


def tables(chosen: argparse.Namespace) -> Tables:
    """Yield the tables by size."""
    sizes, runs, draws = (SIZES[:1], 2, 5) if chosen.quick else (SIZES, chosen.runs, 200)
    yield "points in their bands", [held(*size, runs, draws) for size in sizes]


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=30, help="releases per row")


if __name__ == "__main__":
    command("inference.card_bands", __doc__, tables, _options)
