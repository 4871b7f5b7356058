"""Compute exact L2 sensitivities: how far one record, client or person can move the complete release.

A single statistic's sensitivity is the kind's joint formula with one weight. Proofs: docs/proofs/sensitivity.md. Shares
sum to
1. A statistic's share is its part of mu^2 under add-remove, if one record is worst for all statistics at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from privstats.dp.privacy import Adjacency, Privacy
from privstats.errors import PlanError
from privstats.kinds.base import Kind, kind_of
from privstats.kinds.registry import KINDS
from privstats.schema import Schema, require_schema
from privstats.schema.base import by_letter

_ROUNDING = 2.0**-40
"""What rounding of floats may add to a noise's own mu, relative to it."""


def joint_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu of releasing the named statistics together, each with Gaussian noise of its sigma.

    With w_s = 1/sigma_s^2, mu is the largest weighted distance sqrt(sum_s w_s ||v_s - v'_s||^2) between the moments of
    two adjacent data sets (docs/proofs/sensitivity.md). Symmetric matrices count with the Frobenius norm, which fits
    noise of sigma on the diagonal and sigma/sqrt 2 off it.

    Args:
        schema: bounds every record: the clip norm R and, for ridge, the target bound Y.
        sigmas: noise per released statistic in real units. B and D may be named too if the schema sends S, for separate
            noise on them.

    Returns:
        mu of one record; under a party schema, of one party.

    Guarantee:
        Unit: one record; for a ``GaussianSchema`` a complete client, which costs m mu with m records. A release with
        this noise on the named statistics is mu-GDP. Some adjacent data sets attain it or come arbitrarily close,
        except for these upper bounds:

        - gradients, calibrations, ``WithinSchema``.
        - under replace-one: hazards, numbers by group next to tables, effects with weights W.
        - under replace-one: a logistic regression's g and H with w_H R^2 > 11.09 w_g.

        Assumes that every record obeys the schema's bounds, which the client enforces when it clips and quantises.

    Raises:
        PlanError: a statistic that the schema does not send, a sigma not above 0, an unknown adjacency.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=3.0)
        >>> ps.dp.joint_mu(schema, {"N": 10.0, "A": 40.0}, "add-remove")  # sqrt((1 / 10)^2 + (3 / 40)^2)
        0.125
    """
    require_schema(schema)
    weights = _weights(schema, sigmas)
    if adjacency not in ("add-remove", "replace-one"):
        raise PlanError(f"adjacency must be 'add-remove' or 'replace-one', got {adjacency!r}: choose one")
    return math.sqrt(_square(_proving(schema, weights), weights, adjacency))


def client_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency, records: float) -> float:
    """Return mu of one client that holds at most m = ``records`` records.

    mu is m mu_add under add-remove and m max(mu_add, mu_rep) under replace-one (:func:`group_mu`). Where
    :func:`joint_mu` is attained, m copies of the worst record or pair attain it. A ``SitesSchema`` costs a client less
    (docs/proofs/sensitivity.md), attained if half its records oppose the other half.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> round(ps.dp.client_mu(schema, {"N": 10.0, "A": 10.0}, "add-remove", records=5), 3)
        0.707
    """
    require_schema(schema)
    weights = _weights(schema, sigmas)
    square = _proving(schema, weights).move_of_client(weights, adjacency, records)
    return group_mu(schema, sigmas, adjacency, records) if square is None else math.sqrt(square)


def group_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency, records: float) -> float:
    """Return mu of any ``records`` records together, such as one person's, over all clients (:func:`joint_mu`).

    Changing m records is m changes of one record. Each costs at most mu_add, or max(mu_add, mu_rep) under replace-one.

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
    """Return one statistic's L2 sensitivity to the unit of :func:`joint_mu`, in real units.

    Add-remove, then replace-one (further kinds: docs/proofs/sensitivity.md):

    - N: 1, sqrt 2
    - A: R, 2R (sqrt 2 R for non-negative features)
    - B, S, D, G: R^2, sqrt 2 R^2
    - h: RY, 2RY
    - q: Y^2, Y^2 (sqrt 2 Y^2 where a record can change fold)

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=3.0)
        >>> ps.dp.sensitivity(schema, "A", "add-remove"), ps.dp.sensitivity(schema, "A", "replace-one")
        (3.0, 6.0)
    """
    return joint_mu(schema, {statistic: 1.0}, adjacency)


