"""Refusal of noisy sums that no honest cohort can have.

It reads noisy sums only, so an abort reveals no more than the release would. It cannot validate a client's input, which
is masked. It runs after the centre lift and before the minimum count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privstats.errors import AggregationError
from privstats.plan.plan import Plan
from privstats.schema import COUNT_SCALE

__all__ = ["check_plausible"]


def check_plausible(plan: Plan, vector: NDArray[np.int64]) -> None:
    """Refuse a lifted sum that no honest cohort can have.

    Args:
        plan: its headroom and record limits are the bounds.
        vector: the lifted sum *with all its noise*, int64, flat. Without the noise the check would be an oracle: a
            malicious client could move the sum to the bound, where one record of its victim decides.

    Guarantee:
        Post-processing of the noisy sum: refusing costs no privacy beyond the release that was charged. A cohort of at
        most ``max_records`` records is refused with probability below 2**-39: every entry stays within its bound except
        with ``WRAP_PROBABILITY`` over all entries, and the counts' sum adds the share of one entry more.

    Raises:
        AggregationError: ``too-many-records``: by its counts the cohort held more records than the plan admits.
            ``implausible``: an entry is larger than that of any honest sum with its noise.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> moments = ps.measure(schema, [[0.1, 0.2]] * 101, [0] * 101)
        >>> ps.plan.check_plausible(plan, ps.encoding.flatten(moments))
        Traceback (most recent call last):
            ...
        privstats.errors.AggregationError: aggregation aborted at step 'unmask' (too-many-records): the cohort holds
        more than cohort.max_records=100
    """
    _check_records(plan, vector)
    for room, place in zip(plan.headroom, plan.layout.slices, strict=True):
        if vector[place].max() > room.plausible or vector[place].min() < -room.plausible:
            raise AggregationError(
                plan.masking.steps[-1],
                "implausible",
                f"an entry of {room.segment.name} exceeds the bound of honest clients and noise; a client sent a false "
                "vector, or cohort.max_records is too small",
            )


def _check_records(plan: Plan, vector: NDArray[np.int64]) -> None:
    if plan.layout.segments[0].name != "N":
        return
    counts = vector[plan.layout.slices[0]]
    if int(counts.sum()) > plan.limits.refused_above * COUNT_SCALE:
        raise AggregationError(
            plan.masking.steps[-1],
            "too-many-records",
            f"the cohort holds more than cohort.max_records={plan.cohort.max_records}",
        )
