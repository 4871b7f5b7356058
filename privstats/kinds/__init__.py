"""Define each kind of measurement: schema, sums, sensitivity, and the two data sets that the certificate compares.

The certificate checker and the audits define each kind again, independently.
"""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.kinds.base import Kind as Kind
    from privstats.kinds.base import kind_of as kind_of
    from privstats.kinds.calibration import CalibrationSchema as CalibrationSchema
    from privstats.kinds.classes import CLASS_STATISTICS as CLASS_STATISTICS
    from privstats.kinds.classes import ClassMoments as ClassMoments
    from privstats.kinds.classes import ClassSchema as ClassSchema
    from privstats.kinds.classes import RealClassMoments as RealClassMoments
    from privstats.kinds.clipped_rows import ClippedRows as ClippedRows
    from privstats.kinds.counts import CountMoments as CountMoments
    from privstats.kinds.counts import CountSchema as CountSchema
    from privstats.kinds.counts import RealCountMoments as RealCountMoments
    from privstats.kinds.effect.schema import EffectSchema as EffectSchema
    from privstats.kinds.effect.schema import Estimand as Estimand
    from privstats.kinds.gaussians import LEDOIT_WOLF as LEDOIT_WOLF
    from privstats.kinds.gaussians import GaussianMoments as GaussianMoments
    from privstats.kinds.gaussians import GaussianSchema as GaussianSchema
    from privstats.kinds.gaussians import RealGaussianMoments as RealGaussianMoments
    from privstats.kinds.gradients import GRADIENT_STATISTICS as GRADIENT_STATISTICS
    from privstats.kinds.gradients import GradientSchema as GradientSchema
    from privstats.kinds.hazard import HazardSchema as HazardSchema
    from privstats.kinds.late_entry import LateEntry as LateEntry
    from privstats.kinds.lookup import of_records as of_records
    from privstats.kinds.lookup import row_of as row_of
    from privstats.kinds.mean import MeanSchema as MeanSchema
    from privstats.kinds.numbers import Number as Number
    from privstats.kinds.party import PartySchema as PartySchema
    from privstats.kinds.party import PartyUpdateSchema as PartyUpdateSchema
    from privstats.kinds.registry import KINDS as KINDS
    from privstats.kinds.ridge import RIDGE_STATISTICS as RIDGE_STATISTICS
    from privstats.kinds.ridge import RealRidgeMoments as RealRidgeMoments
    from privstats.kinds.ridge import RecordSchema as RecordSchema
    from privstats.kinds.ridge import RidgeMoments as RidgeMoments
    from privstats.kinds.ridge import RidgeSchema as RidgeSchema
    from privstats.kinds.score import Family as Family
    from privstats.kinds.score import ScoreSchema as ScoreSchema
    from privstats.kinds.scoring import ScoringSchema as ScoringSchema
    from privstats.kinds.sites import RealSiteMoments as RealSiteMoments
    from privstats.kinds.sites import SiteMoments as SiteMoments
    from privstats.kinds.sites import SitesSchema as SitesSchema
    from privstats.kinds.within import RealWithinMoments as RealWithinMoments
    from privstats.kinds.within import WithinMoments as WithinMoments
    from privstats.kinds.within import WithinSchema as WithinSchema
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.kinds.base": ["Kind", "kind_of"],
            "privstats.kinds.calibration": ["CalibrationSchema"],
            "privstats.kinds.classes": ["CLASS_STATISTICS", "ClassMoments", "ClassSchema", "RealClassMoments"],
            "privstats.kinds.clipped_rows": ["ClippedRows"],
            "privstats.kinds.counts": ["CountMoments", "CountSchema", "RealCountMoments"],
            "privstats.kinds.effect.schema": ["EffectSchema", "Estimand"],
            "privstats.kinds.gaussians": ["LEDOIT_WOLF", "GaussianMoments", "GaussianSchema", "RealGaussianMoments"],
            "privstats.kinds.gradients": ["GRADIENT_STATISTICS", "GradientSchema"],
            "privstats.kinds.hazard": ["HazardSchema"],
            "privstats.kinds.late_entry": ["LateEntry"],
            "privstats.kinds.lookup": ["of_records", "row_of"],
            "privstats.kinds.mean": ["MeanSchema"],
            "privstats.kinds.numbers": ["Number"],
            "privstats.kinds.party": ["PartySchema", "PartyUpdateSchema"],
            "privstats.kinds.registry": ["KINDS"],
            "privstats.kinds.ridge": [
                "RIDGE_STATISTICS",
                "RealRidgeMoments",
                "RecordSchema",
                "RidgeMoments",
                "RidgeSchema",
            ],
            "privstats.kinds.score": ["Family", "ScoreSchema"],
            "privstats.kinds.scoring": ["ScoringSchema"],
            "privstats.kinds.sites": ["RealSiteMoments", "SiteMoments", "SitesSchema"],
            "privstats.kinds.within": ["RealWithinMoments", "WithinMoments", "WithinSchema"],
        },
    )
