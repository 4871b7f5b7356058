"""Excess noise in layers: a client's share as a sum of draws, of which those that are not needed can be taken back.

A share is sized for the fewest survivors that a plan admits, and every further survivor adds one that is as wide. Here
it is the share for *all* clients, whose seed nobody learns, and one layer for each level in between, drawn from a seed
of its own. After the session each client opens the seeds of the layers that the true number of survivors makes
superfluous, and the server subtracts them. docs/theorems.md, 6, has the statement and the proof; the idea is that of
XNoise (Jiang, Wang and Chen, Dordis, EuroSys 2024). Arithmetic only; ``mechanisms`` draws.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

__all__ = ["layer_sigmas", "level_at", "levels_of"]

_BITS = 24  # of a layer's sigma: two machines whose roots differ in the last digits draw the same layers


def levels_of(clients: int, min_survivors: int, colluders: int) -> tuple[int, ...]:
    """The numbers of clients that a share can be left sized for, from ``min_survivors`` to ``clients``.

    Of few clients every number is one. Of many each has a tenth more honest ones than the one below it, and the second
    lowest up to 15 %: so much more variance than it needs does a sum carry between two levels, and no layer is narrow.

    Example:
        >>> from privstats.dp.noise_layers import levels_of
        >>> levels_of(20, 16, 2), levels_of(100, 60, 10)
        ((16, 17, 18, 19, 20), (60, 63, 68, 73, 79, 85, 92, 100))
    """
    least, honest = min_survivors - colluders, [clients - colluders]
    while honest[-1] > least:
        honest.append(_below(honest[-1], least))
    return tuple(count + colluders for count in reversed(honest))


def _below(honest: int, least: int) -> int:
    """The next level: ten elevenths, rounded up; the lowest where that is at most 15 % away; of few one less."""
    next_one = min(honest - 1, -(-10 * honest // 11))
    near = next_one < honest - 1 and 100 * honest <= 115 * least
    return least if near else max(least, next_one)


def level_at(levels: Sequence[int], clients: int) -> int:
    """The level at which a share is left where ``clients`` are in the sum; the lowest where they are fewer."""
    return levels[max(0, bisect_right(levels, clients) - 1)]


def layer_sigmas(variance: float, honest: Sequence[int]) -> tuple[float, ...]:
    """The base's sigma, then every layer's, the lowest first; together they are a share for the fewest clients.

    Args:
        variance: of the noise that all honest shares of a sum carry together.
        honest: by level, how many honest shares there are; rising.

    Guarantee:
        Without its j lowest layers a share has a variance of at least ``variance / honest[j]``, because a layer's sigma
        is rounded down and the base makes up for it.
    """
    layers = tuple(
        _rounded_down(math.sqrt(variance * (more - fewer) / (fewer * more))) for fewer, more in pairwise(honest)
    )
    return math.sqrt(variance / honest[0] - math.fsum(sigma * sigma for sigma in layers)), *layers


def _rounded_down(sigma: float) -> float:
    part, exponent = math.frexp(sigma)
    return math.ldexp(math.floor(math.ldexp(part, _BITS)), exponent - _BITS)
