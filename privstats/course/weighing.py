"""The central server's release under correlated noise: exact sums weighed in the ring, noise added there, then lifted.

A function of a seed and of every epoch's exact sum, so the same epoch gives the same release on every call, and the
same seed beside other sums gives other noise. The weights come from ``mechanisms``; an engine keeps seed and sums.

Kept noise is bound to the sum that it hides. A seed on the disk makes a release after a crash the same release; bound
to the epoch's number alone it made a copy of the folder a way to one party's exact sums. ``randomness.bound_to``
takes what the noise is for, under a label of its own per use and version. A second draw for another sum is refused
where the folder can see it, and never shares noise where it cannot.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from privstats.course.mechanisms import FIXED_BITS, coefficients
from privstats.course.stream import Stream
from privstats.encoding import RingVector
from privstats.errors import AggregationError, PlanError
from privstats.plan import Plan
from privstats.randomness import SEED_BYTES, bound_to
from privstats.release import Release, require_survivors
from privstats.schema import COUNT_SCALE
from privstats.session.noise import epoch_noise

__all__ = ["Summed", "said_by", "weighed_release"]

Summed: TypeAlias = tuple[RingVector, tuple[int, ...]]
"""The outcome of one epoch's session: the exact sum in the node plan's ring, and the clients in it."""

_LABEL = b"privstats/stream/noise/2"  # /1 was bound to the epoch's number and not to the sums


def weighed_release(
    stream: Stream,
    seed: bytes,
    sums: Sequence[Summed | None],
    *,
    reproducible: bool = False,
) -> Release:
    """The release of epoch ``len(sums) - 1``: sum_k c_k x_(t-k) + z_t, with x the epochs' sums.

    Args:
        stream: with mechanism ``"square-root"``.
        seed: 32 secret bytes, on the disk before the first epoch and the same in every epoch.
        sums: of every epoch so far; None for an epoch without one. The last must be there.
        reproducible: others may know the seed; the release is marked with it.

    Guarantee:
        Together the releases are mu-GDP with ``stream.mu``: they are rounded from E x + z, with E the Toeplitz matrix
        of whole numbers c_k and z Gaussian noise rounded to whole numbers, which is a post-processing of E x + Gaussian
        noise because E x is whole; one record moves E x by a column of E. Weighing and noise happen before the lift, so
        that no client can turn one record into a wrap. z is a function of the seed and of :func:`said_by` these sums:
        the same sums give the same release, any others give independent noise. That is a second draw, which this
        promise does not pay for: the keeper of the seed must weigh one list of sums per epoch only. Assumes that the
        server is honest and keeps seed and sums secret.

    Raises:
        PlanError: another mechanism, no sum for the last epoch, or more sums than epochs.
        ReleaseError: too few survivors.
        AggregationError: the noisy sums are of no honest cohort.
    """
    plan = stream.first
    if not stream.row.correlated or plan.noise is None:
        raise PlanError("only the square-root mechanism weighs sums; release a node of another one with session")
    if not 0 < len(sums) <= stream.epochs or sums[-1] is None or len(seed) != SEED_BYTES:
        raise PlanError("give the seed of 32 bytes and the sum of every epoch so far, the last of which must be there")
    _, survivors = sums[-1]
    require_survivors(plan, survivors)
    weights = coefficients(stream.epochs)
    whole = plan.ring.encode(_noise(plan, seed, sums))
    for back, summed in enumerate(reversed(sums)):
        if summed is not None:
            whole.add(_times(summed[0], weights[back]))
    lifted = whole.lift()
    _check(plan, lifted, sum(weights[: len(sums)]))
    half = 1 << (FIXED_BITS - 1)
    return Release(plan, (lifted + half) >> FIXED_BITS, survivors, reproducible=reproducible)


def said_by(sums: Sequence[Summed | None]) -> bytes:
    """SHA-256 of every sum and list of clients, in order: what the noise of the last epoch is bound to."""
    said = [summed and (summed[0].pack(), summed[1]) for summed in sums]
    return hashlib.sha256(msgspec.msgpack.encode(said)).digest()


def _noise(plan: Plan, seed: bytes, sums: Sequence[Summed | None]) -> NDArray[np.int64]:
    """z of the last epoch: in steps of 2**-FIXED_BITS of a grid step."""
    epoch = (len(sums) - 1).to_bytes(4, "big")
    rng = bound_to(seed, _LABEL, bytes.fromhex(plan.digest), epoch, said_by(sums))
    assert plan.noise is not None  # noqa: S101  the caller has refused it
    return epoch_noise(plan.noise, plan.layout, rng, FIXED_BITS)


def _times(vector: RingVector, weight: int) -> RingVector:
    """The vector times a whole number, modulo the ring."""
    return RingVector(vector.ring, tuple(lane * lane.dtype.type(weight) for lane in vector.lanes))


def _check(plan: Plan, lifted: NDArray[np.int64], weight: int) -> None:
    """As ``check_plausible`` for one sum, for a weighed one."""
    step = plan.masking.steps[-1]
    for room, place in zip(plan.headroom, plan.layout.slices, strict=True):
        if np.abs(lifted[place]).max() > weight * room.plausible:
            raise AggregationError(
                step, "implausible", f"an entry of {room.segment.name} is beyond what honest clients and noise can give"
            )
    counts = plan.layout.segments[0].name == "N"
    most = plan.limits.refused_above * COUNT_SCALE * weight
    if counts and int(lifted[plan.layout.slices[0]].sum()) > most:
        raise AggregationError(step, "too-many-records", "the cohort holds more than cohort.max_records")
