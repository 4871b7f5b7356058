"""What the sessions of an effect's course read of those before: weights of a propensity, outcome lines, sums by arm."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privstats.course.newton import weights_after
from privstats.errors import ReleaseError
from privstats.estimates.effect import ArmSums, outcome_lines, ratio_guess
from privstats.estimates.spectrum import Array
from privstats.release import Release
from privstats.schema import EffectSchema, RidgeSchema, ScoreSchema, narrowed
from privstats.schema.public_values import Values
from privstats.transforms import ConstantFeature

__all__ = [
    "arm_sums",
    "assigned_sums",
    "propensity_schema",
    "published_line",
    "published_values",
    "zero_values",
]

_ODDS = 4.0  # 1 / (p (1 - p)) at p = 1/2


def zero_values(schema: EffectSchema) -> dict[str, Values]:
    """What a course's plan publishes before there is a release: 0."""
    return {name: Values(np.zeros(shape, np.int64), 0) for name, shape in schema.needs.items()}


def propensity_schema(schema: EffectSchema) -> ScoreSchema:
    """The schema of a round of the propensity: the arm on all columns; or whether an outcome is there on the columns
    of either arm, each with weights of its own.

    Example:
        >>> from privstats.course.effect_values import propensity_schema
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), trim=0.1)
        >>> propensity_schema(schema).by_arm
        True
    """
    names = schema.feature_names
    return ScoreSchema(
        schema.features if schema.missing else schema.width,
        clip_norm=schema.clip_norm,
        transform=schema.transform,
        feature_names=names,
        outcomes=schema.outcomes if schema.outcomes > 1 else None,
        missing="outcome" if schema.missing else None,
    )


def published_values(schema: EffectSchema, have: Sequence[Release]) -> dict[str, Values]:
    """What the last session publishes after the releases of all others: the lines, and w where one is fitted."""
    if not have:
        return zero_values(schema)
    line = {name: published_line(schema, have[-1], place) for place, name in enumerate(schema.lines)}
    if not schema.fits_propensity:
        return line
    return {**line, "w": weights_after(propensity_schema(schema), have[:-1])[-1]}


def published_line(schema: EffectSchema, outcome: Release, place: int = 0) -> Values:
    """Both lines of one outcome and the guess of its effect from the release of the outcome session, in one array.

    In one, because two machines may differ by a part of its largest entry (:meth:`Values.near`), and the guess is a
    small difference of large numbers.
    """
    sums = arm_sums(schema, outcome, place)
    lines = outcome_lines(sums, schema.half)
    if schema.measure:
        lines[-1] = ratio_guess(sums, lines, schema.half)
    return Values.rounded(lines)


def arm_sums(schema: EffectSchema, outcome: Release, place: int = 0) -> ArmSums:
    """The outcome session's sums about the middle of the range of outcomes, by arm.

    Args:
        schema: of the course.
        outcome: release of the outcome session.
        place: of the outcome, where there are several.

    Raises:
        ReleaseError: a release of another schema.
    """
    refusal = ReleaseError("this release is of no outcome session; give the releases of one Effect course, in order")
    if narrowed(outcome.plan.schema, RidgeSchema, refusal) != schema.rows:
        raise refusal
    h = np.asarray(outcome.moments.h).reshape(schema.features, -1)[:, place]
    d, sigma, constant = schema.width, outcome.sigma, _constant(schema)
    blocks = _by_arm(schema, np.asarray(outcome.moments.G))
    centred = [each[:, -1] * (schema.middle / constant) for each in blocks]
    return ArmSums(
        G=blocks,
        h=(h[:d] - centred[0], h[d:] - centred[1]),
        constant=constant,
        sigma_G=float(sigma.get("G", 0.0)),
        sigma_h=float(sigma.get("h", 0.0)),
    )


def assigned_sums(schema: EffectSchema, first: Release) -> ArmSums:
    """The same of all records, whether their outcomes are missing or not; h is not in it, and 0.

    In the first round of a propensity every w is 0, so its information is a fourth of the Gram matrix.

    Args:
        schema: of a course with missing outcomes.
        first: release of its first session.
    """
    none = np.zeros(schema.width)
    return ArmSums(
        G=_by_arm(schema, _ODDS * np.asarray(first.moments.H)),
        h=(none, none),
        constant=_constant(schema),
        sigma_G=_ODDS * float(first.sigma.get("H", 0.0)),
        sigma_h=0.0,
    )


def _by_arm(schema: EffectSchema, G: Array) -> tuple[Array, Array]:
    """The symmetric block of either arm; what is between them is noise alone."""
    d = schema.width
    treated, others = ((G[part, part] + G[part, part].T) / 2 for part in (slice(0, d), slice(d, 2 * d)))
    return treated, others


def _constant(schema: EffectSchema) -> float:
    *_, constant, _ = schema.transform
    assert isinstance(constant, ConstantFeature)  # noqa: S101  the schema has refused others
    return constant.value
