"""Run the attacks under every defence, from no masking to local noise; digits, 30 records per class, 20 clients.

python -m benchmarks.attacks.defences --save
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace

from benchmarks.measuring import Row, Tables, command
from privstats import ClassSchema, Cohort, NoPrivacy, Plan, Privacy
from privstats.randomness import seeded
from threat_models.adversary import Adversary
from threat_models.attack import Attack, attacks_named
from threat_models.data import bundled
from threat_models.evaluate import Effort, evaluate
from threat_models.game import Game
from threat_models.world import Setting

DEFENDED = (
    "two-records",
    "span-leverage",
    "mean-ratio",
    "quadratic",
    "published-model",
    "differencing",
    "joined-label",
    "attribute-inference",
    "informed",
)
BARE = ("two-records", "span-leverage", "mean-ratio", "quadratic", "informed")
"""Attacks on sums of several records, which without masking are those of one client."""
CLIENTS, RECORDS = 20, 30


def tables(options: argparse.Namespace) -> Tables:
    """One row per defence."""
    trials = 8 if options.quick else 100
    yield "defences, digits, 30 records per class", list(defences(trials, options.quick))


def plans() -> Mapping[str, Plan]:
    """Plans that differ in their defence only."""
    schema = ClassSchema(10, 64, "NAS", clip_norm=64.0, nonnegative=True)
    cohort = Cohort(CLIENTS, 15, 5000, 2)
    bare = Plan(schema=schema, cohort=cohort, privacy=NoPrivacy())
    found = {"masking only": bare, "minimum count of 20 only": replace(bare, min_count=20)}
    for epsilon in (8.0, 1.0):
        for model in ("central", "distributed", "local"):
            privacy = Privacy(model=model, unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
            found[f"{model}, epsilon {epsilon:g}"] = Plan(schema=schema, cohort=cohort, privacy=privacy)
    return found


def defences(trials: int, quick: bool) -> Iterator[Row]:
    """No masking first: a server that sees every client's sums attacks those, of two records per class here."""
    every = plans()
    yield {"defence": "no masking", **no_masking(every["masking only"], trials), "violated": False}
    for name, plan in list(every.items())[: 1 if quick else None]:
        report = evaluate(plan, attacks_named(DEFENDED), bundled(plan, seeded(0))[0], Effort(trials=trials, seed=1))
        yield {"defence": name, **{row.attack: row.measured for row in report.rows}, "violated": report.violated}


def no_masking(plan: Plan, trials: int) -> dict[str, float | None]:
    """Attacks on one client's own sums where they are on sums; the others see what they see anyway."""
    pool, _ = bundled(plan, seeded(0))
    share = -(-RECORDS // CLIENTS)
    report = evaluate(plan, attacks_named(DEFENDED), pool, Effort(trials=trials, seed=1))
    found = {row.attack: row.measured for row in report.rows}
    for attack in attacks_named(BARE):
        if not isinstance(attack, Attack):
            raise TypeError(f"{attack.name} is no game")
        records = attack.records or share
        asked = records if attack.goal == "membership" else 0
        who = Adversary(sees="cohort", knows=attack.needs.knows)
        (row,) = Game(pool.of(plan), Setting(plan, records, asked), trials, seed=1).play([attack], who)
        found[attack.name] = row.measured
    return found


if __name__ == "__main__":
    command("attacks.defences", __doc__, tables)
