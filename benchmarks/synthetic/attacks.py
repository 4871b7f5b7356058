"""Membership and attribute inference against synthetic rows, beside the promise of the course.

    python -m benchmarks.synthetic.attacks --save

Four columns of three values; the target is alone with its values, and the attacker knows every other record.
"""

from __future__ import annotations

import argparse

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.synthetic.columns import schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.randomness import seeded
from threat_models.audits.synthetic_rows import inference, membership

__all__ = ["EPSILONS"]

EPSILONS = (1.0, 10.0)
_VALUES, _NAMES, _RECORDS = ("a", "b", "c"), "wxyz", 100


def _row(epsilon: float, trials: int) -> Row:
    columns = [ps.Categories(name, _VALUES) for name in _NAMES]
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    plan = ps.Plan(schema=schema_of(columns), cohort=ps.Cohort(2, 2, 10_000), privacy=privacy)
    course, rng = Synthetic.within(plan), np.random.default_rng(0)
    records = {name: list(rng.choice(_VALUES[:2], _RECORDS)) for name in _NAMES}
    target = dict.fromkeys(_NAMES, _VALUES[2])
    member = membership(course, records, target, seeded(1), trials=trials)
    guess = inference(course, records, target, _NAMES[-1], _VALUES, seeded(2), trials=trials)
    return {
        "epsilon": epsilon,
        "copies": member.copies,
        "claimed": member.claimed,
        "least": member.least,
        "auc": member.auc,
        "guessed": guess.guessed,
        "baseline": guess.baseline,
        "ceiling": guess.ceiling,
        "worlds": trials,
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=120)


def tables(chosen: argparse.Namespace) -> Tables:
    """One row for each epsilon."""
    trials = 20 if chosen.quick else chosen.trials
    yield "attacks", [_row(epsilon, trials) for epsilon in EPSILONS[: 1 if chosen.quick else None]]


if __name__ == "__main__":
    command("synthetic.attacks", __doc__, tables, _options)
