"""Clip, round to the grid, and sum: from features to exact integer moments."""

from typing import TYPE_CHECKING

from privstats.lazy_names import lazy_names

if TYPE_CHECKING:
    from privstats.intake.accepted import ColumnLike as ColumnLike
    from privstats.intake.accepted import RecordsLike as RecordsLike
    from privstats.intake.accepted import TargetsLike as TargetsLike
    from privstats.intake.record_files import RecordFile as RecordFile
    from privstats.intake.record_files import Records as Records
    from privstats.moments.base import Moments as Moments
    from privstats.moments.clip_report import ClipReport as ClipReport
    from privstats.moments.clip_report import remarks_on as remarks_on
    from privstats.moments.clip_report import warn_if_clipped as warn_if_clipped
    from privstats.moments.clip_report import warn_if_empty as warn_if_empty
    from privstats.moments.edge_report import Beyond as Beyond
    from privstats.moments.edge_report import EdgeReport as EdgeReport
    from privstats.moments.grid_vectors import quantize as quantize
    from privstats.moments.measurement import exact_moments as exact_moments
    from privstats.moments.measurement import measure as measure
    from privstats.moments.persons import PersonMoments as PersonMoments
# Kinds refer to these modules as attributes of this package, which imports them when records are first measured.
if TYPE_CHECKING:
    from privstats.moments import accumulators as accumulators
    from privstats.moments import edge_report as edge_report
    from privstats.moments import rounds as rounds
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "privstats.intake.accepted": ["ColumnLike", "RecordsLike", "TargetsLike"],
            "privstats.intake.record_files": ["RecordFile", "Records"],
            "privstats.moments.base": ["Moments"],
            "privstats.moments.clip_report": ["ClipReport", "remarks_on", "warn_if_clipped", "warn_if_empty"],
            "privstats.moments.edge_report": ["Beyond", "EdgeReport"],
            "privstats.moments.grid_vectors": ["quantize"],
            "privstats.moments.measurement": ["exact_moments", "measure"],
            "privstats.moments.persons": ["PersonMoments"],
        },
        {"privstats.moments": ["accumulators", "edge_report", "rounds"]},
    )
