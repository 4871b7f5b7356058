"""From moments to ring elements and wire bytes: layout, ring, packing."""

from privstats.encoding.layout import Layout, Segment, layout_of
from privstats.encoding.ring import Ring, RingVector

__all__ = ["Layout", "Ring", "RingVector", "Segment", "layout_of"]
