"""Run cells again that missed more than 6.5 % in their tables: was it chance, or is it bias?

    python -m benchmarks.inference.repeated --save --runs 1000

A cell that is chosen because it missed most among many has had bad luck, so its own runs say too much. Here are other
records and other noise, a table for each cell. ``--more`` adds runs to those that are stored, so that a long
measurement can be made in parts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.inference import by_arm, hazards, late_entry, margins, standardised, stretched
from benchmarks.inference.coverings import Answer, Way, seed_of
from benchmarks.inference.runs import add_options, ends, others_of
from benchmarks.measuring import RESULTS, Row, Rows, Tables, command
from privstats.randomness import Generator, seeded

NAME = "inference.repeated"


@dataclass(frozen=True)
class Cell:
    """A cell of another table, and what it missed there.

    Attributes:
        title: of the cell here; it names the records and the noise, so none of them were in the first runs.
        parameters: the names of its parameters.
        way: makes the function that draws a world and reads it.
        first: the share of its first runs that missed, the worst parameter's, and the number of those runs.
    """

    title: str
    parameters: tuple[str, ...]
    way: Callable[[], Way]
    first: tuple[float, int]


def leaving(world: str, ratio: float, records: int, epsilon: float, width: int) -> Way:
    """Return the way of a trial whose arms leave at rates of their own."""
    trial, truth = hazards.leaving_trial(*hazards.LEAVING[world], ratio, records, epsilon, width), (ratio, hazards.AGE)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        found = trial(chance, rng)
        return Answer.of(found.params, found.conf_int(), np.array(truth))

    return answer


def at_the_end(records: int, epsilon: float) -> Way:
    """Return the way of the incidence of two causes in two arms at the last month."""
    way, months = by_arm.incidences(records, epsilon), len(by_arm.MONTHS)

    def answer(chance: np.random.Generator, rng: Generator) -> Answer:
        found = way(chance, rng)
        assert found.low is not None
        assert found.high is not None
        last = slice(months - 1, None, months)
        return Answer(found.estimate[last], found.low[last], found.high[last], found.truth[last])

    return answer


def _many_leave() -> Way:
    """Return the way of the first world of curves at the edge of their assumptions."""
    _, _, records, epsilon, makes = stretched.EDGES["survival curves"][0]
    return makes(records, epsilon)


_STEADY, _FALLING, _RISING, _ALIKE = hazards.LEAVING
_RATIOS = ("arm", "age")
CELLS = (
    Cell(
        "balance: 4,000 records, epsilon 1, spread 12, 3 years apart",
        ("age",),
        partial(by_arm.difference_of_ages, 4_000, 1.0, 12.0, 3.0),
        (0.068, 500),
    ),
    Cell(
        "incidence by cause at month 24: 5,000 records, epsilon 3",
        ("others, first cause", "others, second cause", "treated, first cause", "treated, second cause"),
        partial(at_the_end, 5_000, 3.0),
        (0.068, 500),
    ),
    Cell(
        "both measures: a measured outcome, 4,000 records, epsilon 3",
        by_arm.ARM_NUMBERS,
        partial(by_arm.both_measures, "measured", 12.0, 1.3, 4_000, 3.0),
        (0.068, 500),
    ),
    Cell(
        "hazard ratios: a third has the event, 20,000 records, epsilon 8",
        hazards.NAMES,
        partial(hazards.three_ratios, hazards.USUAL, 4, 20_000, 8.0),
        (0.075, 400),
    ),
    Cell(
        "hazard ratios: drop-out 5 % and 1 %, log ratio 0, 20,000 records, epsilon 8, 2 months a bin",
        _RATIOS,
        partial(leaving, _STEADY, 0.0, 20_000, 8.0, 2),
        (0.08, 400),
    ),
    Cell(
        "hazard ratios: drop-out 5 % and 1 %, log ratio .5, 20,000 records, epsilon 3, 6 months a bin",
        _RATIOS,
        partial(leaving, _STEADY, 0.5, 20_000, 3.0, 6),
        (0.075, 400),
    ),
    Cell(
        "hazard ratios: the same, Weibull .5",
        _RATIOS,
        partial(leaving, _FALLING, 0.5, 20_000, 3.0, 6),
        (0.075, 400),
    ),
    Cell(
        "hazard ratios: the same, Weibull 2",
        _RATIOS,
        partial(leaving, _RISING, 0.5, 20_000, 3.0, 6),
        (0.075, 400),
    ),
    Cell(
        "risks at a time: 5,000 records, epsilon 1",
        tuple(f"{what}, month {month}" for what in ("difference", "ratio") for month in by_arm.MONTHS),
        partial(by_arm.two_risks, *by_arm.RISKS[1]),
        (0.067, 1_000),
    ),
    Cell(
        "late entry: 4,000 records, epsilon 1",
        tuple(f"arm {arm}, month {at:g}" for arm in ("a", "b") for at in late_entry.AT),
        partial(late_entry.points, *late_entry.CELLS[0]),
        (0.066, 1_000),
    ),
    Cell(
        "survival curves: 20 % leave a month, bins of 6, 20,000 records, epsilon 8",
        ("month 6", "month 12", "month 24"),
        _many_leave,
        (0.066, 1_000),
    ),
    Cell(
        "ranges first: 10,000 records, epsilon 1",
        tuple(f"slope {place}" for place in range(1, 6)),
        partial(standardised.slopes, 10_000, 1.0, ranged=True),
        (0.068, 1_000),
    ),
    Cell(
        "restricted means: a tenth in the second arm, 4,000 records, epsilon 8",
        ("mean a", "mean b", "difference", "ratio"),
        partial(margins.mean_times, margins.WORLDS[9]),
        (0.067, 1_000),
    ),
    *(
        Cell(
            f"curves with many events a bin: {2 * hazard:g} a bin, 4,000 records, epsilon 3",
            tuple(f"month {2 * place}" for place in range(1, bins + 1)),
            partial(margins.many_events, hazard, 4_000, 3.0, bins),
            (0.066, 1_000),
        )
        for hazard, bins in ((0.15, 12), (0.3, 7))
    ),
)


def options(parser: argparse.ArgumentParser) -> None:
    """``--more`` beside those of every coverage."""
    add_options(parser)
    parser.add_argument("--more", action="store_true", help="add the runs to those that are stored")


def tables(chosen: argparse.Namespace) -> Tables:
    """A table for each cell, with a row for each parameter."""
    runs = 1 if chosen.quick else chosen.runs
    path = RESULTS / f"{NAME}.json"
    stored = json.loads(path.read_text()) if chosen.more and path.exists() else {}
    for cell in CELLS:
        if chosen.only in cell.title:
            yield cell.title, repeated(cell, runs, stored.get(cell.title, ()))


def repeated(cell: Cell, runs: int, before: Sequence[Row] = ()) -> Rows:
    """Run a cell on worlds that no table had, after those of the stored rows.

    Returns:
        For each parameter the number of runs, the share that is reported, the share whose interval misses with its 95 %
        range, and the share whose interval lies above the truth. Without bias half of the misses lie above.
    """
    start = before[0]["runs"] if before else 0
    way, names = cell.way(), ("reported", "missed", "above")
    counts = np.array([[row[name] * start for name in names] for row in before]) if before else np.zeros(())
    counts = np.rint(counts) + np.zeros((len(cell.parameters), len(names)))
    for run in range(start, start + runs):
        seed = seed_of(f"again {cell.title}", run)
        found = way(np.random.default_rng(seed), seeded(seed))
        assert found.low is not None
        assert found.high is not None
        above, below = found.low > found.truth, found.high < found.truth
        counts += np.stack([np.isfinite(found.high - found.low), above | below, above], axis=1)
    total = start + runs
    return [
        {
            "parameter": parameter,
            "first missed": cell.first[0],
            "first runs": cell.first[1],
            "runs": total,
            **{name: float(count / total) for name, count in zip(names, each, strict=True)},
            **ends(int(each[1]), total),
        }
        for parameter, each in zip(cell.parameters, counts, strict=True)
    ]


if __name__ == "__main__":
    command(NAME, __doc__, tables, options, others_of(NAME))
