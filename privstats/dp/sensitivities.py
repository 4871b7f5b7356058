"""Exact L2 sensitivities: how far one record, one client or one person can move the whole release.

The joint formulas of ``closed_forms`` are the primitive; a single statistic is the joint one with one weight.
``allocation`` and ``calibration`` choose the noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from privstats.dp.closed_forms import CLIENT_SQUARES, SQUARES
from privstats.dp.privacy import Adjacency
from privstats.errors import PlanError, SchemaError
from privstats.schema import Schema, require_schema, row_of

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
        square = row_of(SQUARES, schema, "sensitivity")
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
    of_client = CLIENT_SQUARES.get(schema.task)
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
