"""Balance of a treatment's arms: standardised mean differences of the columns, from sums that exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privstats.estimates.effect import ArmSums
from privstats.estimates.spectrum import Array
from privstats.inference.counts.table import gradients
from privstats.inference.evidence import column_names, map_columns
from privstats.inference.inversion import quantile
from privstats.inference.row_table import Framed, rows_by

__all__ = ["Balance", "WeightedSums", "balance_of", "standardised", "weighted_balance"]

_SURE = 10.0  # standard deviations of its noise that the records of an arm must exceed to be told
_CLEAR = 3.0  # likewise the variance of a column in an arm


@dataclass(frozen=True, eq=False)
class Balance(Framed):
    """Columns of the treated beside those of the others; arrays have one entry per column.

    Attributes:
        columns: their names.
        means: of the treated and of the others, ``(m, 2)``, in the units of the columns; NaN where not told.
        difference: standardised mean differences, (treated - others) / sqrt of the mean of both variances.
        low, high: intervals of the differences of *these* records, under the noise alone; infinite where not told.
        told: whether noise leaves the records and spreads of both arms to be read.
        weighted: of every column the same difference, low and high end after weighting the arms, ``(m, 3)``; None where
            the last session did not release it.

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
    told: NDArray[np.bool_]
    weighted: Array | None = None

    def to_rows(self) -> list[dict[str, object]]:
        """One row per column, after weighting too where that was released; numbers that are not told are NaN."""
        treated, others = self.means.T
        columns: dict[str, Any] = {"variable": self.columns, "mean_treated": treated, "mean_others": others}
        columns |= {"smd": self.difference, "smd_low": self.low, "smd_high": self.high}
        if self.weighted is not None:
            names = ("weighted_smd", "weighted_smd_low", "weighted_smd_high")
            columns |= dict(zip(names, self.weighted.T, strict=True))
        return rows_by({**columns, "told": self.told})


def balance_of(sums: ArmSums, schema: Any, alpha: float) -> Balance:
    """The balance of both arms, by the delta method under the noise of the sums.

    Args:
        sums: of the outcome session.
        schema: of the course, for names and units of the columns.
        alpha: level of the intervals.
    """
    width, constant = len(sums.h[0]) - 1, sums.constant
    n = np.array(sums.records)
    first = np.stack([G[:-1, -1] / constant for G in sums.G], axis=1)
    second = np.stack([np.diagonal(G)[:-1] for G in sums.G], axis=1)
    sigma_n, sigma_1 = sums.sigma_G / constant**2, sums.sigma_G / (np.sqrt(2) * abs(constant))
    counted = (n > np.maximum(_SURE * sigma_n, 1.0)).all()
    safe = np.where(n > 0, n, 1.0)
    means = first / safe
    spreads = second / safe - means**2
    told = counted & (spreads > _CLEAR * sums.sigma_G / safe).all(axis=1)
    entries = np.stack([np.broadcast_to(safe, means.shape), first, second], axis=1).reshape(width, 6)
    deviations = np.repeat([sigma_n, sigma_1, sums.sigma_G], 2)
    difference, error = np.full(width, np.nan), np.full(width, np.inf)
    for place in np.flatnonzero(told):
        slopes = gradients(standardised, entries[place])[:, 0]
        difference[place] = float(np.real(standardised(entries[place]))[0])
        error[place] = float(np.sqrt(np.square(slopes * deviations).sum()))
    scale, shift = _units(schema, width)
    reach = quantile(alpha, np.inf) * error if sums.sigma_G else np.where(told, 0.0, np.inf)
    centre = np.where(told, difference, 0.0)
    raw = np.where(told[:, None], (means - shift[:, None]) / scale[:, None], np.nan)
    return Balance(_names(schema, width), raw, difference, centre - reach, centre + reach, told)


@dataclass(frozen=True, eq=False)
class WeightedSums:
    """Columns weighted for their arms, of the treated less those of the others.

    Attributes:
        difference: the sum over records ``(d,)``, the constant last.
        total: weights of an arm together, in expectation those of the population.
        sigma, sigma_total: noise standard deviations of an entry and of the total.
    """

    difference: Array
    total: float
    sigma: float
    sigma_total: float


def weighted_balance(sums: ArmSums, weighted: WeightedSums, alpha: float) -> Array:
    """Standardised differences after weighting with the ends of their intervals under the noise, ``(m, 3)``.

    Arms whose weights do not add up to the same are compared by their weighted means, to first order: of a column's sum
    the constant's is taken out, times the column's mean. Units are those of the differences before.

    Args:
        sums: of the outcome session, for means and spreads.
        weighted: of the last session.
        alpha: level of the intervals.
    """
    constant, n = sums.constant, np.array(sums.records)
    first = np.stack([G[:-1, -1] / constant for G in sums.G], axis=1)
    second = np.stack([np.diagonal(G)[:-1] for G in sums.G], axis=1)
    safe, T = np.where(n > 0, n, 1.0), weighted.total
    spreads = second / safe - (first / safe) ** 2
    unclear = sums.sigma_G / safe
    counted = bool((n > _SURE * sums.sigma_G / constant**2).all()) and max(_SURE * weighted.sigma_total, 0.0) < T
    told = np.asarray((spreads > _CLEAR * unclear).all(axis=1) & counted)
    variance = np.where(told, spreads.sum(axis=1) / 2, 1.0)
    mean = first.sum(axis=1) / safe.sum() / constant
    apart = weighted.difference[:-1] - mean * weighted.difference[-1]
    found = apart / (T if T > 0 else 1.0) / np.sqrt(variance)
    error = weighted.sigma * np.sqrt(1 + mean**2) / max(T, 1.0) / np.sqrt(variance)
    relative = (weighted.sigma_total / max(T, 1.0)) ** 2 + float(unclear @ unclear) / 16 / variance**2
    reach = quantile(alpha, np.inf) * np.sqrt(error**2 + found**2 * relative)
    ends = np.stack([found, found - reach, found + reach], axis=1)
    return np.where(told[:, None], ends, [np.nan, -np.inf, np.inf])


def standardised(entries: Array) -> Array:
    """The difference from records, sums and sums of squares of both arms, ``(..., 6)``."""
    n, first, second = (entries[..., place : place + 2] for place in (0, 2, 4))
    means = first / n
    spread = (second / n - means**2).sum(axis=-1, keepdims=True) / 2
    return np.asarray((means[..., :1] - means[..., 1:]) / np.sqrt(spread))


def _units(schema: Any, width: int) -> tuple[Array, Array]:
    """Of every column but the arm: u = scale x + shift."""
    arm = schema.transform[-1].column
    scale, shift = map_columns(schema.transform[:-1], width + 1)
    return np.delete(scale, arm), np.delete(shift, arm)


def _names(schema: Any, width: int) -> tuple[str, ...]:
    names = list(column_names(schema, width + 1))
    del names[schema.transform[-1].column]
    return tuple(names)
