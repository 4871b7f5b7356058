"""What is measured, and the bound every record obeys.

A schema is a frozen value: the statistics, their shapes, the clip norm, the grid and the public transform in front.
It is not data and not a plan; moments, layout and sensitivities are all derived from it.
"""

from privstats.schema.base import Schema
from privstats.schema.classes import CLASS_STATISTICS, ClassSchema
from privstats.schema.gradients import GRADIENT_STATISTICS, GradientSchema
from privstats.schema.kinds import KINDS, RecordSchema, bare, of_records, require_schema
from privstats.schema.ridge import RIDGE_STATISTICS, RidgeSchema
from privstats.statistic import COUNT_SCALE

__all__ = [
    "CLASS_STATISTICS",
    "COUNT_SCALE",
    "GRADIENT_STATISTICS",
    "KINDS",
    "RIDGE_STATISTICS",
    "ClassSchema",
    "GradientSchema",
    "RecordSchema",
    "RidgeSchema",
    "Schema",
    "bare",
    "of_records",
    "require_schema",
]
