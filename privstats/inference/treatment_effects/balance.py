"""Compare the arms' columns by standardised mean differences, from existing sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.denoise import Array
from privstats.estimates.effect import ArmSums
from privstats.inference.counts.table import gradients
from privstats.inference.inversion import quantile
from privstats.inference.releases import column_names, map_columns
from privstats.inference.summary import Framed, rows_by

_SURE = 10.0  # an arm is reported where its records exceed this many standard deviations of their noise
_CLEAR = 3.0  # likewise the mean variance of a column in both arms


@dataclass(frozen=True, eq=False)
class Balance(Framed):
    """Columns of the treated compared with the others', ``(m,)``.

    Attributes:
        means: treated and others, ``(m, 2)``, in column units; NaN where not reported.
        difference: (treated - others) / sqrt of the mean of both variances.
        low, high: about *these* records, from noise alone; infinite where not reported.
        reported: whether both arms' records and spreads exceed the noise.
        weighted: likewise difference, low and high after weighting, ``(m, 3)``, or None.

    Example:
        >>> from privstats.estimates.effect import ArmSums
        >>> G = np.array([[25.0, 0.0], [0.0, 100.0]])
        >>> sums = ArmSums((G, G), (np.zeros(2), np.zeros(2)), 1.0, 0.0, 0.0)
        >>> schema = ps.EffectSchema.of({"age": (20, 90)}, treatment="arm", outcome=(0, 1), probability=0.5)
        >>> ps.inference.treatment_effects.balance.balance_of(sums, schema, 0.05).difference.tolist()
        [0.0]
    """

    columns: tuple[str, ...]
    means: Array
    difference: Array
    low: Array
    high: Array
    reported: NDArray[np.bool_]
    weighted: Array | None = None

    def to_rows(self) -> list[dict[str, object]]:
        """Return rows; unreported numbers are NaN."""
        treated, others = self.means.T
        columns: dict[str, Any] = {"variable": self.columns, "mean_treated": treated, "mean_others": others}
        columns |= {"smd": self.difference, "smd_low": self.low, "smd_high": self.high}
        if self.weighted is not None:
            names = ("weighted_smd", "weighted_smd_low", "weighted_smd_high")
            columns |= dict(zip(names, self.weighted.T, strict=True))
        return rows_by({**columns, "reported": self.reported})


def balance_of(sums: ArmSums, schema: Any, alpha: float) -> Balance:
    """Return both arms' balance, by the delta method."""
    arms, width = _Arms.of(sums), len(sums.h[0]) - 1
    sigma_n, sigma_1 = sums.sigma_G / sums.constant**2, sums.sigma_G / (np.sqrt(2) * abs(sums.constant))
    reported = arms.clear & bool((arms.n > np.maximum(_SURE * sigma_n, 1.0)).all())
    entries = [np.broadcast_to(arms.safe, arms.first.shape), arms.first, arms.second]
    deviations = np.repeat([sigma_n, sigma_1, sums.sigma_G], 2)
    difference, error = standardised_differences(np.stack(entries, axis=1).reshape(width, 6), deviations, reported)
    scale, shift = _units(schema, width)
    reach = quantile(alpha, np.inf) * error if sums.sigma_G else np.where(reported, 0.0, np.inf)
    centre = np.where(reported, difference, 0.0)
    raw = np.where(reported[:, None], (arms.first / arms.safe - shift[:, None]) / scale[:, None], np.nan)
    return Balance(_names(schema, width), raw, difference, centre - reach, centre + reach, reported)


class _Arms(NamedTuple):
    """Records and columns' moments of both arms.

    ``safe`` records are at least 1; ``clear`` variances exceed their noise.
    """

    n: Array
    first: Array
    second: Array
    spreads: Array
    safe: Array
    clear: NDArray[np.bool_]

    @classmethod
    def of(cls, sums: ArmSums) -> _Arms:
        n = np.array(sums.records)
        first = np.stack([G[:-1, -1] / sums.constant for G in sums.G], axis=1)
        second = np.stack([np.diagonal(G)[:-1] for G in sums.G], axis=1)
        safe = np.where(n > 0, n, 1.0)
        spreads = second / safe - (first / safe) ** 2
        clear = np.asarray(spreads.sum(axis=1) > _CLEAR * sums.sigma_G * np.hypot(*(1 / safe)))
        return cls(n, first, second, spreads, safe, clear)


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Weighted columns of the treated minus those of the others, the constant last.

    ``total`` is one arm's summed weights, in expectation the population's.
    """

    difference: Array
    total: float
    sigma: float
    sigma_total: float


def weighted_balance(sums: ArmSums, weighted: WeightedSums, alpha: float) -> Array:
    """Return standardised differences after weighting, with intervals under the noise, ``(m, 3)``.

    Weighted means are compared to first order: each column's sum is reduced by the constant's sum times the column's
    mean. Units are those before weighting.
    """
    arms, T = _Arms.of(sums), weighted.total
    unclear = sums.sigma_G / arms.safe
    counted = (
        bool((arms.n > _SURE * sums.sigma_G / sums.constant**2).all()) and max(_SURE * weighted.sigma_total, 0) < T
    )
    reported = arms.clear & counted
    variance = np.where(reported, arms.spreads.sum(axis=1) / 2, 1.0)
    mean = arms.first.sum(axis=1) / arms.safe.sum() / sums.constant
    apart = weighted.difference[:-1] - mean * weighted.difference[-1]
    difference = apart / (T if T > 0 else 1.0) / np.sqrt(variance)
    error = weighted.sigma * np.sqrt(1 + mean**2) / max(T, 1.0) / np.sqrt(variance)
    relative = (weighted.sigma_total / max(T, 1.0)) ** 2 + float(unclear @ unclear) / 16 / variance**2
    reach = quantile(alpha, np.inf) * np.sqrt(error**2 + difference**2 * relative)
    ends = np.stack([difference, difference - reach, difference + reach], axis=1)
    return np.where(reported[:, None], ends, [np.nan, -np.inf, np.inf])


def standardised_differences(entries: Array, deviations: Array, reported: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return differences and noise errors, from :func:`standardised`'s entries; NaN and infinite where hidden."""
    values, errors = np.full(len(entries), np.nan), np.full(len(entries), np.inf)
    for place in np.flatnonzero(reported):
        slopes = gradients(standardised, entries[place])[:, 0]
        values[place] = float(np.real(standardised(entries[place]))[0])
        errors[place] = float(np.sqrt(np.square(slopes * deviations).sum()))
    return values, errors


def standardised(entries: Array) -> Array:
    """Return the difference from records, sums and sums of squares, ``(..., 6)``."""
    n, first, second = (entries[..., place : place + 2] for place in (0, 2, 4))
    means = first / n
    spread = (second / n - means**2).sum(axis=-1, keepdims=True) / 2
    return np.asarray((means[..., :1] - means[..., 1:]) / np.sqrt(spread))


def _units(schema: Any, width: int) -> tuple[Array, Array]:
    arm = schema.transform[-1].column
    scale, shift = map_columns(schema.transform[:-1], width + 1)
    return np.delete(scale, arm), np.delete(shift, arm)


def _names(schema: Any, width: int) -> tuple[str, ...]:
    names = list(column_names(schema, width + 1))
    del names[schema.transform[-1].column]
    return tuple(names)
