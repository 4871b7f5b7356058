"""Clip, round to the grid, and sum: from features to exact integer moments."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.moments.base import Moments as Moments
    from privstats.moments.class_moments import ClassMoments as ClassMoments
    from privstats.moments.class_moments import RealClassMoments as RealClassMoments
    from privstats.moments.clip_report import ClipReport as ClipReport
    from privstats.moments.counts import CountMoments as CountMoments
    from privstats.moments.counts import RealCountMoments as RealCountMoments
    from privstats.moments.edge_report import Beyond as Beyond
    from privstats.moments.edge_report import EdgeReport as EdgeReport
    from privstats.moments.gaussians import GaussianMoments as GaussianMoments
    from privstats.moments.gaussians import RealGaussianMoments as RealGaussianMoments
    from privstats.moments.kinds import Kind as Kind
    from privstats.moments.kinds import kind_of as kind_of
    from privstats.moments.measurement import exact_moments as exact_moments
    from privstats.moments.measurement import measure as measure
    from privstats.moments.measurement import quantize as quantize
    from privstats.moments.moments_delta import MomentsDelta as MomentsDelta
    from privstats.moments.moments_delta import PersonDelta as PersonDelta
    from privstats.moments.person_rows import PersonRows as PersonRows
    from privstats.moments.persons import PersonMoments as PersonMoments
    from privstats.moments.record_files import RecordFile as RecordFile
    from privstats.moments.record_files import Records as Records
    from privstats.moments.remarks import remarks_on as remarks_on
    from privstats.moments.remarks import warn_if_clipped as warn_if_clipped
    from privstats.moments.remarks import warn_if_empty as warn_if_empty
    from privstats.moments.ridge_moments import RealRidgeMoments as RealRidgeMoments
    from privstats.moments.ridge_moments import RidgeMoments as RidgeMoments
    from privstats.moments.sites import RealSiteMoments as RealSiteMoments
    from privstats.moments.sites import SiteMoments as SiteMoments
    from privstats.moments.within import RealWithinMoments as RealWithinMoments
    from privstats.moments.within import WithinMoments as WithinMoments
else:
    __getattr__, __dir__ = lazy_names(__name__)
