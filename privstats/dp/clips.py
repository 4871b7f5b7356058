"""Clip a client's or a person's total contribution, in the norm defined by the budget's shares.

``encoding`` does the exact arithmetic before the noise. Proof: docs/proofs/persons.md, One person.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privstats.dp.privacy import Privacy
from privstats.dp.sensitivities import checked_shares, sensitivity
from privstats.encoding import PersonAverage, PersonClip, clip_vector, weighted_square_norm
from privstats.encoding.client_clip import ROUNDING
from privstats.errors import PlanError
from privstats.schema import Schema


def client_norm(schema: Schema, privacy: Privacy, vector: NDArray[np.int64]) -> float:
    """Return a vector's norm in worst-case records: sqrt(sum_s share_s ||v_s||^2 / Delta_s^2).

    Delta_s is the add-remove sensitivity to one record, so n records have norm at most n; records that cancel or differ
    have less. Symmetric blocks count with the Frobenius norm.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> promise = {"unit": "client", "max_records_per_client": 9, "client_clip": 2.0, "epsilon": 1.0, "delta": 1e-5}
        >>> privacy = ps.Privacy(model="central", adjacency="add-remove", **promise)
        >>> vector = ps.encoding.flatten(ps.measure(schema, np.array([[0.6, 0.8], [-0.6, -0.8]]), np.array([0, 0])))
        >>> round(ps.dp.client_norm(schema, privacy, vector), 2)  # two records whose directions cancel
        0.28
    """
    return math.sqrt(weighted_square_norm(schema, vector, clip_weights(schema, privacy)))


def clip_client(schema: Schema, privacy: Privacy, vector: NDArray[np.int64]) -> NDArray[np.int64]:
    """Clip a client's flat vector to norm ``privacy.client_clip``, if one is set.

    Entries are scaled by one factor and truncated toward zero, so the bound holds in integers.

    Guarantee:
        Unit: one client, add-remove. Noise calibrated with this ``client_clip`` makes the release (epsilon, delta)-DP
        whatever the client holds. Assumes that the client applies the clip; no other party can check it.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> promise = {"unit": "client", "max_records_per_client": 9, "client_clip": 2.0, "epsilon": 1.0, "delta": 1e-5}
        >>> privacy = ps.Privacy(model="central", adjacency="add-remove", **promise)
        >>> vector = ps.encoding.flatten(ps.measure(schema, np.array([[0.6, 0.8]] * 8), np.zeros(8, int)))
        >>> shrunk = ps.dp.clip_client(schema, privacy, vector)
        >>> [round(ps.dp.client_norm(schema, privacy, each), 2) for each in (vector, shrunk)]
        [8.0, 2.0]
    """
    if privacy.client_clip is None:
        return vector
    return clip_vector(schema, vector, clip_weights(schema, privacy), privacy.client_clip * ROUNDING).vector


def clip_weights(schema: Schema, privacy: Privacy) -> dict[str, float]:
    """Return share / sensitivity^2 by letter: one record then has a norm of at most 1."""
    shares = checked_shares(schema, privacy.shares)
    return {s: share / sensitivity(schema, s, "add-remove") ** 2 for s, share in shares.items()}


def person_clip(schema: Schema, privacy: Privacy) -> PersonAverage | PersonClip:
    """Return the rule that bounds every person under a promise.

    Example:
        >>> schema, k = ps.ClassSchema(2, 2, "NA", clip_norm=2.0), {"max_records_per_person": 4, "person_clip": 3}
        >>> privacy = ps.Privacy(model="central", unit="person", adjacency="add-remove", epsilon=1.0, delta=1e-5, **k)
        >>> clip = ps.dp.person_clip(schema, privacy)
        >>> clip.records, clip.weights  # N has 2 % of mu^2 and moves by 1, A the rest and moves by 2
        (3.0, (('N', 0.02), ('A', 0.245)))
    """
    if privacy.averaged:
        return PersonAverage()
    if privacy.unit != "person" or privacy.clip is None:
        raise PlanError(f"with unit={privacy.unit!r} no person is clipped: give unit='person' and person_clip")
    return PersonClip(privacy.clip, tuple(clip_weights(schema, privacy).items()))
