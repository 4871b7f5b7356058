"""Searches for the worst pair of records, until one has come as far as it must; in the night, all of them."""

from collections.abc import Callable

import pytest

UNTIL_FOUND = pytest.mark.parametrize("until_found", [True, pytest.param(False, marks=pytest.mark.nightly)])


def farthest(search: Callable[[int], float], enough: float, *, until_found: bool) -> float:
    """How far the searches of four seeds came at most; ``until_found`` leaves out those after one with ``enough``."""
    found = 0.0
    for seed in range(4):
        found = max(found, search(seed))
        if until_found and found >= enough:
            break
    return found
