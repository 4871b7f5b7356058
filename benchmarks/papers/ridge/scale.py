"""How much of the paper is run: all of it for the committed results, fewer rows and seeds for a quick look."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "PAPER", "QUICK", "TRIALS", "Scale"]

PAPER = "One-shot ridge"
TRIALS = 5  # of which every published number is the mean


@dataclass(frozen=True)
class Scale:
    """Rows and seeds.

    Attributes:
        seeds: data sets, noises and all.
        wide_seeds: at a thousand features.
        gammas: rows of Table III.
        dimensions: rows of Table IV.
        epsilons: rows of Table V.
        cohorts: rows of Table VI.
        widths: rows of Table VII; the last is without projection.
        rounds: at which convergence is looked at.
        wide_rounds: of FedAvg at a thousand features; 0 leaves it out.
        timed: repeats of what is timed; 0 times nothing.
    """

    seeds: tuple[int, ...]
    wide_seeds: tuple[int, ...]
    gammas: tuple[float, ...]
    dimensions: tuple[int, ...]
    epsilons: tuple[float, ...]
    cohorts: tuple[int, ...]
    widths: tuple[int, ...]
    rounds: tuple[int, ...]
    wide_rounds: int
    timed: int


FULL = Scale(
    seeds=(0, 1, 2, 3, 4),
    wide_seeds=(0, 1, 2),
    gammas=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    dimensions=(50, 100, 200, 400),
    epsilons=(0.1, 0.5, 1.0, 2.0, 5.0, 10.0),
    cohorts=(10, 20, 50, 100, 200, 500),
    widths=(50, 100, 200, 400, 600, 800, 1000),
    rounds=(1, 10, 25, 50, 100, 200, 300),
    wide_rounds=200,
    timed=3,
)
QUICK = Scale(
    seeds=(0, 1),
    wide_seeds=(0,),
    gammas=(1.0,),
    dimensions=(50,),
    epsilons=(1.0,),
    cohorts=(10,),
    widths=(50,),
    rounds=(1, 50),
    wide_rounds=0,
    timed=0,
)
