"""From moments to ring elements and wire bytes: layout, ring, packing."""

from privstats.encoding.flatten import flatten, to_real, unflatten
from privstats.encoding.layout import Layout, Segment, layout_of
from privstats.encoding.ring import Ring, RingVector

__all__ = ["Layout", "Ring", "RingVector", "Segment", "flatten", "layout_of", "to_real", "unflatten"]
