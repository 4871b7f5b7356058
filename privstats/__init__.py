"""One-shot private learning from sufficient statistics.

The way of the data: ``measure`` turns records into exact integer sums, ``simulate`` (or ``session`` over a real
network) masks, sums and noises them under a ``Plan``, and ``heads`` turn the ``Release`` into a model.
"""

from privstats import dp, heads, secagg, session
from privstats.dp import NoPrivacy, Privacy
from privstats.errors import (
    AggregationError,
    DataError,
    LedgerError,
    LocalProtocolError,
    MissingExtraError,
    MissingStatisticError,
    PlanError,
    PrivstatsError,
    ReleaseError,
    RemoteProtocolError,
    SchemaError,
)
from privstats.moments import ClassMoments, RidgeMoments, measure
from privstats.plan import Budget, Cohort, Plan
from privstats.release import Release
from privstats.schema import ClassSchema, RidgeSchema
from privstats.simulation import simulate
from privstats.version import __version__

__all__ = [
    "AggregationError",
    "Budget",
    "ClassMoments",
    "ClassSchema",
    "Cohort",
    "DataError",
    "LedgerError",
    "LocalProtocolError",
    "MissingExtraError",
    "MissingStatisticError",
    "NoPrivacy",
    "Plan",
    "PlanError",
    "Privacy",
    "PrivstatsError",
    "Release",
    "ReleaseError",
    "RemoteProtocolError",
    "RidgeMoments",
    "RidgeSchema",
    "SchemaError",
    "__version__",
    "dp",
    "heads",
    "measure",
    "secagg",
    "session",
    "simulate",
]
