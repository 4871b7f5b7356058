"""Name the heads that a session's or a course's releases support, from their schemas alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privstats.heads.registry.entries import HEADS, able

if TYPE_CHECKING:
    from privstats.schema import Schema

_ROUND = "gradients"
_BEHIND = (_ROUND, "calibration", "party-update")
"""Tasks of sessions behind the sums of a head."""


def suited(schemas: Sequence[Schema]) -> tuple[str, ...]:
    """Return the heads that the sums of these sessions, in order, can build; the usual one first.

    Rounds of refinement have a head of their own. Sums without rounds have the heads of one release.

    Example:
        >>> from privstats.heads.registry.of_releases import suited
        >>> suited([ps.RidgeSchema(2, clip_norm=1.0, target_bound=1.0)])
        ('Ridge',)
    """
    predicting = [each for each in schemas if each.predicts is not None]
    if not predicting or (schemas[-1].predicts is None and schemas[-1].task not in _BEHIND):
        return ()
    task, after_rounds = predicting[-1].predicts, any(each.task == _ROUND for each in schemas)
    built = able("".join(row.letter for row in predicting[-1].sent)) if task == "classes" else tuple(HEADS)
    rows = ((name, HEADS[name]) for name in HEADS if after_rounds or name in built)
    return tuple(name for name, entry in rows if entry.task == task and entry.after_rounds == after_rounds)
