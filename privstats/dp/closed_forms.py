"""How far one record can move all sums of its kind together, squared and weighted, in closed form: one function a kind.

Derivations and worst-case pairs: docs/sensitivity.md. A statistic that a formula does not cover is refused, because it
would count as free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError
from privstats.schema import COUNT_SCALE
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

__all__ = ["CLIENT_SQUARES", "SQUARES"]


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


SQUARES: Mapping[str, Callable[[Any, Mapping[str, float], Adjacency], float]] = {
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

CLIENT_SQUARES: Mapping[str, Callable[[Any, Mapping[str, float], Adjacency, float], float]] = {
    "sites": _site_client_square
}
"""That of one client of so many records, where it is less than :func:`group_mu` says."""
