"""Clipping one client's whole vector, for promises per client.

Bounding a client by its number of records prices the worst client; clipping the vector prices the chosen norm and
shrinks the few clients beyond it. In the way of the data: at the client, after the layout and before its noise share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from privstats.dp.allocation import checked_shares
from privstats.dp.privacy import Privacy
from privstats.dp.sensitivity import grid_sensitivity
from privstats.encoding import Segment, layout_of
from privstats.errors import DataError
from privstats.schema import Schema

__all__ = ["client_norm", "clip_client"]

_ROUNDING = 1 - 2.0**-40


def client_norm(schema: Schema, privacy: Privacy, vector: NDArray[np.int64]) -> float:
    """The norm in which ``client_clip`` is measured: sqrt(sum_s share_s ||v_s||^2 / Delta_s^2), in records.

    Delta_s is the add-remove sensitivity of the statistic to one record, so one record has norm at most 1 and n records
    at most n, but n records that cancel or differ have less. Symmetric blocks count with the Frobenius norm.
    """
    layout = layout_of(schema)
    shares = checked_shares(schema, privacy.shares)
    parts = zip(layout.segments, layout.slices, strict=True)
    return math.sqrt(math.fsum(_square(schema, shares, segment, vector[place]) for segment, place in parts))


def clip_client(schema: Schema, privacy: Privacy, vector: NDArray[np.int64]) -> NDArray[np.int64]:
    """Shrink a client's flat vector to norm ``privacy.client_clip``; unchanged where it is shorter or None is set.

    Entries are scaled by one factor and cut toward zero, so the bound holds in integers.

    Guarantee:
        Unit: one client, add-remove. Noise calibrated with this ``client_clip`` makes the release (epsilon, delta)-DP
        whatever the client holds. Assumes that the client applies the clip; nobody else could check.

    Raises:
        DataError: the vector does not have the layout's shape.
    """
    if vector.shape != (layout_of(schema).size,):
        raise DataError(
            f"a client vector has shape ({layout_of(schema).size},), got {vector.shape}; use encoding.flatten"
        )
    if privacy.client_clip is None:
        return vector
    norm = client_norm(schema, privacy, vector)
    if norm <= privacy.client_clip:
        return vector
    shrunk: NDArray[np.int64] = np.trunc(vector * (privacy.client_clip / norm * _ROUNDING)).astype(np.int64)
    return shrunk


def _square(schema: Schema, shares: Mapping[str, float], segment: Segment, values: NDArray[np.int64]) -> float:
    scaled = values / (grid_sensitivity(schema, segment.statistic, "add-remove") * segment.noise_factor)
    return shares[segment.statistic] * float(scaled @ scaled)
