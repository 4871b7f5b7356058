"""The kinds of moments, one row each: how records become exact sums, and how a flat vector is read again.

A schema whose kind has no row here is refused: nothing sums what nobody described. Above the kinds, below ``encoding``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privstats.errors import SchemaError
from privstats.moments.accumulators import measured
from privstats.moments.base import Moments
from privstats.moments.class_moments import ClassMoments, RealClassMoments
from privstats.moments.counts import CountMoments, RealCountMoments, measured_counts
from privstats.moments.gaussians import GaussianMoments, RealGaussianMoments, measured_gaussians
from privstats.moments.gradients import GradientMoments, RealGradientMoments, measured_gradients
from privstats.moments.ridge_moments import RealRidgeMoments, RidgeMoments
from privstats.moments.score import RealScoreMoments, ScoreMoments, measured_scores
from privstats.moments.sites import RealSiteMoments, SiteMoments, measured_sites
from privstats.moments.within import RealWithinMoments, WithinMoments, measured_within
from privstats.schema import (
    ClassSchema,
    CountSchema,
    GaussianSchema,
    GradientSchema,
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
    """What measuring, sending and reading need to know of one kind of schema.

    Attributes:
        measure: from the schema, what came as X and as y, the published values and whether to show progress, to
            the moments.
        exact: from the schema and the sums by letter, blocks first, to the moments.
        real: from the schema and the same, noisy or not, to the sums in real units.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> kind = ps.moments.kind_of(schema)
        >>> kind.measure(schema, np.array([[0.5, 0.0]]), np.array([1]), {}, False).N.tolist()
        [0, 1]
    """

    measure: Callable[[Any, Any, Any, Mapping[str, Values], bool], Moments]
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


def _exact_ridge(schema: RidgeSchema, arrays: dict[str, Any]) -> RidgeMoments:
    return RidgeMoments(schema, arrays["G"], arrays["h"], arrays["q"])


def _exact_class(schema: ClassSchema, arrays: dict[str, Any]) -> ClassMoments:
    return ClassMoments(schema, **arrays)


def _real_class(schema: ClassSchema, arrays: dict[str, Any]) -> RealClassMoments:
    if "S" in arrays:
        arrays = {**arrays, "B": arrays["S"].sum(axis=0), "D": np.diagonal(arrays["S"], axis1=1, axis2=2)}
    return RealClassMoments(**{name: array / schema.scale_of(name) for name, array in arrays.items()})


def _exact_gradient(schema: GradientSchema, arrays: dict[str, Any]) -> GradientMoments:
    return GradientMoments(schema, arrays["g"], int(arrays["k"]))


def _real_gradient(schema: GradientSchema, arrays: dict[str, Any]) -> RealGradientMoments:
    return RealGradientMoments(arrays["g"] / schema.scale_of("g"), float(arrays["k"] / schema.scale_of("k")))


def _real_ridge(schema: RidgeSchema, arrays: dict[str, Any]) -> RealRidgeMoments:
    totals: dict[str, Any] = {name: array.sum(axis=0) / schema.scale_of(name) for name, array in arrays.items()}
    folds = {f"fold_{name}": array / schema.scale_of(name) for name, array in arrays.items()}
    return RealRidgeMoments(**totals, **folds)


def _exact_score(schema: ScoreSchema, arrays: dict[str, Any]) -> ScoreMoments:
    return ScoreMoments(schema, **arrays)


def _real_score(schema: ScoreSchema, arrays: dict[str, Any]) -> RealScoreMoments:
    return RealScoreMoments(**{name: array / schema.scale_of(name) for name, array in arrays.items()})


def _exact_within(schema: WithinSchema, arrays: dict[str, Any]) -> WithinMoments:
    return WithinMoments(schema, **arrays)


def _real_within(schema: WithinSchema, arrays: dict[str, Any]) -> RealWithinMoments:
    return RealWithinMoments(**{name: array / schema.scale_of(name) for name, array in arrays.items()})


def _exact_gaussian(schema: GaussianSchema, arrays: dict[str, Any]) -> GaussianMoments:
    return GaussianMoments(schema, **arrays)


def _real_gaussian(schema: GaussianSchema, arrays: dict[str, Any]) -> RealGaussianMoments:
    real = {name: array / schema.scale_of(name) for name, array in arrays.items()}
    return RealGaussianMoments(float(real.pop("N")), **real)


def _exact_counts(schema: CountSchema, arrays: dict[str, Any]) -> CountMoments:
    return CountMoments(schema, arrays["T"])


def _real_counts(schema: CountSchema, arrays: dict[str, Any]) -> RealCountMoments:
    return RealCountMoments(arrays["T"] / schema.scale_of("T"))


def _exact_sites(schema: SitesSchema, arrays: dict[str, Any]) -> SiteMoments:
    return SiteMoments(schema, **arrays)


def _real_sites(schema: SitesSchema, arrays: dict[str, Any]) -> RealSiteMoments:
    return RealSiteMoments(float(arrays["N"] / schema.scale_of("N")), arrays["Q"] / schema.scale_of("Q"))


_KINDS: Mapping[type[Schema], Kind] = {
    ClassSchema: Kind(_records, _exact_class, _real_class),
    RidgeSchema: Kind(_records, _exact_ridge, _real_ridge),
    CountSchema: Kind(measured_counts, _exact_counts, _real_counts),
    SitesSchema: Kind(measured_sites, _exact_sites, _real_sites),
    GaussianSchema: Kind(measured_gaussians, _exact_gaussian, _real_gaussian),
    ScoreSchema: Kind(measured_scores, _exact_score, _real_score),
    WithinSchema: Kind(measured_within, _exact_within, _real_within),
    GradientSchema: Kind(measured_gradients, _exact_gradient, _real_gradient),
}
