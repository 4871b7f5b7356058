"""The kinds of moments, one row each: how records become exact sums, and how a flat vector is read again.

A schema whose kind has no row here is refused. Every kind's module is imported here; ``encoding`` uses the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from privstats.errors import SchemaError
from privstats.moments.accumulators import measured
from privstats.moments.base import Moments
from privstats.moments.calibration import CalibrationMoments, RealCalibrationMoments, measured_calibration
from privstats.moments.class_moments import ClassMoments, RealClassMoments
from privstats.moments.counts import CountMoments, RealCountMoments, counts_of_readable, measured_counts
from privstats.moments.gaussians import GaussianMoments, RealGaussianMoments, measured_gaussians
from privstats.moments.gradients import GradientMoments, RealGradientMoments, measured_gradients
from privstats.moments.mean import MeanMoments, RealMeanMoments, measured_mean
from privstats.moments.parties import PartyMoments, RealPartyMoments, measured_parties
from privstats.moments.readable import Found, Measured, of_readable, whole_of_readable
from privstats.moments.ridge_moments import RealRidgeMoments, RidgeMoments
from privstats.moments.score import RealScoreMoments, ScoreMoments, measured_scores
from privstats.moments.sites import RealSiteMoments, SiteMoments, measured_sites
from privstats.moments.within import RealWithinMoments, WithinMoments, measured_within
from privstats.schema import (
    CalibrationSchema,
    ClassSchema,
    CountSchema,
    GaussianSchema,
    GradientSchema,
    MeanSchema,
    PartySchema,
    PartyUpdateSchema,
    RidgeSchema,
    Schema,
    ScoreSchema,
    SitesSchema,
    WithinSchema,
)
from privstats.schema.public_values import Values

__all__ = ["Kind", "kind_of"]


@dataclass(frozen=True)
class Kind:
    """The functions that measure, send and read one kind of schema.

    Attributes:
        measure: from the schema, X, y, the published values and whether to show progress, to the moments.
        readable: from the same, to the moments of the records that can be read, and how many others there are.
        exact: from the schema and the sums by letter, blocks first, to the moments.
        real: from the schema and the same, noisy or not, to the sums in real units.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> kind = ps.moments.kind_of(schema)
        >>> kind.measure(schema, np.array([[0.5, 0.0]]), np.array([1]), {}, False).N.tolist()
        [0, 1]
    """

    measure: Measured
    readable: Found
    exact: Callable[[Any, dict[str, Any]], Moments]
    real: Callable[[Any, dict[str, Any]], Any]


def kind_of(schema: Schema) -> Kind:
    """The row of a schema.

    Raises:
        SchemaError: no code sums such a schema.

    Example:
        >>> schema = ps.CountSchema((ps.Categories("sex", ("f", "m")),), (("sex",),))
        >>> kind = ps.moments.kind_of(schema)
        >>> kind.measure(schema, {"sex": ["f", "f", "m"]}, None, {}, False).T.tolist()
        [2, 1]
    """
    found = _KINDS.get(type(schema))
    if found is None:
        raise SchemaError(f"no code forms the sums of a {type(schema).__name__}; measure a schema of another kind")
    return found


def _records(schema: ClassSchema | RidgeSchema, X: Any, y: Any, _: Mapping[str, Values], progress: bool) -> Moments:
    return measured(schema, X, y, progress)


_KINDS: Mapping[type[Schema], Kind] = {
    ClassSchema: Kind(_records, of_readable(_records, "labels"), ClassMoments.of_sums, RealClassMoments.of_sums),
    RidgeSchema: Kind(_records, of_readable(_records, "targets"), RidgeMoments.of_sums, RealRidgeMoments.of_sums),
    CountSchema: Kind(measured_counts, counts_of_readable, CountMoments.of_sums, RealCountMoments.of_sums),
    SitesSchema: Kind(
        measured_sites,
        of_readable(measured_sites, "targets", kept=True),  # its N has no noise under replace-one
        SiteMoments.of_sums,
        RealSiteMoments.of_sums,
    ),
    GaussianSchema: Kind(
        measured_gaussians,
        whole_of_readable(measured_gaussians),
        GaussianMoments.of_sums,
        RealGaussianMoments.of_sums,
    ),
    ScoreSchema: Kind(measured_scores, of_readable(measured_scores), ScoreMoments.of_sums, RealScoreMoments.of_sums),
    WithinSchema: Kind(
        measured_within, of_readable(measured_within, "labels"), WithinMoments.of_sums, RealWithinMoments.of_sums
    ),
    GradientSchema: Kind(
        measured_gradients, of_readable(measured_gradients), GradientMoments.of_sums, RealGradientMoments.of_sums
    ),
    CalibrationSchema: Kind(
        measured_calibration,
        of_readable(measured_calibration),
        CalibrationMoments.of_sums,
        RealCalibrationMoments.of_sums,
    ),
    MeanSchema: Kind(measured_mean, of_readable(measured_mean, "unread"), MeanMoments.of_sums, RealMeanMoments.of_sums),
    PartySchema: Kind(measured_parties, of_readable(measured_parties), PartyMoments.of_sums, RealPartyMoments.of_sums),
    PartyUpdateSchema: Kind(
        measured_parties, of_readable(measured_parties), PartyMoments.of_sums, RealPartyMoments.of_sums
    ),
}
