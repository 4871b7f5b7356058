"""The climb of the audits that search: keep a move where it does not make the distance smaller.

No schema, no formula and no noise: what is moved and how far it is from what is the audits' own. Under them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["climb"]

T = TypeVar("T")


def climb(here: T, moved: Callable[[T], T], distance: Callable[[T], float], steps: int) -> tuple[float, T]:
    """The largest distance that was reached, and where.

    Args:
        here: where it starts.
        moved: a place near another; drawn at random.
        distance: what is made large.
        steps: moves that are tried.
    """
    best = distance(here)
    for _ in range(steps):
        there = moved(here)
        found = distance(there)
        if found >= best:
            best, here = found, there
    return best, here
