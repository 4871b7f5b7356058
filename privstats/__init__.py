"""One-shot private learning from sufficient statistics."""

from privstats.errors import PrivstatsError
from privstats.moments import ClassMoments, RidgeMoments, measure, quantize
from privstats.schema import ClassSchema, RidgeSchema

__all__ = ["ClassMoments", "ClassSchema", "PrivstatsError", "RidgeMoments", "RidgeSchema", "measure", "quantize"]
__version__ = "0.1.0"
