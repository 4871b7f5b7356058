"""Refuse everything that is wrong with a call at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from privstats.errors import DataError, PrivstatsError


def all_at_once(*checks: Callable[[], Any]) -> list[Any]:
    """Return what each check returns; raise one error with the sentences of all that refuse.

    Raises:
        PrivstatsError: one check refuses, as it does alone.
        DataError: several do.

    Example:
        >>> from privstats.contrib.sweep.refusals import all_at_once
        >>> all_at_once(lambda: 3, lambda: 4)
        [3, 4]
    """
    results, refusals = [], []
    for check in checks:
        try:
            results.append(check())
        except PrivstatsError as refusal:
            refusals.append(refusal)
    if len(refusals) == 1:
        raise refusals[0]
    if refusals:
        raise DataError("; and: ".join(dict.fromkeys(map(str, refusals))))
    return results
