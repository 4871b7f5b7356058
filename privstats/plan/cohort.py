"""The parties of one aggregation, and the ring widths at which no sum can wrap.

``Cohort`` gives the numbers of clients, survivors, colluders and records. The widths follow by pure arithmetic from the
layout, the record limit and the noise. The masking thresholds are ``secagg.Parameters``, the ring is in ``encoding``.

``check_plausible`` refuses noisy sums that no honest cohort can have. It reads noisy sums only, so an abort reveals no
more than the release would; it cannot validate a client's input, which is masked. It runs after the centre lift and
before the minimum count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import Layout, Ring, Segment
from privstats.errors import AggregationError, PlanError
from privstats.python_values import python_fields
from privstats.schema import COUNT_SCALE

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

__all__ = [
    "WRAP_PROBABILITY",
    "Cohort",
    "Headroom",
    "Limits",
    "check_plausible",
    "headroom",
    "limits",
    "reach_of",
    "ring_of",
    "tail_of",
]

WRAP_PROBABILITY = 2.0**-40
"""Bound on the probability that noise makes any entry of the sum wrap."""
_MAX_BITS = 62


@dataclass(frozen=True)
class Cohort:
    """The parties of one aggregation.

    Args:
        clients: parties in the roster, at least 2.
        min_survivors: fewest clients whose vectors may be unmasked; with fewer the session aborts without a sum.
        max_records: most records over all clients together; it determines the ring's width.
        colluders: clients that may work with the server without learning another client's vector; the guarantee of
            distributed noise does not count their shares.

    Raises:
        PlanError: naming the field, its bound and the remedy.

    Example:
        >>> cohort = ps.Cohort(clients=12, min_survivors=10, max_records=50_000, colluders=2)
        >>> ps.Cohort(clients=12, min_survivors=13, max_records=50_000)
        Traceback (most recent call last):
            ...
        privstats.errors.PlanError: cohort.min_survivors=13 exceeds cohort.clients=12; lower min_survivors
    """

    clients: int
    min_survivors: int
    max_records: int
    colluders: int = 0

    def __post_init__(self) -> None:
        python_fields(self)
        for field, least in (("clients", 2), ("min_survivors", 1), ("max_records", 1), ("colluders", 0)):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise PlanError(f"cohort.{field} must be a whole number, got {type(value).__name__}")
            if value < least:
                raise PlanError(f"cohort.{field} must be at least {least}, got {value}")
        if self.min_survivors > self.clients:
            raise PlanError(
                f"cohort.min_survivors={self.min_survivors} exceeds cohort.clients={self.clients}; lower min_survivors"
            )
        if self.colluders >= self.min_survivors:
            raise PlanError(
                f"cohort.colluders={self.colluders} must stay below cohort.min_survivors={self.min_survivors}, "
                "or no honest survivor is left to hide among; lower colluders or raise min_survivors"
            )


@dataclass(frozen=True)
class Limits:
    """How many records a released sum can hold, however the clients divide them.

    Every honest client holds at most ``max_records``, so no honest sum holds more than ``every``. Where counts are
    released, a sum with noisy counts above ``refused_above`` records is refused; noise can lower the counts by as much
    as it can raise them, so an accepted sum holds at most ``admitted``. Without counts no check is possible, and all
    three are equal.
    """

    refused_above: int
    admitted: int
    every: int


@dataclass(frozen=True)
class Headroom:
    """The width of one segment, and its free room.

    Attributes:
        segment: the layout segment.
        bits: ring width b; sums lie in [-2**(b-1), 2**(b-1)).
        largest: largest absolute value of the noisy sum, except with probability ``WRAP_PROBABILITY`` in all.
        plausible: the same for a sum that passes the count check; only for the counts it is below ``largest``.
    """

    segment: Segment
    bits: int
    largest: int
    plausible: int

    @property
    def factor(self) -> float:
        """How many times ``largest`` fits below the wrap: above 1."""
        return float(2 ** (self.bits - 1) / self.largest)


def limits(layout: Layout, cohort: Cohort, noise_std: Callable[[Segment], float]) -> Limits:
    """The record limits that follow from the cohort and from the noise on the counts."""
    every = cohort.clients * cohort.max_records
    counts = layout.segments[0]
    if counts.name != "N":
        return Limits(every, every, every)
    doubt = math.ceil(math.sqrt(counts.size) * (tail_of(layout, noise_std(counts)) + 1) / COUNT_SCALE)
    doubt = doubt if noise_std(counts) else 0
    return Limits(cohort.max_records + doubt, min(every, cohort.max_records + 2 * doubt), every)


def headroom(
    layout: Layout, limits: Limits, noise_std: Callable[[Segment], float], spare_bits: int = 0
) -> tuple[Headroom, ...]:
    """Choose every segment's width: the smallest b with 2**(b-1) > n M + z sigma + 1, in whole numbers.

    ``noise_std`` gives the standard deviation, in grid steps, of all noise that can be in the sum, or of Laplace noise
    what stands for it in the tail (``Noise.tail_sigma``). A discrete Gaussian is sub-Gaussian and a rounded one differs
    from a Gaussian by half a step (the ``+ 1``), so with z = sqrt(2 ln(2 D / WRAP_PROBABILITY)) over D entries a union
    bound keeps the wrap probability below ``WRAP_PROBABILITY``. n is the number of records in a released sum
    (:class:`Limits`): for the counts themselves all that honest clients can hold, so they never wrap and a cohort that
    holds too much is always refused. ``spare_bits`` are added, for a server that weighs the sums of several sessions
    before it adds noise.

    Raises:
        PlanError: a segment would need more than 62 bits.
    """
    return tuple(
        _width(segment, limits, tail_of(layout, noise_std(segment)), spare_bits) for segment in layout.segments
    )


def ring_of(rooms: Sequence[Headroom]) -> Ring:
    """The ring with these widths, segment by segment."""
    return Ring(tuple((room.segment.size, room.bits) for room in rooms))


def tail_of(layout: Layout, noise_std: float) -> float:
    """What noise of this standard deviation exceeds in any entry with ``WRAP_PROBABILITY`` at most."""
    return reach_of(layout) * noise_std


def reach_of(layout: Layout) -> float:
    """z at which noise in any entry exceeds z deviations with ``WRAP_PROBABILITY`` at most."""
    return math.sqrt(2 * math.log(2 * layout.size / WRAP_PROBABILITY))


def _width(segment: Segment, limits: Limits, tail: float, spare_bits: int) -> Headroom:
    noise = math.ceil(tail) + 1 if tail else 0
    plausible = limits.admitted * segment.bound + noise
    largest = limits.every * segment.bound + noise if segment.name == "N" else plausible
    bits = 1 + largest.bit_length() + spare_bits
    if bits > _MAX_BITS and segment.name == "N":
        raise PlanError(
            f"cohort.max_records is too large: the counts would need {bits} ring bits and {_MAX_BITS} are the most; "
            "lower max_records"
        )
    if bits > _MAX_BITS:
        raise PlanError(
            f"schema.grid_bits is too fine: segment {segment.name} would need {bits} ring bits and {_MAX_BITS} are the "
            "most; lower grid_bits or cohort.max_records"
        )
    return Headroom(segment, bits, largest, plausible)


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
