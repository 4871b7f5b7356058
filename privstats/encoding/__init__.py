"""From moments to ring elements and wire bytes: flat vector, layout, ring."""

from privstats.encoding.client_clip import ClippedVector, clip_vector, weighted_square_norm
from privstats.encoding.flatten import flatten, to_real, unflatten
from privstats.encoding.layout import Layout, Segment, layout_of
from privstats.encoding.ring import Ring, RingVector

__all__ = [
    "ClippedVector",
    "Layout",
    "Ring",
    "RingVector",
    "Segment",
    "clip_vector",
    "flatten",
    "layout_of",
    "to_real",
    "unflatten",
    "weighted_square_norm",
]
