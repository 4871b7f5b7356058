"""Compute outcomes by arm (CONSORT 2010, items 13b, 16 and 17a) from sums already released."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privstats.errors import ReleaseError
from privstats.inference.description import Count
from privstats.inference.inversion import quantile
from privstats.inference.releases import reckoned_sigma
from privstats.inference.treatment_effects.adjusted import (
    AdjustedMean,
    Standardisation,
    adjusted_means,
    has_adjusted_means,
)
from privstats.inference.treatment_effects.influence_sums import CourseSums, InfluenceSums
from privstats.kinds import EffectSchema
from privstats.transforms import ByArm, Categories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privstats.inference.treatment_effects.table import EffectTable

_DIGITS = 12


@dataclass(frozen=True)
class Total:
    """A noisy number, with its noise standard deviation."""

    value: float
    error: float

    @property
    def text(self) -> str:
        """The number with its noise, such as ``"2,601 (SE 7.0)"``; ``"-"`` where hidden."""
        return self.count("").short

    def count(self, name: str) -> Count:
        """Return the number under a name."""
        return Count(name, None if math.isnan(self.value) else self.value, self.error)


@dataclass(frozen=True)
class LeftOut:
    """Records of one arm that no other sum includes (CONSORT 13b): integers of at least 0.

    Attributes:
        arm: its text, or ``"treated"``, ``"others"``, ``"unknown"``.
        outcome: unreadable outcome.
        column: another unreadable column, or no subgroup.
    """

    arm: str
    outcome: Total
    column: Total

    @property
    def both(self) -> Total:
        """Sum of ``outcome`` and ``column``."""
        return together((self.outcome, self.column))


def together(several: Sequence[Total]) -> Total:
    """Return the sum of totals with independent noise."""
    return Total(sum(each.value for each in several), math.hypot(*(each.error for each in several)))


def excluded_records(read: CourseSums) -> tuple[LeftOut, ...]:
    """Return excluded records by arm, unknown last."""
    if not read.schema.left_out:
        return ()
    counts, sigma = np.maximum(np.rint(read.last.moments.O), 0.0), float(reckoned_sigma(read.last).get("O", 0.0))
    treated, others = arm_names(read.schema)
    places = ((treated, 2), (others, 0), ("unknown", 4))
    return tuple(LeftOut(arm, *(Total(float(n), sigma) for n in counts[at : at + 2])) for arm, at in places)


@dataclass(frozen=True)
class ArmOutcome:
    """One arm's mean of one outcome, with its interval.

    With n records and h the sum of outcomes about their range's middle c, both noisy, the interval is Wilson's with
    noise. A mean m about the middle is accepted where ``(h - m n)^2 <= z^2 (n v(m) + sigma_h^2 + (c + m)^2
    sigma_n^2)``: h is a released sum minus c n, so the noise of n enters twice. For outcomes in -B..B, v is at most
    ``B^2 - m^2`` (Bhatia and Davis 2000), with equality for a 0/1 outcome. For a single measured outcome v is also at
    most both arms' squares about their means over n. The interval therefore holds for arms of unequal spread, and is up
    to sqrt 2 times too wide for equal spreads.

    Attributes:
        arm: its text, or ``"treated"`` and ``"others"``.
        analysed: records with an outcome.
        events: None for a measured outcome.
        mean: mean or risk; NaN where hidden.
        low, high: infinite where hidden.
        adjusted: None where unavailable.
    """

    outcome: str
    arm: str
    analysed: Total
    events: Total | None
    mean: float
    low: float
    high: float
    adjusted: AdjustedMean | None = None

    @property
    def measure(self) -> str:
        """``"risk"`` for a 0/1 outcome, otherwise ``"mean"``."""
        return "mean" if self.events is None else "risk"

    @property
    def reported(self) -> bool:
        """Whether the interval is finite."""
        return math.isfinite(self.high)


def interval_of_mean(
    h: float, n: float, middle: float, half: float, sigma_h: float, sigma_n: float, squares: float | None, alpha: float
) -> tuple[float, float]:
    """Return a mean's interval about its range's middle; infinite where noise hides the mean.

    Args:
        h, n: sum of outcomes about the middle, and records.
        middle, half: the range's middle and half width.
        sigma_h, sigma_n: noise of the released (uncentred) sum and of n.
        squares: bound on squares about the outcomes' mean, or None.
    """
    z2 = quantile(alpha, math.inf) ** 2
    wide, flat = max(n, 0.0) * half**2, math.inf if squares is None else squares
    noise, cross = sigma_h**2 + (middle * sigma_n) ** 2, h * n + z2 * middle * sigma_n**2
    # v(m) = B^2 - m^2 or flat / n, whichever is smaller: the accepted set is the intersection of both sets
    ends = [_accepted(n**2 - z2 * (sigma_n**2 - max(n, 0.0)), cross, h**2 - z2 * (wide + noise), n)]
    if math.isfinite(flat):
        ends.append(_accepted(n**2 - z2 * sigma_n**2, cross, h**2 - z2 * (flat + noise), n))
    low, high = max(each[0] for each in ends), min(each[1] for each in ends)
    return (max(low, -half), min(high, half)) if math.isfinite(low) and math.isfinite(high) else (-math.inf, math.inf)


def _accepted(square: float, cross: float, rest: float, n: float) -> tuple[float, float]:
    inside = cross**2 - square * rest
    if n <= 0 or square <= 0 or inside < 0:
        return -math.inf, math.inf
    return (cross - math.sqrt(inside)) / square, (cross + math.sqrt(inside)) / square


def split_of(read: CourseSums) -> tuple[Total, Total] | None:
    """Return each arm's records, which add up to all, or None."""
    if read.assigned is None:
        return None
    every, numbers = InfluenceSums.of(read.last), np.maximum(read.assigned.records, 0.0)
    both, sigma = float(numbers.sum()), read.assigned.sigma_G / read.assigned.constant**2
    if both <= 0:
        return None
    shares = numbers / both
    apart = max(every.n, 0.0) / both * sigma * float(np.hypot(*shares))
    first, second = (Total(every.n * share, math.hypot(share * every.sigma_n, apart)) for share in shares.tolist())
    return first, second


