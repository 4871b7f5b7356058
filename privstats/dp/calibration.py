"""Compute each statistic's noise scale from a promise and a trust model.

Pure arithmetic on the schema and the promise, without data or randomness.

Excess noise comes in layers. A level is a number of clients that a share can be sized for. A client's full share,
sized for the lowest level, is the sum of a base and one layer for each step between levels. The base is sized for *all*
clients. Each layer has its own secret seed. After the list of survivors is signed, each client reveals its superfluous
layers' seeds, and the server subtracts these layers.
Statement and proof: docs/proofs/surplus_noise.md, 6; the idea is XNoise's (Jiang, Wang and Chen, Dordis, EuroSys 2024).

A class below the minimum count is suppressed by its noisy count only, so the decision costs no privacy.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.dp.gaussian import Guarantee, compose, gaussian_epsilon, gaussian_mu
from privstats.dp.privacy import MODELS, Model, Privacy, TrustModel
from privstats.dp.pure import check_scales, laplace_mu, laplace_sigma, laplace_tail, pure_shares, scales_of, unit_l1
from privstats.dp.samplers import MAX_SIGMA
from privstats.dp.sensitivities import allocate, apart, checked_shares, sensitivity, unit_mu
from privstats.encoding import Layout, Segment, layout_of
from privstats.errors import PlanError
from privstats.schema import COUNT_SCALE, Schema

MIN_TOTAL_SIGMA = 64.0
"""Minimum guaranteed sigma of a segment, in wire steps."""
MIN_SHARE_SIGMA = 4.0
"""Minimum sigma of one client's share or layer, in wire steps. Sums of shares are then discrete Gaussians up to a
max-divergence of 1e-66; proof: docs/proofs/noise.md, Distributed, fact 1."""


@dataclass(frozen=True)
class NoiseRow:
    """One statistic of a calibrated release.

    Attributes:
        statistic: its letter.
        sensitivity: its L2 sensitivity to one unit, in real units; L1 for a pure promise.
        sigma: guaranteed noise SD, in real units.
        mu: sensitivity / sigma; ``pure.laplace_mu`` for a pure promise.
        epsilon: cost of releasing it alone, at the plan's delta.
        share: its share of the budget (:func:`~privstats.dp.sensitivities.allocate`), or of a pure epsilon.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> row = ps.dp.calibrate(schema, privacy, honest_shares=1).rows[0]
        >>> row.statistic, row.sensitivity, round(row.mu, 4) == round(row.sensitivity / row.sigma, 4)
        ('N', 1.0, True)
    """

    statistic: str
    sensitivity: float
    sigma: float
    mu: float
    epsilon: float
    share: float


@dataclass(frozen=True)
class Noise:
    """Noise scales that meet a promise.

    Attributes:
        model: the trust model, which fixes who adds the noise.
        honest_shares: number of honest clients certain to be in the sum; used only if clients divide the noise.
        mu, epsilon, delta: the full release's guarantee for one record, client or person.
        slack: max-divergence between summed shares and post-processed Gaussian noise; ``privacy.MARGIN`` covers it.
        members: panel members, who each add the full noise; 1 in other models.
        laplace: discrete Laplace scale per statistic in wire steps, if delta is 0; else empty.
        levels: where excess noise is removed, the client counts that a share can be sized for, rising from the
            minimum of survivors; else empty.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> noise = ps.dp.calibrate(schema, privacy, honest_shares=1)
        >>> {row.statistic: round(row.sigma, 2) for row in noise.rows}
        {'N': 26.38, 'A': 3.77}
    """

    model: Model
    honest_shares: int
    mu: float
    epsilon: float
    delta: float
    rows: tuple[NoiseRow, ...]
    slack: float = 0.0
    members: int = 1
    laplace: tuple[tuple[str, float], ...] = ()
    levels: tuple[int, ...] = ()

    @property
    def pure(self) -> bool:
        """Whether delta is 0 and the noise discrete Laplace."""
        return bool(self.laplace)

    @property
    def scales(self) -> dict[str, float]:
        """Discrete Laplace scale per statistic, in wire steps."""
        return dict(self.laplace)

    @property
    def guarantee(self) -> Guarantee:
        """The release's guarantee per unit, as a bound on every attacker."""
        return Guarantee(self.mu, self.epsilon if self.pure else math.inf)

    @property
    def trust(self) -> TrustModel:
        """The trust model that ``model`` names."""
        return MODELS[self.model]

    @property
    def sigma(self) -> Mapping[str, float]:
        """Guaranteed noise per statistic in real units."""
        return {row.statistic: row.sigma for row in self.rows}

    def grid_sigma(self, segment: Segment) -> float:
        """Return a segment's guaranteed noise in wire steps (sigma / sqrt 2 off the diagonal)."""
        return self.sigma[segment.statistic] * segment.scale * segment.noise_factor

    def share_sigma(self, segment: Segment) -> float:
        """Return one sample's sigma in wire steps: the full noise, or one client's share.

        Distributed: ``honest_shares`` shares sum to variance grid_sigma^2 + 4, and the 4 pays for discreteness.
        """
        return math.sqrt(self._variance(segment) / self._shares)

    def layered_sigmas(self, segment: Segment) -> tuple[float, ...]:
        """Return the sigmas of a share's base and layers, lowest first, in wire steps.

        Their squares sum to that of :meth:`share_sigma`. A share without its j lowest layers is sized for ``levels[j]``
        clients.
        """
        if not self.levels:
            return (self.share_sigma(segment),)
        return layer_sigmas(self._variance(segment), [self._honest(level) for level in self.levels])

    def tail_sigma(self, segment: Segment, clients: int, reach: float) -> float:
        """Return the sub-Gaussian parameter, in wire steps, of all noise in one entry of a sum of ``clients``.

        P(|noise| > z tail_sigma) <= 2 exp(-z^2/2) at z = ``reach``, and for Gaussian noise at every z. Discrete
        Gaussians are sigma-sub-Gaussian (Canonne, Kamath and Steinke 2020, corollary 17), and squared parameters add
        up; rounding adds at most 1/2 to each sample's parameter.
        """
        if self.pure:
            return laplace_tail(self.scales[segment.statistic], reach)
        return (self.share_sigma(segment) + self.trust.rounding) * math.sqrt(self.trust.draws(clients, self.members))

    def released_sigma(self, survivors: int) -> dict[str, float]:
        """Return a release's noise with ``survivors`` clients, in real units, less the excess that the plan removes."""
        return {statistic: sigma * self._surplus(survivors) for statistic, sigma in self.sigma.items()}

    def max_sigma(self, clients: int) -> dict[str, float]:
        """Return the largest noise of a release, in real units: all shares, no layer removed."""
        return self.sigma_at_levels([self.levels[0]] * clients) if self.levels else self.released_sigma(clients)

    def sigma_at_levels(self, left_for: Iterable[int]) -> dict[str, float]:
        """Return a release's noise in real units; each survivor's share is sized for its level in ``left_for``."""
        surplus = math.sqrt(math.fsum(1 / self._honest(level) for level in left_for))
        return {statistic: sigma * surplus for statistic, sigma in self.sigma.items()}

    def released_epsilon(self, survivors: int) -> float:
        """Return epsilon at the plan's delta if an attacker does not know the noise of ``survivors`` *honest* clients.

        Distributed: ``survivors`` is at least ``honest_shares``, else nothing is unmasked; with levels, the level
        reached sets the noise. Local: each upload alone keeps the promise; the epsilon counts all ``survivors``
        samples. Panel: one member's noise keeps the promise; the epsilon is against a reader who knows no member's.
        """
        mu = self.released_mu(survivors)
        return self.epsilon if self.pure else gaussian_epsilon(mu, self.delta)

    def released_mu(self, survivors: int) -> float:
        """Return mu under the assumption of :meth:`released_epsilon`."""
        if isinstance(survivors, bool) or not isinstance(survivors, Integral) or survivors < 1:
            raise PlanError(f"survivors must be an integer of at least 1, got {survivors!r}")
        if self.pure:
            return self.mu
        colluders = self.levels[0] - self.honest_shares if self.levels else 0
        return self.mu / self._surplus(survivors, survivors + colluders)

    def _surplus(self, samples: int, clients: int | None = None) -> float:
        """Return the ratio of ``samples`` samples' noise to the guaranteed noise."""
        reached = level_at(self.levels, samples if clients is None else clients) if self.levels else 0
        shares = self._honest(reached) if self.levels else self._shares
        return math.sqrt(self.trust.draws(samples, self.members) / shares)

    def _honest(self, level: int) -> int:
        return level - self.levels[0] + self.honest_shares

    def _variance(self, segment: Segment) -> float:
        total = self.grid_sigma(segment)
        return total * total + self.trust.surplus_variance

    @property
    def _shares(self) -> int:
        return self.trust.shares(self.honest_shares)


