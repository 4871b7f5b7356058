"""Test whether effects differ between groups of sites, without showing any site's or group's estimate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtrc

from privstats.errors import ReleaseError
from privstats.estimates.denoise import Array
from privstats.inference.inversion import quantile
from privstats.inference.summary import chance_of, number_of

if TYPE_CHECKING:
    from privstats.inference.treatment_effects.table import EffectTable


_SURE = 4.0  # standard deviations of its noise that the weight of a group must exceed
_FEWEST = 10  # records of a group, noisy
_LEAST = 0.05  # minimum part of all variance for a group's own variance to be used


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums of disjoint groups of sites; a group's estimate is ``offset + S / W``.

    Attributes:
        second: noisy sums of squared influences about 0.
        records: noisy.
        centred: whether S^2 / W is subtracted from the squares: weights are 0 or 1.
        noise: noise variance of S.
        deviation, sigma_W: noise standard deviations of ``second`` and W.
        common: variance that nuisances add over all groups.
    """

    offset: float
    S: Array
    W: Array
    second: Array
    records: Array
    centred: bool
    noise: float
    deviation: float
    sigma_W: float
    common: float = 0.0


@dataclass(frozen=True)
class Heterogeneity:
    """Comparison of effects between groups of sites.

    Attributes:
        groups, sites: F, K.
        statistic: Welch's.
        degrees: of the F law under equal effects.
        p_value: for equal effects at all sites.
        q: Cochran's Q: squared distances from the pooled effect, in standard errors.
        site_sd: standard deviation of effects between equally large sites; 0 where Q does not exceed chance and noise.
        pooled: common effect, groups weighted by inverse variance.
        pooled_bse: under equal effects.
        mean: unweighted mean over groups.
        mean_bse: from the groups' distances.
        mean_degrees: F - 1, or fewer for unequal variances.
    """

    groups: int
    sites: int
    statistic: float
    degrees: tuple[float, float]
    p_value: float
    q: float
    site_sd: float
    pooled: float
    pooled_bse: float
    pooled_degrees: float
    mean: float
    mean_bse: float
    mean_degrees: float

    @property
    def i_squared(self) -> float:
        """Part of the variance between *groups* of sites beyond chance and noise."""
        return max(0.0, 1 - (self.groups - 1) / self.q) if self.q > 0 else 0.0

    def pooled_int(self, alpha: float = 0.05) -> Array:
        """Return the common effect's interval, ``(2,)``; it assumes equal effects at all sites."""
        reach = quantile(alpha, self.pooled_degrees) * self.pooled_bse
        return np.array([self.pooled - reach, self.pooled + reach])

    def mean_int(self, alpha: float = 0.05) -> Array:
        """Return the mean effect's interval at similar sites, ``(2,)``."""
        reach = quantile(alpha, self.mean_degrees) * self.mean_bse
        return np.array([self.mean - reach, self.mean + reach])


