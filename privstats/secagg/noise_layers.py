"""The seeds of a client's noise in layers, and how many of them it opens once it knows who is in the sum.

The seeds are a chain: a value gives the layers below it and none above, so one value opens any number of layers, and a
client that shows one has shown no more. What a layer is drawn from belongs to ``dp``; this room only keeps and opens
seeds. Pure functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from privstats.errors import PlanError
from privstats.secagg.keys import derive

__all__ = ["ROOT_BYTES", "Opening", "check_levels", "layer_seeds", "opened_layers", "opening"]

ROOT_BYTES = 32
_NEXT, _SEED = "noise-layers/next", "noise-layers/seed"


@dataclass(frozen=True, repr=False)
class Opening:
    """How far one client opened the layers of its noise.

    Attributes:
        left_for: the number of clients that what is left of its noise is sized for.
        seeds: of the layers to subtract, the lowest first.
    """

    left_for: int
    seeds: tuple[bytes, ...]


def check_levels(levels: Sequence[int], *, clients: int, min_survivors: int, complete: bool) -> None:
    """Refuse levels that no client could follow: they rise from ``min_survivors`` to ``clients``, on a complete graph.

    Raises:
        PlanError: one of these does not hold.
    """
    if not levels:
        return
    rises = all(one < other for one, other in pairwise(levels))
    if not rises or (levels[0], levels[-1]) != (min_survivors, clients) or len(levels) < 2:
        raise PlanError(
            f"levels of noise must rise from min_survivors={min_survivors} to clients={clients}, got {list(levels)}"
        )
    if not complete:
        raise PlanError(
            "excess noise is removed on a complete graph only, where every client sees whether all others take part: "
            f"take graph='complete' with at most 256 clients, or excess_noise='kept' ({clients} clients)"
        )


def opened_layers(levels: Sequence[int], proven: int) -> int:
    """How many layers are superfluous where ``proven`` clients are in the sum: all below the largest level up to it.

    Example:
        >>> from privstats.secagg.noise_layers import opened_layers
        >>> [opened_layers((12, 15, 20), proven) for proven in (12, 14, 15, 19, 20)]
        [0, 0, 1, 1, 2]
    """
    return max(0, bisect_right(levels, proven) - 1)


def opening(root: bytes | bytearray, layers: int, opened: int) -> bytes:
    """The value of the chain that gives the ``opened`` lowest of ``layers`` layers; ``root`` itself gives all.

    Each value follows from the one above by HKDF, so a value tells nothing of those above it.
    """
    value = bytes(root)
    for _ in range(layers - opened):
        value = derive(value, _NEXT)
    return value


def layer_seeds(value: bytes, opened: int) -> tuple[bytes, ...]:
    """The seeds of the ``opened`` lowest layers, the lowest first, from the value that opens them."""
    seeds = []
    for _ in range(opened):
        seeds.append(derive(value, _SEED))
        value = derive(value, _NEXT)
    return tuple(reversed(seeds))