def calibrate(
    schema: Schema, privacy: Privacy, *, honest_shares: int, members: int = 1, levels: tuple[int, ...] = ()
) -> Noise:
    """Compute the minimum noise that keeps the promise, split over the statistics by its shares.

    Args:
        honest_shares: min_survivors - colluders: the number of clients with shares that an attacker neither knows nor
            can remove (distributed model).
        members: number of leader and helpers, each with the full noise; above 1 in the panel model only.
        levels: ``levels_of`` the cohort, where excess noise is removed (distributed model).

    Guarantee:
        The release is (epsilon, delta)-DP for the unit and adjacency of ``privacy``; a margin of 2**-40 on both pays
        for rounding (``privacy.MARGIN``).
        Central: assumes an honest server and is exactly mu-GDP.
        Distributed: assumes at least ``honest_shares`` honest clients in the sum, and nothing about the server. It is
        mu-GDP up to a max-divergence of ``slack`` < 1e-20, which the margin covers. With ``levels`` this holds for
        the noise that remains after every client has opened its superfluous layers.
        Local: every upload alone is mu-GDP, without an assumption about any party.
        Panel: every member's noise is sized as the central server's. The sum with the noise of one member that an
        attacker does not know is mu-GDP. Noise that others add is post-processing (Dong, Roth and Su 2022, proposition
        4). This assumes one honest member, and holds computationally, as the masking does.
        With delta = 0 (central): discrete Laplace noise of scale Delta_s / epsilon_s on every entry. The statistics'
        epsilons add up to at most the promise (``dp.joint_epsilon``). mu is ``pure.laplace_mu`` of all statistics
        together, at most ``dp.pure_mu`` of the promise (docs/proofs/noise.md).

    Raises:
        PlanError: shares do not fit the schema, or ``members`` or ``levels`` the model. No honest share remains, or
            noise is too small or too large for the grid.

    Example:
        >>> schema = ps.ClassSchema(2, 2, "NA", clip_norm=1.0)
        >>> privacy = ps.Privacy(model="central", unit="record", adjacency="add-remove", epsilon=1.0, delta=1e-5)
        >>> noise = ps.dp.calibrate(schema, privacy, honest_shares=1)
        >>> sigmas = {row.statistic: row.sigma for row in noise.rows}
        >>> np.isclose(ps.dp.joint_mu(schema, sigmas, "add-remove"), ps.dp.gaussian_mu(1.0, 1e-5))
        np.True_
    """
    trust = privacy.trust
    _check_members(trust, members)
    if levels and not trust.divided:
        raise PlanError(f"no excess noise is in a sum of the {trust.name} model, so none is removed: omit levels")
    if trust.shares(honest_shares) < 1:
        raise PlanError(
            f"min_survivors - colluders must be at least 1, got {honest_shares}: raise min_survivors, "
            "because the guarantee rests on the noise of honest survivors"
        )
    if privacy.pure:
        return _calibrate_pure(schema, privacy, honest_shares)
    shares = checked_shares(schema, privacy.shares)
    mu = gaussian_mu(privacy.epsilon * trust.margin, privacy.delta * trust.margin)
    sigma = _levels(schema, privacy, shares, mu)
    rows = tuple(_row(schema, privacy, statistic, sigma[statistic], share) for statistic, share in shares.items())
    layout = layout_of(schema)
    slack = layout.size * trust.slack
    noise = Noise(trust.name, honest_shares, mu, privacy.epsilon, privacy.delta, rows, slack, members, levels=levels)
    for segment in layout.segments:
        _check_grid(schema, noise, segment)
    return noise


