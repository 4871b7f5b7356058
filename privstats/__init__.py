"""One-shot private learning from sufficient statistics.

The way of the data: ``measure`` turns records into exact integer sums, ``simulate`` (or ``session`` over a real
network) masks, sums and noises them under a ``Plan``, and ``heads`` turn the ``Release`` into a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    RandomnessError,
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

if TYPE_CHECKING:
    from types import ModuleType

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
    "RandomnessError",
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


def __getattr__(name: str) -> ModuleType:
    """``privstats.testing`` loads on first use, because it needs the ``testing`` extra."""
    if name != "testing":
        raise AttributeError(f"module 'privstats' has no attribute {name!r}")
    from importlib import import_module

    return import_module("privstats.testing")
