"""Numbers of a membership attack: an area under the ROC, operating points and a verdict from scores.

Games and examinations score their trials by these rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp import Guarantee
from privstats.randomness import Generator
from threat_models import bounds
from threat_models.report import judge, stated

RATES = (0.01, 0.001)
"""False positive rates at which a membership attack is measured."""

_COIN = 0.5


@dataclass(frozen=True)
class Trials:
    """Scores of members and strangers, ``(worlds, each)``, with the release and without.

    Without the scores of the blind, the baseline is a coin: their attacker sees the same in both worlds.
    """

    inside: NDArray[np.float64]
    outside: NDArray[np.float64]
    blind_inside: NDArray[np.float64] | None = None
    blind_outside: NDArray[np.float64] | None = None


def compared(trials: Trials, promised: Guarantee | None, confidence: float, coin: Generator) -> dict[str, Any]:
    """Return the measured fields of a row: the AUC, its baseline and ceiling, operating points and the verdict.

    Args:
        promised: the guarantee against what the attacker sees; None without one.
        coin: decides ties.
    """
    level = 1 - (1 - confidence) / (1 + len(RATES))
    won = _won(trials.inside, trials.outside, coin)
    interval, ceiling = bounds.proportion(won, level), None if promised is None else promised.auc
    baseline, kappa = _COIN, (_COIN, _COIN)
    if trials.blind_inside is not None and trials.blind_outside is not None:
        blind = _won(trials.blind_inside, trials.blind_outside, coin)
        baseline, kappa = float(blind.mean()), bounds.proportion(blind, level)
    result = (bounds.operating_point(trials.inside, trials.outside, rate, level) for rate in RATES)
    points = tuple(point for point in result if point is not None)
    return {
        "measured": float(won.mean()),
        "interval": interval,
        "baseline": baseline,
        "ceiling": ceiling,
        "verdict": judge(interval, kappa, ceiling, points, promised),
        **stated(promised),
        "points": points,
        "roc": bounds.roc(trials.inside, trials.outside, confidence),
    }


def _won(inside: NDArray[np.float64], outside: NDArray[np.float64], coin: Generator) -> NDArray[np.float64]:
    """Return each world's share of pairs in which the member scores higher."""
    return np.array([bounds.wins(*pair, coin) for pair in zip(inside, outside, strict=True)])