def is_binary(schema: EffectSchema, place: int) -> bool:
    """Return whether an outcome is 0 or 1."""
    levels = schema.reading.levels
    if levels is not None and levels.outcomes:
        return isinstance(levels.outcomes[place], Categories)
    return schema.outcome == (0.0, 1.0)


def arm_names(schema: EffectSchema) -> tuple[str, str]:
    """Return the treated's and the others' names."""
    levels = schema.reading.levels
    texts = None if levels is None else levels.of(arm_column(schema))
    return ("treated", "others") if texts is None else (str(texts.values[1]), str(texts.values[0]))


def arm_labels(schema: EffectSchema) -> tuple[str, str]:
    """Return the treated and the others as rows name them: with the column, such as ``"arm: drug"``."""
    treated, others = arm_names(schema)
    if (treated, others) == ("treated", "others"):
        return treated, others
    return f"{arm_column(schema)}: {treated}", f"{arm_column(schema)}: {others}"


def arm_column(schema: EffectSchema) -> str:
    """Return the treatment's column, or an empty text."""
    last = schema.transform[-1]
    return schema.feature_names[last.column] if schema.feature_names and isinstance(last, ByArm) else ""


def arm_outcomes(read: CourseSums, place: int, alpha: float) -> tuple[ArmOutcome, ArmOutcome]:
    """Return an outcome's arms, treated first."""
    schema, split = read.schema, analysed(read)
    if read.arms is None or split is None:
        raise ReleaseError(
            "outcomes by arm are read from the outcome session, which share=0 omits, or whose records noise hides; "
            "set share above 0"
        )
    sums, sigma, half = read.arms[place], reckoned_sigma(read.present[-2]), schema.half
    noise = sigma.get("h", 0.0) / abs(sums.constant), sigma.get("G", 0.0) / sums.constant**2
    totals = [(float(h[-1]) / sums.constant, n) for h, n in zip(sums.h, sums.records, strict=True)]
    binary, name = is_binary(schema, place), (schema.outcome_names or ("",))[place]
    squares = None if binary else _squares(read, totals)
    outcomes = []
    for arm, (h, n), number in zip(arm_names(schema), totals, split, strict=True):
        low, high = interval_of_mean(h, n, schema.middle, half, *noise, squares, alpha)
        # Rounding puts an end of the range exactly at the end: no event is a risk of 0, not of 5.6e-17.
        mean = min(max(round(h / n / half, _DIGITS), -1.0), 1.0) * half if math.isfinite(high) else math.nan
        events = Total(number.value * (mean / half + 1) / 2, math.hypot(noise[0], noise[1] / 2)) if binary else None
        mean, low, high = (schema.middle + each for each in (mean, low, high))
        outcomes.append(ArmOutcome(name, arm, number, events, mean, low, high))
    return outcomes[0], outcomes[1]