def _calibrate_pure(schema: Schema, privacy: Privacy, honest_shares: int) -> Noise:
    shares = pure_shares(schema, privacy.shares)
    scales = scales_of(schema, privacy, shares)
    check_scales(scales)
    # Without the margin the scales are smaller, so their mu bounds that of the noise.
    promised = {s: scale * privacy.trust.margin for s, scale in scales.items()}
    mus = laplace_mu(schema, promised, privacy.adjacency, privacy.max_records_per_client or 1)
    rows = []
    for s, share in shares.items():
        steps, sigma = schema.scale_of(s), laplace_sigma(scales[s])
        bound, epsilon = unit_l1(schema, privacy, s), privacy.epsilon * share
        rows.append(NoiseRow(s, bound / steps, sigma / steps, mus[s], epsilon, share))
    promise = (compose(mus.values()), privacy.epsilon, 0.0)
    return Noise(privacy.model, honest_shares, *promise, tuple(rows), laplace=tuple(scales.items()))


def _check_members(trust: TrustModel, members: int) -> None:
    if trust.drawn_by == "member" and members < 2:
        raise PlanError(
            f"noise of the {trust.name} model is sampled by a leader and at least one helper, got members={members}: "
            "give one more than the plan has helpers"
        )
    if trust.drawn_by != "member" and members != 1:
        raise PlanError(f"no panel samples the noise of the {trust.name} model, got members={members}: leave it at 1")


