"""Membership and attribute inference against synthetic rows, beside the promise of the course.

    python -m benchmarks.synthetic.attacks --save

Four columns of three values; the target is alone with its values, and the attacker knows every other record. In place
of the last column a code is hashed into 16 buckets: the attacker has a dictionary of six codes in different buckets,
among which is the target's.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

import privstats as ps
from benchmarks.measuring import Row, Tables, command
from privstats.contrib.synthetic.columns import Column, Hashed, coded, schema_of
from privstats.contrib.synthetic.course import Synthetic
from privstats.randomness import seeded
from threat_models.audits.synthetic_rows import Inference, inference, membership

__all__ = ["EPSILONS"]

EPSILONS = (1.0, 10.0)
_VALUES, _NAMES, _RECORDS, _CODES = ("a", "b", "c"), "wxyz", 100, 6
_LISTED = tuple(ps.Categories(name, _VALUES) for name in _NAMES)
_ICD = Hashed("icd", 16)
_HASHED: tuple[Column, ...] = (*_LISTED[:3], _ICD)


def _course(columns: Sequence[Column], epsilon: float) -> Synthetic:
    privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-6)
    return Synthetic.within(
        ps.Plan(schema=schema_of(columns), cohort=ps.Cohort(2, 2, 10_000), privacy=privacy),
    )


def _records(names: Sequence[str]) -> dict[str, list[str]]:
    rng = np.random.default_rng(0)
    return {name: list(rng.choice(_VALUES[:2], _RECORDS)) for name in names}


def _membership(epsilon: float, trials: int) -> list[Row]:
    target = dict.fromkeys(_NAMES, _VALUES[2])
    found = membership(_course(_LISTED, epsilon), _records(_NAMES), target, seeded(1), trials=trials)
    return [{"epsilon": epsilon, **vars(each), "worlds": trials} for each in found]


def _listed(epsilon: float, trials: int) -> Row:
    course, target = _course(_LISTED, epsilon), dict.fromkeys(_NAMES, _VALUES[2])
    found = inference(course, _records(_NAMES), target, _NAMES[-1], _VALUES, seeded(2), trials=trials)
    return _row(epsilon, "one of 3 listed values", found, trials)


def _hashed(epsilon: float, trials: int) -> Row:
    """Guess the target's code from a dictionary, of which no other record holds a code."""
    course, names = _course(_HASHED, epsilon), _NAMES[:3]
    codes = {place: code for code in map("I{}".format, range(200)) if (place := _ICD.bucket(code)) is not None}
    dictionary = [codes[bucket] for bucket in sorted(codes)[:_CODES]]
    common = [codes[bucket] for bucket in sorted(codes)[_CODES:]]
    texts = [str(each) for each in np.random.default_rng(1).choice(common, _RECORDS)]
    records = {name: list(values) for name, values in coded(_HASHED, {**_records(names), "icd": texts}).items()}
    target = dict.fromkeys(names, _VALUES[2])
    buckets = [_ICD.bucket(code) for code in dictionary]
    found = inference(course, records, target, "icd", buckets, seeded(3), trials=trials)
    return _row(epsilon, f"one of {_CODES} hashed codes", found, trials)


def _row(epsilon: float, hidden: str, found: Inference, trials: int) -> Row:
    rates = {"guessed": found.guessed, "baseline": found.baseline, "ceiling": found.ceiling}
    return {"epsilon": epsilon, "hidden": hidden, **rates, "worlds": trials}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=400)


def tables(chosen: argparse.Namespace) -> Tables:
    """One row for each epsilon and attack."""
    trials, epsilons = (20, EPSILONS[:1]) if chosen.quick else (chosen.trials, EPSILONS)
    yield "membership", [row for epsilon in epsilons for row in _membership(epsilon, trials)]
    yield "inference", [attack(epsilon, trials) for attack in (_listed, _hashed) for epsilon in epsilons]


if __name__ == "__main__":
    command("synthetic.attacks", __doc__, tables, _options)
