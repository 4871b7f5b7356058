"""A package whose own start needs the library's heads, as many do."""

from nearest_centroid.head import NearestCentroid

__all__ = ["NearestCentroid"]
