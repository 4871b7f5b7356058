"""Clip, round to the grid, and sum: from features to exact integer moments."""

from privstats.moments.base import Moments
from privstats.moments.class_moments import ClassMoments, RealClassMoments
from privstats.moments.clip_report import ClipReport
from privstats.moments.kinds import Kind, kind_of
from privstats.moments.measure import measure, quantize
from privstats.moments.ridge_moments import RealRidgeMoments, RidgeMoments

__all__ = [
    "ClassMoments",
    "ClipReport",
    "Kind",
    "Moments",
    "RealClassMoments",
    "RealRidgeMoments",
    "RidgeMoments",
    "kind_of",
    "measure",
    "quantize",
]
