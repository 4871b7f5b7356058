"""The row of an examination that counts successes in independent worlds of its own.

``game`` does the same for attacks over records; the rules of judgement are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.plan import Plan
from threat_models import bounds, ceilings
from threat_models.adversary import Adversary
from threat_models.attack import Examination
from threat_models.report import Row, judge, stated

Rates = Sequence[float] | NDArray[np.float64]


def rated(
    attack: Examination,
    plan: Plan,
    rates: Rates,
    blind: Rates,
    confidence: float,
    *,
    metric: str,
    who: Adversary | None = None,
    promised: bool = True,
    **more: Any,
) -> Row:
    """Success rates of worlds held against those of the same attacker without the release.

    Args:
        rates, blind: one share of successes for every world, with the release and without.
        who: the adversary, where it is not the attack's own.
        promised: whether the plan's promise is about what is asked: a fact of one record, not of many.
        more: further fields of the row.
    """
    who = who or attack.adversary(plan)
    interval, kappa = (bounds.proportion(np.asarray(each, np.float64), confidence) for each in (rates, blind))
    guarantee = ceilings.guaranteed(plan, who) if promised else None
    ceiling = None if guarantee is None else ceilings.reconstruction(guarantee, kappa[1])
    return Row(
        attack=attack.name,
        number=attack.number,
        goal=attack.goal,
        adversary=who.describe(),
        sees=who.sees,
        metric=metric,
        measured=float(np.mean(rates)),
        interval=interval,
        baseline=float(np.mean(blind)),
        ceiling=ceiling,
        verdict=judge(interval, kappa, ceiling),
        worlds=len(rates),
        **stated(guarantee),
        **more,
    )


def error(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Relative error of a matrix: norm of the difference over norm of the truth."""
    return float(np.linalg.norm(found - truth) / max(float(np.linalg.norm(truth)), np.finfo(np.float64).tiny))
