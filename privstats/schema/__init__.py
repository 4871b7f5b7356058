"""Define what is measured, and the bound that every record obeys."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.kinds.calibration import CalibrationSchema as CalibrationSchema
    from privstats.kinds.classes import CLASS_STATISTICS as CLASS_STATISTICS
    from privstats.kinds.classes import ClassSchema as ClassSchema
    from privstats.kinds.counts import CountSchema as CountSchema
    from privstats.kinds.effect.schema import EffectSchema as EffectSchema
    from privstats.kinds.effect.schema import Estimand as Estimand
    from privstats.kinds.gaussians import LEDOIT_WOLF as LEDOIT_WOLF
    from privstats.kinds.gaussians import GaussianSchema as GaussianSchema
    from privstats.kinds.gradients import GRADIENT_STATISTICS as GRADIENT_STATISTICS
    from privstats.kinds.gradients import GradientSchema as GradientSchema
    from privstats.kinds.hazard import HazardSchema as HazardSchema
    from privstats.kinds.mean import MeanSchema as MeanSchema
    from privstats.kinds.numbers import Number as Number
    from privstats.kinds.party import PartySchema as PartySchema
    from privstats.kinds.party import PartyUpdateSchema as PartyUpdateSchema
    from privstats.kinds.ridge import RIDGE_STATISTICS as RIDGE_STATISTICS
    from privstats.kinds.ridge import RecordSchema as RecordSchema
    from privstats.kinds.ridge import RidgeSchema as RidgeSchema
    from privstats.kinds.score import Family as Family
    from privstats.kinds.score import ScoreSchema as ScoreSchema
    from privstats.kinds.scoring import ScoringSchema as ScoringSchema
    from privstats.kinds.sites import SitesSchema as SitesSchema
    from privstats.kinds.within import WithinSchema as WithinSchema
    from privstats.records.variables import Bins as Bins
    from privstats.records.variables import Variable as Variable
    from privstats.schema.base import COUNT_SCALE as COUNT_SCALE
    from privstats.schema.base import Schema as Schema
    from privstats.schema.kinds import KINDS as KINDS
    from privstats.schema.kinds import USUAL as USUAL
    from privstats.schema.kinds import bare as bare
    from privstats.schema.kinds import is_known as is_known
    from privstats.schema.kinds import narrowed as narrowed
    from privstats.schema.kinds import of_records as of_records
    from privstats.schema.kinds import predicted as predicted
    from privstats.schema.kinds import require_schema as require_schema
    from privstats.schema.kinds import row_of as row_of
    from privstats.transforms.categories import Categories as Categories
else:
    __getattr__, __dir__ = lazy_names(__name__)
