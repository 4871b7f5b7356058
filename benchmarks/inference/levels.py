"""Measure how often intervals cover where a declared level, stratum or cell has few records, or none.

    python -m benchmarks.inference.levels --save

The arm's interval in every world, next to that of the same persons without the level, read by a plan that does not
declare it. Few persons are all treated, with outcomes unlike the others'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.inference.coverings import Answer, tallied
from benchmarks.inference.runs import add_options, others_of
from benchmarks.measuring import Row, Tables, command
from privstats.randomness import Generator
from tests.inference.level_worlds import ARM, EFFECT, MEASURED, TABLES, World

__all__ = ["tables"]

NAME = "inference.levels"
_WITHOUT = "not declared"
_WORLDS: dict[str, World] = {
    _WITHOUT: World(0, 0),
    "nobody": World(0, 0),
    "3 persons": World(3, 0),
    "30 persons": World(30, 0),
    "400 persons without an event": World(400, 0, events=False),
    "2,000 persons until month 6": World(2_000, 0, until=6),
}
_FEW, _HIDDEN = ("nobody", "3 persons", "30 persons"), ("nobody", "30 persons")
_CELLS: dict[str, dict[float, tuple[str, ...]]] = {
    "logit": {8.0: (*_FEW, "400 persons without an event"), 1.0: _HIDDEN},
    "logit, two columns alike": {8.0: (*_HIDDEN, "400 persons without an event")},
    "logit of cells": {1.0: _HIDDEN},
    "poisson": {8.0: _HIDDEN},
    "hazards": {8.0: (*_HIDDEN, "400 persons without an event")},
    "hazards by stratum": {
        8.0: (*_HIDDEN, "400 persons without an event", "2,000 persons until month 6"),
        1.0: ("nobody",),
    },
    "ols of cells": {8.0: _HIDDEN, 1.0: _HIDDEN},
    "effect, not randomised": {8.0: _FEW, 1.0: _HIDDEN},
    "effect, missing outcomes": {8.0: _HIDDEN},
}


def tables(options: argparse.Namespace) -> Tables:
    """A table for each reader: at each epsilon the plan that does not declare the level, then each world."""
    runs = 2 if options.quick else options.runs
    for name, cells in _CELLS.items():
        if options.only not in name:
            continue
        chosen = {8.0: ("nobody",)} if options.quick else cells
        yield (
            name,
            [_row(name, level, epsilon, runs) for epsilon, levels in chosen.items() for level in (_WITHOUT, *levels)],
        )


def _row(name: str, level: str, epsilon: float, runs: int) -> Row:
    cell = f"{name} {level} {epsilon:g}"
    return {"level": level, "epsilon": epsilon, **tallied(cell, _way(name, level, epsilon), runs)}


def _way(name: str, level: str, epsilon: float) -> Callable[[np.random.Generator, Generator], Answer]:
    truth = np.array([EFFECT if name in MEASURED else ARM])

    # The world draws its noise from its own seed.
    def answer(chance: np.random.Generator, _: Generator) -> Answer:
        world = replace(_WORLDS[level], seed=int(chance.integers(2**32)))
        table = TABLES[name](world, "undeclared" if level == _WITHOUT else "last", epsilon)
        place = table.names.index("arm")
        ends = table.conf_int()[place : place + 1]
        return Answer.of(ends.mean(axis=1), ends, truth)

    return answer


if __name__ == "__main__":
    command(NAME, __doc__, tables, add_options, others_of(NAME))
