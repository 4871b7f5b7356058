"""Exact L2 sensitivities in closed form: how far one record, or one client, can move the whole release.

The joint formulas are the primitive; a single statistic is the joint one with one weight. Derivations and worst-case
pairs: docs/sensitivity.md. ``allocation`` and ``calibration`` choose the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError, SchemaError
from privstats.schema import COUNT_SCALE, Schema, require_schema, row_of
from privstats.schema.statistic import INFLUENCES

if TYPE_CHECKING:
    from privstats.schema import (
        CalibrationSchema,
        ClassSchema,
        CountSchema,
        EffectSchema,
        GaussianSchema,
        GradientSchema,
        HazardSchema,
        MeanSchema,
        PartySchema,
        RidgeSchema,
        ScoreSchema,
        ScoringSchema,
        SitesSchema,
        WithinSchema,
    )

__all__ = ["client_mu", "grid_sensitivity", "group_mu", "joint_mu", "sensitivity"]


def joint_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """mu of releasing the named statistics together, each with Gaussian noise of its sigma.

    With w_s = 1/sigma_s^2 it is the largest weighted distance sqrt(sum_s w_s ||v_s - v'_s||^2) between the moments of
    two adjacent data sets (derived in docs/sensitivity.md). Symmetric matrices count with the Frobenius norm, which is
    what noise of sigma on the diagonal and sigma/sqrt 2 off it measures.

    Args:
        schema: bounds every record: the clip norm R and, for ridge, the target bound Y.
        sigmas: noise per statistic in real units; only the statistics named here are released. Under a schema with S
            that may include B and D, for a release that gives them noise of their own.
        adjacency: ``"add-remove"`` or ``"replace-one"``.

    Returns:
        mu of one record; under a party schema of one party.

    Guarantee:
        Unit: one record. A release with this noise on the named statistics is mu-GDP. Some pair of adjacent data sets
        attains it or comes arbitrarily close, so that no smaller mu holds, except for five upper bounds: gradients,
        calibrations, sums within clients, under replace-one effects with weights W, and there a logistic regression's
        score and information with w_H R^2 / w_g > (11 + 5 sqrt 5) / 2. Assumes that every record obeys the schema's
        bounds, which the client enforces when it clips and quantises.

    Raises:
        PlanError: a statistic that the schema does not send, a sigma that is not above 0, an unknown adjacency.
        SchemaError: not a schema, for example the plan that holds it.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=3.0)
        >>> ps.dp.joint_mu(schema, {"N": 10.0, "A": 40.0}, "add-remove")  # sqrt((1 / 10)^2 + (3 / 40)^2)
        0.125
    """
    require_schema(schema)
    weights = _weights(schema, sigmas)
    if adjacency not in ("add-remove", "replace-one"):
        raise PlanError(f"adjacency must be 'add-remove' or 'replace-one', got {adjacency!r}: choose one")
    try:
        square = row_of(_SQUARES, schema, "sensitivity")
    except SchemaError:
        said = f"no sensitivity is proved for a {type(schema).__name__}; measure a schema of another kind"
        raise PlanError(said) from None
    return math.sqrt(square(schema, weights, adjacency))


def client_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency, records: float) -> float:
    """mu of one client that holds at most ``records`` records, and no others.

    Add-remove m mu_add, replace m max(mu_add, mu_rep), as for any m records (:func:`group_mu`), attained by m copies of
    the worst record or pair. Sums within sites are a client's own: its whole Q is positive with a trace of at most
    m R^2, far below what m records of a larger site move, attained by half the records opposed to the other half.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> round(ps.dp.client_mu(schema, {"N": 10.0, "A": 10.0}, "add-remove", records=5), 3)
        0.707
    """
    of_client = _CLIENT_SQUARES.get(schema.task)
    if of_client is None:
        return group_mu(schema, sigmas, adjacency, records)
    return math.sqrt(of_client(schema, _weights(schema, sigmas), adjacency, records))


def group_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency, records: float) -> float:
    """mu of any ``records`` records together, such as those of one person, over all clients.

    Two data sets that differ in m records are m steps of one record apart, each of at most max(mu_add, mu_rep).

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> one = ps.dp.joint_mu(schema, {"N": 10.0, "A": 10.0}, "add-remove")
        >>> round(ps.dp.group_mu(schema, {"N": 10.0, "A": 10.0}, "add-remove", records=3) / one, 6)
        3.0
    """
    mu = joint_mu(schema, sigmas, "add-remove")
    if adjacency == "replace-one":
        mu = max(mu, joint_mu(schema, sigmas, "replace-one"))
    return records * mu


def sensitivity(schema: Schema, statistic: str, adjacency: Adjacency) -> float:
    """L2 sensitivity of one statistic alone to one record, in real units.

    Add-remove / replace-one: N 1 / sqrt 2; A R / 2R (sqrt 2 R for non-negative features); B, S, D and G
    R^2 / sqrt 2 R^2; h RY / 2RY; q Y^2 / Y^2 (sqrt 2 Y^2 where a record can change fold). Further kinds:
    docs/sensitivity.md.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=3.0)
        >>> ps.dp.sensitivity(schema, "A", "add-remove"), ps.dp.sensitivity(schema, "A", "replace-one")
        (3.0, 6.0)
    """
    return joint_mu(schema, {statistic: 1.0}, adjacency)


def grid_sensitivity(schema: Schema, statistic: str, adjacency: Adjacency) -> float:
    """The same in grid steps of the layout, where every record is an integer vector of norm at most 2**grid_bits.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=12)
        >>> ps.dp.grid_sensitivity(schema, "A", "add-remove")
        4096.0
    """
    return sensitivity(schema, statistic, adjacency) * schema.scale_of(statistic)


def _weights(schema: Schema, sigmas: Mapping[str, float]) -> dict[str, float]:
    known = schema.statistics + schema.derived
    unknown = sorted(set(sigmas) - set(known))
    if unknown or not sigmas:
        raise PlanError(
            f"noise is given for {', '.join(unknown) or 'no statistic'}, but the schema measures "
            f"{', '.join(known)}: name only those"
        )
    for statistic, sigma in sigmas.items():
        if not (math.isfinite(sigma) and sigma > 0):
            raise PlanError(f"sigma of {statistic} must be finite and above 0: without noise mu is infinite")
    return {statistic: sigma**-2 for statistic, sigma in sigmas.items()}


def _require_formula(weights: Mapping[str, float], covered: str) -> None:
    """Refuse a statistic that the closed forms do not cover, because it would count as free."""
    unknown = [statistic for statistic in weights if statistic not in covered]
    if unknown:
        raise PlanError(f"no sensitivity is proved for statistic {', '.join(unknown)}; leave it out of the schema")


def _class_square(schema: ClassSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    _require_formula(weights, "NABSD")
    radius_squared = schema.clip_norm**2
    count = weights.get("N", 0.0)
    first = weights.get("A", 0.0) * radius_squared
    second = sum(weights.get(statistic, 0.0) for statistic in "BSD") * radius_squared**2
    add = count + first + second
    if adjacency == "add-remove":
        return add
    other_class = 2 * add
    return other_class if schema.nonnegative else max(other_class, _opposed(first, second))


def _opposed(linear: float, quadratic: float) -> float:
    """max over cosines c of 2 linear (1 + c) + 2 quadratic (1 - c^2): two records of one class, <x, x'> = -c R^2."""
    if linear < 2 * quadratic:
        return (linear + 2 * quadratic) ** 2 / (2 * quadratic)
    return 4 * linear


