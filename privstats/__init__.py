"""One-shot private learning from sufficient statistics.

The flow of the data: ``measure`` turns records into exact integer sums, ``simulate`` (or ``session`` over a real
network) masks, sums and noises them under a ``Plan``, and ``heads`` turn the ``Release`` into a model.

Names load on first use, so that a process that only measures and masks does not load scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from privstats.version import __version__

if TYPE_CHECKING:
    from privstats import course as course
    from privstats import dp, heads, secagg, session
    from privstats import testing as testing
    from privstats.course import Alignment, Centred, Newton, PartyRounds, Rounds, Stream
    from privstats.course.alone import private_release, private_releases
    from privstats.dp import NoPrivacy, Privacy
    from privstats.errors import (
        AggregationError,
        AssumedPublicWarning,
        ClippedWarning,
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
    from privstats.schema import (
        Bins,
        CalibrationSchema,
        Categories,
        ClassSchema,
        CountSchema,
        GaussianSchema,
        GradientSchema,
        MeanSchema,
        PartySchema,
        PartyUpdateSchema,
        RidgeSchema,
        ScoreSchema,
        SitesSchema,
        WithinSchema,
    )
    from privstats.workflows.simulate import simulate

_ROOMS = {
    "course.alone": ("private_release", "private_releases"),
    "dp": ("NoPrivacy", "Privacy"),
    "errors": (
        "AggregationError",
        "AssumedPublicWarning",
        "ClippedWarning",
        "DataError",
        "LedgerError",
        "LocalProtocolError",
        "MissingExtraError",
        "MissingStatisticError",
        "PlanError",
        "PrivstatsError",
        "RandomnessError",
        "ReleaseError",
        "RemoteProtocolError",
        "SchemaError",
    ),
    "moments": ("ClassMoments", "RidgeMoments", "measure"),
    "plan": ("Budget", "Cohort", "Plan"),
    "course": ("Alignment", "Centred", "Newton", "PartyRounds", "Rounds", "Stream"),
    "release": ("Release",),
    "schema": (
        "Bins",
        "CalibrationSchema",
        "Categories",
        "ClassSchema",
        "CountSchema",
        "GaussianSchema",
        "GradientSchema",
        "MeanSchema",
        "PartySchema",
        "PartyUpdateSchema",
        "RidgeSchema",
        "SitesSchema",
        "ScoreSchema",
        "WithinSchema",
    ),
    "workflows.simulate": ("simulate",),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AggregationError",
    "Alignment",
    "AssumedPublicWarning",
    "Bins",
    "Budget",
    "CalibrationSchema",
    "Categories",
    "Centred",
    "ClassMoments",
    "ClassSchema",
    "ClippedWarning",
    "Cohort",
    "CountSchema",
    "DataError",
    "GaussianSchema",
    "GradientSchema",
    "LedgerError",
    "LocalProtocolError",
    "MeanSchema",
    "MissingExtraError",
    "MissingStatisticError",
    "Newton",
    "NoPrivacy",
    "PartyRounds",
    "PartySchema",
    "PartyUpdateSchema",
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
    "Rounds",
    "SchemaError",
    "ScoreSchema",
    "SitesSchema",
    "Stream",
    "WithinSchema",
    "__version__",
    "dp",
    "heads",
    "measure",
    "private_release",
    "private_releases",
    "secagg",
    "session",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name in _ROOM_OF:
        value = getattr(import_module(f"privstats.{_ROOM_OF[name]}"), name)
        globals()[name] = value
        return value
    if name.startswith("_") or find_spec(f"privstats.{name}") is None:
        raise AttributeError(f"module 'privstats' has no attribute {name!r}")
    return import_module(f"privstats.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "testing"})