def grid_sensitivity(schema: Schema, statistic: str, adjacency: Adjacency) -> float:
    """Return :func:`sensitivity` in wire steps.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0, grid_bits=12)
        >>> ps.dp.grid_sensitivity(schema, "A", "add-remove")
        4096.0
    """
    return sensitivity(schema, statistic, adjacency) * schema.scale_of(statistic)


def _proving(schema: Schema, weights: Mapping[str, float]) -> Kind:
    """Return the schema; refuse a statistic that ``move`` does not cover, because it would count as free."""
    kind = kind_of(schema)
    if not kind.proved:
        raise PlanError(f"no sensitivity is proved for a {type(schema).__name__}; measure a schema of another kind")
    unknown = [statistic for statistic in weights if statistic not in kind.proved]
    if unknown:
        raise PlanError(f"no sensitivity is proved for statistic {', '.join(unknown)}; exclude it from the schema")
    return kind


def _square(kind: Kind, weights: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu^2 as the kind states it; what another package states must be a bound in form at least."""
    package = KINDS.origin(kind.task)
    if not package:
        return kind.move(weights, adjacency)
    # An excluded record replaced by another one moves the sums as an added one does.
    squares = [kind.move(weights, each) for each in dict.fromkeys(("add-remove", adjacency))]
    if not all(isinstance(each, int | float) and math.isfinite(each) and each >= 0 for each in squares):
        raise PlanError(
            f"move of task {kind.task!r} must return a finite number of at least 0, got {squares!r:.80}: {package} "
            "states no bound there; choose another schema"
        )
    return max(squares)


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
            raise PlanError(f"sigma of {statistic} must be finite and above 0, got {sigma!r}: else mu is infinite")
    return {statistic: sigma**-2 for statistic, sigma in sigmas.items()}


def unit_mu(schema: Schema, privacy: Privacy, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu of an unclipped unit: linear in a common factor of all 1 / sigma."""
    if privacy.averaged:
        return averaged_mu(schema, sigmas, adjacency)
    if privacy.max_records_per_client is not None:
        return client_mu(schema, sigmas, adjacency, privacy.max_records_per_client)
    return joint_mu(schema, sigmas, adjacency)


def averaged_mu(schema: Schema, sigmas: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return mu of one person who adds the average of the rows' sums, truncated toward zero to integer steps.

    Under add-remove an average costs one record. Replace-one adds truncation, less than one step per entry;
    :func:`apart` bounds it, too. Proof: docs/proofs/persons.md, One person.

    Guarantee:
        Unit: one person with any number of rows at one party. For every kind with sums over records.

    Example:
        >>> schema, noise = ps.ClassSchema(2, 2, "NA", clip_norm=3.0), {"N": 10.0, "A": 40.0}
        >>> ps.dp.averaged_mu(schema, noise, "add-remove") == ps.dp.joint_mu(schema, noise, "add-remove")
        True
        >>> round(ps.dp.averaged_mu(schema, noise, "replace-one") / ps.dp.joint_mu(schema, noise, "replace-one"), 2)
        1.0
    """
    added = joint_mu(schema, sigmas, "add-remove")
    if adjacency == "add-remove":
        return added
    opposed = joint_mu(schema, {s: sigma / apart(schema, s, adjacency) for s, sigma in sigmas.items()}, "add-remove")
    if not kind_of(schema).nearer:
        return opposed
    return min(opposed, max(added, joint_mu(schema, sigmas, adjacency)) + _truncation(schema, sigmas))


def _truncation(schema: Schema, sigmas: Mapping[str, float]) -> float:
    """Bound how far truncation moves two averages apart: one step per entry of the full (not triangular) matrix."""
    rows = by_letter(schema.table, "".join(sigmas))
    steps = {row.letter: math.prod(row.shape(schema.sizes)) for row in rows}
    return math.sqrt(math.fsum(steps[s] / (sigma * schema.scale_of(s)) ** 2 for s, sigma in sigmas.items()))


def apart(schema: Schema, statistic: str, adjacency: Adjacency) -> float:
    """Bound the ratio of two persons' distance to the root mean square of their lengths; 1 under add-remove.

    ``|v - v'|^2 <= 2 (|v|^2 + |v'|^2)`` for any two vectors, and half of that where no entry is negative. A positive
    definite matrix does not have the smaller bound, because truncating its entries may make it indefinite.
    """
    if adjacency == "add-remove":
        return 1.0
    return math.sqrt(2) if statistic in kind_of(schema).unsigned else 2.0


def default_shares(schema: Schema) -> dict[str, float]:
    """Return the kind's own shares: N .02, A .85 and .13 over the second moments; ridge G .5, h .48, q .02.

    Without second moments A has .98. No promise depends on shares.

    Example:
        >>> ps.dp.default_shares(ps.ClassSchema(2, 2, "NAB", clip_norm=1.0))
        {'N': 0.02, 'A': 0.85, 'B': 0.13}
    """
    require_schema(schema)
    fixed = {row.letter: row.share for row in schema.sent if row.share is not None}
    others = [row.letter for row in schema.sent if row.share is None]
    rest = 1 - math.fsum(fixed.values())
    if not others:
        largest = max(fixed, key=fixed.__getitem__)
        return {**fixed, largest: fixed[largest] + rest}
    return {**fixed, **dict.fromkeys(others, rest / len(others))}


def checked_shares(schema: Schema, shares: Mapping[str, float] | None) -> dict[str, float]:
    """Return shares in the schema's order, or the defaults.

    Raises:
        PlanError: shares that do not name exactly the schema's statistics.
    """
    if shares is None:
        return default_shares(schema)
    missing = [statistic for statistic in schema.statistics if statistic not in shares]
    unknown = sorted(set(shares) - set(schema.statistics))
    if missing or unknown:
        wrong = f"lack {', '.join(missing)}" if missing else f"name {', '.join(unknown)}, which is not sent"
        raise PlanError(f"shares {wrong}: give exactly {', '.join(schema.statistics)}, summing to 1")
    return {statistic: shares[statistic] for statistic in schema.statistics}


def allocate(
    shares: Mapping[str, float],
    mu: float,
    cost: Callable[[Mapping[str, float], Adjacency], float],
    adjacency: Adjacency,
) -> dict[str, float]:
    """Return the noise per statistic, in real units, that spends exactly ``mu`` in these proportions.

    sigma_s is proportional to Delta_s / sqrt(share_s), with the add-remove sensitivity Delta_s. One factor then sets
    the joint mu, which is exact because mu^2 is linear in a common factor of all 1/sigma_s^2. Under add-remove the
    factor is 1 / mu if one record is worst for all statistics at once, else it is smaller.

    Args:
        cost: mu of the promise's unit, from noise scales and an adjacency (``unit_mu``).
    """
    unit = {s: cost({s: 1.0}, "add-remove") / math.sqrt(share) for s, share in shares.items()}
    factor = cost(unit, adjacency) / mu
    sigmas = {statistic: sigma * factor for statistic, sigma in unit.items()}
    if not cost(sigmas, adjacency) <= mu * (1 + _ROUNDING):
        raise PlanError(
            "the bound of these sums is no square form of the noise, so no noise keeps this promise; report it to the "
            "package that states the bound"
        )
    return sigmas