def _ridge_square(schema: RidgeSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    _require_formula(weights, "Ghq")
    radius_squared, target = schema.clip_norm**2, schema.target_bound**2
    gram = weights.get("G", 0.0) * radius_squared**2
    cross = weights.get("h", 0.0) * radius_squared * target
    energy = weights.get("q", 0.0) * target**2
    add = gram + cross + energy
    if adjacency == "add-remove":
        return add
    other_fold = 2 * add if schema.folds > 1 else 0.0
    return max(other_fold, _replaced(gram, cross, energy))


def _replaced(gram: float, cross: float, energy: float) -> float:
    """max over c, t in [0, 1] of 2 gram (1 - c^2) + cross (1 + t^2 + 2 c t) + energy (1 - t^2)^2.

    c is the cosine of a and a', t the length of b' (opposed to b) over Y. For c inside (0, 1) the maximum over c is
    convex in t^2, so t is 0 or 1; for c = 1 the remaining stationary maximum is the smaller root of
    2 energy t (1 - t) = cross.
    """
    lengths = [0.0, 1.0]
    if energy > 2 * cross:
        lengths.append((1 - math.sqrt(1 - 2 * cross / energy)) / 2)
    return max(_at_length(gram, cross, energy, t) for t in lengths)


def _at_length(gram: float, cross: float, energy: float, t: float) -> float:
    c = min(1.0, cross * t / (2 * gram)) if gram > 0 else 1.0
    return 2 * gram * (1 - c * c) + cross * (1 + t * t + 2 * c * t) + energy * (1 - t * t) ** 2


def _count_square(schema: CountSchema | ScoringSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record counts 1 in one cell of each of J tables: J, and 2 J for two records that differ in every table.

    Both are attained, because every variable has at least two cells.
    """
    _require_formula(weights, "T")
    square = weights.get("T", 0.0) * len(schema.tables)
    return square if adjacency == "add-remove" else 2 * square


def _site_square(schema: SitesSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """One record of a site of any size, for every pull.

    A record z beside others of shrunk mean b moves Q by ``(n + lambda) / (n + 1 + lambda) (z - b)(z - b)'``, whose norm
    is below 4 R^2; two such matrices are positive, so their difference is at most sqrt 2 of that, in one site or across
    two. Cutting to whole steps adds less than one step to each of p^2 entries for every site that is cut
    (docs/sensitivity.md).
    """
    _require_formula(weights, "NQ")
    cut = schema.features / schema.scale**2
    count, moved = weights.get("N", 0.0), 4 * schema.clip_norm**2
    pulls = len(schema.pulls) * weights.get("Q", 0.0)
    if adjacency == "add-remove":
        return count + pulls * (moved + cut) ** 2
    return pulls * (math.sqrt(2) * moved + 2 * cut) ** 2


def _site_client_square(
    schema: SitesSchema, weights: Mapping[str, float], adjacency: Adjacency, records: float
) -> float:
    """A client's whole Q is positive with trace at most m R^2, and cutting toward 0 only shortens it.

    Two such matrices differ by at most sqrt 2 m R^2, and the cut of both.
    """
    _require_formula(weights, "NQ")
    whole, cut = records * schema.clip_norm**2, schema.features / schema.scale**2
    moved = whole if adjacency == "add-remove" else math.sqrt(2) * whole + 2 * cut
    return weights.get("N", 0.0) * records**2 + len(schema.pulls) * weights.get("Q", 0.0) * moved**2


def _within_square(schema: WithinSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """One record of a client with t = ``schema.weight``; replacing one is at most taking one out and putting one in.

    A record z beside others of mean m moves Q by ``(1 - t) z z' + t a (m - z)(m - z)'`` with a < 1 where the client is
    above n_max, and by less otherwise; the largest is at |x| = R, m_x = -x and m of another class, in every block at
    once. Cutting to whole steps adds at most one step an entry to each distance (docs/sensitivity.md).
    """
    _require_formula(weights, "NLAB")
    t, radius, step = schema.weight, schema.clip_norm, 1 / schema.scale
    C, d = schema.classes, schema.features
    moved = {
        "L": (math.sqrt(1 + 3 * t * t), C / COUNT_SCALE),
        "A": (radius * math.sqrt(1 + 2 * t + 5 * t * t), math.sqrt(C * d) * step),
        "B": (radius**2 * (1 + 3 * t), d * step * step),
    }
    twice = 1 if adjacency == "add-remove" else 2
    blocks = [weights.get(name, 0.0) * (twice * far + cut) ** 2 for name, (far, cut) in moved.items()]
    return twice * weights.get("N", 0.0) + math.fsum(blocks)


def _score_square(schema: ScoreSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record adds r u and v u u' with |u| <= R; logistic |r| = p, v = p (1 - p); Poisson r = y - m, v = m, both in
    0..Y. Whatever was published: m is free in the bound (docs/sensitivity.md)."""
    _require_formula(weights, "gH")
    score = weights.get("g", 0.0) * (schema.clip_norm * schema.outcome) ** 2
    information = weights.get("H", 0.0) * (schema.clip_norm**2 * schema.outcome) ** 2
    if schema.family == "logistic":
        add = _logistic(score, information)
        return add if adjacency == "add-remove" else 2 * add + 2 * score
    if adjacency == "add-remove":
        return score + information
    replaced = 4 * score + information
    if score <= 2 * information and information:
        replaced = max(replaced, 2 * score + 2 * information + score**2 / (2 * information))
    return replaced


def _logistic(score: float, information: float) -> float:
    """max over p in [0, 1] of score p^2 + information p^2 (1 - p)^2.

    Inside, 1 + rho (1 - p)(1 - 2p) = 0 with rho = information / score, and the smaller root is the maximum; at p = 1
    the information is 0, so up to rho = (11 + 5 sqrt 5) / 2 it costs nothing beside the score.
    """
    if score == 0:
        return information / 16
    rho = information / score
    places = [1.0] if rho < 8 else [1.0, (3 - math.sqrt(1 - 8 / rho)) / 4]
    return max(score * p * p + information * (p * (1 - p)) ** 2 for p in places)


def _hazard_square(schema: HazardSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A person over all periods adds sum r_j u_j, at most M R long, and sum v_j u_j u_j', at most M R^2, for every w.

    Two of them: 2 M R by the triangle, and sqrt 2 M R^2, because both matrices are positive (docs/sensitivity.md). Not
    the Poisson row, whose replace-one bound needs information of rank one.
    """
    _require_formula(weights, "gH")
    score = weights.get("g", 0.0) * (schema.cap * schema.clip_norm) ** 2
    information = weights.get("H", 0.0) * (schema.cap * schema.clip_norm**2) ** 2
    return score + information if adjacency == "add-remove" else 4 * score + 2 * information


def _gradient_square(schema: GradientSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record adds r u' with |r| <= c, |u| <= 1, and a kappa in [0, 1], whatever was published: two of them differ by
    at most 2 c and 1."""
    _require_formula(weights, "gk")
    gradient, curvature = weights.get("g", 0.0) * schema.residual_norm**2, weights.get("k", 0.0)
    return gradient + curvature if adjacency == "add-remove" else 4 * gradient + curvature


def _effect_square(schema: EffectSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record adds 1 to N, at most 1 to W, ``(t, 1 - t^2)`` with |t| <= 1 to the letter of each outcome, and a row of
    norm at most 1 to b, in one block, whatever was published.

    ``t^2 + (1 - t^2)^2 = 1 - t^2 (1 - t^2) <= 1``, and for two records of one block ``(t - t')^2 (1 + (t + t')^2) <=
    4``, attained at t = 1 and t' = -1. A record that is left out of every sum, because it cannot be read, has a
    neighbour that is in all of them: N moves then, too. Of two blocks every sum moves twice, each by no more than one
    record's (docs/sensitivity.md).
    """
    _require_formula(weights, f"NWb{INFLUENCES}")
    weight, influence = weights.get("W", 0.0), sum(weights.get(letter, 0.0) for letter in f"b{INFLUENCES}")
    alone = weights.get("N", 0.0) + weight + influence
    if adjacency == "add-remove":
        return alone
    within = weight * _below(schema) + 4 * influence
    return max(within, alone if schema.blocks == 1 else 2 * alone)


def _below(schema: EffectSchema) -> float:
    """The square of how far two records are apart in W: weights are from 0 to 1, and below the line of a ratio lie
    ``(w, 1 - w^2)`` with w from -k to 1, furthest apart at the ends (docs/sensitivity.md)."""
    if schema.measure is None:
        return 1.0
    k, one = schema.deepest, schema.steps
    return ((one + k) ** 2 + ((one * one - k * k) // one) ** 2) / one**2


def _gaussian_square(schema: GaussianSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """The weight of one record in its client's clip; it is no sensitivity, because no plan promises a record.

    ||n Sigma|| <= n tr Sigma <= n R^2, and ||n M||^2 = n^2 tr(S Sigma) <= n^2 ||S|| tr Sigma <= (n R^2)^2 for every S
    that is admitted; shrinking keeps the trace, and numbers are cut toward zero.
    """
    _require_formula(weights, "NxVM")
    if adjacency != "add-remove":
        raise PlanError("an alignment promises a client added or removed; take adjacency='add-remove'")
    radius_squared = schema.clip_norm**2
    return (
        weights.get("N", 0.0)
        + weights.get("x", 0.0) * radius_squared
        + (weights.get("V", 0.0) + weights.get("M", 0.0)) * radius_squared**2
    )


def _calibration_square(schema: CalibrationSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record adds [right] - P_1 and gains of at least 0 that sum to at most 1 - P_1, P_1 in [p, 1] with p = 1 / C on
    the grid (``CalibrationSchema`` proves what follows)."""
    _require_formula(weights, "t")
    left = 1 - (schema.steps // schema.classes) / schema.steps
    square = max(1.0, 2 * left**2) if adjacency == "add-remove" else (1 + left) ** 2 + left**2
    return square * weights.get("t", 0.0)


def _mean_square(schema: MeanSchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """A record adds a vector of norm at most R; two are 2 R apart where opposed, without negative entries sqrt 2 R."""
    _require_formula(weights, "x")
    square = weights.get("x", 0.0) * schema.clip_norm**2
    return square * (1 if adjacency == "add-remove" else 2 if schema.nonnegative else 4)


def _party_square(_: PartySchema, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """The record of a party schema is a party: a vector of norm at most 1, so 1, and 4 for two that are opposed. Both
    are attained."""
    _require_formula(weights, "P")
    return (1 if adjacency == "add-remove" else 4) * weights.get("P", 0.0)


_SQUARES: Mapping[str, Callable[[Any, Mapping[str, float], Adjacency], float]] = {
    "classes": _class_square,
    "ridge": _ridge_square,
    "counts": _count_square,
    "scoring": _count_square,
    "sites": _site_square,
    "score": _score_square,
    "hazard": _hazard_square,
    "effect": _effect_square,
    "gradients": _gradient_square,
    "calibration": _calibration_square,
    "mean": _mean_square,
    "within": _within_square,
    "gaussians": _gaussian_square,
    "party-softmax": _party_square,
    "party-update": _party_square,
}
"""The square of mu of one record by the schema's task, from the schema, the weights and the adjacency."""

_CLIENT_SQUARES: Mapping[str, Callable[[Any, Mapping[str, float], Adjacency, float], float]] = {
    "sites": _site_client_square
}
"""That of one client of so many records, where it is less than :func:`group_mu` says."""
