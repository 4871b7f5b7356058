"""The attacks that can detect a fault of the software, on a plan, in seconds, with those that exceed the promise.

For tests that plant faults, and for a quick check; ``evaluate`` has the numbers of a report.
"""

from __future__ import annotations

from dataclasses import replace

from privstats.plan import Plan
from threat_models.attack import attacks_named
from threat_models.chance import named
from threat_models.data import synthetic_pool
from threat_models.evaluate import Effort, evaluate

SHARP = ("informed", "repeated-releases", "differencing", "float-digits", "ring-wrap", "protocol-lies")
"""Attacks that land on their ceiling, or whose ceiling is that nothing ever comes out."""

_BEYOND = 3.0
_RECORDS = 3


def violations(plan: Plan, *, seed: int = 0, trials: int = 150, names: tuple[str, ...] = SHARP) -> tuple[str, ...]:
    """Names of the sharp attacks that report *violates ceiling*; none on sound software, at 95 % confidence in all.

    Records are made up and lie beyond the clip, so that every one of them is the worst that the promise must cover.

    Args:
        plan: the plan under attack; with a promise, else only ``protocol-lies`` has a ceiling.
        seed: reproduces every byte.
        trials: see ``Effort``; ``informed`` plays twice as many.
        names: which of :data:`SHARP`.
    """
    pool = synthetic_pool(plan, named(seed, "data"))
    worst = replace(pool, X=pool.X * _BEYOND, public_X=pool.public_X * _BEYOND)
    report = evaluate(plan, attacks_named(names), worst, Effort(trials=trials, records=_RECORDS, seed=seed))
    return tuple(dict.fromkeys(row.attack for row in report.rows if row.verdict == "violates ceiling"))
