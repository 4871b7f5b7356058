"""Clip, round to the grid, and sum: from features to exact integer moments."""

from privstats.moments.base import Moments
from privstats.moments.class_moments import ClassMoments, RealClassMoments
from privstats.moments.clip_report import ClipReport
from privstats.moments.counts import CountMoments, RealCountMoments
from privstats.moments.edge_report import Beyond, EdgeReport
from privstats.moments.gaussians import GaussianMoments, RealGaussianMoments
from privstats.moments.kinds import Kind, kind_of
from privstats.moments.measurement import exact_moments, measure, quantize, remarks_on, warn_if_clipped, warn_if_empty
from privstats.moments.moments_delta import MomentsDelta
from privstats.moments.record_files import RecordFile, Records
from privstats.moments.ridge_moments import RealRidgeMoments, RidgeMoments
from privstats.moments.sites import RealSiteMoments, SiteMoments
from privstats.moments.within import RealWithinMoments, WithinMoments

__all__ = [
    "Beyond",
    "ClassMoments",
    "ClipReport",
    "CountMoments",
    "EdgeReport",
    "GaussianMoments",
    "Kind",
    "Moments",
    "MomentsDelta",
    "RealClassMoments",
    "RealCountMoments",
    "RealGaussianMoments",
    "RealRidgeMoments",
    "RealSiteMoments",
    "RealWithinMoments",
    "RecordFile",
    "Records",
    "RidgeMoments",
    "SiteMoments",
    "WithinMoments",
    "exact_moments",
    "kind_of",
    "measure",
    "quantize",
    "remarks_on",
    "warn_if_clipped",
    "warn_if_empty",
]
