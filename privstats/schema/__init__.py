"""Schemas: what is measured, and the bound that every record obeys.

A schema is a frozen value: the statistics, their shapes, the clip norm, the grid and the public transform in front.
It holds no data; moments, layout and sensitivities are all derived from it.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.schema.base import Schema as Schema
    from privstats.schema.calibration import CalibrationSchema as CalibrationSchema
    from privstats.schema.classes import CLASS_STATISTICS as CLASS_STATISTICS
    from privstats.schema.classes import ClassSchema as ClassSchema
    from privstats.schema.counts import Bins as Bins
    from privstats.schema.counts import Categories as Categories
    from privstats.schema.counts import CountSchema as CountSchema
    from privstats.schema.counts import Variable as Variable
    from privstats.schema.effect import EffectSchema as EffectSchema
    from privstats.schema.effect import Estimand as Estimand
    from privstats.schema.gaussians import LEDOIT_WOLF as LEDOIT_WOLF
    from privstats.schema.gaussians import GaussianSchema as GaussianSchema
    from privstats.schema.gradients import GRADIENT_STATISTICS as GRADIENT_STATISTICS
    from privstats.schema.gradients import GradientSchema as GradientSchema
    from privstats.schema.hazard import HazardSchema as HazardSchema
    from privstats.schema.kinds import KINDS as KINDS
    from privstats.schema.kinds import USUAL as USUAL
    from privstats.schema.kinds import RecordSchema as RecordSchema
    from privstats.schema.kinds import bare as bare
    from privstats.schema.kinds import is_known as is_known
    from privstats.schema.kinds import narrowed as narrowed
    from privstats.schema.kinds import of_records as of_records
    from privstats.schema.kinds import predicted as predicted
    from privstats.schema.kinds import require_schema as require_schema
    from privstats.schema.kinds import row_of as row_of
    from privstats.schema.mean import MeanSchema as MeanSchema
    from privstats.schema.party import PartySchema as PartySchema
    from privstats.schema.party import PartyUpdateSchema as PartyUpdateSchema
    from privstats.schema.ridge import RIDGE_STATISTICS as RIDGE_STATISTICS
    from privstats.schema.ridge import RidgeSchema as RidgeSchema
    from privstats.schema.score import Family as Family
    from privstats.schema.score import ScoreSchema as ScoreSchema
    from privstats.schema.scoring import ScoringSchema as ScoringSchema
    from privstats.schema.sites import SitesSchema as SitesSchema
    from privstats.schema.statistic import COUNT_SCALE as COUNT_SCALE
    from privstats.schema.within import WithinSchema as WithinSchema
else:
    __getattr__, __dir__ = lazy_names(__name__)
