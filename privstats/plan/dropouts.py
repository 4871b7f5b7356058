"""What clients that vanish change in a promise, counted in clients.

The one table behind ``privstats plan check`` and ``privstats audit budget``; arithmetic on the noise and the cohort.
"""

from __future__ import annotations

from dataclasses import dataclass

from privstats.dp import Noise

__all__ = ["Dropout", "dropout_table"]

_TENTHS = (0, 1, 2, 3)


@dataclass(frozen=True)
class Dropout:
    """A session in which some clients vanish.

    Attributes:
        gone: clients that vanish.
        survivors: clients that stay.
        honest: of those, the ones whose noise an attacker neither knows nor can take off.
        epsilon: of the release, at the plan's delta, with all colluders' noise taken off; None where there is no
            release because too few clients stay.
    """

    gone: int
    survivors: int
    honest: int
    epsilon: float | None


def dropout_table(noise: Noise, *, clients: int, min_survivors: int, colluders: int) -> tuple[Dropout, ...]:
    """Nobody, 10, 20 and 30 % of the clients (rounded down), the most that may vanish, and one more.

    Counts are whole clients, increasing, and each stands there once; beyond the last one nothing is released either.
    """
    spare = clients - min_survivors
    counts = {tenth * clients // 10 for tenth in _TENTHS} | {spare}
    rows = []
    for gone in (*sorted(count for count in counts if count <= spare), spare + 1):
        survivors = clients - gone
        honest = survivors - colluders
        rows.append(Dropout(gone, survivors, honest, noise.released_epsilon(honest) if gone <= spare else None))
    return tuple(rows)
