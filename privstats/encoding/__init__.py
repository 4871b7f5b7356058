"""Encode moments as ring elements and wire bytes: flat vector, layout, ring."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.encoding.client_clip import ClippedVector as ClippedVector
    from privstats.encoding.client_clip import clip_vector as clip_vector
    from privstats.encoding.client_clip import weighted_square_norm as weighted_square_norm
    from privstats.encoding.layout import Layout as Layout
    from privstats.encoding.layout import Segment as Segment
    from privstats.encoding.layout import flatten as flatten
    from privstats.encoding.layout import layout_of as layout_of
    from privstats.encoding.layout import to_real as to_real
    from privstats.encoding.layout import unflatten as unflatten
    from privstats.encoding.persons import PersonAverage as PersonAverage
    from privstats.encoding.persons import PersonClip as PersonClip
    from privstats.encoding.ring import Ring as Ring
    from privstats.encoding.ring import RingVector as RingVector
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.encoding.client_clip": ["ClippedVector", "clip_vector", "weighted_square_norm"],
            "privstats.encoding.layout": ["Layout", "Segment", "flatten", "layout_of", "to_real", "unflatten"],
            "privstats.encoding.persons": ["PersonAverage", "PersonClip"],
            "privstats.encoding.ring": ["Ring", "RingVector"],
        },
    )
