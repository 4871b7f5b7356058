"""Calibrate pure epsilon (delta = 0): exact L1 sensitivities, scales of Laplace noise, and the implied Gaussian DP.

Proofs: docs/proofs/sensitivity.md and docs/proofs/pure_epsilon.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from scipy.special import erfinv, ndtri

from privstats.dp.privacy import Adjacency, Privacy
from privstats.dp.samplers import MAX_SCALE
from privstats.dp.sensitivities import checked_shares, default_shares, grid_sensitivity
from privstats.errors import PlanError
from privstats.python_values import check_number
from privstats.schema import Schema, require_schema


def l1_sensitivity(schema: Schema, statistic: str, adjacency: Adjacency) -> int:
    """Return one record's exact L1 sensitivity of a statistic in wire steps, attained by integer records.

    Add-remove, with r = 2**grid_bits the longest record in grid steps:

    - N: 4096.
    - A: the largest ``sum_i |x_i|`` of d integers with ``sum_i x_i^2 <= r^2``, at most r sqrt(d).
    - D: r^2, because the entries sum to ``sum_i x_i^2``.
    - T of count tables: 4096 per table.

    Replace-one: twice that, attained by two such records of different classes, or that differ in every table
    (docs/proofs/sensitivity.md).

    Raises:
        PlanError: an unknown adjacency, or another statistic. B and S have an L1 sensitivity of r^2 (d + 1) / 2, which
            makes their heads useless.

    Example:
        >>> schema = ps.ClassSchema(2, 4, "NA", clip_norm=1.0, grid_bits=10)
        >>> ps.dp.l1_sensitivity(schema, "A", "add-remove")  # (512, 512, 512, 512), a record of length 1024
        2048
    """
    require_schema(schema)
    if adjacency not in ("add-remove", "replace-one"):
        raise PlanError(f"adjacency must be 'add-remove' or 'replace-one', got {adjacency!r}: choose one")
    return _moved(schema, statistic) * (1 if adjacency == "add-remove" else 2)


def _moved(schema: Schema, statistic: str) -> int:
    moved = schema.longest(statistic)
    if moved is None:
        raise PlanError(
            "delta = 0 is supported for the class statistics N, A and D, for count tables and for scores; "
            f"a {type(schema).__name__} sends {statistic}: omit it, or give a delta above 0"
        )
    return moved


def joint_epsilon(schema: Schema, scales: Mapping[str, float], adjacency: Adjacency) -> float:
    """Return epsilon of releasing the named statistics together, each with discrete Laplace noise of its scale.

    Epsilon is ``sum_s Delta_s / b_s`` over L1 sensitivities. In the limit of fine grids a full-length record of equal
    entries attains it, or under replace-one two such records of different classes.

    Args:
        scales: b per released statistic, in wire steps.

    Guarantee:
        Unit: one record. The release is epsilon-DP with delta = 0 (Dwork, McSherry, Nissim and Smith 2006; for integers
        Ghosh, Roughgarden and Sundararajan 2009). The density ratio of independent entries is at most
        ``exp(sum_i |v_i - v'_i| / b_i)``.

    Raises:
        PlanError: as for :func:`l1_sensitivity`, no scale, or one not above 0.

    Example:
        >>> schema = ps.ClassSchema(2, 4, "NA", clip_norm=1.0, grid_bits=10)
        >>> ps.dp.joint_epsilon(schema, {"N": 4096.0 / 0.25, "A": 2048.0 / 0.75}, "add-remove")
        1.0
    """
    if not scales:
        raise PlanError("scales is empty, as for Gaussian noise: give the scale of each released statistic")
    for statistic, scale in scales.items():
        check_number(f"scale of {statistic}", scale, "finite and above 0", 0, ends="()")
    return math.fsum(l1_sensitivity(schema, s, adjacency) / scale for s, scale in scales.items())


def pure_mu(epsilon: float) -> float:
    """Return the smallest mu for which every epsilon-DP release is mu-GDP: 2 Phi^-1(e^epsilon / (1 + e^epsilon)).

    The mu-GDP curve is below the epsilon-DP one everywhere if it is below at the latter's kink:
    ``Phi(-mu / 2) <= 1 / (1 + e^epsilon)``. Randomised response attains this. Proof: docs/proofs/pure_epsilon.md.

    Raises:
        PlanError: epsilon is not finite and at least 0.

    Example:
        >>> round(ps.dp.pure_mu(1.0), 4)
        1.232
    """
    check_number("epsilon", epsilon, "finite and at least 0", 0, ends="[)")
    if epsilon < 1:  # the same value, without the rounding of a probability near 1 / 2
        return math.sqrt(8) * float(erfinv(math.tanh(epsilon / 2)))
    return -2 * float(ndtri(math.exp(-epsilon) / (1 + math.exp(-epsilon))))


def laplace_mu(schema: Schema, scales: Mapping[str, float], adjacency: Adjacency, records: int = 1) -> dict[str, float]:
    """Return mu per statistic with discrete Laplace noise, for a unit of at most ``records`` records.

    ``mu_s = min(pure_mu(m Delta_1 / b), sqrt(pi / 2) m Delta_2 / b)`` with m records, sensitivities Delta_1 in L1 and
    Delta_2 in L2, and scale b, in wire steps.

    Guarantee:
        Unit: one record, one client of at most m, or one person's average of rows. Truncated averages
        of N, A, D and T move sums no farther than records do. All statistics together are sqrt(sum_s mu_s^2)-GDP.
        A statistic is epsilon-DP, hence pure_mu-GDP. An entry that moves by x_i is (|x_i| / b)-DP, so the statistic is
        also sqrt(sum_i pure_mu(|x_i| / b)^2)-GDP (Dong, Roth and Su 2022, corollary 2). Here
        pure_mu(e) <= sqrt(pi / 2) e (Sampford 1953; docs/proofs/pure_epsilon.md).
    """
    out = {}
    for statistic, scale in scales.items():
        spread = math.sqrt(math.pi / 2) * records * grid_sensitivity(schema, statistic, adjacency) / scale
        out[statistic] = min(pure_mu(records * l1_sensitivity(schema, statistic, adjacency) / scale), spread)
    return out


def scales_of(schema: Schema, privacy: Privacy, shares: Mapping[str, float]) -> dict[str, float]:
    """Return scales in wire steps at which the unit costs at most epsilon, split by ``shares``.

    A client's m records move sums at most m times as far as one. A margin covers rounding, and
    ``sum_s Delta_s / b_s <= epsilon`` is checked in exact fractions.
    """
    moved = {s: unit_l1(schema, privacy, s) for s in shares}
    margin = privacy.trust.margin
    scales = {s: moved[s] / (privacy.epsilon * margin * share) for s, share in shares.items()}
    spent = sum(moved[s] / Fraction(scale) for s, scale in scales.items())
    if spent > Fraction(privacy.epsilon):
        raise PlanError("the scales of the noise exceed epsilon in rounding: this is a bug in privstats, report it")
    return scales


def unit_l1(schema: Schema, privacy: Privacy, statistic: str) -> int:
    """Return :func:`l1_sensitivity` for the unit: a record, a person's average, or a client's maximum of records."""
    return (privacy.max_records_per_client or 1) * l1_sensitivity(schema, statistic, privacy.adjacency)


def laplace_sigma(scale: float) -> float:
    """Return discrete Laplace noise's standard deviation: 1 / (sqrt 2 sinh(1 / (2 scale)))."""
    return 1 / (math.sqrt(2) * math.sinh(1 / (2 * scale)))


def laplace_tail(scale: float, reach: float) -> float:
    """Return t / ``reach`` where |X| exceeds t steps with probability ``2 exp(-reach^2 / 2)`` at most.

    P(|X| > t) <= 2 exp(-t / scale), so t = scale reach^2 / 2. The sum of m >= 2 such entries exceeds sqrt(m) t with no
    higher probability, by Chernoff's bound:

    - As sinh(y) / y grows, an entry's moment generating function is at most the continuous 1 / (1 - (scale s)^2).
    - At s = 1.12 / (sqrt(m) scale) the exponent is at least 1.12 reach^2 / 2 - 1.98 (m = 2).
    - This exceeds reach^2 / 2 from reach^2 / 2 = 16.5 on.

    Every plan's reach^2 / 2 is at least ln(2 / ``plan.cohort.WRAP_PROBABILITY``) = 28.42.
    """
    return scale * reach / 2


def pure_shares(schema: Schema, shares: Mapping[str, float] | None) -> dict[str, float]:
    """Return a pure epsilon's parts: by default the normalised roots of the default shares."""
    if shares is not None:
        return checked_shares(schema, shares)
    roots = {statistic: math.sqrt(share) for statistic, share in default_shares(schema).items()}
    total = math.fsum(roots.values())
    return {statistic: root / total for statistic, root in roots.items()}


def check_scales(scales: Mapping[str, float]) -> None:
    """Refuse a scale above the sampler's limit."""
    for statistic, scale in scales.items():
        if scale > MAX_SCALE:
            or_share = f" or the share of {statistic}" if len(scales) > 1 else ""
            raise PlanError(
                f"noise on {statistic} has a scale of {scale:.3g} steps of the sent integers and at most 2**35 can be "
                f"sampled: raise epsilon{or_share if statistic in ('N', 'T') else ' or lower grid_bits'}"
            )