def _levels(schema: Schema, privacy: Privacy, shares: Mapping[str, float], mu: float) -> dict[str, float]:
    """Return the noise scales at which one unit costs ``mu``.

    A clipped unit has sum_s share_s ||v_s||^2 / Delta_s^2 <= clip^2, so it costs at most mu with sigma_s = Delta_s clip
    / (mu sqrt(share_s)). No sigma_s can be smaller, because a unit may put all of its norm into one statistic. Two
    persons differ in a statistic by at most ``apart`` times the root mean square of their lengths.
    """
    if privacy.clip is not None:
        worth = mu / privacy.clip
        far = {s: sensitivity(schema, s, "add-remove") * apart(schema, s, privacy.adjacency) for s in shares}
        return {s: far[s] / (worth * math.sqrt(share)) for s, share in shares.items()}
    return allocate(shares, mu, partial(unit_mu, schema, privacy), privacy.adjacency)


def _row(schema: Schema, privacy: Privacy, statistic: str, sigma: float, share: float) -> NoiseRow:
    bound = _bound(schema, privacy, statistic, share)
    mu = bound / sigma
    alone = gaussian_epsilon(mu, privacy.delta) if mu else 0.0  # mu is 0 for a count that replace-one cannot change
    return NoiseRow(statistic, bound, sigma, mu, alone, share)


def _bound(schema: Schema, privacy: Privacy, statistic: str, share: float) -> float:
    """Return one statistic's sensitivity; a clipped client or person may put all its norm into that statistic."""
    if privacy.unit == "person" and privacy.clip is not None:
        far = sensitivity(schema, statistic, "add-remove") * apart(schema, statistic, privacy.adjacency)
        return far * privacy.clip / math.sqrt(share)
    mu, clip = unit_mu(schema, privacy, {statistic: 1.0}, privacy.adjacency), privacy.client_clip
    record = sensitivity(schema, statistic, privacy.adjacency)
    return mu if clip is None else min(mu, record * clip / math.sqrt(share))


# The proof needs 4 steps per share; the 64 per segment are a reserve (docs/proofs/noise.md, Distributed and Safe grid).
def _check_grid(schema: Schema, noise: Noise, segment: Segment) -> None:
    largest, total, share = noise.share_sigma(segment), noise.grid_sigma(segment), min(noise.layered_sigmas(segment))
    # Counts are sent on a grid that no plan sets, and some schemas fix grid_bits.
    set_by_grid = "grid_bits" in vars(schema) and any(r.degree for r in schema.sent if r.letter == segment.statistic)
    or_share = f" or the share of {segment.statistic}" if len(noise.rows) > 1 else ""
    if largest > MAX_SIGMA:
        raise PlanError(
            f"noise on {segment.name} is {largest:.3g} steps of the sent integers and at most 2**48 can be sampled: "
            f"raise epsilon{' or lower grid_bits' if set_by_grid else or_share}"
        )
    sample = "a layer of noise" if noise.levels else "a noise share"
    for name, size, minimum in (("noise", total, MIN_TOTAL_SIGMA), (sample, share, MIN_SHARE_SIGMA)):
        if size < minimum:
            raise PlanError(
                f"{name} on {segment.name} is {size:.3g} and must be at least {minimum:g} steps of the sent integers: "
                f"lower epsilon{' or raise grid_bits' if set_by_grid else or_share}"
            )


# Significant bits of a layer's sigma: machines whose variances differ in the last digits then sample equal layers,
# unless a sigma is within that difference of a rounding boundary.
_BITS = 24


def levels_of(clients: int, min_survivors: int, colluders: int) -> tuple[int, ...]:
    """Return the client counts that a remaining share can be sized for, ``min_survivors`` to ``clients``.

    With few clients every count is a level. Otherwise honest clients rise by one, or by at most 10 % (15 % in the
    lowest step). Sums between two levels carry at most that much surplus variance.

    Example:
        >>> from privstats.dp.calibration import levels_of
        >>> levels_of(20, 16, 2), levels_of(100, 60, 10)
        ((16, 17, 18, 19, 20), (60, 63, 68, 73, 79, 85, 92, 100))
    """
    minimum, honest = min_survivors - colluders, [clients - colluders]
    while honest[-1] > minimum:
        honest.append(_below(honest[-1], minimum))
    return tuple(count + colluders for count in reversed(honest))


