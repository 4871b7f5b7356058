"""The row of an examination that counts successes in independent worlds of its own.

``game`` does the same for attacks over records; the rules of judgement are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Guarantee
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
    blind: Rates | float,
    confidence: float,
    *,
    metric: str,
    who: Adversary | None = None,
    promised: bool = True,
    letter: str = "",
    **more: Any,
) -> Row:
    """Success rates of worlds held against those of the same attacker without the release.

    Args:
        rates: one share of successes for every world.
        blind: the same without the release; a float where that rate is known exactly.
        who: the adversary, where it is not the attack's own.
        letter: the one statistic that is looked at; all if empty.
        promised: whether the plan's promise is about what is asked: a fact of one record, not of many.
        more: further fields of the row.
    """
    who = who or attack.adversary(plan)
    guarantee = ceilings.guaranteed(plan, who, letter) if promised else None
    return compared_rates(attack, who, guarantee, rates, blind, confidence, metric=metric, **more)


def compared_rates(
    attack: Examination,
    who: Adversary,
    guarantee: Guarantee | None,
    rates: Rates,
    blind: Rates | float,
    confidence: float,
    **more: Any,
) -> Row:
    """Return the row of success rates against an attacker whose view has this guarantee; None without one.

    Args:
        rates, blind: as in :func:`rated`.
        more: further fields of the row.
    """
    interval = bounds.proportion(np.asarray(rates, np.float64), confidence)
    kappa = (blind, blind) if isinstance(blind, float) else bounds.proportion(np.asarray(blind, np.float64), confidence)
    ceiling = None if guarantee is None else ceilings.reconstruction(guarantee, kappa[1])
    fields: dict[str, Any] = {"adversary": who.describe(), **stated(guarantee), **more}
    return Row(
        attack=attack.name,
        number=attack.number,
        goal=attack.goal,
        sees=who.sees,
        measured=float(np.mean(rates)),
        interval=interval,
        baseline=float(np.mean(blind)),
        ceiling=ceiling,
        verdict=judge(interval, kappa, ceiling),
        worlds=len(rates),
        **fields,
    )


def error(estimate: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    """Relative error of a matrix: norm of the difference over norm of the truth."""
    return float(np.linalg.norm(estimate - truth) / max(float(np.linalg.norm(truth)), np.finfo(np.float64).tiny))
