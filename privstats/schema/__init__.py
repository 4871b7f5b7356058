"""Schemas: what is measured, and the bound that every record obeys.

A schema is a frozen value: the statistics, their shapes, the clip norm, the grid and the public transform in front.
It holds no data; moments, layout and sensitivities are all derived from it.
"""

from privstats.schema.base import Schema
from privstats.schema.calibration import CalibrationSchema
from privstats.schema.classes import CLASS_STATISTICS, ClassSchema
from privstats.schema.counts import Bins, Categories, CountSchema, Variable
from privstats.schema.gaussians import LEDOIT_WOLF, GaussianSchema
from privstats.schema.gradients import GRADIENT_STATISTICS, GradientSchema
from privstats.schema.kinds import KINDS, USUAL, RecordSchema, bare, of_records, predicted, require_schema, row_of
from privstats.schema.mean import MeanSchema
from privstats.schema.party import PartySchema, PartyUpdateSchema
from privstats.schema.ridge import RIDGE_STATISTICS, RidgeSchema
from privstats.schema.score import Family, ScoreSchema
from privstats.schema.sites import SitesSchema
from privstats.schema.statistic import COUNT_SCALE
from privstats.schema.within import WithinSchema

__all__ = [
    "CLASS_STATISTICS",
    "COUNT_SCALE",
    "GRADIENT_STATISTICS",
    "KINDS",
    "LEDOIT_WOLF",
    "RIDGE_STATISTICS",
    "USUAL",
    "Bins",
    "CalibrationSchema",
    "Categories",
    "ClassSchema",
    "CountSchema",
    "Family",
    "GaussianSchema",
    "GradientSchema",
    "MeanSchema",
    "PartySchema",
    "PartyUpdateSchema",
    "RecordSchema",
    "RidgeSchema",
    "Schema",
    "ScoreSchema",
    "SitesSchema",
    "Variable",
    "WithinSchema",
    "bare",
    "of_records",
    "predicted",
    "require_schema",
    "row_of",
]
