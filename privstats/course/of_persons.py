"""How a course that promises persons measures what is read of their rows before its first round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from privstats import dp
from privstats.dp import Privacy
from privstats.moments import Moments, exact_moments
from privstats.schema import Schema

__all__ = ["measured_by_person"]


def measured_by_person(privacy: Privacy, ids: Any) -> Callable[..., Moments]:
    """:func:`privstats.moments.exact_moments` of any schema, in which no person counts for more than under the promise.

    Args:
        privacy: of a plan that promises persons; its shares are left aside, for what is read may lack some statistics.
        ids: one for each row, ``(n,)``.
    """
    bounded = replace(privacy, shares=None)

    def measured(schema: Schema, X: Any, y: Any, **given: Any) -> Moments:
        return exact_moments(schema, X, y, persons=ids, person_clip=dp.person_clip(schema, bounded), **given)

    return measured
