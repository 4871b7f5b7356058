"""Success rates of a staged run's lies at unmasking the victim, as rows; every masking protocol promises 0.

``protocol`` and ``split`` report through it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from privstats.errors import LocalProtocolError, RemoteProtocolError
from threat_models.attack import Examination
from threat_models.attacks.staged import Value
from threat_models.bounds import clopper_pearson
from threat_models.report import Row, judge

_LEAST = 44


class Staged(Protocol):
    """A run that knows its victim's vector."""

    def got(self, vector: Value | None) -> bool:
        """Whether the attacker holds it."""
        ...


S = TypeVar("S", bound=Staged)
Lie = Callable[[S], Value | None]


def never(
    attack: Examination,
    lies: Mapping[str, Lie[S]],
    stage: Callable[[], S],
    trials: int,
    confidence: float,
    *,
    ceiling: float | None = 0.0,
    share: float = 1.0,
) -> tuple[Row, ...]:
    """Return one row per lie: its successes over the runs, against a ceiling of none; without one where none is
    promised.

    Args:
        share: the part of the usual number of runs that is played, where a run takes long.
    """
    runs, level = math.ceil(share * max(_LEAST, trials)), 1 - (1 - confidence) / len(lies)
    return tuple(
        _row(attack, name, sum(tried(lie, stage()) for _ in range(runs)), runs, level, ceiling)
        for name, lie in lies.items()
    )


def tried(lie: Lie[S], run: S) -> bool:
    """Whether a lie unmasks the victim; a machine that refuses ends it."""
    try:
        return run.got(lie(run))
    except (RemoteProtocolError, LocalProtocolError):
        return False


def _row(attack: Examination, lie: str, successes: int, runs: int, confidence: float, ceiling: float | None) -> Row:
    interval = clopper_pearson(successes, runs, confidence)
    return Row(
        attack=attack.name,
        number=attack.number,
        goal=attack.goal,
        adversary=f"{attack.needs.describe()}; lie: {lie}",
        sees=attack.needs.sees,
        metric=lie,
        measured=successes / runs,
        interval=interval,
        baseline=0.0,
        ceiling=ceiling,
        verdict=judge(interval, (0.0, 0.0), ceiling),
        worlds=runs,
    )
