"""The kinds of moments, one row each: how records become exact sums, and how a flat vector is read again.

A schema whose kind has no row here is refused. A row imports its kind's module when a schema of it is measured or read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privstats.errors import SchemaError
from privstats.moments.base import Moments
from privstats.moments.readable import Found, Measured, of_readable, terms_of_readable, whole_of_readable
from privstats.schema import KINDS, Schema
from privstats.tables import LazyRows

if TYPE_CHECKING:
    from privstats.moments.kept_rows import KeptRows
    from privstats.schema import ClassSchema, RidgeSchema
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
        in_batches: whether records of a schema may come in batches; else they are needed at once, or by name.
        named: columns that a schema reads from a table by name, and no target; empty where it reads features.
        terms: from the same as ``measure``, to what each record adds; None where no promise per person is made.
        terms_of_readable: from the same as ``readable``, likewise.
        again: ``measure`` with what the same records became in a round before; None where nothing is kept.

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
    in_batches: Callable[[Any], bool] = lambda _: True
    named: Callable[[Any], tuple[str, ...]] = lambda _: ()
    terms: Measured | None = None
    terms_of_readable: Found | None = None
    again: Callable[[KeptRows], Measured] | None = None

    @property
    def by_record(self) -> Kind | None:
        """The kind whose measuring gives what each record adds; None where there is none."""
        if self.terms is None or self.terms_of_readable is None:
            return None
        return replace(self, measure=self.terms, readable=self.terms_of_readable)


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
    found = _KINDS.get(schema.task)
    if found is None or type(schema) is not KINDS.get(schema.task):
        raise SchemaError(f"no code forms the sums of a {type(schema).__name__}; measure a schema of another kind")
    return found


def _records(schema: ClassSchema | RidgeSchema, X: Any, y: Any, _: Mapping[str, Values], progress: bool) -> Moments:
    from privstats.moments.accumulators import measured

    return measured(schema, X, y, progress)


def _terms(schema: ClassSchema | RidgeSchema, X: Any, y: Any, *_: Any) -> Any:
    from privstats.moments.grid_terms import terms_on_grid

    return terms_on_grid(schema, X, y)


def _by_record(terms: Measured, beside: Any = None) -> Any:
    """The fields of a kind that say what each record adds."""
    return {"terms": terms, "terms_of_readable": terms_of_readable(terms, beside)}


def _classes() -> Kind:
    from privstats.moments.class_moments import ClassMoments, RealClassMoments

    sums = ClassMoments.of_sums, RealClassMoments.of_sums
    return Kind(_records, of_readable(_records, "labels"), *sums, **_by_record(_terms, "labels"))


def _ridge() -> Kind:
    from privstats.moments.ridge_moments import RealRidgeMoments, RidgeMoments

    sums = RidgeMoments.of_sums, RealRidgeMoments.of_sums
    return Kind(_records, of_readable(_records, "targets"), *sums, **_by_record(_terms, "targets"))


def _counts() -> Kind:
    from privstats.moments import counts
    from privstats.moments.counts import CountMoments, RealCountMoments

    sums = CountMoments.of_sums, RealCountMoments.of_sums

    def named(schema: Any) -> tuple[str, ...]:
        return () if schema.transform else tuple(each.name for each in schema.variables)

    def in_batches(schema: Any) -> bool:
        return bool(schema.transform)

    row = Kind(counts.measured_counts, counts.counts_of_readable, *sums, in_batches=in_batches, named=named)
    return replace(row, terms=counts.count_terms, terms_of_readable=counts.count_terms_of_readable)


def _scorings() -> Kind:
    from privstats.moments.counts import CountMoments, RealCountMoments
    from privstats.moments.scoring import measured_scoring, scoring_terms

    sums = CountMoments.of_sums, RealCountMoments.of_sums
    return Kind(measured_scoring, of_readable(measured_scoring), *sums, **_by_record(scoring_terms))


def _sites() -> Kind:
    from privstats.moments.sites import RealSiteMoments, SiteMoments, measured_sites

    readable = of_readable(measured_sites, "targets", kept=True)  # its N has no noise under replace-one
    return Kind(measured_sites, readable, SiteMoments.of_sums, RealSiteMoments.of_sums)


def _gaussians() -> Kind:
    from privstats.moments.gaussians import GaussianMoments, RealGaussianMoments, measured_gaussians

    readable = whole_of_readable(measured_gaussians)
    sums = GaussianMoments.of_sums, RealGaussianMoments.of_sums
    return Kind(measured_gaussians, readable, *sums, in_batches=_never)


def _scores() -> Kind:
    from privstats.moments.score import RealScoreMoments, ScoreMoments, measured_scores, score_terms

    sums = ScoreMoments.of_sums, RealScoreMoments.of_sums
    return Kind(measured_scores, of_readable(measured_scores), *sums, **_by_record(score_terms))


def _hazards() -> Kind:
    from privstats.moments.hazard import HazardMoments, RealHazardMoments, hazards_of_readable, measured_hazards

    sums = HazardMoments.of_sums, RealHazardMoments.of_sums

    def named(schema: Any) -> tuple[str, ...]:
        return (*schema.feature_names, schema.bins.name, schema.event)

    return Kind(measured_hazards, hazards_of_readable, *sums, in_batches=_never, named=named)


def _effects() -> Kind:
    from privstats.moments import effect
    from privstats.moments.effect import EffectMoments, RealEffectMoments

    sums = EffectMoments.of_sums, RealEffectMoments.of_sums
    row = Kind(effect.measured_effects, effect.effects_of_readable, *sums)
    return replace(row, terms=effect.effect_terms, terms_of_readable=effect.effect_terms_of_readable)


def _within() -> Kind:
    from privstats.moments.within import RealWithinMoments, WithinMoments, measured_within

    readable = of_readable(measured_within, "labels")
    return Kind(measured_within, readable, WithinMoments.of_sums, RealWithinMoments.of_sums)


def _gradients() -> Kind:
    from privstats.moments.gradients import GradientMoments, RealGradientMoments, gradient_terms, measured_gradients

    readable = of_readable(measured_gradients)
    return Kind(
        measured_gradients,
        readable,
        GradientMoments.of_sums,
        RealGradientMoments.of_sums,
        **_by_record(gradient_terms),
        again=lambda kept: partial(measured_gradients, kept=kept),
    )


def _calibration() -> Kind:
    from privstats.moments import calibration
    from privstats.moments.calibration import CalibrationMoments, RealCalibrationMoments

    measured, sums = calibration.measured_calibration, (CalibrationMoments.of_sums, RealCalibrationMoments.of_sums)
    return Kind(measured, of_readable(measured), *sums, **_by_record(calibration.calibration_terms))


def _mean() -> Kind:
    from privstats.moments.mean import MeanMoments, RealMeanMoments, mean_terms, measured_mean

    sums = MeanMoments.of_sums, RealMeanMoments.of_sums
    return Kind(measured_mean, of_readable(measured_mean, "unread"), *sums, **_by_record(mean_terms, "unread"))


def _parties() -> Kind:
    from privstats.moments.parties import PartyMoments, RealPartyMoments, measured_parties

    return Kind(measured_parties, of_readable(measured_parties), PartyMoments.of_sums, RealPartyMoments.of_sums)


def _never(_: Any) -> bool:
    return False


_KINDS: Mapping[str, Kind] = LazyRows(
    {
        "classes": _classes,
        "ridge": _ridge,
        "counts": _counts,
        "scoring": _scorings,
        "sites": _sites,
        "gaussians": _gaussians,
        "score": _scores,
        "hazard": _hazards,
        "effect": _effects,
        "within": _within,
        "gradients": _gradients,
        "calibration": _calibration,
        "mean": _mean,
        "party-softmax": _parties,
        "party-update": _parties,
    }
)
"""By the schema's task."""
