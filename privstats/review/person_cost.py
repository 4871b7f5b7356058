"""Bound the cost of clipping or averaging persons, from a plan alone, before any record is read."""

from __future__ import annotations

import math

from privstats.plan.plan import Plan

_SHORT = 0.1
"""Seconds below which a plan's cost needs no number."""


def clipped_entries(plan: Plan) -> int:
    """Return the maximum number of entries that are clipped or averaged one by one, over all parties together.

    A person with at most c rows is added as records, c = ``plan.person_clip.records``. A person with r > c rows has one
    sum for each block that its rows are in, so at most ``min(r, blocks)`` sums, and counts as ``min(r, m)`` of
    ``max_records``, where m = ``most_records``. The ratio of the two is largest at the smallest r, or at r = blocks.
    The bound depends on public values alone; 0 without persons.
    """
    clip = plan.person_clip
    if clip is None:
        return 0
    fewest, most = math.floor(clip.records) + 1, clip.most_records(plan.schema)
    records = plan.cohort.max_records
    return sum(
        row.entries(plan.schema.sizes) * _sums(records, row.blocks(plan.schema.sizes), fewest, most)
        for row in plan.schema.sent
    )


def _sums(records: int, blocks: int, fewest: int, most: int) -> int:
    return max(records * min(rows, blocks) // min(rows, most) for rows in (fewest, max(fewest, blocks)))


def person_sentences(plan: Plan) -> list[str]:
    """Explain the bound in entries and in seconds of this machine; nothing without persons."""
    entries = clipped_entries(plan)
    if not entries:
        return []
    from privstats.moments.person_sums import seconds_per_entry  # late: the check of other plans loads no sums

    seconds = entries * seconds_per_entry()
    took = f"under {_SHORT:g} s" if seconds < _SHORT else f"about {seconds:.2g} s"
    return [
        f"persons with several rows: at most {entries:,} entries are clipped one by one over all parties, which takes "
        f"{took} of one core here, in addition to the sums of records"
    ]
