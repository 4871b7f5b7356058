"""Describe one aggregation's parties, and compute ring widths; an honest sum wraps with probability at most 2**-40."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privstats.encoding import Layout, Ring, Segment
from privstats.errors import AggregationError, PlanError
from privstats.plan import settings
from privstats.python_values import python_fields
from privstats.schema import COUNT_SCALE

if TYPE_CHECKING:
    from privstats.plan.plan import Plan

WRAP_PROBABILITY = 2.0**-40
"""Bound on the probability that noise makes any entry of the sum wrap."""
_MAX_BITS = 62


@dataclass(frozen=True)
class Cohort:
    """The parties of one aggregation.

    Args:
        clients: at least 2.
        min_survivors: minimum number of clients in an unmasked sum; with fewer the session aborts. Random
            graphs need more clients on the list of survivors (``plan.masking.min_listed``).
        max_records: maximum number of all clients' records; it determines the ring's width.
        colluders: maximum number of clients that, with the server, still learn no other client's vector; the guarantee
            of distributed noise does not count their shares.

    Example:
        >>> ps.Cohort(clients=12, min_survivors=10, max_records=50_000, colluders=2).colluders
        2
    """

    clients: int
    min_survivors: int
    max_records: int
    colluders: int = 0

    def __post_init__(self) -> None:
        python_fields(self)
        settings.check("cohort", self)


@dataclass(frozen=True)
class Limits:
    """Limits on the number of records in a released sum, for any division among clients.

    No honest sum holds more than ``every``. A sum with noisy counts above ``refused_above`` records is refused. Noise
    can lower counts as much as raise them, so an accepted sum holds at most ``admitted``, except with probability
    ``WRAP_PROBABILITY``. Without a statistic N all three are equal.
    """

    refused_above: int
    admitted: int
    every: int


@dataclass(frozen=True)
class Headroom:
    """The width of one segment, and its free room.

    Attributes:
        bits: ring width b; sums are in [-2**(b-1), 2**(b-1)).
        largest: largest absolute noisy sum, except with probability ``WRAP_PROBABILITY`` over all segments together.
        plausible: largest absolute value of a noisy sum that passes the count check, except with that probability.
    """

    segment: Segment
    bits: int
    largest: int
    plausible: int

    @property
    def factor(self) -> float:
        """Number of times that ``largest`` fits below the wrap: above 1."""
        return float(2 ** (self.bits - 1) / self.largest)


def limits(layout: Layout, cohort: Cohort, noise_std: Callable[[Segment], float]) -> Limits:
    """Return the record limits that follow from the cohort and the counts' noise."""
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
    """Choose every segment's width b, the smallest with 2**(b-1) > n M + ceil(z sigma) + 1, or > n M without noise.

    - M: ``segment.bound``.
    - n: the number of records in a released sum (:class:`Limits`); for the counts, all records that honest clients can
      hold, in any division.
    - sigma: ``noise_std``, the sub-Gaussian parameter, in wire steps, of all noise and rounding that can be in the sum.
      For Laplace noise it is the tail's equivalent (``Noise.tail_sigma``).
    - z: sqrt(2 ln(2 D / WRAP_PROBABILITY)) over D entries. A union bound then keeps the wrap probability below
      ``WRAP_PROBABILITY``.

    The ``+ 1`` is spare, and ``spare_bits`` are added.

    Raises:
        PlanError: a segment needs more than 62 bits.
    """
    return tuple(
        _width(segment, limits, tail_of(layout, noise_std(segment)), spare_bits) for segment in layout.segments
    )


def ring_of(rooms: Sequence[Headroom]) -> Ring:
    """Return the ring with these widths."""
    return Ring(tuple((room.segment.size, room.bits) for room in rooms))


def tail_of(layout: Layout, noise_std: float) -> float:
    """Return the value that any entry's noise exceeds with probability at most ``WRAP_PROBABILITY``."""
    return reach_of(layout) * noise_std


def reach_of(layout: Layout) -> float:
    """Return z such that noise in any entry exceeds z deviations with probability at most ``WRAP_PROBABILITY``."""
    return math.sqrt(2 * math.log(2 * layout.size / WRAP_PROBABILITY))


def _width(segment: Segment, limits: Limits, tail: float, spare_bits: int) -> Headroom:
    noise = math.ceil(tail) + 1 if tail else 0
    plausible = limits.admitted * segment.bound + noise
    largest = limits.every * segment.bound + noise if segment.name == "N" else plausible
    bits = 1 + largest.bit_length() + spare_bits
    if bits > _MAX_BITS and segment.name == "N":
        raise PlanError(
            f"cohort.max_records is too large: the counts would need {bits} ring bits, maximum {_MAX_BITS}; "
            "lower max_records"
        )
    if bits > _MAX_BITS:
        raise PlanError(
            f"schema.grid_bits is too fine: segment {segment.name} would need {bits} ring bits, maximum {_MAX_BITS}; "
            "lower grid_bits or cohort.max_records"
        )
    return Headroom(segment, bits, largest, plausible)


def check_plausible(plan: Plan, vector: NDArray[np.int64]) -> None:
    """Refuse a lifted sum that no honest cohort can have.

    Args:
        vector: the lifted sum *with all its noise*, int64, flat. Without the noise the check would be an oracle. A
            malicious client could move the sum to the bound, where one record of its victim decides.

    Guarantee:
        Post-processing of the noisy sum: refusing costs no privacy beyond the charged release. A cohort of at most
        ``max_records`` records is refused with probability below 2**-39. Some entry exceeds its bound with probability
        at most ``WRAP_PROBABILITY``, and the counts' sum fails no more often than one further entry. The check cannot
        validate a client's masked input.

    Raises:
        AggregationError: ``too-many-records`` or ``implausible``.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> plan = ps.Plan(schema=schema, cohort=ps.Cohort(2, 2, 100), privacy=ps.NoPrivacy())
        >>> moments = ps.measure(schema, [[0.1, 0.2]] * 101, [0] * 101)
        >>> ps.plan.check_plausible(plan, ps.encoding.flatten(moments))
        Traceback (most recent call last):
            ...
        privstats.errors.AggregationError: aggregation aborted at step 'unmask' (too-many-records): the cohort holds
        more than cohort.max_records=100; raise it in a new plan
    """
    _check_records(plan, vector)
    for room, entries in zip(plan.headroom, plan.layout.slices, strict=True):
        if vector[entries].max() > room.plausible or vector[entries].min() < -room.plausible:
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
            f"the cohort holds more than cohort.max_records={plan.cohort.max_records}; raise it in a new plan",
        )
