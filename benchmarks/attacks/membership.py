"""Measure membership inference: likelihood ratio, quadratic, span; the informed attacker on the ceiling; releases that
add up.

python -m benchmarks.attacks.membership --save
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.measuring import Row, Tables, command
from privstats import ClassSchema, Cohort, NoPrivacy, Plan, Privacy
from privstats.dp import Guarantee
from privstats.randomness import seeded
from threat_models.adversary import Adversary
from threat_models.attack import Attack, attacks_named
from threat_models.game import Game
from threat_models.world import Field, Pool, Setting

D = 64
SIZES = (10, 30, 60, 100, 300, 1000, 3000)
ASKED = {
    "mean-ratio": (0.96, 0.86, 0.77, 0.72, 0.63, 0.57, 0.54),
    "quadratic": (1.0, 1.0, 1.0, None, 0.95, None, 0.72),
    "span-leverage": (1.0, 1.0, 1.0, 1.0, 0.83, None, 0.53),
}
ASKED_TPR = {8.0: 0.248, 3.0: 0.051, 1.0: 0.020, 0.3: 0.011}
ASKED_RELEASES = {1: 0.021, 4: 0.037, 16: 0.099, 64: 0.44, 256: 0.98}


def tables(options: argparse.Namespace) -> Tables:
    """Without noise by size, then with noise by epsilon and by releases."""
    quick = options.quick
    yield "AUC by records per class, Gaussian records, d = 64", list(sizes((10, 100) if quick else SIZES, quick))
    yield "the informed attacker, d = 16, TPR at 1 %", list(informed(60 if quick else 6000, quick))
    counts = (1, 4) if quick else tuple(ASKED_RELEASES)
    yield "releases at epsilon 1, d = 16, TPR at 1 %", [releases(count, 60 if quick else 4000) for count in counts]


def sizes(counts: tuple[int, ...], quick: bool) -> Iterator[Row]:
    """Attacks 6 to 8 on one class of standard normal records, whitened by a public sample of 40,000."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000 if quick else 50_000, D)) / (math.sqrt(D) * 2)
    y = np.r_[np.zeros(len(X) - 4, int), np.ones(4, int)]
    schema = ClassSchema(2, D, "NAS", clip_norm=1.0, grid_bits=14)
    plan = Plan(schema=schema, cohort=Cohort(2, 2, 60_000), privacy=NoPrivacy())
    field = Pool.split(X, y, seeded(0), public=0.8).of(plan)
    for n in counts:
        row: dict[str, Any] = {"records": n, "records per dimension": n / D}
        theory = {"mean-ratio": math.sqrt(D / n), "quadratic": math.sqrt(D * (D + 1) / (2 * n))}
        for name, asked in ASKED.items():
            game = Game(field, Setting(plan, n, min(n, 50)), 4 if quick else 60, seed=1)
            (found,) = game.play([_attack(name)], Adversary())
            row |= {name: found.measured, f"{name} asked": asked[SIZES.index(n)]}
            if name in theory:
                row[f"{name} theory"] = Guarantee(theory[name]).auc
        yield row


def informed(trials: int, quick: bool) -> Iterator[Row]:
    """An attacker who knows all but one record, against central noise on N, A and B."""
    for epsilon, asked in list(ASKED_TPR.items())[: 1 if quick else None]:
        plan = _noisy("NAB", epsilon)
        (found,) = Game(_sphere(plan), Setting(plan, 3, 1), trials, seed=1).play([_attack("informed")], _informed())
        yield {"epsilon": epsilon, **_point(found), "asked": asked, "AUC": found.measured, "AUC ceiling": found.ceiling}


def releases(count: int, trials: int) -> Row:
    """Run the attacker with several releases of the same records."""
    plan = _noisy("NA", 1.0)
    who = _informed() if count == 1 else dataclasses.replace(_informed(), sees="releases", releases=count)
    game = Game(
        _sphere(plan), Setting(plan, 3, 1), max(60 if trials < 100 else 240, trials // max(1, count // 4)), seed=1
    )
    (found,) = game.play([_attack("repeated-releases")], who)
    return {"releases": count, **_point(found), "asked": ASKED_RELEASES[count], "AUC": found.measured}


def _attack(name: str) -> Attack:
    (found,) = attacks_named([name])
    if not isinstance(found, Attack):
        raise TypeError(f"{name} is no game")
    return found


def _informed() -> Adversary:
    return Adversary(knows="all-but-one")


def _noisy(statistics: str, epsilon: float) -> Plan:
    privacy = Privacy(model="central", unit="record", adjacency="add-remove", epsilon=epsilon, delta=1e-5)
    return Plan(schema=ClassSchema(2, 16, statistics, 1.0), cohort=Cohort(2, 2, 100), privacy=privacy)


def _sphere(plan: Plan) -> Field:
    """Records beyond the clip norm, which the clip puts on the sphere: the worst ones."""
    X = np.random.default_rng(0).standard_normal((40, 16))
    return Pool.split(X / np.linalg.norm(X, axis=1, keepdims=True) * 2, np.arange(40) % 2, seeded(0)).of(plan)


def _point(found: object) -> Row:
    """TPR at 1 %, its interval, and the ceiling at the false positive rate that was measured."""
    points, mu = found.points, found.mu  # type: ignore[attr-defined]
    if not points:
        return {"TPR": None, "FPR": None, "TPR low": None, "TPR high": None, "ceiling": Guarantee(mu).tpr(0.01)}
    point = points[0]
    low, high = point.tpr_interval
    return {"TPR": point.tpr, "FPR": point.fpr, "TPR low": low, "TPR high": high, "ceiling": Guarantee(mu).tpr(0.01)}


if __name__ == "__main__":
    command("attacks.membership", __doc__, tables)