def with_adjusted(
    read: CourseSums, place: int, arms: tuple[ArmOutcome, ArmOutcome], effect: EffectTable, alpha: float
) -> tuple[ArmOutcome, ArmOutcome]:
    """Return both arms of an outcome with their adjusted means, where available.

    An unreported effect or plain mean hides them. If the sessions summed different parties, the outcome session alone
    is used.
    """
    schema, outcome, last = read.schema, read.present[-2], read.last
    if read.arms is None or not has_adjusted_means(schema):
        return arms
    if effect.why_at(alpha) or not all(each.reported for each in arms):
        hidden = AdjustedMean(math.nan, -math.inf, math.inf)
        return replace(arms[0], adjusted=hidden), replace(arms[1], adjusted=hidden)
    sums, sigma, line, d = read.arms[place], reckoned_sigma(outcome), read.lines[place].real, schema.width
    both = Standardisation(sums, (line[:d], line[d : 2 * d]), schema.middle, sigma.get("G", 0.0), sigma.get("h", 0.0))
    totals = [(float(h[-1]) / sums.constant, n) for h, n in zip(sums.h, sums.records, strict=True)]
    squares = None if is_binary(schema, place) else _squares(read, totals)
    known = (effect.estimate, effect.noise_bse) if outcome.survivors == last.survivors else None
    found = adjusted_means(both, schema.half, known, squares, alpha)
    treated, others = (
        replace(arm, adjusted=AdjustedMean(*(schema.middle + end for end in (each.mean, each.low, each.high))))
        for arm, each in zip(arms, found, strict=True)
    )
    return treated, others


def analysed(read: CourseSums) -> tuple[Total, Total] | None:
    """Return each arm's records with an outcome."""
    if not read.schema.missing:
        return split_of(read)
    if read.arms is None:
        return None
    sums = read.arms[0]
    first, second = (Total(max(each, 0.0), sums.sigma_G / sums.constant**2) for each in sums.records)
    return first, second


def _squares(read: CourseSums, totals: Sequence[tuple[float, float]]) -> float | None:
    schema, outcome = read.schema, read.present[-2]
    if schema.outcomes > 1:
        return None
    raw = float(np.asarray(outcome.moments.q).sum())
    plain = sum(h + schema.middle * n for h, n in totals)
    n = sum(each for _, each in totals)
    centred = raw - 2 * schema.middle * plain + schema.middle**2 * n
    within = centred - sum(h**2 / each for h, each in totals if each > 0)
    return max(within, float(reckoned_sigma(outcome).get("q", 0.0)), 0.0)
