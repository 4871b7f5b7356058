"""How far one person counts under a promise.

The values themselves are in ``encoding``, the noise that they ask for in ``calibration``; the proof is in
docs/sensitivity.md, One person.
"""

from __future__ import annotations

from privstats.dp.client_clip import clip_weights
from privstats.dp.privacy import Privacy
from privstats.encoding import PersonAverage, PersonClip
from privstats.errors import PlanError
from privstats.schema import Schema

__all__ = ["person_clip"]


def person_clip(schema: Schema, privacy: Privacy) -> PersonAverage | PersonClip:
    """What bounds every person under a promise.

    Raises:
        PlanError: the promise is of another unit.

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
        raise PlanError(f"unit={privacy.unit!r} shortens no person: promise unit='person', with person_clip")
    return PersonClip(privacy.clip, tuple(clip_weights(schema, privacy).items()))
