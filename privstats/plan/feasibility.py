"""Refusals of plans whose numbers fit together and that still should not be run.

A vector that no machine holds, and masking that fails more often than the promise can bear. Arithmetic on what the plan
has derived; called while it is built.
"""

from __future__ import annotations

import math

from privstats.dp import Noise
from privstats.encoding import Layout
from privstats.errors import PlanError
from privstats.secagg.masking import Masking

__all__ = ["MAX_VECTOR_BYTES", "check_masking", "check_size"]

MAX_VECTOR_BYTES = 1 << 32
"""Largest flat vector of 64-bit integers, in bytes: what one message of the protocol can carry."""

_PART_OF_DELTA = 0.01
_WITHOUT_DP = 2.0**-38  # three bounds of 2**-40 each fit


def check_size(layout: Layout) -> None:
    """Refuse a vector that no client could hold, mask and send.

    Raises:
        PlanError: naming the bytes, the bound and the largest segment.
    """
    size = 8 * layout.size
    if size <= MAX_VECTOR_BYTES:
        return
    largest = max(layout.segments, key=lambda segment: segment.size)
    raise PlanError(
        f"every client would hold a vector of {size:,} bytes and {MAX_VECTOR_BYTES:,} are the most: "
        f"{largest.name} alone has {largest.size:,} entries; {_remedy(largest.statistic)}"
    )


def _remedy(statistic: str) -> str:
    if statistic in "Ghq":
        return "lower features (project first), targets or folds"
    return "lower features (project first) or classes" + (", or leave out B and S" if statistic in "BS" else "")


def check_masking(masking: Masking, noise: Noise | None) -> None:
    """Refuse masking that fails with a probability that the promise cannot hide.

    Args:
        masking: whose ``failure`` bounds the probability that it shows more than the sum.
        noise: whose delta is the measure; without DP it is 2**-38.

    Raises:
        PlanError: it exceeds delta / 100.
    """
    failure = masking.failure
    most = _WITHOUT_DP if noise is None else noise.delta * _PART_OF_DELTA
    if failure <= most:
        return
    bound = "2^-38" if noise is None else f"delta / 100 = {most:.2g}"
    raiser = "" if noise is None else f"raise privacy.delta to at least {_rounded_up(failure / _PART_OF_DELTA):.2g}, "
    raise PlanError(
        f"masking may fail with probability {failure:.2g} and {bound} is the most: {raiser}{masking.remedy}"
    )


def _rounded_up(value: float) -> float:
    """To two significant digits, never below."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit
