"""One-shot private learning from sufficient statistics."""

from privstats.errors import PrivstatsError
from privstats.schema import ClassSchema, RidgeSchema

__all__ = ["ClassSchema", "PrivstatsError", "RidgeSchema"]
__version__ = "0.1.0"