def _below(honest: int, minimum: int) -> int:
    """Return the number of honest clients at the next lower level.

    Ten elevenths of ``honest``, rounded up, but at least ``minimum`` and at most ``honest`` - 1. If that is below
    ``honest`` - 1 and ``honest`` is at most 1.15 ``minimum``, the number is ``minimum``.
    """
    next_one = min(honest - 1, -(-10 * honest // 11))
    near = next_one < honest - 1 and 100 * honest <= 115 * minimum
    return minimum if near else max(minimum, next_one)


def level_at(levels: Sequence[int], clients: int) -> int:
    """Return the highest level of at most ``clients``, else the lowest."""
    return levels[max(0, bisect_right(levels, clients) - 1)]


def layer_sigmas(variance: float, honest: Sequence[int]) -> tuple[float, ...]:
    """Return the base's sigma, then every layer's, lowest first.

    Args:
        variance: variance of all honest shares' noise in a sum.
        honest: honest shares at each level; rising.

    Guarantee:
        A share without its j lowest layers has a variance of at least ``variance / honest[j]``. A layer's sigma is
        rounded down, and the base makes up for it.
    """
    layers = tuple(
        _rounded_down(math.sqrt(variance * (more - fewer) / (fewer * more))) for fewer, more in pairwise(honest)
    )
    return math.sqrt(variance / honest[0] - math.fsum(sigma * sigma for sigma in layers)), *layers


def _rounded_down(sigma: float) -> float:
    part, exponent = math.frexp(sigma)
    return math.ldexp(math.floor(math.ldexp(part, _BITS)), exponent - _BITS)


def without_rare(
    layout: Layout, vector: NDArray[np.int64], min_count: float, parents: Mapping[int, int]
) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Return a noisy class vector without the sums of rare classes, and the rare classes.

    A rare class's sums move to its declared parent (:func:`destinations`) or are dropped; pooled statistics stay.

    Args:
        layout: a class schema's; its first segment holds the counts.
        vector: the lifted noisy vector, int64, flat, in wire steps; unchanged.
        min_count: minimum number of records; 0 retains every class.
        parents: for a class, the class that receives its sums.

    Example:
        >>> schema = ps.ClassSchema(3, 2, "NA", clip_norm=1.0)
        >>> moments = ps.measure(schema, np.array([[0.6, 0.8]] * 5), np.array([0, 0, 1, 1, 2]))
        >>> vector, rare = ps.dp.without_rare(ps.encoding.layout_of(schema), ps.encoding.flatten(moments), 2, {})
        >>> rare, ps.encoding.to_real(schema, vector).N.tolist()
        ((2,), [2.0, 2.0, 0.0])
    """
    rare = suppressed(vector[layout.slices[0]] / COUNT_SCALE, min_count) if min_count else ()
    out = vector.copy()
    by_class = [place for segment, place in zip(layout.segments, layout.slices, strict=True) if not segment.pooled]
    for place in by_class:
        table = out[place].reshape(layout.segments[0].size, -1)
        for child, parent in destinations(rare, parents).items():
            if parent is not None:
                table[parent] += table[child]
            table[child] = 0
    return out, rare


def suppressed(noisy_counts: NDArray[np.floating[Any]], min_count: float) -> tuple[int, ...]:
    """Return the classes with a noisy count (records, shape ``(C,)``) below ``min_count``.

    Guarantee:
        Post-processing of the noisy counts: it adds nothing to their cost, under any unit and adjacency.

    Example:
        >>> ps.dp.suppressed(np.array([103.2, 7.9, 55.0]), min_count=50)
        (1,)
    """
    return tuple(int(label) for label in np.flatnonzero(np.asarray(noisy_counts) < min_count))


def destinations(rare: Collection[int], parents: Mapping[int, int]) -> dict[int, int | None]:
    """Map each suppressed class to its receiving parent, or None.

    A suppressed parent receives nothing, because its own sums are dropped too.

    Example:
        >>> ps.dp.destinations(rare=[2, 3], parents={2: 0})
        {2: 0, 3: None}
    """
    return {
        child: parent if (parent := parents.get(child)) is not None and parent not in rare else None
        for child in sorted(rare)
    }


def noise_copies(classes: int, rare: Collection[int], parents: Mapping[int, int]) -> NDArray[np.int64]:
    """Return the number of noise vectors in each class after the merge, shape ``(classes,)``.

    1 plus the merged children, or 0 for a suppressed class: the factor on the noise variance, except in B.

    Example:
        >>> ps.dp.noise_copies(4, rare=[2, 3], parents={2: 0}).tolist()
        [2, 1, 0, 0]
    """
    copies = np.ones(classes, np.int64)
    for child, parent in destinations(rare, parents).items():
        copies[child] = 0
        if parent is not None:
            copies[parent] += 1
    return copies