def heterogeneity_of(sums: GroupSums, sites: int) -> Heterogeneity:
    """Run Welch's (1951) test between groups, with variances shrunk towards each other.

    With separate variances, groups with a variance made small by noise weigh too much: Q rejects 8 to 9 % at a level of
    5 %. A group's variance is therefore the mean's, v, plus the fraction ``max(0, 1 - (F - 1) d^2 / sum of squared
    distances)`` of its distance from v (James and Stein), d the noise in one. Its degrees of freedom are
    Satterthwaite's (1946) for the remaining noise. The spread of sites is DerSimonian and Laird's (1986) for groups,
    times sqrt(K / F).

    Raises:
        ReleaseError: noise hides the number of records in a group.
    """
    F = len(sums.S)
    if not (_SURE * sums.sigma_W < sums.W).all() or not (sums.records >= _FEWEST).all():
        raise ReleaseError("noise hides how many records some group of sites has: plan fewer groups, or more records")
    estimates = sums.S / sums.W
    variances, degrees = _variances(sums, estimates)
    w = 1 / variances
    share = w / w.sum()
    pooled = float(share @ estimates)
    q, lost = float(w @ (estimates - pooled) ** 2), float(((1 - share) ** 2 / degrees).sum())
    statistic, second = _welch(q, F, lost)
    spread = _between(q, q / (F - 1) / statistic if statistic > 0 else 1.0, second, w)
    total, each = float(sums.W.sum()), variances + max(spread, 0.0)
    error = (1 + 4 * float((share * (1 - share) / degrees).sum())) / w.sum() + sums.common / total**2
    return Heterogeneity(
        groups=F,
        sites=sites,
        statistic=statistic,
        degrees=(F - 1.0, second),
        p_value=float(fdtrc(F - 1, second, statistic)) if statistic > 0 else 1.0,
        q=q,
        site_sd=math.sqrt(max(spread, 0.0) * sites / F),
        pooled=sums.offset + pooled,
        pooled_bse=math.sqrt(error),
        pooled_degrees=1 / float((share**2 / degrees).sum()),
        mean=sums.offset + float(estimates.mean()),
        mean_bse=float(estimates.std(ddof=1)) / math.sqrt(F),
        mean_degrees=(F - 1) / F * float(each.sum() ** 2 / (each @ each)),
    )


def _welch(q: float, groups: int, lost: float) -> tuple[float, float]:
    statistic = q / (groups - 1) / (1 + 2 * (groups - 2) / (groups**2 - 1) * lost)
    return statistic, (groups**2 - 1) / (3 * lost)


def _between(q: float, raised: float, second: float, w: Array) -> float:
    excess = second / (second - 2) if second > 2 else 1.0
    return float((q - (len(w) - 1) * raised * excess) / (w.sum() - (w**2).sum() / w.sum()))


def _variances(sums: GroupSums, estimates: Array) -> tuple[Array, Array]:
    F, W, n = len(sums.S), sums.W, sums.records
    own, total = sums.second - (sums.S**2 / W if sums.centred else 0.0), float(n.sum())
    mean = max(float(own.sum()), math.sqrt(F) * sums.deviation) / total * n
    apart = own - mean
    far = float(apart @ apart)
    factor = max(0.0, 1 - (F - 1) * sums.deviation**2 / far) if far > 0 else 0.0
    sampling = np.maximum(mean + factor * apart, _LEAST * mean) * n / np.maximum(n - 1, 1.0)
    moved = (factor + (1 - factor) * n / total) * sums.deviation**2
    variances = sampling + sums.noise
    degrees = 1 / (1 / np.maximum(n - 1, 1.0) + moved / (2 * variances**2))
    return (variances + (estimates * sums.sigma_W) ** 2) / W**2, degrees


def heterogeneity_sentence(table: EffectTable, alpha: float) -> str:
    """Return a sentence on Q, I2 and sites' spread."""
    try:
        between = table.heterogeneity()
    except ReleaseError as error:
        return f"Between groups of sites: {error}."
    each, level = f"{between.sites / between.groups:.3g}", f"{1 - alpha:.0%}"
    return (
        f"Between {between.groups} groups of {each} sites: Q {between.q:.3g}, P {chance_of(between.p_value)} (Welch), "
        f"I2 between groups of {each} sites {between.i_squared:.0%}, standard deviation of effects between sites "
        f"{between.site_sd:.3g} if all are of one size. The common effect, if sites do not differ, is "
        f"{number_of(between.pooled)} ({level}: {_ends(between.pooled_int(alpha))}); at other sites like these its "
        f"mean is {number_of(between.mean)} ({_ends(between.mean_int(alpha))}). No estimate of a single site is "
        "released." + ("" if table.design == "trial" else " Sites may also differ by confounding.")
    )


def _ends(interval: Array) -> str:
    low, high = map(float, interval)
    return f"{number_of(low)} to {number_of(high)}"
